"""Profiles whose turns have sandboxes (B §Rollback, ADR 26)."""

from dataclasses import dataclass, field

import pytest

from kits.histories import CRASH, CUT, DONE, WORK, limited, play, said
from kits.loop_fakes import FakeWorkbench
from ralph.kernel.engine import run
from ralph.kernel.facts import Ended, Landed
from ralph.kernel.limits import Limits
from ralph.kernel.ports import Policy
from ralph.kernel.state import replay
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import Boundary
from ralph.loops.backlog.policy import tasks
from ralph.loops.prompt.policy import harness
from ralph.sandbox.profile import sandboxed
from ralph.testing.fakes import FakeAgent, FakeWorld, KilledError, MemoryJournal, fake_ports

THREE = Limits(iterations=3)


@dataclass
class FakeLayers:
    """Remembers what landed; what could not be applied is as a test says."""

    spared: dict[int, tuple[str, ...]] = field(default_factory=dict)
    held: tuple[str, ...] = ()
    asked: list[tuple[int, bool]] = field(default_factory=list)
    cleared: int = 0

    def land(self, iteration: int, now: float, *, keep: bool) -> Landed:
        self.asked.append((iteration, keep))
        return Landed(now, keep, 2, self.held, self.spared.get(iteration, ()))

    def clear(self) -> None:
        self.cleared += 1


def sandboxed_harness(layers: FakeLayers, limits: Limits = THREE) -> Policy:
    return sandboxed(harness(limits), layers)


@pytest.mark.parametrize(
    ("turn", "kept"),
    [
        (WORK, True),
        (DONE, True),
        (CRASH, False),
        (CUT, False),
        (said('<result>{"status":"failed"}</result>'), False),
    ],
)
def test_a_good_turn_lands_and_a_failed_one_is_thrown_away(turn: Turn, kept: bool) -> None:
    """ADR 21: "A turn that crashed, timed out or said `failed` has failed"."""
    layers = FakeLayers()
    play(sandboxed_harness(layers, Limits(iterations=1)), [turn])
    assert layers.asked == [(1, kept)]


def test_what_a_rate_limit_ended_is_not_thrown_away() -> None:
    """ADR 21: "a wait discards nothing"."""
    layers = FakeLayers()
    play(sandboxed_harness(layers), [(limited(), DONE)])
    assert layers.asked == [(1, True), (1, True)]


def test_it_lands_before_the_gates_look() -> None:
    played = play(sandboxed_harness(FakeLayers()), [DONE])
    kinds = [type(fact).__name__ for fact in played.facts]
    assert kinds.index("Ended") < kinds.index("Landed") < kinds.index("Checked")


def test_the_agent_is_told_what_became_of_its_changes() -> None:
    layers = FakeLayers(held=(".git/hooks/pre-commit",))
    agent = FakeAgent([CRASH, DONE])
    play(sandboxed_harness(layers), agent)
    assert "thrown away" not in agent.prompts()[0]
    assert "What the last turn changed was thrown away" in agent.prompts()[1]
    assert ".git/hooks/pre-commit" in agent.prompts()[1]


def test_done_is_not_believed_while_some_of_it_is_not_in_the_project() -> None:
    layers = FakeLayers(spared={1: ("a.txt: someone changed it meanwhile",)})
    agent = FakeAgent([DONE])
    played = play(sandboxed_harness(layers), agent)
    assert played.names == "Continue Accept"
    assert "not in the project: a.txt: someone changed it meanwhile" in agent.prompts()[1]


def test_held_changes_wait_for_a_person_and_do_not_hold_up_the_run() -> None:
    assert play(sandboxed_harness(FakeLayers(held=(".envrc",))), [DONE]).names == "Accept"


def test_tasks_can_have_sandboxes_too() -> None:
    world, layers = FakeWorld(), FakeLayers()
    policy = sandboxed(tasks(FakeWorkbench(world)), layers)
    assert policy.gates[Boundary.CLOSING][0].name == "sandbox"
    play(policy, [CRASH, said("<promise>COMPLETE</promise>")], world)
    assert layers.asked == [(1, False), (2, True)]


def test_a_turn_lands_once_however_often_the_run_is_killed() -> None:
    """Resume folds the journal: a landing that it holds is not asked for again."""
    layers, world = FakeLayers(), FakeWorld()
    policy = sandboxed_harness(layers)
    facts = play(policy, [DONE]).facts
    at = [isinstance(fact, Landed) for fact in facts].index(True)
    assert isinstance(facts[at - 1], Ended)
    journal = MemoryJournal(killed_after=at + 1)
    with pytest.raises(KilledError):
        run(policy, fake_ports(FakeAgent([DONE]), world, journal=journal))
    layers.asked.clear()
    played = play(policy, [DONE], world, state=replay(journal.facts))
    assert (played.exit_code, layers.asked) == (0, [])


def test_who_says_that_it_failed_is_not_believed_to_be_done() -> None:
    both = said('<result>{"status":"failed"}</result> <response>DONE</response>')
    agent = FakeAgent([both, DONE])
    assert play(sandboxed_harness(FakeLayers()), agent).names == "Continue Accept"
    assert "You said that this turn failed" in agent.prompts()[1]
