"""The state of a run: a fold over its facts. Nothing here is stored; resume folds again."""

from collections.abc import Iterable
from enum import Enum
from functools import reduce

from ralph.kernel import facts
from ralph.kernel.findings import Finding, Repeats, repeated
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.tasks.task import Assignment, Mode
from ralph.kernel.turn import Ending, Role, Turn
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import (
    Accept,
    Bench,
    Boundary,
    Cause,
    Continue,
    Feedback,
    Park,
    Reason,
    Release,
    Stop,
    Verdict,
    Wait,
    is_interrupted,
)
from ralph.kernel.world import NOTE, PAUSE, RESUME, Request, Snapshot

STEP_DOWN = "step down"  # the step from which on the model is a cheaper one


class Phase(Enum):
    """The next step of the loop; derived, never stored."""

    OPENING = "opening"
    TURN = "turn"
    CLOSING = "closing"
    SETTLING = "settling"


@value
class Delivered:
    """Work that stands: a commit of the prompt loop with its subject, or a task that is done."""

    task: str
    what: str
    commit: str = ""  # "" where nothing had to be committed


@value
class RunState:
    """Everything a run knows about itself."""

    phase: Phase = Phase.OPENING
    time: float = 0.0  # of the last fact
    limits: Limits = Limits()  # those of the run
    raised: tuple[tuple[str, float], ...] = ()  # settings that a person has raised since it began
    spent: Spent = Spent()  # up to the last fact
    spent_before_task: Spent = Spent()  # when the first turn of this task began
    iteration: int = 0
    again: bool = False  # the next turn takes the same iteration again
    launched: bool = False  # the agent of this turn was started, and has not been seen to end
    cut_off: bool = False  # this turn was cut off by a crash and is taken again
    unjudged: bool = False  # this turn has ended, and a signal came before it could be judged
    assignment: Assignment | None = None
    task_iteration: int = 0  # of the iterations, those of this task; 0 between tasks
    checkpoint: str = ""  # to which this turn can be undone
    task_checkpoint: str = ""  # to which this task can be
    snapshot: Snapshot = Snapshot()
    turn: Turn | None = None
    landed: facts.Landed | None = None  # the end of its sandbox; during a turn, of the one before
    proof: facts.Proved | None = None  # of this turn, if all gates passed
    commit: str = ""  # that holds what was proven
    verdict: Verdict | None = None
    unsettled: Verdict | None = None  # a signal came while this one was being settled
    findings: tuple[Finding, ...] = ()  # of the last closing
    objected: Repeats = ()  # each of them, and how many times in a row it was found
    checked: bool = False  # every gate of the last closing ran
    feedback: tuple[Feedback, ...] = ()
    failures: int = 0  # failed turns in a row
    stalls: int = 0  # turns without progress in a row
    holds: int = 0  # times this session was held back from ending
    refusals: int = 0  # commits in a row that were refused
    sent_back: int = 0  # times this task could not be merged as it was
    waits: int = 0  # waits in a row
    overloads: int = 0  # of these, how many for a service that is overloaded
    waited: float = 0.0  # seconds waited, in all; pauses aside
    waited_before: float = 0.0  # of these, before the last turn that stands
    place: int = 0  # on the roster, of the agent that took the last turn
    agent: str = ""  # who has worked last
    reviewer: str = ""  # who has reviewed last
    benches: tuple[Bench, ...] = ()  # of agents that failed when they were asked last
    stepped_down: bool = False  # most of the money is spent: a cheaper model works
    wake: float | None = None  # when to go on
    resting: Wait | None = None  # settling waits for others
    steps: tuple[facts.Step, ...] = ()  # settled steps of this iteration
    done: frozenset[str] = frozenset()
    delivered: tuple[Delivered, ...] = ()
    reviews: tuple[str, ...] = ()  # of stories, as steps tell them
    parked: tuple[tuple[str, str], ...] = ()  # (task, why)
    barren: tuple[str, ...] = ()  # tasks in a row that ended without one turn that did not fail
    evidence: tuple[str, ...] = ()
    pushed: tuple[tuple[str, str], ...] = ()  # by each SCM task that pushes, the last commit
    pulls: tuple[facts.Published, ...] = ()  # by each branch, as it was published last
    reds: int = 0  # times in a row that continuous integration said no to this task
    owed: tuple[facts.Step, ...] = ()  # SCM tasks that failed, and have not succeeded since
    claimed: bool = False  # some turn wrote a <response> tag
    heard: frozenset[str] = frozenset()  # the ids of all requests of people so far
    notes: tuple[Request, ...] = ()  # of these, the notes that no turn was judged with yet
    paused: bool = False  # it was asked to pause, and no turn has begun since
    rewire: bool = False  # a person lets it go on: by settings that are read again
    crew: tuple[facts.Assigned, ...] = ()  # what workers are at
    sent: int = 0  # workers so far
    attempts: int = 0  # at turns on other machines so far
    attempt: facts.Sent | None = None  # the last of this turn
    host: str = ""  # the machine that has it
    recalled: Stop | None = None  # what ended a worker, and so ends the run
    stop: Stop | None = None

    def spent_at(self, now: float) -> Spent:
        """Spent up to `now`, time asleep left out."""
        if self.asleep or not self.time:
            return self.spent
        return replace(self.spent, seconds=self.spent.seconds + max(0.0, now - self.time))

    def step(self, key: str) -> facts.Step | None:
        """The step of this iteration's settling with that key, if it was taken."""
        return next((s for s in self.steps if s.key == key), None)

    @property
    def task(self) -> str:
        """The id of the task under work, or of the last one; "" before the first."""
        return self.assignment.task if self.assignment else ""

    @property
    def who(self) -> str:
        """Who took the last turn; "" before the first."""
        return self.reviewer if self.is_review else self.agent

    @property
    def is_review(self) -> bool:
        """True if this turn reviews the work of others."""
        return self.assignment is not None and self.assignment.mode is Mode.REVIEW

    @property
    def has_ended(self) -> bool:
        """The run is over, and was not only interrupted."""
        return self.stop is not None and not is_interrupted(self.stop)

    @property
    def rereads(self) -> bool:
        """True if the settings are read again by whoever goes on with the run."""
        return self.has_ended or (self.paused and self.phase is Phase.OPENING)

    @property
    def trying(self) -> facts.Sent | None:
        """The attempt of a turn that may be under way elsewhere, or has not landed."""
        return self.attempt if self.phase in (Phase.TURN, Phase.CLOSING) else None

    @property
    def at_work(self) -> frozenset[str]:
        return frozenset(sent.assignment.task for sent in self.crew)

    @property
    def asleep(self) -> Wait | None:
        """The wait before the next turn, or within settling; its time is not spent."""
        return self.resting or (self.verdict if isinstance(self.verdict, Wait) else None)

    @property
    def wakes(self) -> float | None:
        """When it goes on, if it is not at work now."""
        if self.resting is not None:
            return self.resting.until
        return self.wake if self.phase is Phase.OPENING else None


NEW = RunState()


def fold(state: RunState, fact: facts.Fact) -> RunState:
    """The state after one more fact."""
    state = _at(state, fact)
    match fact:
        case facts.Checking() | facts.Checked():
            return state
        case facts.Started():
            return replace(state, limits=fact.limits)
        case facts.Resumed():
            return _resumed(_raised(state, fact))
        case facts.Began():
            return _began(state, fact)
        case facts.Ended():
            return _ended(state, fact.turn)
        case facts.Decided():
            return _decided(state, fact)
        case facts.Step():
            return _stepped(state, fact)
        case facts.Settled():
            return _settled(state, fact.verdict)
        case facts.Returned():
            return _returned(state, fact)
        case _:
            return _noted(state, fact)


def replay(told: Iterable[facts.Fact], state: RunState = NEW) -> RunState:
    return reduce(fold, told, state)


def _at(state: RunState, fact: facts.Fact) -> RunState:
    """Time passes up to the fact; the time between a crash and its resume does not."""
    if isinstance(fact, facts.Launching | facts.Checking | facts.Checked):
        return state  # a Decided follows, which tells the time
    if isinstance(fact, facts.Resumed):
        return replace(state, time=fact.time, resting=None)
    waited = state.waited
    if state.asleep and state.asleep.until is not None:  # a pause uses up no patience
        waited += max(0.0, fact.time - state.time)
    spent = state.spent_at(fact.time)
    return replace(state, time=fact.time, spent=spent, waited=waited, resting=None)


def _noted(
    state: RunState,
    fact: facts.Launching
    | facts.Landed
    | facts.Proved
    | facts.Asked
    | facts.Published
    | facts.Resting
    | facts.Moved
    | facts.Sent
    | facts.Fared
    | facts.Assigned,
) -> RunState:
    """Facts that change a field or two."""
    match fact:
        case facts.Launching():
            return replace(state, launched=state.launched or fact.role is not Role.MESSAGE)
        case facts.Landed():
            return replace(state, landed=fact)
        case facts.Proved():
            return replace(state, proof=fact, commit=fact.commit)
        case facts.Asked(request=request):
            notes = (*state.notes, request) if request.request == NOTE else state.notes
            state = replace(state, heard=state.heard | {request.id}, notes=notes)
            return _steered(state, request)
        case facts.Published():
            return replace(state, pulls=_with_pulls(state, (fact,)))
        case facts.Resting():
            return replace(state, resting=Wait(fact.until, fact.why) if fact.why else None)
        case facts.Sent():
            return replace(state, attempts=fact.attempt, attempt=fact, host="")
        case facts.Fared():
            return _fared(state, fact)
        case facts.Moved():
            return replace(state, checkpoint=fact.checkpoint, task_checkpoint=fact.checkpoint)
        case _:
            return replace(state, crew=(*state.crew, replace(fact, seen=None)), sent=state.sent + 1)


def _fared(state: RunState, fact: facts.Fared) -> RunState:
    """An attempt that was given up is never taken up again, also if it comes back. If its agent was
    started, what it cost is not known."""
    if state.attempt is None or state.attempt.attempt != fact.attempt:
        return state
    state = replace(state, host=fact.host if fact.how == "placed" else "")
    if not fact.is_given_up:
        return state
    spent = replace(state.spent, uncounted=state.spent.uncounted + state.launched)
    return replace(state, attempt=None, launched=False, spent=spent)


def _with_pulls(state: RunState, more: tuple[facts.Published, ...]) -> tuple[facts.Published, ...]:
    return tuple({pull.branch: pull for pull in (*state.pulls, *more)}.values())


def _steered(state: RunState, request: Request) -> RunState:
    """A lead that is let go on has workers who have paused, though it may not have seen that."""
    is_paused = state.paused or bool(state.crew)
    if request.request == PAUSE:
        return replace(state, paused=True)
    return replace(state, rewire=state.rewire or (is_paused and request.request == RESUME))


def _raised(state: RunState, fact: facts.Resumed) -> RunState:
    limits = state.limits if fact.limits is None else fact.limits
    raised = {**dict(state.raised), **dict(fact.raised)}
    state = replace(state, stepped_down=state.stepped_down and limits == state.limits)
    if any(name.startswith(("agent.", "loop.stepDown")) for name, _, _ in fact.changed):
        state = replace(state, benches=())  # of others, by now
    return replace(state, limits=limits, raised=tuple(raised.items()), paused=False, rewire=False)


def _resumed(state: RunState) -> RunState:
    """A turn that was cut off is taken again, and a stop that was asked for is forgotten."""
    if state.has_ended:
        return _reopened(state)
    if state.unsettled is not None:
        return replace(state, verdict=state.unsettled, unsettled=None, stop=None)
    if not is_interrupted(state.verdict):
        return _cut_off(state) if state.phase is Phase.TURN else state
    state = replace(state, verdict=None, stop=None, checked=False)
    if state.cut_off:  # and it was not taken again by then
        return replace(state, phase=Phase.TURN)
    if state.unjudged and state.turn is not None and state.turn.ending is Ending.CUT:
        return _cut_off(replace(state, phase=Phase.TURN, turn=None, attempt=None))
    if state.unjudged:  # its work is done and paid: now it is judged
        return replace(state, phase=Phase.CLOSING, unjudged=False)
    return replace(state, phase=Phase.OPENING, turn=None)


def _reopened(state: RunState) -> RunState:
    """A run that had ended goes on with another turn. What was spent stays spent; patience with the
    agent begins anew. A task in the middle was left as if for another run, and is begun again."""
    failure = state.turn.failure if state.turn else None
    found = tuple(dict.fromkeys(finding.feedback() for finding in state.findings))
    return replace(
        state,
        phase=Phase.OPENING,
        verdict=None,
        stop=None,
        again=failure is not None and failure.passes,  # the provider's fault: it did not count
        task_iteration=0,
        feedback=found or state.feedback,
        failures=0,
        stalls=0,
        objected=(),
        refusals=0,
        sent_back=0,
        reds=0,
        waits=0,
        overloads=0,
        waited=0.0,
        waited_before=0.0,
        benches=(),
        wake=None,
        barren=(),
        recalled=None,
    )


def _cut_off(state: RunState) -> RunState:
    """The turn is taken again. If its agent was started, what it cost is not known."""
    spent = replace(state.spent, uncounted=state.spent.uncounted + state.launched)
    return replace(state, cut_off=True, unjudged=False, launched=False, spent=spent)


def _began(state: RunState, fact: facts.Began) -> RunState:
    task = fact.assignment.task
    if state.task_iteration and task == state.task:
        number = state.task_iteration + (fact.iteration != state.iteration)
        state = replace(state, task_iteration=number)
    else:
        if not state.task_iteration and task != state.task:
            state = replace(state, feedback=())  # of a task that a run has left in the middle
        state = replace(
            state,
            task_iteration=1,
            task_checkpoint=fact.checkpoint,
            spent_before_task=state.spent,
            parked=tuple(parked for parked in state.parked if parked[0] != task),
        )
    return replace(
        state,
        checkpoint=fact.checkpoint,
        phase=Phase.TURN,
        iteration=fact.iteration,
        assignment=fact.assignment,
        snapshot=fact.snapshot,
        turn=None,
        proof=None,
        commit="",
        verdict=None,
        wake=None,
        again=False,
        launched=False,
        cut_off=False,
        unjudged=False,
        paused=False,
        rewire=False,
        holds=0,
        steps=(),
        attempt=None,
        host="",
        spent=replace(state.spent, iterations=fact.iteration),
    )


def _ended(state: RunState, turn: Turn) -> RunState:
    before = state.spent_before_task
    return replace(
        state,
        phase=Phase.CLOSING,
        turn=turn,
        landed=None,
        launched=False,
        cut_off=False,
        place=turn.place,
        agent=state.agent if state.is_review else turn.agent,
        reviewer=turn.agent if state.is_review else state.reviewer,
        claimed=state.claimed or any(c.tag == "response" for c in turn.claims),
        spent=state.spent.paid(turn.cost_usd, turn.usage, uncounted=turn.uncounted),
        spent_before_task=replace(before, seconds=before.seconds + turn.queued),
    )


def _decided(state: RunState, fact: facts.Decided) -> RunState:
    state = replace(state, verdict=fact.verdict)
    match fact.boundary, fact.verdict:
        case Boundary.CLOSING, _:
            return _judged(state, fact)
        case Boundary.OPENING, Wait(until=until):  # a pause does not forget when a rate limit ends
            return state if until is None else replace(state, wake=until)
        case (Boundary.OPENING, Continue()) | (Boundary.STOPPING, Release()):
            return state
        case Boundary.STOPPING, Continue():  # P: the iteration counts blocked exits
            number = state.iteration + 1
            spent = replace(state.spent, iterations=number)
            state = replace(state, iteration=number, spent=spent, findings=fact.findings)
            return replace(state, holds=state.holds + 1)
        case _:
            return replace(state, phase=Phase.SETTLING)


def _judged(state: RunState, fact: facts.Decided) -> RunState:
    """Count failures, stalls and waits in a row. A turn that waits is retaken, not judged."""
    state = replace(state, phase=Phase.SETTLING)
    if isinstance(fact.verdict, Wait):
        return _retaken(state, fact, fact.verdict)
    if is_interrupted(fact.verdict):
        over = replace(state, findings=fact.findings, feedback=_told(state, fact))
        return over if fact.final else replace(state, unjudged=True)
    assert state.turn is not None
    state = replace(
        state,
        waits=0,
        overloads=0,
        waited_before=state.waited,
        benches=unbenched(state.benches, state.place),
        failures=state.failures + 1 if state.turn.failed else 0,
        stalls=state.stalls + 1 if fact.progressed is False else 0,
        findings=fact.findings,
        objected=repeated(state.objected, fact.findings) if fact.checked else state.objected,
        checked=fact.checked,
        notes=_untold(state),
    )
    if isinstance(fact.verdict, Continue) and fact.verdict.after:
        return replace(state, wake=fact.time + fact.verdict.after)
    return state


def _untold(state: RunState) -> tuple[Request, ...]:
    """The notes that the turn was not told: those of other tasks, or all if nobody was there."""
    if state.turn is not None and state.turn.ending is Ending.UNSTARTABLE:
        return state.notes
    return tuple(note for note in state.notes if note.task not in ("", state.task))


def _told(state: RunState, fact: facts.Decided) -> tuple[Feedback, ...]:
    return tuple(dict.fromkeys((*state.feedback, *(f.feedback() for f in fact.findings))))


def _retaken(state: RunState, fact: facts.Decided, wait: Wait) -> RunState:
    """Findings are told and settled all the same: waiting is no way around the gates. Another
    agent's waits are counted anew."""
    failure, bench = state.turn.failure if state.turn else None, wait.bench
    return replace(
        state,
        again=True,
        waits=state.waits + 1 if bench is None else 0,
        benches=state.benches if bench is None else benched(state.benches, bench),
        overloads=state.overloads + (failure is not None and failure.overloaded),
        wake=wait.until,
        findings=fact.findings or state.findings,
        feedback=_told(state, fact),
    )


def benched(benches: tuple[Bench, ...], bench: Bench) -> tuple[Bench, ...]:
    """With one more; an agent is benched once."""
    return (*unbenched(benches, bench.place), bench)


def unbenched(benches: tuple[Bench, ...], place: int) -> tuple[Bench, ...]:
    return tuple(bench for bench in benches if bench.place != place)


def _stepped(state: RunState, step: facts.Step) -> RunState:
    is_commit, refusals = step.key == "commit", 0 if step.ok else state.refusals + 1
    if step.key == facts.CI:  # the last of the gates, and the slowest
        found = () if step.ok else (Finding(facts.CI, step.detail),)
        state = replace(state, reds=0 if step.ok else state.reds + 1, findings=found)
    return replace(
        state,
        steps=(*state.steps, step),
        refusals=refusals if is_commit else state.refusals,
        sent_back=state.sent_back + (step.key == "merge" and not step.ok),
        commit=step.commit or state.commit,
        delivered=(*state.delivered, *_delivered(state, step)),
        reviews=(*state.reviews, step.detail) if step.key == "review" else state.reviews,
        pushed=facts.pushed_after(state.pushed, step),
        owed=facts.owed_after(state.owed, step),
        stepped_down=state.stepped_down or step.key == STEP_DOWN,
        spent=state.spent.paid(step.cost_usd, step.usage, uncounted=step.cost_usd is None),
    )


def _delivered(state: RunState, step: facts.Step) -> tuple[Delivered, ...]:
    """The work that this step has committed, if it has."""
    if not step.ok or not step.commit:
        return ()
    if facts.scm_task(step) == "commit":
        return (Delivered(state.task, step.detail, step.commit),)
    if step.key != "commit" or state.assignment is None:
        return ()
    # What says nothing has found nothing more to commit.
    return (Delivered(state.task, state.assignment.title, step.commit if step.detail else ""),)


def _settled(state: RunState, verdict: Verdict) -> RunState:
    if isinstance(verdict, Stop) and is_interrupted(verdict) and not is_interrupted(state.verdict):
        return replace(state, unsettled=state.verdict, verdict=verdict, stop=verdict)
    state = replace(state, phase=Phase.OPENING, verdict=verdict, checked=False)
    match verdict:
        case Stop():
            again = state.barren if verdict.reason is Reason.FAILING else ()  # they are open again
            parked = tuple(each for each in state.parked if each[0] not in again)
            return replace(state, stop=verdict, parked=parked)
        case Accept() | Park():
            state = _ended_task(state, verdict)  # its objections and stalls are not the next one's
            fresh = replace(state, feedback=(), findings=(), failures=0, stalls=0)
            return replace(fresh, task_iteration=0, sent_back=0, reds=0)
        case Continue(feedback=feedback):
            return replace(state, feedback=feedback)
        case _:
            return state


def _ended_task(state: RunState, verdict: Accept | Park) -> RunState:
    if isinstance(verdict, Accept):
        return replace(state, done=state.done | {state.task}, evidence=verdict.evidence, barren=())
    # A task is barren if each of its turns failed; one that used up its time has worked.
    turns, crash = state.task_iteration, verdict.cause is Cause.CRASH  # or a worker's, who tells
    cut = state.turn is not None and state.turn.ending is Ending.CUT
    is_barren = state.failures >= turns and (crash or (turns > 0 and not cut))
    barren = tuple(dict.fromkeys((*state.barren, state.task))) if is_barren else ()
    return replace(state, parked=(*state.parked, (state.task, verdict.why)), barren=barren)


def _returned(state: RunState, fact: facts.Returned) -> RunState:
    """A worker's money is the run's; its time is not, since others worked at the same time."""
    crew = tuple(sent for sent in state.crew if sent.worker != fact.worker)
    spent, used = state.spent, fact.spent
    paid = spent.paid(used.dollars, used.usage, uncounted=used.uncounted)
    total = replace(paid, iterations=spent.iterations + used.iterations)
    others = tuple(parked for parked in state.parked if parked[0] != fact.task)
    pulls = _with_pulls(state, fact.pulls)
    state = replace(state, crew=crew, spent=total, iteration=total.iterations, parked=others)
    state = replace(state, pulls=pulls)
    if isinstance(fact.verdict, Stop):
        return replace(state, recalled=fact.verdict)
    assert isinstance(fact.verdict, Accept | Park), "a worker ends its task, or is ended"
    if isinstance(fact.verdict, Accept):
        work = Delivered(fact.task, fact.title, fact.commit)
        state = replace(state, delivered=(*state.delivered, work))
    ended = replace(state, assignment=Assignment(fact.task), verdict=fact.verdict)
    after = _ended_task(ended, fact.verdict)
    if isinstance(state.verdict, Park) and state.verdict.failed:  # the first is remembered
        return replace(after, assignment=state.assignment, verdict=state.verdict)
    return after
