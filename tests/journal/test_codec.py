"""Facts to JSON and back: the journal is the interface (ADR 1)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.journal.codec import decode_fact, encode, snake
from ralph.kernel.facts import Began, Checked, Decided, Ended, Fact, Settled, Started
from ralph.kernel.findings import Finding
from ralph.kernel.tasks.task import Assignment, Mode
from ralph.kernel.turn import Ending, Turn
from ralph.kernel.verdict import Accept, Boundary, Continue, Feedback, Placement, Reason, Stop, Wait
from ralph.kernel.world import Snapshot


@given(st.from_type(Fact))  # type: ignore[arg-type]  # a union of types
def test_every_fact_survives_the_journal(fact: Fact) -> None:
    """Issue 2: "replaying a journal gives the same state" stands on this."""
    line = json.dumps(encode(fact))
    # As text, because a float may be NaN, which equals nothing.
    assert repr(decode_fact(json.loads(line))) == repr(fact)


def test_what_a_line_looks_like() -> None:
    fact = Decided(
        12.5,
        Boundary.CLOSING,
        Continue((Feedback("lint failed", Placement.PREPEND),)),
        findings=(Finding("make lint", "lint failed", Placement.PREPEND, 2),),
        rule="Objections",
    )
    assert encode(fact) == {
        "type": "decided",
        "time": 12.5,
        "boundary": "closing",
        "verdict": {
            "type": "continue",
            "feedback": [{"type": "feedback", "text": "lint failed", "placement": "PREPEND"}],
            "after": 0.0,
        },
        "findings": [
            {
                "type": "finding",
                "gate": "make lint",
                "text": "lint failed",
                "placement": "PREPEND",
                "code": 2,
                "log": "",
                "gist": "",
            }
        ],
        "checked": False,
        "progressed": None,
        "notes": [],
        "final": False,
        "rule": "Objections",
        "tree": "",
        "seen": None,
    }


@pytest.mark.parametrize(
    ("data", "fact"),
    [
        (
            {
                "type": "began",
                "time": 1.0,
                "iteration": 2,
                "assignment": {"type": "assignment", "task": "a", "mode": "review-fix"},
                "snapshot": {"type": "snapshot", "protected": [["x", "1"], ["y", "2"]]},
            },
            Began(
                1.0,
                2,
                Assignment("a", mode=Mode.REVIEW_FIX),
                Snapshot(protected=(("x", "1"), ("y", "2"))),
            ),
        ),
        (
            {"type": "ended", "time": 1.0, "turn": {"type": "turn", "ending": "cut"}},
            Ended(1.0, Turn(Ending.CUT)),
        ),
        (
            {"type": "settled", "time": 1, "verdict": {"type": "stop", "reason": "limit"}},
            Settled(1, Stop(Reason.LIMIT)),
        ),
        (
            {"type": "settled", "time": 1, "verdict": {"type": "wait", "until": None, "why": "p"}},
            Settled(1, Wait(None, "p")),
        ),
        (
            {"type": "settled", "time": 1, "verdict": {"type": "accept", "evidence": ["a"]}},
            Settled(1, Accept(("a",))),
        ),
        (
            {"type": "checked", "time": 1, "gate": "g", "seconds": 2, "from_the_future": {"a": 1}},
            Checked(1, "g", 2),
        ),
    ],
)
def test_what_is_left_out_has_its_default_and_what_is_new_is_ignored(
    data: dict[str, Any], fact: Fact
) -> None:
    assert decode_fact(data) == fact


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"type": "turn"},
        {"type": "unheard_of"},
        {"type": ["started"]},
        {"type": "started", "time": 1.0},
        {"type": "ended", "time": 1.0, "turn": {"type": "finding"}},
        {"type": "ended", "time": 1.0, "turn": {"type": "turn", "ending": "vanished"}},
        {"type": "began", "time": 1.0, "iteration": 1, "assignment": {"task": "a"}},
        {"type": "settled", "time": 1.0, "verdict": {"type": "cut", "why": "no verdict"}},
        {"type": "checked", "time": [1.0], "gate": "g", "seconds": 1},
        {
            "type": "began",
            "time": 1.0,
            "iteration": 1,
            "assignment": {"type": "assignment", "task": "a"},
            "snapshot": {"type": "snapshot", "protected": [["x", "1", "2"]]},
        },
    ],
)
def test_what_is_no_fact_is_a_value_error(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  its words are Python's own
        decode_fact(data)


def test_names_are_written_in_snake_case() -> None:
    assert [snake(name) for name in ("Step", "ToolStart")] == ["step", "tool_start"]
    assert encode(Started(1.0, "r", "harness", "/w", 7, "1.0"))["type"] == "started"
