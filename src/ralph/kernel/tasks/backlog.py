"""Rules of a whole backlog: legal changes of status, unknown blockers, and cycles."""

from collections.abc import Iterable, Iterator, Mapping

from ralph.kernel.tasks.task import Backlog, Status, Task
from ralph.kernel.value import replace

ENDED = frozenset({Status.DONE, Status.CANCELLED})  # `edit --reopen` alone brings these back
TRANSITIONS: Mapping[Status, frozenset[Status]] = {
    Status.PENDING: frozenset({Status.IN_PROGRESS, Status.BLOCKED}) | ENDED,
    Status.IN_PROGRESS: frozenset({Status.PENDING, Status.BLOCKED, Status.REVIEW}) | ENDED,
    Status.BLOCKED: frozenset({Status.PENDING, Status.IN_PROGRESS, Status.CANCELLED}),
    Status.REVIEW: frozenset({Status.PENDING, Status.IN_PROGRESS, Status.BLOCKED}) | ENDED,
    Status.DONE: frozenset(),
    Status.CANCELLED: frozenset(),
}


def legal(old: Status, new: Status) -> bool:
    """True if a task may go from one status to the other, or stays."""
    return old is new or new in TRANSITIONS[old]


def unknown_blockers(backlog: Backlog) -> tuple[tuple[str, str], ...]:
    """Each task that names a blocker which is not there, with that blocker."""
    named = ((t.id, b) for t in backlog.tasks for b in t.blocked_by)
    return tuple((task, b) for task, b in named if backlog.get(b) is None)


def cycle(tasks: Iterable[Task]) -> tuple[str, ...]:
    """One cycle of tasks that wait for each other, each before its blocker; () if there is none.
    Tasks that are done or cancelled wait for nobody."""
    waits = {t.id: t.blocked_by for t in tasks if t.blocked_by and t.status not in ENDED}
    clear: set[str] = set()
    for start in waits:
        if start not in clear and (found := _circle(start, waits, clear)):
            return found
    return ()


def _circle(start: str, waits: Mapping[str, tuple[str, ...]], clear: set[str]) -> tuple[str, ...]:
    """A cycle that can be reached from here. Tasks that lead to none are added to `clear`. Not
    recursive: a chain may be as long as the backlog."""
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
    """The backlog with all tasks put aside but those asked for, by id and by any of the tags.
    Nothing asked for is everything."""
    if task is None and not tags:
        return backlog
    tasks = (
        t
        if task in (None, t.id) and (not tags or not set(tags).isdisjoint(t.tags))
        else replace(t, aside=True)
        for t in backlog.tasks
    )
    return replace(backlog, tasks=tuple(tasks))
