"""The coordinator: several tasks at once, each a run of its own, with one run's limits for all.

    survey → decide(opening) → select → submit → … → a worker returns → survey → …

Its state is a fold of its own journal, as every run's: whoever was sent and is not back is sent
again when the run is resumed, and goes on where its own journal ends.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait

from ralph.kernel.case import Case, decide
from ralph.kernel.facts import Assigned, Decided, Fact, Returned, Settled
from ralph.kernel.ports import Clock, Crew, Journal, Policy
from ralph.kernel.state import RunState, fold
from ralph.kernel.tasks.task import Backlog
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import (
    Accept,
    Boundary,
    Cause,
    Continue,
    Park,
    Reason,
    Stop,
    Verdict,
    is_interrupted,
)
from ralph.kernel.world import Signals

_LOOK = 0.25  # seconds between two looks at signals and at what is there to do
_Promise = Future[Returned | None]


@value
class Surroundings:
    """The coordinator's view of the world; agents are its workers' business."""

    signals: Callable[[], Signals]
    backlog: Callable[[], Backlog]
    journal: Journal
    clock: Clock


def coordinate(policy: Policy, crew: Crew, around: Surroundings, state: RunState) -> Stop:
    """Send workers until a rule ends the run and all of them are back."""
    sent = {crew.executor.submit(crew.work, each) for each in state.crew}
    failure: BaseException | None = None
    while state.stop is None:
        verdict = _verdict(policy, around, state)
        if isinstance(verdict, Continue) and failure is None and len(sent) < crew.size:
            assigned = _assignment(policy, around, state, crew.name(state.sent + 1))
            state = _record(around, state, assigned)
            sent.add(crew.executor.submit(crew.work, assigned))
            continue
        if not sent and failure is not None:
            raise failure
        if not sent and isinstance(verdict, Stop):
            return _ended(crew, around, state, verdict)
        for promise in _back(around, sent):
            sent.remove(promise)
            try:
                back = promise.result()
                state = state if back is None else _record(around, state, back)
            except Exception as error:  # noqa: BLE001  it is raised once all are back
                failure = failure or error
                crew.recall()
    return state.stop


def is_over(state: RunState) -> bool:
    """True if a worker's run has ended, and nobody goes on with it."""
    return state.stop is not None and not is_interrupted(state.stop)


def outcome_of(facts: Sequence[Fact], state: RunState) -> Verdict:
    """The verdict on a worker's task; the Stop that left it in the middle."""
    assert state.stop is not None, "its run is over"
    ends = [
        fact.verdict
        for fact in facts
        if isinstance(fact, Settled) and isinstance(fact.verdict, Accept | Park)
    ]
    if state.task_iteration:
        return state.stop
    if ends:
        last = ends[-1]
        return replace(last, cause=Cause.CRASH) if state.barren and isinstance(last, Park) else last
    settled = state.stop.reason in (Reason.COMPLETED, Reason.BLOCKED)
    return Park("it is no longer open", Cause.PERSON) if settled else state.stop


def _assignment(policy: Policy, around: Surroundings, state: RunState, run: str) -> Assigned:
    assignment = policy.select(_survey(around, state))
    assert assignment is not None, "a ladder let a worker begin with nothing to do"
    return Assigned(around.clock.now(), assignment, run)


def _verdict(policy: Policy, around: Surroundings, state: RunState) -> Verdict:
    answer = decide(_survey(around, state), policy.opening)
    assert isinstance(answer, Verdict), "a ladder must end in a verdict"
    return answer


def _survey(around: Surroundings, state: RunState) -> Case:
    now = around.clock.now()
    signals, backlog = around.signals(), around.backlog()
    return Case(Boundary.OPENING, state, now, signals=signals, backlog=backlog)


def _back(around: Surroundings, sent: set[_Promise]) -> set[_Promise]:
    """The workers that are back within a moment."""
    if not sent:
        around.clock.rest(around.clock.now() + _LOOK, lambda: False)
        return set()
    return wait(sent, timeout=_LOOK, return_when=FIRST_COMPLETED).done


def _ended(crew: Crew, around: Surroundings, state: RunState, stop: Stop) -> Stop:
    state = _record(around, state, Decided(around.clock.now(), Boundary.OPENING, stop))
    if not is_interrupted(stop):
        crew.end(stop)
    _record(around, state, Settled(around.clock.now(), stop))
    return stop


def _record(around: Surroundings, state: RunState, fact: Fact) -> RunState:
    around.journal.record(fact)
    return fold(state, fact)
