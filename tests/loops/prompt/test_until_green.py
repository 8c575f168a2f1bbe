"""`--until-green`: the guardrails alone say when the work is done."""

from dataclasses import replace

import pytest

from kits.histories import BLOCKED, CRASH, DONE, MISSING, WORK, Played, play
from ralph.kernel.facts import Resumed, Step
from ralph.kernel.limits import Limits
from ralph.kernel.state import replay
from ralph.kernel.turn import Turn
from ralph.kernel.world import Signals
from ralph.loops.prompt.policy import Wording, harness
from ralph.testing.fakes import FakeAgent, FakeGate, FakeWorld

FIVE = Limits(iterations=5)
CHECKS = Wording(checks=("make test",))
TOLD = "do it\n\nRalph runs `make test` after your turn."


def until_green(*turns: Turn, red: set[int], world: FakeWorld | None = None) -> Played:
    """A run whose guardrail fails in these iterations; 0 is before the first."""
    gates = (FakeGate(fails_in=frozenset(red)),)
    return play(harness(FIVE, wording=CHECKS, gates=gates), FakeAgent(turns), world)


@pytest.mark.parametrize(
    ("turns", "red", "verdicts", "exit_code"),
    [
        ((WORK,), {0}, "Accept", 0),
        ((WORK,), {0, 1, 2}, "Continue Continue Accept", 0),
        ((DONE,), {0, 1}, "Continue Accept", 0),
        ((CRASH,), {0}, "Accept", 0),  # what stands in the files is green all the same
        ((BLOCKED,), {0}, "Accept", 0),
        ((BLOCKED,), {0, 1}, "Stop", 3),
        ((MISSING,), {0}, "Stop", 2),
        ((DONE,), {0, 1, 2, 3, 4, 5}, "Continue Continue Continue Continue Stop", 1),
    ],
)
def test_it_is_over_when_every_guardrail_passes_and_not_before(
    turns: tuple[Turn, ...], red: set[int], verdicts: str, exit_code: int
) -> None:
    result = until_green(*turns, red=red)
    assert (result.names, result.exit_code) == (verdicts, exit_code)


def test_what_is_green_already_is_not_paid() -> None:
    result = until_green(WORK, red=set())
    assert (result.exit_code, result.agent.orders) == (0, [])
    assert result.stop.why == "every guardrail passes already"
    assert result.stop.evidence == ("passed: make test",)


def test_the_first_look_is_taken_once_also_if_the_run_goes_on_later() -> None:
    looks: list[int] = []
    gate = FakeGate(
        fails_in=frozenset({0, 1}), during=lambda case: looks.append(case.state.iteration)
    )
    policy = harness(FIVE, wording=CHECKS, gates=(gate,))
    first = replay([Step(900.0, "Before the first turn", detail="not every guardrail passes yet")])
    assert play(policy, [WORK], state=replay([Resumed(950.0, 8)], first)).exit_code == 0
    assert looks == [1, 2]


def test_nothing_is_looked_at_once_somebody_has_asked_to_stop() -> None:
    result = until_green(WORK, red=set(), world=FakeWorld(asked=Signals(cancels=1)))
    assert (result.exit_code, result.agent.orders) == (130, [])


def test_the_agent_is_told_that_the_checks_decide_and_no_tag() -> None:
    gates = (FakeGate(fails_in=frozenset({0, 1})),)
    wording = replace(CHECKS, tell_completion=True)
    result = play(harness(FIVE, wording=wording, gates=gates), [DONE])
    first, second = result.agent.prompts()
    assert first == f"{TOLD} When it passes, the work is done; you need not say so."
    assert "<response>" not in second


def test_several_checks_are_named() -> None:
    wording = Wording(tell_completion=True, checks=("make lint", "make test"))
    result = play(
        harness(FIVE, wording=wording, gates=(FakeGate(fails_in=frozenset({0})),)), [WORK]
    )
    [told] = result.agent.prompts()
    assert "`make lint`, `make test` after your turn. When all of them pass" in told
