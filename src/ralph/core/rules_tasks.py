"""Rules of the backlog (B): each task has limits of its own, and may name its own proof."""

from ralph.core.case import Case
from ralph.core.limits import Limits, Spent, exceeded, left
from ralph.core.value import value
from ralph.core.verdict import Accept, Answer, Cut, Park, Reason, Stop
from ralph.core.words import duration


@value
class TasksLimit:
    """So many tasks were taken up in this run."""

    tasks: int

    def __call__(self, case: Case) -> Answer | None:
        if len(case.state.done) + len(case.state.parked) < self.tasks:
            return None
        return Stop(Reason.LIMIT, f"limit of tasks used up ({self.tasks})")


def proven(case: Case) -> Answer | None:
    """The task names a check and it passed, whatever the agent says."""
    check = case.task.check
    if check not in case.passed or case.turn.failed or not case.checked or case.findings:
        return None
    return Accept((f"passed: {check}", *(f"passed: {n}" for n in case.passed if n != check)))


@value
class TaskLimit:
    """The task's own iterations, time or money are used up: a person must look."""

    limits: Limits

    def __call__(self, case: Case) -> Park | None:
        why = exceeded(limits_of_task(case, self.limits), spent_on_task(case))
        return Park(f"task limit: {why}") if why else None


@value
class TaskTimeLeft:
    """The task's time is used up while the agent works."""

    limits: Limits

    def __call__(self, case: Case) -> Answer | None:
        limit = limits_of_task(case, self.limits).seconds
        if limit is None or left(limit, spent_on_task(case).seconds):
            return None
        return Cut(f"the task's {duration(limit)} are used up", finished=case.finished)


def limits_of_task(case: Case, usual: Limits) -> Limits:
    """The task's own limits; where it has none, the usual ones."""
    own = case.task.limits
    return Limits(
        usual.iterations if own.iterations is None else own.iterations,
        usual.seconds if own.seconds is None else own.seconds,
        usual.dollars if own.dollars is None else own.dollars,
    )


def spent_on_task(case: Case) -> Spent:
    """What was used since the first turn of the task under work began."""
    spent, before = case.spent, case.state.spent_before_task
    return Spent(
        spent.iterations - before.iterations,
        spent.seconds - before.seconds,
        spent.dollars - before.dollars,
    )
