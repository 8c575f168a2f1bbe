"""Tasks and backlogs, and the rules of a whole backlog. A plain prompt is a backlog of one task."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from enum import StrEnum

from ralph.kernel.limits import Limits, Spent
from ralph.kernel.value import replace, value


class Mode(StrEnum):
    IMPLEMENT = "implement"
    REVIEW = "review"
    REVIEW_FIX = "review-fix"


class Status(StrEnum):
    """The status of a task (B)."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    BLOCKED = "blocked"
    REVIEW = "review"
    DONE = "done"
    CANCELLED = "cancelled"


_OPEN = (Status.PENDING, Status.IN_PROGRESS)  # a long list is asked after every task


class ReviewStatus(StrEnum):
    """The place of a story in its review cycle (R §8)."""

    NEEDS_REVIEW = "needs_review"
    CHANGES_REQUESTED = "changes_requested"
    APPROVED = "approved"


@value
class Task:
    id: str
    title: str = ""
    text: str = ""  # what the agent is told
    status: Status = Status.PENDING
    priority: int = 0
    created: str = ""
    blocked_by: tuple[str, ...] = ()
    limits: Limits = Limits()
    check: str = ""  # what must hold, in words; empty: an explicit claim completes
    script: str = ""  # that checks it
    uncheckable: str = ""  # why nothing here could run that
    review: ReviewStatus | None = None
    passes: bool = False
    kind: str = ""  # B's `type`: feature, bug, ...
    tags: tuple[str, ...] = ()
    aside: bool = False  # not one of those that this run is for
    question: str = ""  # what it is parked with
    answers: tuple[str, ...] = ()  # what people said to its questions
    reason: str = ""  # why it is blocked
    used: Spent = Spent()  # by runs that had to leave it in the middle
    notes: str = ""  # what people have written to it since
    saved: str = ""  # where git keeps what an earlier try had done
    size: float = 0.0  # its estimate, in iterations or seconds; 0: it has none

    @property
    def open(self) -> bool:
        """True while this run has work on it."""
        return self.status in _OPEN and not self.aside


@value
class Backlog:
    """All tasks, or the reason why they cannot be read."""

    tasks: tuple[Task, ...] = ()
    problem: str | None = None
    known: Mapping[str, Task] = field(default_factory=dict)  # the same by id, where they are many

    def get(self, task_id: str) -> Task | None:
        if self.known:
            return self.known.get(task_id)
        return next((t for t in self.tasks if t.id == task_id), None)


@value
class Assignment:
    """A task, and what this turn does to it."""

    task: str
    title: str = ""
    mode: Mode = Mode.IMPLEMENT
    most: int | None = None  # iterations, where the task has a limit of its own
    before: int = 0  # its iterations in earlier runs


# ------------------------------------------------------------------ a whole backlog

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
