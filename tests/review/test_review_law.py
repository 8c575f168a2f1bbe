"""Checks 1 and 2: what a list of stories must be, and what must hold of it (R §5b)."""

from collections.abc import Callable
from typing import Any

import pytest

from kits.review_cases import Story, approved, listing, returned, story, waiting
from ralph.review.law import (
    Problem,
    has_shape,
    inconsistent,
    malformed,
    snapshot,
    stories_of,
)
from ralph.review.repair import Law


def without(field: str, given: Story) -> Story:
    return {name: value for name, value in given.items() if name != field}


def words_of(problems: list[Problem]) -> str:
    assert all(words.endswith(".") and words.isprintable() for _, words in problems)
    return " | ".join(words for _, words in problems)


# ------------------------------------------------------------------ check 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, "must hold a JSON object"),
        ([], "must hold a JSON object"),
        ("text", "must hold a JSON object"),
        (without("project", listing(story())), "'project' is missing"),
        (listing(story(), branchName=None), "'branchName' is missing or not a string"),
        (listing(story(), description=1), "'description' is missing or not a string"),
        (without("userStories", listing()), "'userStories' must be an array"),
        (listing(userStories={"US-001": {}}), "'userStories' must be an array"),
        (listing(story(), None), "Story number 2 is not an object"),
        (listing(without("id", story())), "Story number 1: its 'id' must be a string"),
        (listing(story("")), "Story number 1: its 'id' must be a string"),
        (listing({**story(), "id": 1}), "its 'id' must be a string of 1 to 100 characters"),
        (listing(story("a"), story("b"), story("a")), "Story id a is there twice: ids must be"),
    ],
)
def test_a_list_without_its_fields(given: object, words: str) -> None:
    """R: "Required top-level fields", "`id` values are unique (no duplicates)"."""
    assert words in words_of(malformed(given))


@pytest.mark.parametrize(
    ("field", "wrong", "words"),
    [
        ("title", [None, 1, ["t"]], "must be a string"),
        ("passes", [None, 0, 1, "true", []], "must be true or false"),
        ("priority", [None, True, "1", [1]], "must be a number"),
        ("acceptanceCriteria", [None, [], {}, "all", {"a": 1}], "must be an array with at least"),
        ("reviewStatus", [True, 0, "", "APPROVED", "done", ["approved"], {}], "must be null or"),
        ("reviewCount", [None, True, False, 1.0, -1, "1", [1]], "must be an integer from 0 on"),
        ("reviewFeedback", [None, 1, ["text"]], "must be a string"),
        ("dependsOn", ["US-002", [1], {"a": 1}, 1], "must be an array of story ids"),
        ("notes", [1, ["text"], True], "must be a string"),
    ],
)
def test_a_field_of_a_story_that_is_not_what_it_must_be(
    field: str, wrong: list[object], words: str
) -> None:
    """R: "Every story has required fields"; a block names "which field/story is malformed"."""
    for given in wrong:
        problems = malformed(listing(story(), {**story("US-002"), field: given}))
        assert [name for name, _ in problems] == ["US-002"], given
        assert f"Story US-002: '{field}' {words}" in words_of(problems)


@pytest.mark.parametrize("field", [*story()][1:])
def test_a_field_that_is_missing(field: str) -> None:
    problems = malformed(listing(without(field, story())))
    optional = field in ("description", "notes", "dependsOn")
    assert problems == ([] if optional else [("US-001", f"Story US-001: '{field}' is missing.")])


@pytest.mark.parametrize("notes", ["", " \n\t", None])
def test_what_was_done_must_be_written_down(notes: object) -> None:
    """R: "No story has `passes: true` with an empty `notes` field"."""
    told = words_of(malformed(listing(approved(notes=notes))))
    assert "US-001 has passes=true but its 'notes' are empty: write down what was done" in told
    assert malformed(listing(waiting(notes=notes))) == []


@pytest.mark.parametrize(
    "given",
    [
        story(),
        waiting(priority=1.5),
        returned(dependsOn=None, notes=None),
        approved(dependsOn=["US-002", "unknown"]),
        story(priority=-3, extra={"any": ["thing"]}, acceptanceCriteria=[{"given": "x"}]),
        story(reviewCount=10**50),
    ],
)
def test_a_story_that_is_all_right(given: Story) -> None:
    assert malformed(listing(given, more=1)) == []


SHAPES: list[tuple[object, bool]] = [
    (listing(), True),
    (listing(story("a"), story("b", passes="?")), True),
    (listing({"id": "a"}), True),
    ({"userStories": []}, True),
    ([], False),
    ({}, False),
    (listing(userStories="a"), False),
    (listing(story("a"), story("a")), False),
    (listing(story("a"), "a"), False),
    (listing({}), False),
    (listing({"id": ["a"]}), False),
    (listing(story("a\n")), False),
]


@pytest.mark.parametrize(("given", "can"), SHAPES)
def test_whether_stories_can_be_told_apart(given: object, can: bool) -> None:
    assert has_shape(given) is can


def test_what_a_snapshot_holds() -> None:
    """R §3: "the review-critical fields (`passes`, `reviewStatus`, `reviewCount`) per story"."""
    fields = {"passes": True, "reviewStatus": "approved", "reviewCount": 1}
    assert snapshot(listing(approved("a"), {"id": "b"})) == {
        "a": fields,
        "b": dict.fromkeys(fields),
    }
    assert list(stories_of(listing(story("a"), story("b")))) == ["a", "b"]


# ------------------------------------------------------------------ check 2

PLAN_2: list[tuple[str, Story, str]] = [
    ("passes: true and reviewStatus: null", story(passes=True), "is 'null', not 'approved'."),
    ("passes: true and needs_review", waiting(passes=True), "is 'needs_review', not 'approved'."),
    ("and changes_requested", returned(passes=True), "is 'changes_requested', not 'approved'."),
    ("passes: true and approved", approved(), ""),
    (
        "changes_requested and empty reviewFeedback",
        returned(reviewFeedback=""),
        "feedback required",
    ),
    ("(blanks are empty)", returned(reviewFeedback=" \n"), "feedback required"),
    ("(or not there)", without("reviewFeedback", returned()), "feedback required"),
    ("approved and passes: false", approved(passes=False), "out of sync"),
    ("reviewCount: -1", story(reviewCount=-1), "invalid reviewCount: -1 is not an integer"),
    ("(true is no count)", story(reviewCount=True), "invalid reviewCount: true"),
    ("(1.0 is no count)", story(reviewCount=1.0), "invalid reviewCount: 1.0"),
    ("(none is no count)", without("reviewCount", story()), "invalid reviewCount: null"),
    ("at the cap", returned(count=5), ""),
    ("approved after the cap", approved(count=6), ""),
    ("changes beyond the cap", returned(count=6), "asks for changes beyond the review cap of 5"),
    ("(which says what to do)", returned(count=6), "behind [AUTO-APPROVED AT CAP]"),
    ("exceeds cap + 1", waiting(count=7), "reviewCount 7, more than the review cap of 5"),
    ("(however large)", waiting(count=10**80), "more than the review cap of 5"),
    ("a strange status", story(passes=True, reviewStatus="\x1b[2J\n"), r"is '\u001b[2J\n', not"),
]


@pytest.mark.parametrize(("case", "given", "words"), PLAN_2, ids=[case for case, *_ in PLAN_2])
def test_review_integrity(case: str, given: Story, words: str) -> None:
    """R, Verification Plan 3, "Review integrity enforcement tests"; and its sanity check."""
    told = words_of(list(inconsistent(listing(story("other"), given))))
    assert words in told
    assert bool(words) is bool(told)
    assert told.count("US-001") <= 2


def test_the_sentence_of_check_2() -> None:
    """R §5b, check 2, word by word."""
    sentence = (
        "Story US-001 has passes=true but reviewStatus is 'null', not 'approved'. Only review "
        "iterations may approve stories. Set passes back to false or complete the review cycle."
    )
    assert list(inconsistent(listing(story(passes=True)))) == [("US-001", sentence)]


@pytest.mark.parametrize(
    ("was", "now", "right"),
    [
        (waiting(count=7), waiting(count=7), True),
        (waiting(count=7), approved(count=8), True),
        (returned(count=7), returned(count=7), True),
        (waiting(count=7), returned(count=8), False),
        (waiting(count=7), approved(count=9), False),
        (waiting(count=1), waiting(count=7), False),
    ],
)
def test_a_cap_that_was_lowered_makes_no_old_story_wrong(
    was: Story, now: Story, right: bool
) -> None:
    problems = list(inconsistent(listing(now), 3, snapshot(listing(was))))
    assert (problems == []) is right
    assert any(inconsistent(listing(now), 3))  # who does not know what was must object


def test_a_snapshot_that_lacks_a_story_or_its_count() -> None:
    now = listing(returned(count=4))
    before: list[Any] = [None, {}, {"US-001": {}}, {"US-001": {"reviewCount": "9"}}]
    for given in before:
        assert len(list(inconsistent(now, 3, given))) == 1


@pytest.mark.parametrize("change", [{}, {"passes": True, "notes": "done"}])
def test_without_reviews_no_approval_is_needed(change: Story) -> None:
    """R, plan: `"skipReview": true` → "Check 2 and 2.5 should be skipped entirely"."""
    before, after = listing(story()), listing(story(**change))
    assert Law("implement", skip_review=True).problems(before, after) == []


SKIPPED: list[tuple[str, Callable[[Story], object], str]] = [
    ("malformed", lambda one: listing({**one, "title": 1}), "'title' must be a string"),
    ("no notes", lambda one: listing({**one, "passes": True}), "'notes' are empty"),
    ("deleted", lambda _: listing(), "was deleted. Stories are never deleted"),
    ("approved", lambda one: listing({**one, "reviewStatus": "approved"}), "no reviews, so leave"),
    ("counted", lambda one: listing({**one, "reviewCount": 1}), "leave its reviewCount at 0"),
    ("born approved", lambda one: listing(one, approved("new")), "leave its reviewStatus at null"),
    ("no list", lambda _: [], "must hold a JSON object"),
]


@pytest.mark.parametrize(("case", "changed", "words"), SKIPPED, ids=[case for case, *_ in SKIPPED])
def test_what_holds_without_reviews_too(
    case: str, changed: Callable[[Story], object], words: str
) -> None:
    """R §Skip-review mode: "`reviewStatus` remains `null`, `reviewCount` stays 0": a later run with
    reviews would believe them."""
    after = changed(story())
    assert words in words_of(Law("implement", skip_review=True).problems(listing(story()), after))
