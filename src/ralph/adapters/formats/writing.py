"""What formats have in common when they write: names, blockers, and what cannot be held."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from ralph.core.task import Status
from ralph.core.words import listed

Record = Mapping[str, Any]
_SAID = frozenset(  # what our fields say too, and how a list is laid out
    {"id", "title", "description", "status", "priority", "labels", "notes", "dependsOn", "passes"}
    | {"acceptanceCriteria", "number", "body", "state", "stateReason", "closed", "url", "createdAt"}
    | {"closedAt", "updatedAt", "issue_type", "acceptance_criteria", "dependencies", "created_at"}
    | {"closed_at", "updated_at", "close_reason", "completed", "parallel_group", "order", "section"}
)


def source_of(record: Record, formats: Collection[str]) -> Mapping[str, Any]:
    """Where a task came from, if that was a list of one of these formats; else nothing."""
    source = record.get("source")
    return source if isinstance(source, dict) and source.get("format") in formats else {}


def kept_of(record: Record, formats: Collection[str]) -> Mapping[str, Any]:
    """What its list said of a task and we have no place for."""
    kept = source_of(record, formats).get("kept")
    return kept if isinstance(kept, dict) else {}


def status_of(record: Record) -> Status:
    """Where a task stands."""
    return Status(record.get("status") or Status.PENDING)


def names_for(tasks: Sequence[Record], formats: Collection[str]) -> dict[str, str]:
    """What each task is called in the list, by its id with us. What came from such a list keeps its
    name there; no two have the same."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for record in sorted(tasks, key=lambda task: not source_of(task, formats)):
        name = str(source_of(record, formats).get("key") or record["id"])
        wanted = name if name not in taken else record["id"]
        numbers = count(2)
        while wanted in taken:
            wanted = f"{record['id']}-{next(numbers)}"
        names[record["id"]] = wanted
        taken.add(wanted)
    return names


def without_cancelled(tasks: Sequence[Record]) -> tuple[list[Record], list[str]]:
    """The tasks that another loop may work on, and a line about the others: where a list knows no
    cancelled task, it would be taken up."""
    left = [t for t in tasks if status_of(t) is Status.CANCELLED]
    kept = [t for t in tasks if status_of(t) is not Status.CANCELLED]
    return kept, [f"cancelled tasks are left out: {_ids(left)}"] if left else []


def lost_fields(tasks: Sequence[Record], fields: Iterable[str]) -> list[str]:
    """A line for each of these fields that some task has."""
    return [
        f"{name}: {_ids(having)}"
        for name in fields
        if (having := [t for t in tasks if t.get(name)])
    ]


def lost_statuses(tasks: Sequence[Record], statuses: Collection[Status]) -> list[str]:
    """A line for each of these statuses that some task has."""
    return [
        f"status {status.value}: {_ids(having)}"
        for status in Status
        if status in statuses and (having := [t for t in tasks if status_of(t) is status])
    ]


def lost_blockers(tasks: Sequence[Record], names: Mapping[str, str]) -> list[str]:
    """A line for each task that waits for one which is not in the list."""
    return [
        f"{task['id']} waits for {listed(missing)}, which is not in the list"
        for task in tasks
        if (missing := [b for b in task.get("blockedBy") or () if b not in names])
    ]


def lost_kept(tasks: Sequence[Record], formats: Collection[str]) -> list[str]:
    """A line for what lists of other formats said beside."""
    found: dict[str, list[str]] = {}
    for task in tasks:
        source = task.get("source")
        if isinstance(source, dict) and source.get("format") not in formats:
            found.setdefault(str(source.get("format")), []).extend(_told_by(source.get("kept")))
    return [
        f"what only {name} knows: {listed(list(dict.fromkeys(words)))}"
        for name, words in found.items()
        if words
    ]


def _told_by(kept: object) -> list[str]:
    """What a list said beside, by name; not how it said it, nor what our fields say too."""
    named = kept.get("values", kept) if isinstance(kept, dict) else {}
    return [name for name in named if name not in _SAID and not name.startswith("$")]


def _ids(tasks: Sequence[Record]) -> str:
    return listed([str(task["id"]) for task in tasks])
