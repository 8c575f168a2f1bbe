"""What a marker says (R §3), and what is wrong by it: for the stop hook and `ralph prd check`."""

from typing import Any

import pytest

from ralph.review.law import DEFAULT_CAP, Marked, problems

SNAPSHOT = {"A": {"passes": False, "reviewStatus": None, "reviewCount": 0}}
TURN = {"iterationMode": "implement", "preIterationSnapshot": SNAPSHOT}


def listing(**fields: object) -> dict[str, Any]:
    story = {"id": "A", "title": "t", "acceptanceCriteria": ["c"], "priority": 1, "passes": False}
    story |= {"reviewStatus": None, "reviewCount": 0, "reviewFeedback": "", "notes": "n"}
    top = {"project": "p", "branchName": "b", "description": "d"}
    return {**top, "userStories": [{**story, **fields}]}


@pytest.mark.parametrize(
    ("marker", "lacks"),
    [
        (TURN, ""),
        ({"iterationMode": "review", "preIterationSnapshot": {}}, ""),
        ({"iterationMode": "review"}, "preIterationSnapshot"),
        ({"iterationMode": [], "preIterationSnapshot": SNAPSHOT}, "iterationMode"),
        ({"iterationMode": "other", "preIterationSnapshot": SNAPSHOT}, "iterationMode"),
        ({"iterationMode": "review", "preIterationSnapshot": {"A": 1}}, "preIterationSnapshot"),
        ({"preIterationSnapshot": [1]}, "preIterationSnapshot"),
        ({}, "preIterationSnapshot"),
    ],
)
def test_what_a_marker_lacks(marker: dict[str, object], lacks: str) -> None:
    """ "Snapshot missing: 2.5 is skipped with a warning"."""
    assert Marked(marker).lacks == lacks


@pytest.mark.parametrize(
    ("given", "cap"),
    [(1, 1), (7, 7), (0, DEFAULT_CAP), (-1, DEFAULT_CAP), (True, DEFAULT_CAP), ("9", DEFAULT_CAP)],
)
def test_the_cap_is_a_number(given: object, cap: int) -> None:
    assert Marked({"reviewCap": given}).cap == cap


@pytest.mark.parametrize(
    ("given", "folder"),
    [("plans/one", "plans/one"), ("", "ralph"), (3, "ralph"), ("a\0b", "ralph"), (None, "ralph")],
)
def test_the_folder_is_a_path(given: object, folder: str) -> None:
    assert Marked({"ralphDir": given}).folder == folder


def test_reviews_are_skipped_only_where_it_says_true() -> None:
    assert [Marked({"skipReview": given}).skip_review for given in (True, 1, None)] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("given", "marker", "checks"),
    [
        ([], TURN, {"1"}),
        (listing(), TURN, set()),
        (listing(passes=True), {}, {"2"}),
        (listing(passes=True, reviewStatus="approved"), {}, set()),
        (listing(passes=True, reviewStatus="approved"), TURN, {"2.5"}),
        (listing(passes=True), {**TURN, "skipReview": True}, set()),
        (listing(priority="high", passes=True), {**TURN, "skipReview": True}, {"1"}),
        (listing(passes=True, reviewStatus="approved"), {**TURN, "iterationMode": "x"}, set()),
    ],
)
def test_what_is_wrong(given: object, marker: dict[str, object], checks: set[str]) -> None:
    """R §5b; "Check 2 and 2.5 should be skipped entirely" where reviews are."""
    assert {check for check, _, _ in problems(given, Marked(marker))} == checks
