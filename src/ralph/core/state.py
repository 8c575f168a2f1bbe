"""The state of a run: a fold over its facts. Nothing here is stored; resume folds again."""

from dataclasses import dataclass, replace
from enum import Enum
from functools import reduce

from ralph.core.facts import (
    Began,
    Checked,
    Checking,
    Decided,
    Ended,
    Fact,
    Resumed,
    Settled,
    Started,
    Step,
)
from ralph.core.gates import Finding
from ralph.core.limits import Spent
from ralph.core.task import Assignment
from ralph.core.turn import Turn
from ralph.core.verdict import Accept, Boundary, Continue, Feedback, Park, Stop, Verdict, Wait
from ralph.core.world import Snapshot


class Phase(Enum):
    """What the loop does next; derived, never stored."""

    OPENING = "opening"
    TURN = "turn"
    CLOSING = "closing"
    SETTLING = "settling"


@dataclass(frozen=True, slots=True)
class RunState:
    """Everything a run knows about itself."""

    phase: Phase = Phase.OPENING
    time: float = 0.0  # of the last fact
    spent: Spent = Spent()  # up to the last fact
    iteration: int = 0
    again: bool = False  # the next turn takes the same iteration again
    cut_off: bool = False  # this turn was cut off by a crash and is taken again
    assignment: Assignment | None = None
    snapshot: Snapshot = Snapshot()
    turn: Turn | None = None
    verdict: Verdict | None = None
    findings: tuple[Finding, ...] = ()  # of the last closing
    checked: bool = False  # every gate of the last closing ran
    feedback: tuple[Feedback, ...] = ()
    failures: int = 0  # failed turns in a row
    stalls: int = 0  # turns without progress in a row
    waits: int = 0  # waits in a row
    waited: float = 0.0  # seconds asleep, in all
    wake: float | None = None  # when to go on
    steps: frozenset[str] = frozenset()  # settled steps of this iteration
    done: frozenset[str] = frozenset()
    parked: tuple[tuple[str, str], ...] = ()  # (task, why)
    evidence: tuple[str, ...] = ()
    claimed: bool = False  # some turn wrote a <response> tag
    stop: Stop | None = None

    def spent_at(self, now: float) -> Spent:
        """Spent up to `now`, time asleep left out."""
        if self._asleep or not self.time:
            return self.spent
        return replace(self.spent, seconds=self.spent.seconds + max(0.0, now - self.time))

    @property
    def _asleep(self) -> bool:
        return isinstance(self.verdict, Wait) and self.phase is Phase.OPENING


NEW = RunState()


def fold(state: RunState, fact: Fact) -> RunState:
    """The state after one more fact."""
    return _after(_at(state, fact), fact)


def replay(facts: "list[Fact] | tuple[Fact, ...]", state: RunState = NEW) -> RunState:
    """The state after all these facts."""
    return reduce(fold, facts, state)


def _at(state: RunState, fact: Fact) -> RunState:
    """Time passes up to the fact; the time between a crash and its resume does not."""
    if isinstance(fact, Resumed):
        return replace(state, time=fact.time)
    asleep = max(0.0, fact.time - state.time) if state._asleep else 0.0  # noqa: SLF001
    spent = state.spent_at(fact.time)
    return replace(state, time=fact.time, spent=spent, waited=state.waited + asleep)


def _after(state: RunState, fact: Fact) -> RunState:
    match fact:
        case Started() | Checking() | Checked():
            return state
        case Resumed():
            return replace(state, cut_off=state.phase is Phase.TURN)
        case Began():
            return _began(state, fact)
        case Ended():
            return _ended(state, fact.turn)
        case Decided():
            return _decided(state, fact)
        case Step():
            dollars = state.spent.dollars + fact.cost_usd
            return replace(
                state,
                steps=state.steps | {fact.key},
                spent=replace(state.spent, dollars=dollars),
            )
        case Settled():
            return _settled(state, fact.verdict)


def _began(state: RunState, fact: Began) -> RunState:
    return replace(
        state,
        phase=Phase.TURN,
        iteration=fact.iteration,
        assignment=fact.assignment,
        snapshot=fact.snapshot,
        turn=None,
        verdict=None,
        wake=None,
        again=False,
        cut_off=False,
        steps=frozenset(),
        spent=replace(state.spent, iterations=fact.iteration),
    )


def _ended(state: RunState, turn: Turn) -> RunState:
    return replace(
        state,
        phase=Phase.CLOSING,
        turn=turn,
        claimed=state.claimed or any(c.tag == "response" for c in turn.claims),
        spent=replace(
            state.spent,
            dollars=state.spent.dollars + (turn.cost_usd or 0.0),
            usage=state.spent.usage + turn.usage,
        ),
    )


def _decided(state: RunState, fact: Decided) -> RunState:
    state = replace(state, verdict=fact.verdict)
    if fact.boundary is Boundary.CLOSING:
        state = _judged(state, fact)
    if fact.boundary is Boundary.STOPPING and isinstance(fact.verdict, Continue):
        # P: the iteration counts blocked exits; the session goes on by itself.
        iteration = state.iteration + 1
        spent = replace(state.spent, iterations=iteration)
        return replace(state, iteration=iteration, spent=spent, findings=fact.findings)
    match fact.verdict:
        case Wait(until=until):
            return replace(state, phase=Phase.OPENING, wake=until, waits=state.waits + 1)
        case Continue() if fact.boundary is Boundary.OPENING:
            return state
        case Continue(feedback=feedback, after=after):
            wake = fact.time + after if after else None
            return replace(state, phase=Phase.SETTLING, feedback=feedback, wake=wake)
        case _:
            return replace(state, phase=Phase.SETTLING)


def _judged(state: RunState, fact: Decided) -> RunState:
    """Count in a row: failures, stalls, waits. A turn that waits is not judged: it is retaken."""
    if isinstance(fact.verdict, Wait):
        return replace(state, again=True)
    assert state.turn is not None
    return replace(
        state,
        waits=0,
        failures=state.failures + 1 if state.turn.failed else 0,
        stalls=0 if fact.progressed else state.stalls + 1,
        findings=fact.findings,
        checked=fact.checked,
    )


def _settled(state: RunState, verdict: Verdict) -> RunState:
    state = replace(state, phase=Phase.OPENING, verdict=verdict)
    task = state.assignment.task if state.assignment else ""
    match verdict:
        case Stop():
            return replace(state, stop=verdict)
        case Accept(evidence=evidence):
            return replace(
                state, done=state.done | {task}, evidence=evidence, feedback=(), findings=()
            )
        case Park(why=why):
            return replace(state, parked=(*state.parked, (task, why)), feedback=(), findings=())
        case Continue(feedback=feedback):
            return replace(state, feedback=feedback)
        case _:
            return state
