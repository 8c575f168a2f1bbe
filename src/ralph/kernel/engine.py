"""The engine: one loop over the folded state, and one answer for a session's stop hook.

    look → survey → decide(opening) → prepare → compose → take_turn(watching) → land → gates → …
    I/O     I/O          pure           I/O       pure          I/O              I/O    I/O

It knows no agent, no file and no profile, and `proving` runs the gates. Resuming is nothing
special: `run` with the state that the journal folds to.
"""

from ralph.errors import AbortedError
from ralph.kernel.case import Case, Ladder, decide, decided_by
from ralph.kernel.facts import Asked, Began, Decided, Ended, Fact, Settled
from ralph.kernel.ports import Policy, Ports, survey, watcher
from ralph.kernel.prompt import noted, place
from ralph.kernel.proving import prove, uphold
from ralph.kernel.state import NEW, Phase, RunState, fold
from ralph.kernel.tasks.task import Backlog
from ralph.kernel.turn import Ending, Order, Role, Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Accept, Boundary, Continue, Cut, Reason, Stop, Verdict
from ralph.kernel.world import NOTE, Signals


def run(policy: Policy, ports: Ports, state: RunState = NEW) -> RunState:
    """Take turns until a rule ends the run, or a person has changed how it is wired."""
    while state.stop is None and not state.rewire:
        match state.phase:
            case Phase.OPENING:
                state = open_turn(policy, ports, state)
            case Phase.TURN:
                state = take_turn(policy, ports, state)
            case Phase.CLOSING:
                state = close_turn(policy, ports, state)
            case Phase.SETTLING:  # pragma: no branch  there is no other
                state = settle(policy, ports, state)
    return state


def open_turn(policy: Policy, ports: Ports, state: RunState) -> RunState:
    """Sleep while paused, then until the wake time, then decide on another turn and its task."""
    if state.asleep and state.asleep.until is None:
        state = _hear(ports, state, ports.world.signals())
        ports.clock.rest(None, lambda: _stirred(ports, paused=False))
    if state.wake:
        ports.clock.rest(state.wake, lambda: _stirred(ports, paused=True))
    for fact in policy.look(ports, state):
        state = _record(ports, state, fact)
    case = survey(ports, state, Boundary.OPENING)
    state = _hear(ports, state, case.signals)
    if state.rewire:
        return state
    decided = _decided(ports, replace(case, state=state, now=ports.clock.now()), policy.opening)
    state = _record(ports, state, decided)
    if not isinstance(decided.verdict, Continue):
        return state
    state = _hear(ports, state, case.signals, notes=True)
    assignment = policy.select(case)
    assert assignment is not None, "a ladder let a turn begin with nothing to do"
    iteration = state.iteration if state.again else state.iteration + 1
    checkpoint, snapshot = ports.world.checkpoint(), ports.world.snapshot()
    began = Began(ports.clock.now(), iteration, assignment, snapshot, checkpoint)
    return _record(ports, state, began)


def take_turn(policy: Policy, ports: Ports, state: RunState) -> RunState:
    """Prepare the workspace, then let the agent work, and watch it."""
    if state.cut_off:  # by a crash: the run may have to end before it is paid again
        case = survey(ports, replace(state, again=True), Boundary.OPENING)
        if decide(case, policy.retaking) is not None:
            decided = _decided(ports, case, policy.retaking)
            assert isinstance(decided.verdict, Stop), "it is taken again, or the run ends"
            uphold(policy.law, ports, state)  # nobody will judge what that turn has changed
            return _record(ports, state, decided)
    for fact in policy.prepare(ports, state):
        state = _record(ports, state, fact)
    case = survey(ports, state, Boundary.WATCHING)
    if case.backlog.problem:
        turn = Turn(Ending.UNSTARTABLE, exit_code=None, why=case.backlog.problem)
    else:
        turn = ports.agent.take_turn(_order(policy, case), watcher(ports, policy.watching, case))
    return _record(ports, state, Ended(ports.clock.now(), turn))


def _order(policy: Policy, case: Case) -> Order:
    role = Role.REVIEW if case.state.is_review else Role.WORK
    prompt = place(policy.compose(case), noted(case.state))
    return Order(prompt, case.state.iteration, role, policy.allowance(case), policy.choose(case))


def first_order(policy: Policy, backlog: Backlog, now: float) -> Order | None:
    """The order of a first turn that is only shown; None if nothing can be started."""
    case = Case(Boundary.OPENING, NEW, now, backlog=backlog)
    assignment = policy.select(case)
    if assignment is None:
        return None
    state = replace(NEW, iteration=1, task_iteration=1, assignment=assignment)
    return _order(policy, replace(case, boundary=Boundary.WATCHING, state=state))


def first_stop(policy: Policy, backlog: Backlog, now: float) -> Stop | None:
    """The end of a run that has no first turn; None where it is not known yet."""
    answer = decide(Case(Boundary.OPENING, NEW, now, backlog=backlog), policy.opening)
    return answer if isinstance(answer, Stop) else None


def close_turn(policy: Policy, ports: Ports, state: RunState) -> RunState:
    """Land what the turn changed, run the gates, then judge the turn."""
    for fact in policy.land(ports, state):
        state = _record(ports, state, fact)
    case = _proven(policy, ports, state, Boundary.CLOSING)
    if case.proof is not None:
        state = _record(ports, state, case.proof)
    # Asked again: a signal may have come while the gates ran.
    case = replace(case, signals=ports.world.signals())
    state = _hear(ports, state, case.signals)
    return _record(ports, state, _judgement(policy, ports, replace(case, state=state)))


def settle(policy: Policy, ports: Ports, state: RunState) -> RunState:
    """Carry out the verdict step by step, skipping steps already taken. A run that is stopped in
    between continues with the next step when it resumes."""
    verdict = state.verdict
    assert verdict is not None
    try:
        for fact in policy.settle(ports, state, verdict):
            state = _record(ports, state, fact)
            if isinstance(fact, Settled):
                return state
    except AbortedError as error:
        state = _hear(ports, state, ports.world.signals())
        verdict = Stop(Reason.INTERRUPTED, error.message)
    return _record(ports, state, Settled(ports.clock.now(), verdict))


def stop_hook(
    policy: Policy, ports: Ports, state: RunState, turn: Turn
) -> tuple[Verdict, RunState]:
    """Answer the agent of a live session that wants to end; `turn` is what it did."""
    case = _proven(policy, ports, replace(state, turn=turn), Boundary.STOPPING)
    decided = _judgement(policy, ports, case)
    state = _record(ports, state, decided)
    if isinstance(decided.verdict, Accept | Stop):
        state = _record(ports, state, Settled(ports.clock.now(), decided.verdict))
    return decided.verdict, state


def _stirred(ports: Ports, *, paused: bool) -> bool:
    """True if a signal ends the sleep before its time."""
    signals = ports.world.signals()
    return signals.urgent or signals.paused is paused


def _proven(policy: Policy, ports: Ports, state: RunState, boundary: Boundary) -> Case:
    """The world as it is now, with what the gates find."""
    case = replace(survey(ports, state, boundary), snapshot=ports.world.snapshot())
    return prove(policy.gates.get(boundary, ()), policy.law, ports, case)


def _judgement(policy: Policy, ports: Ports, case: Case) -> Decided:
    law = {gate.name for gate in policy.law}
    case = replace(case, now=ports.clock.now())
    return replace(
        _decided(ports, case, getattr(policy, case.boundary)),
        findings=case.findings,
        checked=case.checked,
        progressed=case.progressed,
        notes=policy.notes(case),
        final=any(finding.gate in law for finding in case.findings),
        tree=case.snapshot.stand.tree,
    )


def _decided(ports: Ports, case: Case, ladder: Ladder) -> Decided:
    """The verdict, the name of the rule that gave it, and what it saw, so that it can be judged
    again (ADR 55)."""
    answer, rule = decided_by(case, ladder)
    assert answer is not None, "a ladder must end in an answer"
    assert not isinstance(answer, Cut)
    task, moved = case.state.task, case.moved
    seen = ports.lookout.seen(case.signals, case.backlog, case.passed, task=task, moved=moved)
    return Decided(case.now, case.boundary, answer, rule=rule, seen=seen)


def _hear(ports: Ports, state: RunState, signals: Signals, *, notes: bool = False) -> RunState:
    """Record the requests that are new. Notes are heard only where a turn is sure to begin: they
    are for its prompt, and for no other worker's."""
    for request in signals.requests:
        if request.id in state.heard:
            continue
        if request.request != NOTE or (notes and ports.world.take(request)):
            state = _record(ports, state, Asked(ports.clock.now(), request))
    return state


def _record(ports: Ports, state: RunState, fact: Fact) -> RunState:
    ports.journal.record(fact)
    return fold(state, fact)
