"""What reviews were worth, and what is wrong with a list as it stands: pure (R §5b, §8)."""

import json
from typing import Any

import pytest

from ralph.kernel.tasks.task import Task
from ralph.review.check import Remark, about_order, about_titles, remarks, standing, tally
from ralph.review.law import Marked
from ralph.review.stats import Analytics, Review, StoryStats, analytics, review_of

Json = dict[str, Any]
CAP = "[AUTO-APPROVED AT CAP]"
TOLD = {
    "story": "US-1",
    "outcome": "changes_requested",
    "count": 2,
    "feedback": "slow",
    "list": "b",
}


def story(name: str, status: str | None = None, count: object = 0, **fields: Any) -> Json:  # noqa: ANN401
    return {
        "id": name,
        "title": f"Title of {name}",
        "acceptanceCriteria": ["x"],
        "priority": 1,
        "passes": status == "approved",
        "reviewStatus": status,
        "reviewCount": count,
        "reviewFeedback": "",
        "notes": "n",
        **fields,
    }


def listing(*stories: Json) -> Json:
    return {"project": "p", "branchName": "b", "description": "", "userStories": list(stories)}


# ------------------------------------------------------------------ reviews from a journal


def test_a_story_says_what_it_is() -> None:
    (found,) = about_titles([Task("A", "a"), Task("B", " ")])
    assert found == Remark("title", "B", "Story B: 'title' is empty.")


def test_a_review_is_read_as_it_was_recorded() -> None:
    assert review_of(json.dumps(TOLD)) == Review("US-1", "changes_requested", 2, "slow", "b")
    bare = {"story": "US-1", "outcome": "approved", "count": 1}
    assert review_of(json.dumps(bare)) == Review("US-1", "approved", 1)


@pytest.mark.parametrize(
    "detail",
    [
        "",
        "[",
        "[]",
        "[" * 100_000,
        json.dumps({**TOLD, "outcome": "liked"}),
        json.dumps({**TOLD, "outcome": []}),
        json.dumps({**TOLD, "story": 1}),
        json.dumps({**TOLD, "count": "2"}),
        json.dumps({**TOLD, "count": True}),
        json.dumps({**TOLD, "count": -1}),
    ],
)
def test_what_is_no_review_is_none(detail: str) -> None:
    assert review_of(detail) is None


# ------------------------------------------------------------------ analytics


def test_a_list_with_its_reviews() -> None:
    """R §8: "mostly 1s means low overhead, many 3-4s means ..., any 5s (cap hits) means ..."."""
    found = analytics(
        listing(
            story("A", "approved", 1),
            story("B", "approved", 3),
            story("C", "approved", 5, reviewFeedback=f"{CAP} still slow"),
            story("D", "changes_requested", 1, reviewFeedback="no test"),
            story("E"),
            story("F", passes=True),
        ),
        [
            Review("A", "approved", 1),
            Review("B", "changes_requested", 1, "first"),
            Review("B", "changes_requested", 2, "second"),
            Review("B", "approved", 3, "well done"),
            Review("C", "auto_approved", 5, f"{CAP} still slow"),
            Review("Z", "approved", 1),
        ],
    )
    assert [(s.id, s.reviews, s.recorded, s.outcome) for s in found.stories] == [
        ("A", 1, 1, "approved"),
        ("B", 3, 3, "approved"),
        ("C", 5, 1, "approved at the cap"),
        ("D", 1, 0, "to fix"),
        ("E", 0, 0, "to do"),
        ("F", 0, 0, "passed"),
    ]
    assert [s.caught for s in found.stories] == [
        (),
        ((1, "first"), (2, "second")),
        ((5, "still slow"),),
        ((1, "no test"),),
        (),
        (),
    ]
    assert (found.done, found.reviews, found.recorded) == (4, 10, 5)
    assert (found.average, found.first_time, found.cap_hits) == (2.5, 1, 1)


def test_without_reviews_there_is_no_average() -> None:
    assert Analytics().average == 0
    assert analytics(listing(story("A"))).average == 0


def test_a_story_that_is_wrong_is_counted_as_nothing() -> None:
    """Unknown input becomes a value, never an exception."""
    for count in (True, -1, "3", None, 1.5):
        (one,) = analytics(listing({"id": "A", "reviewCount": count})).stories
        assert one == StoryStats("A", "", 0, "to do")


def test_what_was_sent_back_without_a_word_caught_nothing() -> None:
    (one,) = analytics(listing(story("A", "changes_requested", 1, reviewFeedback=" "))).stories
    assert one.caught == ()


# ------------------------------------------------------------------ a list as it stands


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"reviewStatus": "approved", "passes": True}, "approved"),
        ({"reviewStatus": "approved"}, "approved"),
        ({"reviewStatus": None, "passes": True}, "passed"),
        ({"reviewStatus": "needs_review"}, "to review"),
        ({"reviewStatus": "changes_requested"}, "to fix"),
        ({"reviewStatus": None}, "to do"),
        ({"reviewStatus": "unheard of"}, "to do"),
        ({"reviewStatus": []}, "to do"),
    ],
)
def test_how_far_a_story_is(fields: Json, expected: str) -> None:
    assert standing(fields) == expected


def test_stories_are_counted_by_how_far_they_are() -> None:
    counts = {"approved": 1, "passed": 0, "to review": 0, "to fix": 0, "to do": 1}
    assert tally(listing(story("A", "approved", 1), story("B"))) == {"total": 2, **counts}
    assert tally([])["total"] == 0


def test_a_list_without_its_shape_is_checked_no_further() -> None:
    assert [r.check for r in remarks({"userStories": [1]})] == ["1"] * 4


def test_checks_without_a_turn() -> None:
    assert remarks(listing(story("A", "approved", 1))) == []
    (wrong,) = remarks(listing(story("A", passes=True)))
    assert (wrong.check, wrong.story) == ("2", "A")
    assert remarks(listing(story("A", passes=True)), Marked({"skipReview": True})) == []
    capped = Marked({"reviewCap": 2})
    assert [r.check for r in remarks(listing(story("A", "approved", 4)), capped)] == ["2"]


def test_without_reviews_stories_are_not_deleted_either() -> None:
    snapshot = {"A": {"passes": False, "reviewStatus": None, "reviewCount": 0}}
    turn = {"iterationMode": "implement", "preIterationSnapshot": snapshot}
    skipping = Marked({**turn, "skipReview": True})
    (gone,) = remarks(listing(story("B")), skipping)
    assert (gone.check, gone.story) == ("2.5", "A")
    assert remarks(listing(story("A", passes=True)), skipping) == []


def test_the_order_of_stories() -> None:
    assert [r.check for r in about_order([])] == ["empty"]
    assert list(about_order([Task("A", "a"), Task("B", "b", blocked_by=("A",))])) == []
    strange = list(about_order([Task("A", "a", blocked_by=("X",))]))
    assert strange == [Remark("dependencies", "A", "Story A: 'dependsOn' names X: no such story.")]
    circle = [Task("A", "a", blocked_by=("B",)), Task("B", "b", blocked_by=("A",))]
    (found,) = about_order(circle)
    assert "A → B → A" in found.text
    done = [Task("A", "a", blocked_by=("B",), passes=True), Task("B", "b", blocked_by=("A",))]
    assert list(about_order(done)) == []


def test_a_review_is_read_as_it_was_written() -> None:
    """What the run writes into its journal is what stats read there."""
    review = Review("US-001", "changes_requested", 2, 'say "ä"\nlouder', "ralph/x")
    assert review_of(review.detail()) == review
