"""What is remembered of a loop between two stops."""

from typing import Any

import pytest

from ralph.kernel.value import replace
from ralph.loops.session.state import (
    CANCELLED,
    RELEASED,
    TIME_TO_LIVE,
    Decision,
    SessionLoop,
    aged,
    loop_of,
    record_of,
    shown_record,
    told,
    told_of,
)
from ralph.loops.session.words import Wish

LOOP = replace(
    SessionLoop("s-1", Wish("Build it", gates=("make test",), ulw=True), 1000.0, touched=1000.0),
    iteration=2,
    offset=77,
    decisions=(Decision(0, found=False, accepted=False, reason="missing promise"),),
)


@pytest.mark.parametrize("loop", [LOOP, replace(LOOP, offset=None)])
def test_a_loop_is_kept_and_read_again(loop: SessionLoop) -> None:
    assert loop_of(record_of(loop)) == loop


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (None, "not an object"),
        ([], "not an object"),
        ({}, "its version is None"),
        ({"version": 2}, "its version is 2"),
        ({"version": 1}, "it has no task"),
        (record_of(LOOP) | {"decisions": 3}, "no lists"),
        (record_of(LOOP) | {"decisions": [{}]}, "it has no iteration"),
        (record_of(LOOP) | {"iteration": "2"}, "its iteration"),
        (record_of(LOOP) | {"iteration": True}, "its iteration"),
        (record_of(LOOP) | {"iteration": -1}, "its iteration"),
        (record_of(LOOP) | {"status": "DONE"}, "its status"),
        (record_of(LOOP) | {"task": 5}, "its task"),
        (record_of(LOOP) | {"offset": "x"}, "its offset"),
        (record_of(LOOP) | {"gates": [1]}, "its gates"),
    ],
)
def test_what_is_no_loop_is_said_in_words(record: Any, words: str) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match=words):
        loop_of(record)


def test_programs_are_told_what_was_settled() -> None:
    """ "`session, task, promise, iteration, max_iterations, status, decisions`"."""
    record = shown_record(LOOP)
    names = {"session", "task", "promise", "iteration", "max_iterations", "status", "decisions"}
    assert names <= set(record)
    decision = {"iteration": 0, "found": False, "accepted": False, "reason": "missing promise"}
    assert record["decisions"] == [decision]


def test_a_loop_of_which_nobody_hears_is_released() -> None:
    """Time-to-live."""
    assert aged(LOOP, 1000.0 + TIME_TO_LIVE) is LOOP
    heard = replace(LOOP, touched=1001.0)
    assert aged(heard, 1001.0 + TIME_TO_LIVE) is heard
    old = aged(LOOP, 1001.0 + TIME_TO_LIVE)
    assert (old.status, old.running) == (RELEASED, False)
    over = replace(LOOP, status=CANCELLED, why="cancelled")
    assert aged(over, 1e12) is over


def test_decisions_do_not_grow_for_ever() -> None:
    loop = LOOP
    for number in range(1200):
        loop = told(loop, Decision(number, found=False, accepted=False, reason=""))
    assert len(loop.decisions) == 1000
    assert loop.decisions[-1].iteration == 1199


def test_people_are_told_how_it_stands() -> None:
    words = told_of(LOOP)
    assert "Ralph loop of session s-1: RUNNING\niteration 2/50;" in words
    assert "gate: make test" in words
    assert "- after 0 blocked stops: no promise: missing promise" in words
    believed = Decision(2, found=True, accepted=True, reason="believed")
    loop = told(replace(LOOP, status=CANCELLED, why="cancelled"), believed)
    assert "CANCELLED (cancelled)" in told_of(loop)
    assert "promise found, accepted: believed" in told_of(loop)
    assert replace(LOOP, wish=Wish("x", max_iterations=0)).progress == "2, no limit"
