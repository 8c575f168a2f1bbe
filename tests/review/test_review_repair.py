"""What was illegal is taken back, and nothing else; the cap ends a cycle of reviews (ADR 20)."""

from typing import Any

import pytest

from kits.review_cases import Listing, Story, approved, listing, returned, story, waiting
from ralph.review.law import snapshot
from ralph.review.repair import Law, same_list, undone, unproven

A, B = story("a"), story("b")
DONE = {"passes": True, "notes": "done"}


def repaired(mode: str, before: Listing, after: object, **law: Any) -> Any:  # noqa: ANN401
    return Law(mode, **law).repaired(before, after)


def stories(given: Any) -> list[Story]:  # noqa: ANN401
    found: list[Story] = given["userStories"]
    return found


@pytest.mark.parametrize(
    ("mode", "before", "after"),
    [
        ("implement", [A, B], [waiting("a"), B]),
        ("implement", [A], [{**A, "title": "better"}, story("new"), B]),
        ("review", [waiting("a"), B], [approved("a"), B]),
        ("review", [waiting("a"), B], [returned("a"), B, story("new")]),
        ("review-fix", [returned("a"), B], [waiting("a", 1), B]),
    ],
)
def test_a_legal_turn_is_left_alone(mode: str, before: list[Story], after: list[Story]) -> None:
    assert repaired(mode, listing(*before), listing(*after)) is None


MENDED: list[tuple[str, str, list[Story], list[Any], list[Story]]] = [
    (
        *("implement", "one wrong, one right", [A, B]),
        [approved("a"), waiting("b")],
        [story("a", notes="done"), waiting("b")],  # what it wrote besides stays
    ),
    ("implement", "two sent", [A, B], [waiting("a"), waiting("b")], [A, B]),
    ("implement", "deleted", [A, B, story("c")], [waiting("b")], [A, waiting("b"), story("c")]),
    ("implement", "renamed", [A, B], [story("x"), B], [A, story("x"), B]),
    ("implement", "moved and gone", [A, B, story("c")], [story("c"), A], [story("c"), B, A]),
    ("implement", "born approved", [A], [A, approved("new")], [A, story("new", notes="done")]),
    ("implement", "born broken", [A], [A, story("new", title=1, passes=True)], [A]),
    ("implement", "born without a count", [A], [A, {**B, "reviewCount": None}], [A, B]),
    ("implement", "broken field", [A], [story("a", title=1, x=1)], [story("a", x=1)]),
    ("implement", "broken and new", [{"id": "a", **A}], [{**A, "dependsOn": 1}], [A]),
    (
        *("implement", "slipped under an approval", [approved("a"), B]),
        [approved("a", title="b"), waiting("b")],
        [approved("a"), waiting("b")],
    ),
    ("implement", "ids swapped", [approved("a"), B], [story("a"), approved("b")], []),
    (
        *("implement", "notes emptied", [approved("a"), B]),
        [approved("a", notes=""), waiting("b")],
        [approved("a"), waiting("b")],
    ),
    (
        *("review", "a good review beside a wrong birth", [waiting("a")]),
        [approved("a"), approved("b")],
        [waiting("a", notes="done"), story("b", notes="done")],
    ),
    (
        *("implement", "feedback softened", [returned("a"), B]),
        [returned("a", reviewFeedback="fine"), waiting("b")],
        [returned("a"), waiting("b")],
    ),
    (
        *("review", "wrong in anything decides nothing", [waiting("a"), waiting("b")]),
        [approved("a"), approved("b", 0)],
        [waiting("a", notes="done"), waiting("b", notes="done")],
    ),
    ("review", "nothing reviewed", [waiting("a")], [waiting("a", x=1)], [waiting("a", x=1)]),
    ("review", "reworded", [waiting("a")], [approved("a", title="x", notes="")], [waiting("a")]),
    ("review", "another reworded", [waiting("a"), B], [returned("a"), story("b", title="x")], []),
    (
        *("review-fix", "feedback not cleared", [returned("a")]),
        [waiting("a", 1, reviewFeedback="?")],
        [returned("a")],
    ),
    ("review", "no stories to tell apart", [A, B], [A, A], [A, B]),
    ("review", "no story", [A, B], [A, 1], [A, B]),
]


@pytest.mark.parametrize(
    ("mode", "case", "before", "after", "then"), MENDED, ids=[f"{m}: {c}" for m, c, *_ in MENDED]
)
def test_what_was_illegal_is_taken_back(
    mode: str, case: str, before: list[Story], after: list[Any], then: list[Story]
) -> None:
    """ADR 20: "What the agent may not touch is put back"; "What only one story did wrong costs the
    others nothing"."""
    result = repaired(mode, listing(*before), listing(*after, more=1))
    if then:
        assert stories(result) == then
    else:
        assert [s["reviewStatus"] for s in stories(result)] == [s["reviewStatus"] for s in before]
        assert [s["title"] for s in stories(result)] == [s["title"] for s in before]


def test_a_field_that_was_not_there_goes_again() -> None:
    before = {key: given for key, given in A.items() if key not in ("notes", "description")}
    after = {**before, "notes": 7, "passes": True, "description": "new"}
    assert stories(repaired("implement", listing(before), listing(after))) == [
        {**before, "description": "new"}
    ]


@pytest.mark.parametrize("after", [None, [], "text", {}, {"userStories": 1}])
def test_what_is_no_list_is_put_back_whole(after: object) -> None:
    before = listing(A)
    assert repaired("implement", before, after) is before
    assert undone(before, after) is before


def test_the_fields_of_the_list_itself() -> None:
    after = {**listing(waiting("a")), "project": 1, "verifyCommands": ["make"]}
    del after["branchName"]
    assert repaired("implement", listing(A), after) == listing(
        waiting("a"), verifyCommands=["make"]
    )


def test_a_turn_that_began_with_no_list_at_all() -> None:
    """What a host remembers that found none: nothing is known of any story."""
    assert undone({"userStories": []}, {"userStories": [approved("a")]}) == {
        "userStories": [story("a", notes="done")]
    }


def test_a_list_that_was_wrong_before_is_not_made_better() -> None:
    """Whoever starts a run has made sure of it; here it is at least not made worse."""
    before = listing(story("a", **DONE))
    assert repaired("implement", before, listing(approved("a"))) is before


# ------------------------------------------------------------ without reviews


@pytest.mark.parametrize(
    ("after", "then"),
    [
        ([story("a", **DONE), B], None),
        ([approved("a"), B], [story("a", **DONE), B]),
        ([story("a", passes=True), B], [A, B]),  # nothing is written down
        ([story("a", **DONE)], [story("a", **DONE), B]),
        ([A, B, approved("c")], [A, B, story("c", notes="done")]),
    ],
)
def test_without_reviews(after: list[Story], then: list[Story] | None) -> None:
    """R §Skip-review mode: a turn says that a story passes, and nothing of reviews."""
    result = repaired("implement", listing(A, B), listing(*after), skip_review=True)
    assert result is None if then is None else stories(result) == then


# ------------------------------------------------------------ the cap


CAPPED: list[tuple[str, Story, Story, bool]] = [
    ("below the cap", waiting("a", 1), returned("a", 2), False),
    ("at the cap", waiting("a", 2), returned("a", 3), True),
    ("above it, since it was lowered", waiting("a", 6), returned("a", 7), True),
    ("approved by the review itself", waiting("a", 2), approved("a", 3), False),
    ("not counted", waiting("a", 3), returned("a", 3), False),
    ("a count of true", waiting("a", 0), returned("a", reviewCount=True), False),
    ("a count in words", waiting("a", 2), returned("a", reviewCount="3"), False),
    ("from null", story("a", reviewCount=2), returned("a", 3), False),
    ("without a word", waiting("a", 2), returned("a", 3, reviewFeedback=" "), False),
    ("half approved", waiting("a", 2), returned("a", 3, passes=True, notes="x"), False),
    ("blank notes", waiting("a", 2), returned("a", 3, notes=" "), True),
    ("no notes", waiting("a", 2), returned("a", 3, notes=None), True),
    ("reworded", waiting("a", 2), returned("a", 3, title="x", description="y"), False),
]


@pytest.mark.parametrize(("case", "was", "now", "ends"), CAPPED, ids=[c for c, *_ in CAPPED])
def test_the_cap_ends_a_cycle(case: str, was: Story, now: Story, ends: bool) -> None:
    """R §6: "Issues found BUT `reviewCount` >= review cap → auto-approve"."""
    law, before, after = Law("review", 3), listing(was, B), listing(now, B)
    capped = law.capped(before, after)
    assert (capped is not None) is ends
    if capped is not None:
        [one, other] = stories(capped[0])
        assert (capped[1], other) == ("a", B)
        assert one == {
            **approved("a", now["reviewCount"]),
            "reviewFeedback": "[AUTO-APPROVED AT CAP] mend it",
            "notes": "Approved by the host after 3 reviews.",
        }
        assert law.problems(before, capped[0]) == []


def test_another_story_that_was_sent_back_before_does_not_put_off_the_cap() -> None:
    before, after = [waiting("a", 2), returned("b")], [returned("a", 3), returned("b")]
    capped = Law("review", 3).capped(listing(*before), listing(*after))
    assert capped is not None
    assert capped[1] == "a"


def test_a_cap_of_one() -> None:
    """R, Verification Plan 9: "Set `--review-cap 1`" and the first review approves."""
    law = Law("review", 1)
    kept = returned("a", notes="looked at", reviewFeedback="[AUTO-APPROVED AT CAP] it leaks")
    capped = law.capped(listing(waiting("a")), listing(kept))
    assert capped is not None
    told = {field: stories(capped[0])[0][field] for field in ("reviewFeedback", "notes")}
    assert told == {"reviewFeedback": kept["reviewFeedback"], "notes": "looked at"}


@pytest.mark.parametrize(
    "law", [Law("implement", 1), Law("review-fix", 1), Law("review", 1, skip_review=True)]
)
def test_only_a_review_reaches_the_cap(law: Law) -> None:
    assert law.capped(listing(waiting("a")), listing(returned("a"))) is None


@pytest.mark.parametrize(
    "after",
    [
        None,
        listing(returned("a"), returned("b")),
        listing(returned("a")),  # the other is gone
        listing(returned("a"), waiting("b"), approved("new")),
        listing(returned("a"), waiting("b"), returned("new")),
        listing(returned("a"), waiting("b"), project=1),
    ],
)
def test_a_review_that_did_wrong_is_not_ended_by_the_cap(after: object) -> None:
    before = listing(waiting("a"), waiting("b"))
    assert Law("review", 1).capped(before, after) is None
    back = repaired("review", before, after, cap=1)
    assert {s["reviewCount"] for s in stories(back)} == {0}


# ------------------------------------------------------------ a turn that is taken again


def test_a_turn_that_is_taken_again_has_decided_nothing() -> None:
    before = listing(waiting("a"), B, approved("c"))
    after = listing(approved("a", title="x"), story("b", title="split"), story("new", x=1))
    assert undone(before, after) == listing(
        waiting("a", notes="done"),
        story("b", title="split"),
        approved("c"),
        story("new", x=1),
    )
    assert undone(before, before) == before


# ------------------------------------------------------------ what a killed run has left


@pytest.mark.parametrize(
    ("before", "after", "stands"),
    [
        (story(), approved(), False),
        (story(), waiting(), False),  # the work is there, and somebody sends it again
        (story(), story(reviewCount=99), False),  # it would be at the cap
        (story(), story(reviewCount=True), False),
        (waiting(), returned(), False),
        (waiting(), story(), True),
        (approved(), story(reviewCount=1, notes="done"), True),
        (approved(), returned(), True),
        (approved(), approved(count=2), False),
        (approved(), approved(), True),
        (returned(), returned(reviewFeedback="less"), False),
    ],
)
def test_nothing_counts_that_an_unjudged_turn_has_gained(
    before: Story, after: Story, stands: bool
) -> None:
    """What a person has put back to be done again stays so."""
    kept = unproven(listing(before), listing(after))
    assert snapshot(kept) == snapshot(listing(after if stands else before))


def test_an_unjudged_turn_takes_nothing_away_and_brings_nothing_approved() -> None:
    before = listing(story("a"), approved("b"), story("c"))
    kept = unproven(before, listing(story("a", notes="begun"), approved("d")))
    names = [(one["id"], one["passes"]) for one in kept["userStories"]]
    assert names == [("a", False), ("b", True), ("c", False), ("d", False)]
    assert kept["userStories"][0]["notes"] == "begun"


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (listing(story("a"), story("b")), True),
        (listing(story("a", title="reworded")), False),
        (listing(story("z")), False),
        (listing(story("a"), branchName="ralph/other"), False),
        (listing(story("a"), project="other"), False),
    ],
)
def test_lists_of_one_plan(other: Listing, same: bool) -> None:
    assert same_list(listing(story("a")), other) is same
