"""S, the restart supervisor: only DONE, the number of runs, a cancel or WAIT end it."""

from dataclasses import dataclass

import pytest

from kits.histories import BLOCKED, CRASH, CUT, DONE, MISSING, WORK, erred, limited, play
from kits.loop_fakes import FakeChildRuns
from ralph.kernel.facts import Began, Decided, Fact, Resumed
from ralph.kernel.rules import Patience
from ralph.kernel.state import replay
from ralph.kernel.tasks.task import Assignment, Backlog, Task
from ralph.kernel.turn import Order, Pulse, Turn
from ralph.kernel.verdict import Boundary, Continue, Reason, Stop
from ralph.kernel.world import Signals
from ralph.loops.supervise.policy import AGAIN, supervise
from ralph.testing.fakes import FakeAgent, FakeClock, FakeWorld

MARKED = Signals(done_at=1000.0)


@dataclass(frozen=True)
class History:
    """One row: what the runs do and which marks appear when, exit code and runs out."""

    name: str
    turns: tuple[Turn | tuple[Turn, ...], ...]
    runs: int
    exit_code: int
    before: Signals = Signals()
    marks: tuple[int, Signals] = (0, Signals())  # what the n-th run leaves behind
    max_restarts: int = 3


HISTORIES = [
    History("DONE before the first run", (WORK,), 0, 0, before=MARKED),
    History("DONE counts before the limit", (WORK,), 0, 0, before=MARKED, max_restarts=0),
    History("max-restarts 0", (WORK,), 0, 1, max_restarts=0),
    History("DONE after the first run", (WORK,), 1, 0, marks=(1, MARKED)),
    History("DONE after the last run", (CRASH,), 3, 0, marks=(3, MARKED)),
    History("a crashed run may have written DONE", (CRASH,), 2, 0, marks=(2, MARKED)),
    History("exit code 0 does not stop", (WORK,), 3, 1),
    History("words complete nothing", (DONE,), 3, 1),
    History("nor do they block", (BLOCKED,), 3, 1),
    History("failures are restarted", (CRASH, CUT, erred(400)), 3, 1),
    History("a rate limit is waited for", ((*[limited()] * 4, CRASH), WORK), 7, 1),
    History("an overloaded provider is", ((*[erred(503)] * 10, erred(503)), CRASH, WORK), 13, 1),
    History("exit code 42", (Turn(exit_code=42),), 1, 3),
    History("a WAIT marker", (WORK,), 2, 3, marks=(2, Signals(wait="a webhook"))),
    History("DONE beside WAIT", (WORK,), 1, 0, marks=(1, Signals(done_at=1.0, wait="x"))),
    History("DONE beside exit code 42", (Turn(exit_code=42),), 1, 0, marks=(1, MARKED)),
    History("a cancel", (WORK,), 1, 130, marks=(1, Signals(1, 1000.0))),
    History("a cancel beside DONE", (WORK,), 1, 130, marks=(1, Signals(1, 1.0, done_at=1.0))),
    History("unstartable", (MISSING,), 1, 2),
    History("refused", (erred(403),), 1, 2),
    History("DONE is a directory", (WORK,), 1, 2, marks=(1, Signals(problem="DONE: a directory"))),
]


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.name)
def test_history(history: History) -> None:
    """ADR 19: "DONE, runs used up ..., cancel, a WAIT signal ... Nothing else"."""
    world, (last, signals) = FakeWorld(asked=history.before), history.marks

    def leave(order: Order) -> None:
        world.asked = signals if order.iteration == last else world.asked

    agent = FakeAgent(history.turns, during=leave)
    result = play(supervise(history.max_restarts), agent, world)
    assert (result.turns, result.exit_code) == (history.runs, history.exit_code)


def test_a_run_waits_before_the_next_one_and_not_after_the_last() -> None:
    """S §Restart Delay: 1 second, "even after successful exit code"."""
    clock = FakeClock()
    result = play(supervise(3), [WORK, CRASH, WORK], clock=clock)
    assert result.verdicts == [Continue(after=1.0)] * 3
    assert clock.rests == [1001.0, 1002.0, 1003.0]
    assert play(supervise(2, restart_delay=5.0), [WORK]).clock.rests == [1005.0, 1010.0]


def test_a_cancel_ends_the_delay() -> None:
    world = FakeWorld()

    def press() -> None:
        world.asked = Signals(1, 1000.0)

    result = play(supervise(), [WORK], world, FakeClock(during_rest=press))
    assert (result.exit_code, result.turns) == (130, 1)


def test_from_the_second_run_on_it_is_told_to_continue() -> None:
    result = play(supervise(2), [WORK])
    assert result.agent.prompts() == ["do it", f"{AGAIN}\n\ndo it"]


def test_a_run_cut_off_by_a_crash_is_told_so() -> None:
    """ADR 21: S works in place; "on resume the agent is told"."""
    facts: list[Fact] = [Began(900.0, 2, Assignment("prompt")), Resumed(950.0, 8)]
    result = play(supervise(2), [WORK], state=replay(facts))
    [prompt] = result.agent.prompts()
    assert prompt.startswith("Attempt 2 was cut off")
    assert prompt.endswith(f"{AGAIN}\n\ndo it")


@pytest.mark.parametrize(
    ("marks", "exit_code"),
    [(MARKED, 0), (Signals(wait="a webhook"), 3), (Signals(problem="DONE is a directory"), 2)],
)
def test_a_run_cut_off_by_a_crash_may_have_left_its_mark(marks: Signals, exit_code: int) -> None:
    """Then it is not paid twice."""
    facts: list[Fact] = [Began(900.0, 2, Assignment("prompt")), Resumed(950.0, 8)]
    result = play(supervise(2), [WORK], FakeWorld(asked=marks), state=replay(facts))
    assert (result.turns, result.exit_code) == (0, exit_code)


def test_a_cancel_before_it_is_taken_again_leaves_it_cut_off() -> None:
    facts: list[Fact] = [Began(900.0, 2, Assignment("prompt")), Resumed(950.0, 8)]
    world = FakeWorld(asked=Signals(1, 1000.0))
    result = play(supervise(2), [WORK], world, state=replay(facts))
    assert (result.turns, result.exit_code) == (0, 130)
    world.asked = Signals()
    state = replay([*facts, *result.facts, Resumed(990.0, 9)])
    assert play(supervise(2), [WORK], world, state=state).agent.orders[0].iteration == 2


def test_completed_waits_for_the_children_once() -> None:
    """S §DONE File Detection: "waits for any active child runs ... (up to `waitTimeout`)"."""
    child_runs = FakeChildRuns("2 child runs ended")
    policy = supervise(wait_timeout=60.0, child_runs=child_runs)
    result = play(policy, [WORK], FakeWorld(asked=MARKED))
    assert result.steps == [("children", True, "2 child runs ended"), ("bus", True, "")]
    assert child_runs.waits == [60.0]
    assert child_runs.told == [("DONE marker present", "2 child runs ended")]
    assert result.stop.evidence == ("DONE marker present",)
    unsettled = replay(result.facts[:-1])
    again = play(policy, [WORK], FakeWorld(asked=MARKED), state=unsettled)
    assert (child_runs.waits, again.exit_code) == ([60.0], 0)


@pytest.mark.parametrize(
    ("turn", "marks", "why"),
    [
        (WORK, Signals(), "max restarts (1) exceeded"),
        (Turn(exit_code=42), Signals(), "waiting without restart: exit code 42"),
        (MISSING, Signals(), MISSING.why),
    ],
)
def test_nobody_waits_for_children_of_a_run_that_is_not_complete(
    turn: Turn, marks: Signals, why: str
) -> None:
    """They are ended, and its end is told."""
    child_runs = FakeChildRuns()
    result = play(supervise(1, child_runs=child_runs), [turn])
    assert (child_runs.waits, child_runs.ended, child_runs.told) == ([], [False], [(why, "")])
    assert result.steps == [("children", True, ""), ("bus", True, "")]


def test_a_bus_that_cannot_be_written_fails_no_task() -> None:
    child_runs = FakeChildRuns(problem="cannot write it")
    result = play(supervise(child_runs=child_runs), [WORK], FakeWorld(asked=MARKED))
    assert (result.exit_code, result.steps[-1]) == (0, ("bus", False, "cannot write it"))


def test_a_signal_while_it_waits_for_children_ends_the_run() -> None:
    """ADR 7: "during a wait: stop at once"; and 130. `ralph resume` then tells that it is done."""
    world = FakeWorld(asked=MARKED)

    def press() -> None:
        world.asked = Signals(1, 1000.0, done_at=1000.0)

    child_runs = FakeChildRuns(during_wait=press)
    result = play(supervise(child_runs=child_runs), [WORK], world)
    assert (result.exit_code, result.steps, child_runs.told) == (130, [], [])
    assert child_runs.ended == [False]
    world.asked = MARKED
    resumed = replay([*result.facts, Resumed(2000.0, 9)])
    again = play(supervise(child_runs=FakeChildRuns()), [WORK], world, state=resumed)
    assert (again.exit_code, [step[0] for step in again.steps]) == (0, ["children", "bus"])


@pytest.mark.parametrize("mark", [MARKED, Signals(wait="a webhook")])
def test_a_mark_ends_the_delay(mark: Signals) -> None:
    """DONE "is noticed within 250 ms", however long the delay is."""
    world = FakeWorld()

    def leave() -> None:
        world.asked = mark

    clock = FakeClock(during_rest=leave)
    result = play(supervise(restart_delay=3600.0), [WORK], world, clock)
    assert (result.turns, clock.time < 1100.0) == (1, True)


def test_a_pause_holds_before_the_next_attempt() -> None:
    world = FakeWorld()

    def pause(order: Order) -> None:
        world.asked = Signals(paused=True)

    def resume() -> None:
        world.asked = Signals()

    agent = FakeAgent([WORK], during=pause)
    result = play(supervise(2), agent, world, FakeClock(during_rest=resume))
    assert (result.turns, result.exit_code) == (2, 1)


def test_a_command_without_a_prompt_is_told_nothing() -> None:
    world = FakeWorld(Backlog((Task("prompt", text=""),)))
    assert play(supervise(2), [WORK], world).agent.prompts() == ["", ""]


def test_an_agent_that_goes_on_after_done_is_ended_and_all_is_well() -> None:
    """ADR 19: `--wait-timeout` bounds "the agent itself when DONE appears while it works"."""
    world, clock = FakeWorld(), FakeClock(tick=50.0)

    def mark(order: Order) -> None:
        world.asked = Signals(done_at=clock.time)

    agent = FakeAgent([WORK], during=mark, pulses=[Pulse(n * 50.0, 0.0) for n in range(20)])
    result = play(supervise(), agent, world, clock)
    assert [cut.why for cut in agent.cuts] == ["still running 5m after DONE"]
    assert (result.exit_code, result.turns) == (0, 1)


def test_an_attempt_may_be_bounded() -> None:
    """ADR 19: "`--timeout` bounds one attempt"; it counts as a failed attempt."""
    agent = FakeAgent([WORK], pulses=[Pulse(60.0, 0.0)])
    result = play(supervise(2, patience=Patience(turn=60.0)), agent)
    assert [cut.why for cut in agent.cuts] == ["timed out after 1m"] * 2
    assert (result.stop.reason, result.turns) == (Reason.LIMIT, 2)


def test_why_it_stopped() -> None:
    result = play(supervise(1), [Turn(exit_code=42)])
    assert result.stop == Stop(Reason.BLOCKED, "waiting without restart: exit code 42")
    opened = [f for f in result.facts if isinstance(f, Decided) and f.boundary is Boundary.OPENING]
    assert len(opened) == 1
