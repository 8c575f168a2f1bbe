"""Rules while the agent works: Cut, or nothing (ADR 19 to §4.8)."""

from dataclasses import replace

import pytest

from kits.cases import NOW, UNDER_WORK, watching
from ralph.kernel.case import Rule
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.rules import MoneyLeft, ResultGrace, SecondSignal, TimeLeft, Timeouts
from ralph.kernel.turn import Pulse
from ralph.kernel.verdict import Cut
from ralph.kernel.world import Signals
from ralph.loops.backlog.rules import TaskTimeLeft, unplaced
from ralph.loops.supervise.policy import DoneGrace

BOTH = Timeouts(turn=60.0, idle=20.0)


@pytest.mark.parametrize(
    ("rule", "pulse", "cut"),
    [
        (BOTH, Pulse(59.9, 19.9), None),
        (BOTH, Pulse(60.0, 0.0), Cut("timed out after 1m")),
        (BOTH, Pulse(59.0, 20.0), Cut("silent for 20s")),
        (BOTH, Pulse(59.0, 20.0, since_result=5.0), None),
        (BOTH, Pulse(60.0, 5.0, since_result=5.0), Cut("timed out after 1m", finished=True)),
        (Timeouts(), Pulse(1e9, 1e9), None),
        (ResultGrace(), Pulse(100.0, 100.0), None),
        (ResultGrace(), Pulse(100.0, 9.9, since_result=9.9), None),
        (
            ResultGrace(),
            Pulse(100.0, 10.0, since_result=10.0),
            Cut("still running 10s after its result", finished=True),
        ),
    ],
)
def test_clocks_of_one_turn(rule: Rule, pulse: Pulse, cut: Cut | None) -> None:
    """ADR 6: a turn that had said its result "counts as the success it was"."""
    assert rule(watching(pulse)) == cut


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (TimeLeft(100.0), "the run's 1m40s are used up"),
        (TaskTimeLeft(Limits(seconds=70.0)), "the task's 1m10s are used up"),
    ],
)
def test_the_time_of_run_and_task_ends_a_turn(rule: Rule, why: str) -> None:
    """ADR 1: a turn may use "the least of turn, task, run and day limits"."""
    before = Spent(seconds=30.0)
    state = replace(UNDER_WORK, spent=Spent(seconds=90.0), spent_before_task=before, time=NOW - 9)
    assert rule(watching(Pulse(9.0, 0.0), state=state)) is None
    later = replace(state, time=NOW - 10)
    assert rule(watching(Pulse(10.0, 0.0), state=later)) == Cut(why)
    said_it = watching(Pulse(10.0, 0.0, since_result=1.0), state=later)
    assert rule(said_it) == Cut(why, finished=True)


def test_a_turn_that_no_machine_has_ends_when_it_is_asked_once() -> None:
    """Of many tasks that wait for a slot, each would take its turn after Ctrl+C."""
    asked = Signals(cancels=1)
    waits, begun = Pulse(0.0, 0.0, queued=5.0, placed=False), Pulse(0.0, 0.0, queued=5.0)
    assert unplaced(watching(waits)) is None
    assert unplaced(replace(watching(begun), signals=asked)) is None
    cut = unplaced(replace(watching(waits), signals=asked))
    assert isinstance(cut, Cut)


def test_no_limit_of_time_cuts_nothing() -> None:
    state = replace(UNDER_WORK, spent=Spent(seconds=1e9))
    assert TimeLeft(None)(watching(Pulse(1.0, 1.0), state=state)) is None
    assert TaskTimeLeft(Limits())(watching(Pulse(1.0, 1.0), state=state)) is None


@pytest.mark.parametrize(
    ("limit", "spent", "pulse", "cut"),
    [
        (None, 1e9, Pulse(1.0, 0.0, dollars=1e9), None),
        (5.0, 3.0, Pulse(1.0, 0.0), None),
        (5.0, 3.0, Pulse(1.0, 0.0, dollars=1.99), None),
        (5.0, 3.0, Pulse(1.0, 0.0, dollars=2.0), Cut("the run's $5 are used up")),
        (0.5, 0.0, Pulse(1.0, 0.0, dollars=0.75), Cut("the run's $0.5 are used up")),
        (5.0, 3.0, Pulse(1.0, 0.0, since_result=0.1, dollars=9.0), None),
    ],
)
def test_the_money_of_a_run_ends_a_turn_whose_stream_tells_what_it_costs(
    limit: float | None, spent: float, pulse: Pulse, cut: Cut | None
) -> None:
    """ADR 22: "`--max-cost` holds within a turn too"; what has said
    its result is paid, and may end by itself (ADR 6)."""
    state = replace(UNDER_WORK, spent=Spent(dollars=spent))
    assert MoneyLeft(limit)(watching(pulse, state=state)) == cut


@pytest.mark.parametrize(
    ("grace", "signals", "cut"),
    [
        (None, Signals(), None),
        (None, Signals(1, NOW - 9999), None),
        (None, Signals(2, NOW), Cut("asked to stop at once", grace=0.3)),
        (30.0, Signals(), None),
        (30.0, Signals(1, NOW - 29.9), None),
        (30.0, Signals(1, NOW - 30), Cut("did not end within 30s of being asked to stop")),
        (30.0, Signals(2, NOW), Cut("asked to stop at once", grace=0.3)),
    ],
)
def test_the_first_signal_lets_the_agent_finish_the_second_does_not(
    grace: float | None, signals: Signals, cut: Cut | None
) -> None:
    """ADR 7: "Second ...: end the tree now. `--stop-grace S` bounds the first"."""
    assert SecondSignal(grace)(watching(Pulse(5.0, 0.0), signals)) == cut


@pytest.mark.parametrize(
    ("done_at", "cut"),
    [
        (None, None),
        (NOW - 299.0, None),
        (NOW - 300.0, Cut("still running 5m after DONE")),
    ],
)
def test_an_agent_that_goes_on_after_done_is_ended(done_at: float | None, cut: Cut | None) -> None:
    """ADR 19: `--wait-timeout` (300 s) bounds the agent "when DONE appears while it works"."""
    assert DoneGrace()(watching(Pulse(900.0, 0.0), Signals(done_at=done_at))) == cut
