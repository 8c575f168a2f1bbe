"""What a ladder saw that no earlier fact tells: with it, a verdict can be judged again (ADR 55)."""

from operator import attrgetter

from ralph.kernel.tasks.task import Backlog, Task
from ralph.kernel.value import replace, value
from ralph.kernel.world import Signals

_READ = attrgetter(
    *("id", "status", "priority", "created", "blocked_by", "limits", "check", "uncheckable"),
    *("review", "passes", "aside", "question", "reason", "used"),
)


@value
class Sight:
    """The signals and the backlog at one boundary. Of a task only what rules read is kept, and only
    if it is new or has changed since this journal was told; others that are aside are left out."""

    signals: Signals = Signals()  # but for requests, which are facts of their own
    tasks: tuple[Task, ...] = ()
    anew: bool = False  # these are all tasks there are, in order
    gone: tuple[str, ...] = ()  # the ids of tasks that are not there any more
    problem: str | None = None  # why the backlog could not be read, or not be used
    passed: tuple[str, ...] = ()  # gates that ran and found nothing
    moved: bool | None = None  # the tree is another one than before the turn; None: nobody watches

    def backlog(self, before: Backlog) -> Backlog:
        """The backlog as it was seen, given the last one that could be used."""
        if self.problem is not None:
            return Backlog(problem=self.problem)
        if not (self.tasks or self.gone or self.anew):
            return before
        known = {} if self.anew else dict(before.known)
        for task in self.gone:
            known.pop(task, None)
        known.update({task.id: task for task in self.tasks})
        return Backlog(tuple(known.values()), known=known)


class Lookout:
    """Remembers the tasks that a journal was told of, so that it is told only what has changed."""

    def __init__(self) -> None:
        self._last: Backlog | None = None
        self._told: dict[str, Task] = {}

    def seen(
        self,
        signals: Signals,
        backlog: Backlog,
        passed: tuple[str, ...] = (),
        *,
        task: str = "",
        moved: bool | None = None,
    ) -> Sight:
        """What is to be recorded of them now; `task` is the one under work."""
        if signals.requests:
            signals = replace(signals, requests=())
        seen = Sight(signals, problem=backlog.problem, passed=passed, moved=moved)
        if backlog is self._last or backlog.problem is not None:
            return seen
        listed = _listed(backlog, task)
        told, is_first = self._told, self._last is None
        self._last, self._told = backlog, listed
        new = [task for task in listed.values() if _is_news(task, told.get(task.id))]
        gone = tuple([id_ for id_ in told if id_ not in listed]) if told else ()
        left = [id_ for id_ in told if id_ in listed]
        if is_first or list(listed)[: len(left)] != left:
            return replace(seen, tasks=tuple(map(_read, listed.values())), anew=True)
        return replace(seen, tasks=tuple(map(_read, new)), gone=gone)


def _listed(backlog: Backlog, task: str) -> dict[str, Task]:
    """The tasks that rules ask about. A worker has one; of all that are aside only those count for
    which it waits, also where their lines cannot be used, so that they are known and not listed."""
    tasks = {each.id: each for each in backlog.tasks if not each.aside}
    if len(tasks) == len(backlog.tasks) >= len(backlog.known):
        return tasks
    waits = {name for each in tasks.values() for name in each.blocked_by}
    needed = {*tasks, *waits, task}
    known = backlog.known or {each.id: each for each in backlog.tasks}
    listed = {each.id: each for each in backlog.tasks if each.id in needed}
    return {**listed, **{name: known[name] for name in waits if name in known}}


def _is_news(task: Task, told: Task | None) -> bool:
    return task is not told and (told is None or _READ(task) != _READ(told))


def _read(task: Task) -> Task:
    """The task without what no rule reads, such as its text."""
    return Task(
        task.id,
        status=task.status,
        priority=task.priority,
        created=task.created,
        blocked_by=task.blocked_by,
        limits=task.limits,
        check=task.check,
        uncheckable=task.uncheckable,
        review=task.review,
        passes=task.passes,
        aside=task.aside,
        question=task.question,
        reason=task.reason,
        used=task.used,
    )
