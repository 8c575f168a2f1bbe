"""Property (c): cut a history at any fact, resume, and the end is the same.

A kill may come right after a fact was written, or after its effect and just before it was
written: then the turn is taken again, and a step must not take effect twice.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kits.loop_fakes import FakeChildRuns, FakeScm, FakeWorkbench
from ralph.kernel.claims import find_claims
from ralph.kernel.engine import run
from ralph.kernel.events import Failure
from ralph.kernel.facts import Decided, Ended, Fact, Resumed, Settled, Started, Step
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits
from ralph.kernel.ports import Policy
from ralph.kernel.rules import Patience
from ralph.kernel.state import RunState, replay
from ralph.kernel.tasks.task import Backlog, ReviewStatus, Task
from ralph.kernel.turn import Order, Role, Turn
from ralph.kernel.verdict import Boundary, Stop, Wait
from ralph.kernel.world import Signals
from ralph.loops.backlog.policy import tasks
from ralph.loops.prompt.policy import harness
from ralph.loops.stories.policy import Desk, reviewed
from ralph.loops.supervise.policy import supervise
from ralph.testing.fakes import (
    FakeAgent,
    FakeClock,
    FakeGate,
    FakeWorld,
    KilledError,
    MemoryJournal,
    fake_ports,
)

STARTED = Started(1000.0, "run", "any", "/work", 7, "1.0")


def said(text: str, cost: float = 0.25) -> Turn:
    return Turn(text=text, claims=find_claims(text), tools=1, cost_usd=cost)


WORK, DONE = said("working"), said("<response>DONE</response>")
COMPLETE, BLOCKED = said("<promise>COMPLETE</promise>"), said("<promise>BLOCKED: key</promise>")
CRASH = Turn(exit_code=1)


@dataclass
class Stage:
    """A policy and the world it works in; the world outlives a kill, the process does not."""

    policy: Policy
    agent: FakeAgent
    world: FakeWorld
    effects: Callable[[], object]
    clock: FakeClock = field(default_factory=lambda: FakeClock(tick=0.5))
    away: float = 100_000.0  # seconds between the crash and the resume

    def run(self, journal: MemoryJournal, state: RunState) -> Stop:
        ports = fake_ports(self.agent, self.world, journal, self.clock)
        stop = run(self.policy, ports, state).stop
        assert stop is not None
        return stop


def prompt_loop() -> Stage:
    """H: a failing gate, a crash, a claim; commit and push after each good iteration."""
    scm, world = FakeScm(("commit", "push"), dirty=False), FakeWorld()
    agent = FakeAgent([DONE, CRASH, WORK, DONE])

    def make_changes(order: Order) -> None:
        scm.dirty = scm.dirty or order.role is Role.WORK

    agent.during = make_changes
    gates = (FakeGate(fails_in=frozenset({1})), FakeGate("protect", always=True))
    policy = harness(Limits(iterations=9, seconds=900.0, dollars=9.0), gates=gates, scm=scm)
    return Stage(policy, agent, world, lambda: pushed_once(scm))


def pushed_once(scm: FakeScm) -> list[tuple[str, str]]:
    """To push the same commit again changes nothing."""
    return [task for task, _ in groupby(scm.ran)]


def failing_push() -> Stage:
    """H: a push that fails is not made up for by a crash."""
    scm = FakeScm(("commit", "push", "tag"), fails=frozenset({"push"}))
    policy = harness(Limits(iterations=2), scm=scm)
    return Stage(policy, FakeAgent([WORK]), FakeWorld(), lambda: scm.ran)


def rate_limited() -> Stage:
    """H: the service says no until a certain time."""
    clock = FakeClock(tick=0.5)
    limited = Turn(exit_code=1, failure=Failure("limit", 429, resets_at=1500.0), cost_usd=0.5)

    class Limited(FakeAgent):
        def _answer(self, order: Order) -> Turn:
            return limited if clock.time < 1500.0 else super()._answer(order)

    policy = harness(Limits(iterations=2, seconds=400.0))
    return Stage(policy, Limited([WORK, DONE]), FakeWorld(), list, clock, away=1.0)


def backlog() -> Stage:
    """B: a failed turn, a refused commit, a parked task, one that waits for another."""
    stories = (Task("a"), Task("b", priority=1), Task("c", blocked_by=("a",)))
    world = FakeWorld(Backlog(stories))
    bench = FakeWorkbench(world, {3: "lint fails"})
    turns = [BLOCKED, CRASH, COMPLETE, COMPLETE, WORK, COMPLETE]
    return Stage(tasks(bench), FakeAgent(turns), world, lambda: (bench.done, world.tasks))


def restarts() -> Stage:
    """S: two restarts, then someone writes DONE; the children are waited for."""
    world, child_runs, agent = FakeWorld(), FakeChildRuns(), FakeAgent([WORK, CRASH])

    def mark() -> None:
        world.asked = Signals(done_at=1.0) if agent.orders[-1].iteration == 3 else Signals()

    clock = FakeClock(tick=0.5, during_rest=mark)
    return Stage(supervise(child_runs=child_runs), agent, world, lambda: child_runs.told, clock)


def stories() -> Stage:
    """R: the agent approves its own work, is corrected, and goes the long way."""
    world = FakeWorld(Backlog((Task("US-1"),)))
    corrected = set[int]()
    reviews = {2: ReviewStatus.NEEDS_REVIEW, 3: ReviewStatus.CHANGES_REQUESTED}
    reviews |= {1: ReviewStatus.APPROVED, 4: ReviewStatus.NEEDS_REVIEW, 5: ReviewStatus.APPROVED}

    def edit(order: Order) -> None:
        review = reviews[order.iteration]
        world.update("US-1", review=review, passes=review is ReviewStatus.APPROVED)

    class CorrectingDesk(Desk):
        def correct(self, state: RunState) -> str:
            if not state.findings:
                return ""
            corrected.add(state.iteration)
            world.update("US-1", review=None, passes=False)
            return "corrected"

    law = FakeGate("law", always=True, fails_in=frozenset({1}), finding=Finding("law", "illegal"))
    policy = reviewed(CorrectingDesk(), patience=Patience(fail_after=2), gates=(law,))
    agent = FakeAgent([COMPLETE, WORK, WORK, WORK, WORK], during=edit)
    return Stage(policy, agent, world, lambda: (corrected, world.tasks))


STAGES = [prompt_loop, failing_push, rate_limited, backlog, restarts, stories]


def outcome(facts: list[Fact]) -> list[object]:
    """Verdicts, findings and steps in their order; the times at which they fell aside."""
    kept: list[object] = []
    for fact in facts:
        match fact:
            case Decided(boundary=Boundary.CLOSING, verdict=verdict):
                kept.append((_timeless(verdict), fact.findings, fact.checked, fact.notes))
            case Settled(verdict=verdict):
                kept.append(_timeless(verdict))
            case Step():
                kept.append((fact.key, fact.ok, fact.detail))
            case Ended(turn=turn):
                kept.append(turn)
            case _:
                pass
    return kept


def _timeless(verdict: object) -> object:
    return replace(verdict, until=None) if isinstance(verdict, Wait) else verdict


def killed(stage: Stage, journal: MemoryJournal) -> None:
    """Run until the journal kills the process."""
    with pytest.raises(KilledError):
        stage.run(journal, replay(journal.facts))


def resumed(stage: Stage, facts: list[Fact]) -> tuple[Stop, MemoryJournal]:
    """Another process goes on with what the journal holds, much later."""
    stage.clock.time += stage.away
    journal = MemoryJournal([*facts, Resumed(stage.clock.time, 8)])
    return stage.run(journal, replay(journal.facts)), journal


def undisturbed(build: Callable[[], Stage]) -> tuple[Stop, list[Fact], Stage]:
    stage, journal = build(), MemoryJournal([STARTED])
    return stage.run(journal, replay(journal.facts)), journal.facts, stage


def was_turn(fact: Fact) -> bool:
    """A turn whose fact was never written is taken again."""
    return isinstance(fact, Ended) or (isinstance(fact, Step) and fact.key == "scm:message")


@pytest.mark.parametrize("kept", [True, False], ids=["after the fact", "before it is written"])
@pytest.mark.parametrize("build", STAGES)
def test_killed_at_any_fact_and_resumed_the_end_is_the_same(
    build: Callable[[], Stage], kept: bool
) -> None:
    """ADR 9: `kill -9` "at any journal write ...: resume gives the undisturbed result"."""
    stop, facts, calm = undisturbed(build)
    for n in range(2, len(facts) + (not kept)):  # after the last it has ended, and stays so
        stage, journal = build(), MemoryJournal([STARTED])
        journal.killed_after, journal.killed_before = (n, None) if kept else (None, n)
        killed(stage, journal)
        assert len(journal.facts) == (n if kept else n - 1)
        end, rest = resumed(stage, journal.facts)
        assert end == stop, f"killed at fact {n}: {facts[n - 1]}"
        assert outcome(rest.facts) == outcome(facts)
        assert stage.effects() == calm.effects()
        again = not kept and was_turn(facts[n - 1])
        assert len(stage.agent.orders) == len(calm.agent.orders) + again
        assert replay(rest.facts).spent.iterations == replay(facts).spent.iterations


@pytest.mark.parametrize("build", STAGES)
@given(data=st.data())
def test_killed_again_and_again(build: Callable[[], Stage], data: st.DataObject) -> None:
    """A resumed run is a run like any other."""
    stop, facts, calm = undisturbed(build)
    stage, journal = build(), MemoryJournal([STARTED])
    for _ in range(data.draw(st.integers(1, 4))):
        ahead = data.draw(st.integers(1, 8))
        journal.killed_before = len(journal.facts) + ahead
        if len(facts) - len(journal.facts) <= ahead:
            break
        killed(stage, journal)
        stage.clock.time += stage.away
        journal = MemoryJournal([*journal.facts, Resumed(stage.clock.time, 8)])
    end = stage.run(MemoryJournal(journal.facts), replay(journal.facts))
    assert (end, outcome(journal.facts)) == (stop, outcome(facts))
    assert stage.effects() == calm.effects()
