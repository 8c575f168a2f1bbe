"""Rules of the backlog (B): each task has limits of its own, and may name its own proof."""

from ralph.kernel.case import Case
from ralph.kernel.contracts import said_failed
from ralph.kernel.limits import Limits, Spent, exceeded, left
from ralph.kernel.tasks.select import blockers, next_task
from ralph.kernel.tasks.task import Status
from ralph.kernel.value import value
from ralph.kernel.verdict import Accept, Answer, Cause, Cut, Park, Reason, Stop
from ralph.loops.backlog.outcome import own_error
from ralph.text.words import counted, duration, listed

CHECK = "completion"  # the gate that checks what a task itself names
NAMED = "the tests named "  # and the task's id, where that gate has found such tests
_SHOWN = 5  # tasks in one sentence
_MOST_BARREN = 2


def all_worked(case: Case) -> Answer | None:
    """Every task is done, or waits for a person."""
    if case.open_tasks:
        return None
    waiting = _waiting(case)
    if waiting:
        return Stop(Reason.BLOCKED, listed(waiting, _SHOWN, "; "))
    return Stop(Reason.COMPLETED, "nothing is left to do", case.state.evidence)


def none_ready(case: Case) -> Answer | None:
    """Something is open, and all of it waits for tasks that a person must look at."""
    if next_task(case) is not None:
        return None
    waiting = _waiting(case)
    waiting += (f"{t.id} waits for {listed(blockers(t, case), _SHOWN)}" for t in case.open_tasks)
    return Stop(Reason.BLOCKED, listed(waiting, _SHOWN, "; "))


def _waiting(case: Case) -> list[str]:
    """The tasks that only a person can bring back, and why."""
    open_now, waiting = {task.id for task in case.open_tasks}, []
    for task in case.backlog.tasks:
        blocked = task.status is Status.BLOCKED and not task.aside
        if task.uncheckable and (blocked or (task.open and task.id not in open_now)):
            waiting.append(f"{task.id} was not begun: {task.uncheckable}")
        elif blocked and task.question:
            waiting.append(f"{task.id} asks: {task.question}")
        elif blocked:
            why = task.reason or dict(case.state.parked).get(task.id, "")
            waiting.append(f"{task.id} is blocked" + (f": {why}" if why else ""))
    return waiting


@value
class Halt:
    """`onFailure: stop`: a task that failed ends the run. One that only asks has not failed."""

    def __call__(self, case: Case) -> Answer | None:
        last, assignment = case.state.verdict, case.state.assignment
        if not isinstance(last, Park) or not last.failed or assignment is None:
            return None
        if last.cause is Cause.CRASH:
            return Stop(Reason.FAILING, f"{assignment.task}: {last.why} (onFailure: stop)")
        return Stop(Reason.BLOCKED, f"{assignment.task} is blocked: {last.why} (onFailure: stop)")


def broken(case: Case) -> Answer | None:
    """Every turn failed in two tasks in a row, or in the only one: the agent is broken."""
    state, last = case.state, case.state.verdict
    crashed = isinstance(last, Park) and last.cause is Cause.CRASH
    only = crashed and len(state.parked) == 1 and not state.done and next_task(case) is None
    if not state.barren or (len(state.barren) < _MOST_BARREN and not only):
        return None
    why = dict(state.parked).get(state.barren[-1], "")
    return Stop(Reason.FAILING, f"the agent failed in {listed(state.barren)}: {why}")


def recalled(case: Case) -> Answer | None:
    """A worker was ended in the middle of its task by what would end the others too."""
    return case.state.recalled


@value
class DayLimit:
    """The day's money is used up, by this run and those before it."""

    dollars: float
    before: float  # what others had spent on the day on which this run began

    def __call__(self, case: Case) -> Answer | None:
        spent = self.before + case.spent.dollars
        if spent < self.dollars:
            return None
        return Stop(Reason.LIMIT, f"the day's ${self.dollars:g} are used up (spent ${spent:.2f})")


@value
class TasksLimit:
    """So many tasks were taken up in this run."""

    tasks: int

    def __call__(self, case: Case) -> Answer | None:
        state = case.state
        if len(state.done) + len(state.parked) + len(state.crew) < self.tasks:
            return None
        return Stop(Reason.LIMIT, f"{counted(self.tasks, 'task')} taken up, and some are left")


def proven(case: Case) -> Answer | None:
    """The task's check passed, or without one the tests that are named after it, whether the agent
    says that it is complete or not."""
    passed, checks = case.passed, bool(case.task.check)
    proofs = (name for name in passed if (name == CHECK if checks else name.startswith(NAMED)))
    proof = next(proofs, None)
    if proof is None or not case.checked or case.findings:
        return None
    if case.turn.failed or said_failed(case.turn):  # its changes are discarded
        return None
    others = (f"passed: {name}" for name in passed if name != proof)
    return Accept((f"passed: {case.task.check or proof}", *others))


def lost(case: Case) -> Answer | None:
    """The list cannot be read, or the task is not in it: nobody knows what would prove it."""
    if case.backlog.problem:
        return Stop(Reason.CONFIG, case.backlog.problem)
    if case.backlog.get(case.state.task) is None:
        return Stop(Reason.CONFIG, f"the task {case.state.task} is no longer in the list")
    return None


def withdrawn(case: Case) -> Answer | None:
    """A person has settled the task while its turn went on."""
    status = case.task.status
    if status in (Status.PENDING, Status.IN_PROGRESS) or case.turn.failed:
        return None
    if status is Status.DONE:
        return Accept(("a person called it done",))
    return Park(f"a person made it {status}", Cause.PERSON)


@value
class TaskLimit:
    """The task's own iterations, time or money are used up: a person must look."""

    limits: Limits

    def __call__(self, case: Case) -> Park | None:
        why = exceeded(limits_of_task(case, self.limits), spent_on_task(case))
        if why is None:
            return None
        error = own_error(case.turn, case.findings)
        return Park(f"task limit: {why}" + (f"; the last iteration: {error}" if error else ""))


@value
class TaskTimeLeft:
    """The task's time is used up while the agent works."""

    limits: Limits

    def __call__(self, case: Case) -> Answer | None:
        limit = limits_of_task(case, self.limits).seconds
        if limit is None or left(limit, spent_on_task(case).seconds):
            return None
        return Cut(f"the task's {duration(limit)} are used up", finished=case.finished)


def unplaced(case: Case) -> Answer | None:
    """Asked to end while no machine of a fleet has the turn: there is none to let finish."""
    if not case.signals.cancels or case.pulse is None or case.pulse.placed:
        return None
    return Cut("asked to stop before a machine had it", grace=0.3)


def limits_of_task(case: Case, usual: Limits) -> Limits:
    """The task's own limits; where it has none, the usual ones."""
    own = case.task.limits
    return Limits(
        usual.iterations if own.iterations is None else own.iterations,
        usual.seconds if own.seconds is None else own.seconds,
        usual.dollars if own.dollars is None else own.dollars,
    )


def spent_on_task(case: Case) -> Spent:
    """The time and money of the current task, in earlier runs that left it in the middle too. What
    it waits for a machine of a fleet is not its time."""
    spent, before, used = case.spent, case.state.spent_before_task, case.task.used
    queued = case.pulse.queued if case.pulse else 0.0
    return Spent(
        used.iterations + spent.iterations - before.iterations,
        used.seconds + spent.seconds - before.seconds - queued,
        used.dollars + spent.dollars - before.dollars,
    )
