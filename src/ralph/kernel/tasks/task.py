"""Tasks and backlogs. A plain prompt is a backlog of one task."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from ralph.kernel.limits import Limits, Spent
from ralph.kernel.value import value


class Mode(StrEnum):
    """The kind of a turn (R §6)."""

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


class ReviewStatus(StrEnum):
    """The place of a story in its review cycle (R §8)."""

    NEEDS_REVIEW = "needs_review"
    CHANGES_REQUESTED = "changes_requested"
    APPROVED = "approved"


@value
class Task:
    """A piece of work."""

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

    @property
    def open(self) -> bool:
        """True while this run has work on it."""
        return self.status in (Status.PENDING, Status.IN_PROGRESS) and not self.aside


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
