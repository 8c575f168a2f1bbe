"""A run that was asked to stop goes on where it was: nothing that is finished is paid twice."""

import pytest

from kits.histories import CRASH, CUT, DONE, WORK, Played, play
from kits.loop_fakes import FakeWorkbench
from ralph.kernel.facts import Began, Decided, Ended, Fact, Launching, Resumed, Settled
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.ports import Policy
from ralph.kernel.state import replay
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Role, Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Boundary, Continue, Reason, Stop
from ralph.kernel.world import Signals
from ralph.loops.backlog.policy import Bounds, tasks
from ralph.loops.prompt.policy import harness
from ralph.loops.stories.policy import reviewed
from ralph.loops.supervise.policy import supervise
from ralph.testing.fakes import FakeGate, FakeWorld

ASKED = Stop(Reason.INTERRUPTED, "asked to stop")


def facts(turn: Turn, *findings: Finding, final: bool = False) -> list[Fact]:
    """A signal came while this turn, the first, was under way."""
    return [
        Began(900.0, 1, Assignment("prompt")),
        Launching(901.0, Role.WORK, "claude", "/tmp/none"),
        Ended(910.0, turn),
        Decided(910.0, Boundary.CLOSING, ASKED, findings, final=final),
        Settled(911.0, ASKED),
        Resumed(950.0, 8),
    ]


def resumed(turn: Turn, *, runs: int = 2, fails: bool = False) -> Played:
    gates = (FakeGate(fails_in=frozenset({1})),) if fails else ()
    return play(harness(Limits(iterations=runs), gates=gates), [WORK], state=replay(facts(turn)))


def test_a_turn_that_had_ended_is_judged() -> None:
    """ "a finished turn is never paid twice": its claim stands, and its gates run now."""
    result = resumed(DONE, runs=1)
    assert (result.exit_code, result.turns) == (0, 0)


def test_what_its_gates_find_goes_into_the_next_prompt() -> None:
    result = resumed(DONE, fails=True)
    assert [order.iteration for order in result.agent.orders] == [2]
    assert result.agent.prompts() != ["do it"]


def test_a_turn_that_was_cut_is_taken_again() -> None:
    """ "the iteration that was cut off is taken again", and the agent is told."""
    result = resumed(CUT, runs=1)
    assert [order.iteration for order in result.agent.orders] == [1]
    assert result.agent.prompts()[0].startswith("Iteration 1 was cut off")


def test_what_the_law_had_found_is_not_forgotten() -> None:
    """It has put things right, and would find nothing now; the agent hears of it."""
    state = replay(facts(DONE, Finding("protect", "changed"), final=True))
    result = play(harness(Limits(iterations=2)), [WORK], state=state)
    assert [order.iteration for order in result.agent.orders] == [2]
    assert "changed" in result.agent.prompts()[0]


def test_what_a_guardrail_found_is_looked_at_again() -> None:
    """It may have failed because of the signal; and nobody pays for a turn to hear it."""
    state = replay(facts(DONE, Finding("make test", "it was killed")))
    result = play(harness(Limits(iterations=2)), [WORK], state=state)
    assert (result.agent.orders, result.exit_code) == ([], 0)


@pytest.mark.parametrize(("turn", "attempts"), [(CRASH, [2]), (CUT, [1, 2])])
def test_an_attempt_is_no_different(turn: Turn, attempts: list[int]) -> None:
    result = play(supervise(2), [WORK], state=replay(facts(turn)))
    assert [order.iteration for order in result.agent.orders] == attempts


def test_a_turn_that_a_crash_cut_off_has_cost_nobody_knows_what() -> None:
    """ADR 22: "counted as unknown"."""
    began, launching = facts(WORK)[:2]
    resumed = Resumed(950.0, 8)
    assert replay([began, launching, resumed]).spent.uncounted == 1
    assert replay([began, resumed]).spent.uncounted == 0
    message = Launching(901.0, Role.MESSAGE, "text", "/tmp/none")
    assert replay([began, message, resumed]).spent.uncounted == 0


MONEY = Limits(iterations=2, dollars=1.0)
POLICIES = [
    harness(MONEY),
    supervise(2, limits=MONEY),
    reviewed(limits=MONEY),
    tasks(FakeWorkbench(FakeWorld()), Bounds(run=MONEY)),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_a_turn_that_a_crash_cut_off_is_not_paid_again_where_the_run_has_to_end(
    policy: Policy,
) -> None:
    """Nobody asks the opening ladder: the turn has begun. An iteration that is taken again has not
    been spent, money has."""
    spent = [*facts(replace(WORK, cost_usd=0.4))[:3], Decided(911.0, Boundary.CLOSING, Continue())]
    cut_off: list[Fact] = [
        *spent,
        Settled(911.0, Continue()),
        Began(912.0, 2, Assignment("prompt")),
        Launching(913.0, Role.WORK, "claude", "/tmp/none"),
        Resumed(950.0, 8),
    ]
    world = FakeWorld(asked=Signals(1, 950.0))
    asked = play(policy, [WORK], world, state=replay(cut_off))
    assert (asked.turns, asked.exit_code) == (0, 130)
    again = play(policy, [WORK], state=replay(cut_off))
    assert again.agent.orders[0].iteration == 2
    paid = replace(replay(cut_off), spent=Spent(2, dollars=1.0))
    ended = play(policy, [WORK], state=paid)
    assert (ended.turns, ended.exit_code) == (0, 1)
