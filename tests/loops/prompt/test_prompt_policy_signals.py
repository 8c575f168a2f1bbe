"""H: signals, pauses, clocks and waiting (ADR 6 and 7, §4.15)."""

from dataclasses import replace

import pytest

from kits.histories import DONE, WORK, Played, limited, play, said
from kits.loop_fakes import FakeScm
from ralph.kernel.case import Case
from ralph.kernel.engine import run
from ralph.kernel.facts import Decided, Fact
from ralph.kernel.limits import Limits
from ralph.kernel.rules import Patience
from ralph.kernel.turn import Ending, Order, Pulse, Turn
from ralph.kernel.verdict import Boundary, Cut, Reason, Wait
from ralph.kernel.world import Signals
from ralph.loops.prompt.policy import harness
from ralph.testing.fakes import FakeAgent, FakeClock, FakeGate, FakeWorld, MemoryJournal, fake_ports

FIVE = Limits(iterations=5)
START = FakeClock().time


def signalled(world: FakeWorld, cancels: int = 1) -> None:
    world.asked = Signals(cancels, cancelled_at=START)


# ------------------------------------------------------------------ signals


def test_a_signal_during_the_turn_lets_it_finish_and_gates_no_longer_run() -> None:
    """ADR 2: "After a signal the answer is 130 whatever was claimed"."""
    world, scm = FakeWorld(), FakeScm()
    agent = FakeAgent([DONE], during=lambda _: signalled(world), pulses=[Pulse(1.0, 0.0)])
    result = play(harness(FIVE, gates=(FakeGate(),), scm=scm), agent, world)
    assert (result.exit_code, result.turns, result.gates, scm.ran) == (130, 1, [], [])
    assert agent.cuts == []


def test_a_law_gate_runs_all_the_same() -> None:
    world = FakeWorld()
    agent = FakeAgent([DONE], during=lambda _: signalled(world))
    gates = (FakeGate("make test"), FakeGate("protect", always=True))
    result = play(harness(FIVE, gates=gates), agent, world)
    assert (result.exit_code, result.gates) == (130, ["protect"])


def test_a_signal_during_a_gate_lets_it_finish_and_no_other_begins() -> None:
    """H §Signal Handling: "If guardrail is running: allow it to finish, then exit"."""
    world, scm = FakeWorld(), FakeScm()

    def press(case: Case) -> None:
        signalled(world)

    gates = (FakeGate("first", during=press), FakeGate("second"))
    result = play(harness(FIVE, gates=gates, scm=scm), [DONE], world)
    assert (result.exit_code, result.gates, scm.ran) == (130, ["first"], [])
    world.asked = Signals()
    last = play(harness(FIVE, gates=gates[:1], scm=scm), [DONE], world)
    assert (last.names, last.exit_code, scm.ran) == ("Stop", 130, [])


def test_a_signal_during_a_wait_stops_at_once() -> None:
    """ADR 7: "during a wait: stop at once"."""
    world = FakeWorld()
    clock = FakeClock(during_rest=lambda: signalled(world))
    result = play(harness(FIVE), [limited()], world, clock)
    assert (result.exit_code, result.names, result.turns) == (130, "Wait", 1)
    assert clock.time == START


def test_a_signal_before_the_first_turn() -> None:
    result = play(harness(FIVE), [DONE], FakeWorld(asked=Signals(1, START)))
    assert (result.exit_code, result.turns) == (130, 0)


def test_a_signal_after_the_verdict_starts_no_message_turn() -> None:
    """ADR 7: "finish the current operation ..., then stop"; a message is another one."""
    world, scm, agent = FakeWorld(), FakeScm(), FakeAgent([WORK])

    class Journal(MemoryJournal):
        def record(self, fact: Fact) -> None:
            super().record(fact)
            if isinstance(fact, Decided) and fact.boundary is Boundary.CLOSING:
                signalled(world)

    stop = run(harness(FIVE, scm=scm), fake_ports(agent, world, Journal())).stop
    assert stop is not None
    assert (stop.reason.exit_code, len(agent.orders), scm.ran) == (130, 1, [])


def test_the_second_signal_cuts_the_turn() -> None:
    """ADR 7: "Second, or SIGHUP: end the tree now"."""
    world = FakeWorld()
    agent = FakeAgent([DONE], during=lambda _: signalled(world, 2), pulses=[Pulse(1.0, 0.0)])
    result = play(harness(FIVE), agent, world)
    assert agent.cuts == [Cut("asked to stop at once", grace=0.3)]
    assert (result.exit_code, result.turns) == (130, 1)


def test_the_stop_grace_bounds_the_first_signal() -> None:
    world, clock = FakeWorld(), FakeClock(tick=1.0)
    pulses = [Pulse(float(n), 0.0) for n in range(30)]
    agent = FakeAgent([DONE], during=lambda _: signalled(world), pulses=pulses)
    result = play(harness(FIVE, Patience(stop_grace=9.0)), agent, world, clock)
    assert [cut.why for cut in agent.cuts] == ["did not end within 9.0s of being asked to stop"]
    assert result.exit_code == 130


# ------------------------------------------------------------------ pauses


def test_a_pause_lasts_until_it_is_ended() -> None:
    world = FakeWorld(asked=Signals(paused=True))

    def resume() -> None:
        world.asked = Signals()

    clock = FakeClock(during_rest=resume)
    result = play(harness(FIVE), [DONE], world, clock)
    assert (result.exit_code, clock.rests) == (0, [None])


def test_a_pause_during_a_wait_forgets_neither() -> None:
    world = FakeWorld()
    keys = iter([Signals(paused=True), Signals(), Signals()])

    def press() -> None:
        world.asked = next(keys)

    clock = FakeClock(during_rest=press)
    result = play(harness(FIVE), [(limited(START + 600), DONE)], world, clock)
    assert (result.exit_code, result.names) == (0, "Wait Accept")
    assert clock.rests == [START + 600, None, START + 600]
    assert clock.time == START + 600


def test_a_paused_run_can_be_stopped() -> None:
    world = FakeWorld(asked=Signals(paused=True))

    def stop() -> None:
        world.asked = Signals(1, START, paused=True)

    result = play(harness(FIVE), [DONE], world, FakeClock(during_rest=stop))
    assert (result.exit_code, result.turns) == (130, 0)


# ------------------------------------------------------------------ clocks


def watched(patience: Patience, pulse: Pulse, turn: Turn, limits: Limits = FIVE) -> Played:
    """A run of one turn that looks like this when it is watched, then one that is done."""
    agent = FakeAgent([turn, DONE])

    def only_once(order: Order) -> None:
        agent.pulses = [pulse] if order.iteration == 1 else []

    agent.during = only_once
    return play(harness(limits, patience), agent, clock=FakeClock(tick=1.0))


@pytest.mark.parametrize(
    ("patience", "pulse", "why"),
    [
        (Patience(turn=60.0), Pulse(60.0, 0.0), "timed out after 1m"),
        (Patience(idle=20.0), Pulse(30.0, 20.0), "silent for 20s"),
    ],
)
def test_a_turn_that_takes_too_long_failed(patience: Patience, pulse: Pulse, why: str) -> None:
    result = watched(patience, pulse, DONE)
    assert [cut.why for cut in result.agent.cuts] == [why]
    assert (result.names, result.exit_code) == ("Continue Accept", 0)
    assert result.agent.prompts()[1] == f"do it\n\nThe previous iteration failed: {why}"


def test_a_turn_that_said_its_result_and_would_not_exit_is_believed() -> None:
    """ADR 6: "its tree is ended and the turn counts as the success it was"."""
    result = watched(Patience(), Pulse(70.0, 10.0, since_result=10.0), DONE)
    assert [cut.finished for cut in result.agent.cuts] == [True]
    assert (result.names, result.exit_code) == ("Accept", 0)


def test_nor_does_a_timeout_in_that_moment_take_the_success_away() -> None:
    result = watched(Patience(turn=60.0), Pulse(60.0, 1.0, since_result=1.0), DONE)
    assert (result.names, result.exit_code) == ("Accept", 0)


def test_the_runs_time_ends_the_turn_under_way() -> None:
    result = watched(Patience(), Pulse(9.0, 0.0), WORK, Limits(seconds=2.0))
    assert [cut.why for cut in result.agent.cuts] == ["the run's 2.0s are used up"]
    assert (result.exit_code, result.stop.why) == (1, "2.0s of time used up")


def test_the_time_that_gates_take_counts() -> None:
    clock = FakeClock()

    def take_time(case: Case) -> None:
        clock.time += 60.0

    policy = harness(Limits(seconds=50.0), gates=(FakeGate(during=take_time),))
    result = play(policy, [WORK], clock=clock)
    assert (result.names, result.stop.why) == ("Stop", "50s of time used up")


def test_a_turn_is_told_what_it_may_use() -> None:
    """ADR 1: "the least of turn, task, run and day limits"."""
    policy = harness(Limits(dollars=5.0), scm=FakeScm())
    result = play(policy, [said("working", cost=1.5), DONE])
    assert [order.dollars for order in result.agent.orders] == [5.0, 3.5, 3.5]


# ------------------------------------------------------------------ waiting


def test_waits_double_and_end_at_the_stated_reset() -> None:
    """ADR 11: "to the stated reset, else 30 s doubling to 15 min"."""
    attempts = (*(limited(),) * 7, limited(START + 7000), DONE)
    result = play(harness(Limits(iterations=1)), [attempts])
    untils = [v.until for v in result.verdicts if isinstance(v, Wait)]
    slept = [30, 60, 120, 240, 480, 900, 900]
    assert untils == [*(START + sum(slept[: n + 1]) for n in range(7)), START + 7000]
    assert result.iterations == [1] * 9
    assert (result.exit_code, result.clock.time) == (0, START + 7000)


def test_waiting_costs_no_time_but_money() -> None:
    """ADR 1: "`Wait` never counts an iteration or time asleep, always money"."""
    limits = Limits(iterations=2, seconds=100.0, dollars=1.0)
    attempts = (limited(START + 5000, cost=0.6), replace(WORK, cost_usd=0.1))
    result = play(harness(limits), [attempts, DONE])
    assert (result.exit_code, result.state.spent.iterations) == (0, 2)
    assert result.state.spent.dollars == pytest.approx(0.7)
    assert (result.state.spent.seconds, result.state.waited) == (0.0, 5000.0)
    dear = play(harness(limits), [(limited(cost=0.6), limited(cost=0.6), DONE)])
    assert dear.stop.reason is Reason.LIMIT
    assert dear.stop.why == "$1 used up (spent $1.20)"


def test_a_turn_cut_in_the_middle_of_its_work_is_a_cut_turn() -> None:
    result = watched(Patience(turn=60.0), Pulse(61.0, 0.0), WORK)
    ended = [fact.turn for fact in result.facts if hasattr(fact, "turn")]
    assert [turn.ending for turn in ended] == [Ending.CUT, Ending.EXITED]
