"""Check 2.5: what a turn may do to a list in each mode (R §5b, ADR 20)."""

import pytest

from kits.review_cases import Story, approved, listing, returned, story, waiting
from ralph.review.law import (
    MODES,
    Problem,
    illegal,
    inconsistent,
    snapshot,
)
from ralph.review.repair import Law

OTHER = story("US-009")


def told(before: list[Story], after: list[Story], mode: str) -> str:
    """What the hook says, by R's snapshot; the law says that too."""
    problems = list(illegal(snapshot(listing(*before)), listing(*after), mode))
    law = Law(mode).problems(listing(*before), listing(*after))
    assert set(problems) <= set(law)
    assert bool(problems) is bool(law)
    assert all(words.endswith(".") and words.isprintable() for _, words in problems)
    return " | ".join(words for _, words in problems)


LEFT: Story = {"notes": "done"}
PLAN: list[tuple[str, str, list[Story], list[Story], str]] = [
    # R, Verification Plan 3, "Transition validation tests (Check 2.5)"
    (
        *("implement", "passes false → true", [story()], [story(passes=True, **LEFT)]),
        (
            "Implement iterations cannot set passes=true or approve stories. Only review "
            "iterations may approve. Story US-001 had illegal transition: passes false → true."
        ),
    ),
    (
        *("implement", "null → approved", [story()], [approved(count=0)]),
        'Story US-001 had illegal transition: reviewStatus null → "approved".',
    ),
    (
        *("implement", "reviewCount 0 → 1", [story()], [story(reviewCount=1)]),
        "Implement iterations cannot increment reviewCount.",
    ),
    ("implement", "null → needs_review", [story()], [waiting()], ""),
    ("implement", "new story", [story()], [story(), story("new")], ""),
    (
        *("implement", "new story passes", [story()], [story(), story("new", passes=True, **LEFT)]),
        (
            "Story new is new, and new stories must start incomplete: passes=false, "
            "reviewStatus=null, reviewCount=0, not passes=true."
        ),
    ),
    ("review", "legal approval", [waiting(count=1)], [approved(count=2)], ""),
    ("review", "legal rejection", [waiting(count=1)], [returned(count=2)], ""),
    (
        *("review", "reviewCount unchanged", [waiting(count=1)], [approved(count=1)]),
        (
            "Review iteration made illegal transition on story US-001: review must increment "
            "reviewCount by 1, not 1 → 1."
        ),
    ),
    (
        *("review", "TWO stories", [waiting("a"), waiting("b")], [approved("a"), approved("b")]),
        "review may only modify one story, not a, b",
    ),
    (
        *("review-fix", "passes false → true", [returned()], [returned(passes=True, **LEFT)]),
        (
            "Review-fix iterations cannot approve stories. Story US-001 must go back to "
            "needs_review for re-review. Illegal transition: passes false → true."
        ),
    ),
    ("review-fix", "legal re-submit", [returned()], [waiting(count=1)], ""),
    (
        *("review-fix", "reviewCount changed", [returned()], [waiting(count=2)]),
        "Review-fix iterations cannot increment reviewCount.",
    ),
    # R §5b, the rest of its table
    ("implement", "nothing", [story(), returned("b")], [story(), returned("b")], ""),
    (
        *("implement", "two sent", [story("a"), story("b")], [waiting("a"), waiting("b")]),
        "Implement iterations may send one story to its review, not a, b.",
    ),
    (
        *("implement", "sent back", [returned()], [waiting(count=1)]),
        'illegal transition: reviewStatus "changes_requested" → "needs_review".',
    ),
    ("implement", "unsent", [waiting()], [story()], 'reviewStatus "needs_review" → null.'),
    ("implement", "unapproved", [approved()], [story(reviewCount=1)], "passes true → false."),
    (
        *("review-fix", "two sent", [returned("a"), returned("b")]),
        [waiting("a", 1), waiting("b", 1)],
        "Review-fix iterations may send one story to its review, not a, b.",
    ),
    ("review-fix", "implemented", [story()], [waiting()], "Illegal transition: reviewStatus null"),
    ("review-fix", "approved", [returned()], [approved()], "cannot approve stories"),
    ("review-fix", "nothing", [returned()], [returned()], ""),
    # the holes (ADR 20)
    (
        *("review-fix", "feedback not cleared", [returned()]),
        [waiting(count=1, reviewFeedback="mend it")],
        "Story US-001 goes back to needs_review: clear its reviewFeedback first.",
    ),
    (
        *("review", "changes nothing", [waiting()], [waiting()]),
        "Review iteration made illegal transition: no story was reviewed. Review one, increment",
    ),
    (
        *("review", "approval from null", [story(), waiting("b")], [approved(), waiting("b")]),
        "only a story with reviewStatus needs_review can be reviewed, not null",
    ),
    ("review", "from returned", [returned()], [approved(count=2)], "not changes_requested"),
    ("review", "from approved", [approved()], [returned(count=2)], "reviewed, not approved"),
    ("review", "counted twice", [waiting()], [approved(count=2)], "by 1, not 0 → 2"),
    ("review", "counted down", [waiting(count=1)], [approved(count=0)], "by 1, not 1 → 0"),
    ("review", "count of true", [waiting()], [approved(reviewCount=True)], "not 0 → true"),
    ("review", "count of 1.0", [waiting()], [approved(reviewCount=1.0)], "not 0 → 1.0"),
    (
        "review",
        "only counted",
        [waiting()],
        [waiting(count=1)],
        "end approved or changes_requested",
    ),
    ("review", "unsent", [waiting()], [story(reviewCount=1)], "changes_requested, not null"),
    ("review", "out of sync", [waiting()], [approved(passes=False)], "go with passes=false"),
    ("review", "half liked", [waiting()], [returned(passes=True)], "go with passes=true"),
    (
        "review",
        "without words",
        [waiting()],
        [returned(reviewFeedback=" ")],
        "needs a reviewFeedback",
    ),
    (
        *("review", "ids swapped", [waiting("a"), story("b")], [story("a"), waiting("b")]),
        "review may only modify one story, not a, b",
    ),
    (
        "implement",
        "ids swapped",
        [approved("a"), story("b")],
        [story("a"), approved("b")],
        "passes",
    ),
    ("implement", "id changed", [story("a")], [story("b")], "Story a was deleted"),
    *(
        (mode, "deleted", [OTHER, returned(), waiting("b")], [OTHER], "put it back")
        for mode in MODES
    ),
    *((mode, "born approved", [OTHER], [OTHER, approved()], "is new, and new") for mode in MODES),
    *(
        (mode, "born waiting", [OTHER], [OTHER, waiting()], "must start incomplete")
        for mode in MODES
    ),
    *((mode, "born counted", [], [story(reviewCount=1)], "not reviewCount=1.") for mode in MODES),
    *(
        (mode, "born with 0.0", [], [story(reviewCount=0.0)], "not reviewCount=0.0")
        for mode in MODES
    ),
    *((mode, "born with false", [], [story(reviewCount=False)], "Count=false") for mode in MODES),
]


@pytest.mark.parametrize(
    ("mode", "case", "before", "after", "words"), PLAN, ids=[f"{m}: {c}" for m, c, *_ in PLAN]
)
def test_transitions(
    mode: str, case: str, before: list[Story], after: list[Story], words: str
) -> None:
    said = told(before, after, mode)
    assert words in said
    assert bool(words) is bool(said)


def test_a_legal_review_may_bring_new_stories() -> None:
    """R §6: "Claude may add/split/reorder stories in tasks.json as needed"."""
    assert told([waiting(), OTHER], [OTHER, story("new"), approved()], "review") == ""


def test_every_move_of_an_illegal_turn_is_named() -> None:
    said = told([story()], [approved()], "implement")
    assert [w in said for w in ("passes false", "reviewStatus null", "reviewCount 0 → 1")] == [
        True
    ] * 3


def test_an_empty_snapshot_makes_every_story_new() -> None:
    """A marker without stories is no free pass: what is approved was born so."""
    now = listing(approved("a"), story("b"))
    names = [name for name, _ in illegal({}, now, "implement")]
    assert names == ["a", "a", "a"]


def test_a_missing_snapshot_leaves_check_2() -> None:
    """R: "Check 2.5 is skipped with a warning but Check 2 still runs"."""
    assert [name for name, _ in inconsistent(listing(story(passes=True)))] == ["US-001"]
    assert list(inconsistent(listing(approved()))) == []


# ------------------------------------------------------------ what only the host remembers


def remembered(before: Story, after: Story, mode: str) -> list[Problem]:
    return list(Law(mode).transitions(listing(before), listing(after)))


REVIEWER = "Review iterations leave stories as they are"
SENT = "Story US-001 has been sent to its review"
REWORDED: list[tuple[str, Story, Story, str]] = [
    ("implement", approved(), approved(), SENT),
    ("review-fix", approved(), approved(), SENT),
    ("review", waiting(), approved(), REVIEWER),
    ("review", waiting(), returned(), REVIEWER),
    ("implement", story(), waiting(), ""),  # R §6: stories may be split and restructured
    ("implement", story(), story(), ""),
    ("review-fix", returned(), waiting(count=1), SENT),
    ("implement", waiting(), waiting(), SENT),
]


@pytest.mark.parametrize("field", ["title", "description", "acceptanceCriteria"])
@pytest.mark.parametrize(("mode", "before", "after", "why"), REWORDED)
def test_a_review_is_of_what_was_asked_for(
    mode: str, before: Story, after: Story, why: str, field: str
) -> None:
    problems = remembered(before, {**after, field: ["it exists"]}, mode)
    words = f"{why}: leave the {field} of US-001 alone."
    assert problems == ([("US-001", words)] if why else [])


@pytest.mark.parametrize("mode", ["implement", "review", "review-fix"])
@pytest.mark.parametrize(
    ("before", "after", "gone"),
    [
        (["make test"], ["make test", "make lint"], ""),
        (["make test"], ["true"], '"make test"'),
        (["make test"], [], '"make test"'),
        (["make test"], "true", '"make test"'),
        ([], ["true"], ""),
        (None, None, ""),
    ],
)
@pytest.mark.parametrize("skip", [False, True])
def test_what_reviews_go_by_is_only_added_to(
    mode: str, before: object, after: object, gone: str, skip: bool
) -> None:
    """Whoever is reviewed does not choose how."""
    old = {**listing(story()), "verifyCommands": before}
    new = {**listing(story()), "verifyCommands": after}
    words = f"Leave 'verifyCommands' as they were: {gone} is gone."
    found = [p for p in Law(mode, skip_review=skip).transitions(old, new) if "verify" in p[1]]
    assert found == ([("", words)] if gone else [])
    repaired = Law(mode, skip_review=skip).repaired(old, new)
    if gone:
        assert repaired is not None
        extra = after if isinstance(after, list) else []
        assert repaired["verifyCommands"] == ["make test", *extra]


@pytest.mark.parametrize(
    ("law", "before", "after", "stands"),
    [
        (Law("review", failed=True), waiting(), approved(), False),
        (Law("review", failed=True), waiting(), returned(), False),
        (Law("implement", failed=True), story(), waiting(), True),
        (Law("implement", skip_review=True, failed=True), story(), story(passes=True, notes="x"),
         False),
        (Law("implement", skip_review=True), story(), story(passes=True, notes="x"), True),
    ],
)  # fmt: skip
def test_a_turn_that_failed_decides_nothing(
    law: Law, before: Story, after: Story, stands: bool
) -> None:
    """ADR 4: a failed turn is not believed."""
    repaired = law.repaired(listing(before), listing(after))
    assert (repaired is None) is stands
    if repaired is not None:
        assert snapshot(repaired) == snapshot(listing(before))
    assert law.capped(listing(before), listing(after)) is None


def test_a_story_is_begun_when_what_it_waits_for_is_approved() -> None:
    """R §6: "respecting dependsOn"."""
    before = [story("a"), story("b", dependsOn=["a", "gone"])]
    after = [story("a"), {**waiting("b"), "dependsOn": ["a", "gone"]}]
    words = "Story b depends on a, to be approved first: begin there."
    assert list(Law("implement").transitions(listing(*before), listing(*after))) == [("b", words)]
    done = [approved("a"), before[1]], [approved("a"), after[1]]
    assert list(Law("implement").transitions(listing(*done[0]), listing(*done[1]))) == []


def test_a_fix_may_be_sent_back_though_what_it_waits_for_was_reopened() -> None:
    """It had begun by then: only new work waits. And a reopened one is nobody's to approve."""
    before = [story("a"), returned("b", dependsOn=["a"])]
    after = [story("a"), waiting("b", 1, dependsOn=["a"])]
    assert list(Law("review-fix").transitions(listing(*before), listing(*after))) == []
    taken = [approved("a", 0), after[1]]
    told = list(Law("review-fix").transitions(listing(*before), listing(*taken)))
    assert {name for name, _ in told} == {"a"}


def test_a_review_leaves_the_other_stories_as_they_are() -> None:
    before, after = [waiting(), story("b")], [approved(), story("b", title="less")]
    problems = list(Law("review").transitions(listing(*before), listing(*after)))
    assert problems == [("b", f"{REVIEWER}: leave the title of b alone.")]


@pytest.mark.parametrize("given", ["", "nothing to mend", None])
def test_what_a_review_has_found_stays(given: object) -> None:
    """A later turn neither softens what is asked for nor hides an approval at the cap."""
    for one in (returned(), approved(reviewFeedback="[AUTO-APPROVED AT CAP] it leaks")):
        [(name, words)] = remembered(one, {**one, "reviewFeedback": given}, "review-fix")
        assert (name, "its reviewFeedback is the reviewer's" in words) == ("US-001", True)
    assert remembered(returned(), waiting(count=1), "review-fix") == []
    assert remembered(story(), story(reviewFeedback="see the notes"), "implement") == []
    assert remembered(waiting(), approved(reviewFeedback="fine"), "review") == []


@pytest.mark.parametrize("mode", MODES)
def test_a_hundred_thousand_stories_make_short_messages(mode: str) -> None:
    names = [f"US-{n}" for n in range(10_000)]
    before = listing(*(story(name) for name in names))
    after = listing(*(waiting(name) for name in names))
    problems = Law(mode).problems(before, after)
    assert len(problems) == len(names)
    assert max(len(words) for _, words in problems) < 400
