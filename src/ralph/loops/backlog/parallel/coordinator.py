"""The coordinator: several tasks at once, each a run of its own, with one run's limits for all.

    survey → decide(opening) → select → submit → … → a worker returns → survey → …

Its state is a fold of its own journal, as every run's: whoever was sent and is not back is sent
again when the run is resumed, and goes on where its own journal ends.
"""

from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, wait

from ralph.kernel.case import Case, decided_by
from ralph.kernel.facts import Asked, Assigned, Decided, Fact, Resting, Settled
from ralph.kernel.ports import Clock, Crew, Journal, Policy, World
from ralph.kernel.sight import Lookout
from ralph.kernel.state import RunState, fold
from ralph.kernel.value import replace
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
from ralph.kernel.world import NOTE, RESUME, Signals

_LOOK = 0.25  # seconds between two looks at signals and at what is there to do
_ALL_WAIT = "every task that was begun waits for others"


def coordinate(
    policy: Policy, crew: Crew, state: RunState, *, world: World, journal: Journal, clock: Clock
) -> RunState:
    """Send workers until a rule ends the run, or a person has changed how it is wired, and all of
    them are back."""
    sent = {crew.send(each) for each in state.crew}
    failure: BaseException | None = None
    lookout = Lookout()
    while state.stop is None:
        now, signals, backlog = clock.now(), world.signals(), world.backlog()
        state = _hear(crew, journal, state, signals, now)
        if state.rewire and not sent:
            return state
        case = Case(Boundary.OPENING, state, now, signals=signals, backlog=backlog)
        verdict, rule = decided_by(case, policy.opening)
        assert isinstance(verdict, Verdict), "a ladder must end in a verdict"
        is_free = len(sent) - crew.resting() < crew.size and failure is None and not state.rewire
        if isinstance(verdict, Continue) and is_free:
            assignment = policy.select(case)
            assert assignment is not None, "a ladder let a worker begin with nothing to do"
            seen = lookout.seen(signals, backlog)
            assigned = Assigned(now, assignment, crew.name(state.sent + 1), seen)
            state = _record(journal, state, assigned)
            sent.add(crew.send(assigned))
            continue
        if not sent and failure is not None:
            raise failure
        if not sent and isinstance(verdict, Stop):
            seen = lookout.seen(signals, backlog)
            decided = Decided(now, Boundary.OPENING, verdict, rule=rule, seen=seen)
            return _ended(crew, journal, clock, state, decided)
        state = _rested(crew, journal, state, len(sent), now)
        if not sent:
            clock.rest(clock.now() + _LOOK, lambda: False)
        for promise in wait(sent, timeout=_LOOK, return_when=FIRST_COMPLETED).done:
            sent.remove(promise)
            try:
                back = promise.result()
                state = state if back is None else _record(journal, state, back)
            except Exception as error:  # noqa: BLE001  it is raised once all are back
                failure = failure or error
                crew.recall()
    return state


def _hear(crew: Crew, journal: Journal, state: RunState, signals: Signals, now: float) -> RunState:
    """Record the requests that are new; notes are for the workers. Whoever goes on after a pause
    comes back first, before nothing tells any more that there was one."""
    if any(each.request == RESUME for each in signals.requests):
        crew.recall()
    for request in signals.requests:
        if request.request != NOTE and request.id not in state.heard:
            state = _record(journal, state, Asked(now, request))
    return state


def _rested(crew: Crew, journal: Journal, state: RunState, sent: int, now: float) -> RunState:
    """Record when the last of them begins to wait, and when one is at work again: no time is spent
    in between."""
    rests = 0 < sent == crew.resting()
    if rests == (state.resting is not None):
        return state
    return _record(journal, state, Resting(now, now, _ALL_WAIT if rests else ""))


def _ended(
    crew: Crew, journal: Journal, clock: Clock, state: RunState, decided: Decided
) -> RunState:
    stop, state = decided.verdict, _record(journal, state, decided)
    assert isinstance(stop, Stop)
    if not is_interrupted(stop):
        crew.end(stop)
    return _record(journal, state, Settled(clock.now(), stop))


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


def _record(journal: Journal, state: RunState, fact: Fact) -> RunState:
    journal.record(fact)
    return fold(state, fact)
