"""Losses of a format, in words for people."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from ralph.formats.records import (
    MEMBER,
    NOTHING,
    Record,
    source_of,
    status_of,
    text_of,
    texts_of,
)
from ralph.kernel.tasks.task import Status
from ralph.text.words import listed

_SHOWN = 5  # ids in a sentence
_SAID = frozenset(  # by our own fields too, or how a list is laid out
    {"id", "title", "description", "status", "priority", "labels", "notes", "dependsOn", "passes"}
    | {"acceptanceCriteria", "number", "body", "state", "stateReason", "closed", "url", "createdAt"}
    | {"closedAt", "updatedAt", "issue_type", "acceptance_criteria", "dependencies", "created_at"}
    | {"closed_at", "updated_at", "close_reason", "completed", "parallel_group", "order", "section"}
    | {"design", "estimated_minutes", "external_ref", MEMBER}
)


class Losses:
    """Things that a format cannot hold, each with the tasks that have it."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}

    def add(self, what: str, task: object) -> None:
        tasks = self._found.setdefault(what, [])
        if tasks[-1:] != [str(task)]:
            tasks.append(str(task))

    def fields(self, tasks: Iterable[Record], names: Collection[str]) -> None:
        """Each of these fields that some task has."""
        for task in tasks:
            for name in names:
                if task.get(name) not in NOTHING:
                    self.add(name, task["id"])

    def statuses(self, tasks: Iterable[Record], known: Collection[Status], taken: str) -> None:
        """Statuses other than the known ones, which are taken for another."""
        for task in tasks:
            if (status := status_of(task)) not in known:
                self.add(f"status {status} (written as {taken})", task["id"])

    def strangers(self, tasks: Iterable[Record], names: Mapping[str, str]) -> None:
        """Blockers and parents that are not among the tasks of the list."""
        for task in tasks:
            for other in (*texts_of(task, "blockedBy"), text_of(task, "parent")):
                if other and other not in names:
                    self.add("blockers and parents that are not in this list", task["id"])

    def times(self, tasks: Iterable[Record], *formats: str) -> None:
        """Times of tasks that did not come from such a list."""
        for task in tasks:
            if not source_of(task, *formats) and (task.get("createdAt") or task.get("completedAt")):
                self.add("times (createdAt, completedAt)", task["id"])

    def kept(self, tasks: Iterable[Record], *formats: str) -> None:
        """Members that only lists of other formats know; not those that our fields say too."""
        for task in tasks:
            source = task.get("source")
            if isinstance(source, dict) and source.get("format") not in formats:
                kept = source.get("kept")
                for name in kept.get("values", kept) if isinstance(kept, dict) else ():
                    if name not in _SAID and not name.startswith("$"):
                        self.add(f"{name}, which only {source.get('format')} knows", task["id"])

    def words(self) -> tuple[str, ...]:
        return tuple(f"{what}: {listed(tasks, _SHOWN)}" for what, tasks in self._found.items())


def without_cancelled(tasks: Sequence[Record], losses: Losses) -> list[Record]:
    """The tasks that another loop may work on: where a list knows no cancelled task, it would be
    taken up."""
    for task in tasks:
        if status_of(task) is Status.CANCELLED:
            losses.add("cancelled tasks, which are left out", task["id"])
    return [task for task in tasks if status_of(task) is not Status.CANCELLED]
