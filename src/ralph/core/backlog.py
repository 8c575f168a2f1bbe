"""A backlog as a whole: what may follow on a status, who waits for a stranger, or for himself."""

from collections.abc import Iterable, Iterator, Mapping

from ralph.core.task import Backlog, Status, Task
from ralph.core.value import replace

ENDED = frozenset({Status.DONE, Status.CANCELLED})
TRANSITIONS: Mapping[Status, frozenset[Status]] = {
    Status.PENDING: frozenset(
        {Status.IN_PROGRESS, Status.BLOCKED, Status.DONE, Status.CANCELLED},
    ),
    Status.IN_PROGRESS: frozenset(
        {Status.PENDING, Status.BLOCKED, Status.REVIEW, Status.DONE, Status.CANCELLED},
    ),
    Status.BLOCKED: frozenset({Status.PENDING, Status.IN_PROGRESS, Status.CANCELLED}),
    Status.REVIEW: frozenset(
        {Status.PENDING, Status.IN_PROGRESS, Status.BLOCKED, Status.DONE, Status.CANCELLED},
    ),
    Status.DONE: frozenset(),  # `edit --reopen` alone brings these two back
    Status.CANCELLED: frozenset(),
}


def legal(old: Status, new: Status) -> bool:
    """Whether a task may go from one status to the other; to stay is always legal."""
    return old is new or new in TRANSITIONS[old]


def unknown_blockers(backlog: Backlog) -> tuple[tuple[str, str], ...]:
    """Each task that names a blocker which is not there, with that blocker."""
    named = ((t.id, b) for t in backlog.tasks for b in t.blocked_by)
    return tuple((task, b) for task, b in named if backlog.get(b) is None)


def cycle(tasks: Iterable[Task]) -> tuple[str, ...]:
    """One circle of tasks that wait for each other, each before its blocker; () if there is none.
    Tasks that are done or cancelled wait for nobody."""
    waits = {t.id: t.blocked_by for t in tasks if t.blocked_by and t.status not in ENDED}
    clear: set[str] = set()
    for start in waits:
        if start not in clear and (found := _circle(start, waits, clear)):
            return found
    return ()


def _circle(start: str, waits: Mapping[str, tuple[str, ...]], clear: set[str]) -> tuple[str, ...]:
    """A circle that can be reached from here. What cannot lead to one is put among the clear.
    Not recursive: a chain may be as long as the backlog."""
    path: dict[str, Iterator[str]] = {start: iter(waits[start])}
    while path:
        here, blockers = path.popitem()  # the last one
        for onward in blockers:
            if onward in waits and onward not in clear:
                path[here] = blockers
                if onward in path:
                    way = list(path)
                    return tuple(way[way.index(onward) :])
                path[onward] = iter(waits[onward])
                break
        else:
            clear.add(here)
    return ()


def chosen(backlog: Backlog, task: str | None, tags: tuple[str, ...] = ()) -> Backlog:
    """The backlog with all but the tasks asked for put aside: the one with this id, and those that
    have any of these tags. Nothing asked for is everything."""
    if task is None and not tags:
        return backlog
    wanted = frozenset(tags)

    def is_asked_for(t: Task) -> bool:
        return task in (None, t.id) and (not wanted or not wanted.isdisjoint(t.tags))

    tasks = (t if is_asked_for(t) else replace(t, aside=True) for t in backlog.tasks)
    return replace(backlog, tasks=tuple(tasks))
