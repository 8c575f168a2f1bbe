"""Records of tasks.jsonl, as formats read and write them, and what a format cannot hold of them."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Any

from ralph.files.digest import digest_of
from ralph.kernel.tasks.task import Status
from ralph.text.timestamps import iso
from ralph.text.words import listed

Record = Mapping[str, Any]
NOTHING: tuple[object, ...] = (None, "", [], {}, ())
MEMBER = "ralph"  # of an item in JSON: the fields for which the format has no member
_LONGEST = 150  # characters of a name
_TEXTS = ("type", "parent", "question", "reason", "externalId", "externalUrl")
_LISTS = ("tags", "answers")
_UNSAID = (Status.IN_PROGRESS, Status.BLOCKED, Status.REVIEW)  # in some lists
_TYPES: Mapping[str, tuple[type, ...]] = {  # of the fields that may stand in MEMBER
    **dict.fromkeys(_TEXTS, (str,)),
    **dict.fromkeys(_LISTS, (list,)),
    **dict.fromkeys(("completion", "limits"), (dict,)),
    "priority": (int,),
    "notes": (str, list),
    "estimate": (int, float, str),
}
_SHOWN = 5  # ids in a sentence
_SAID = frozenset(  # by our own fields too, or how a list is laid out
    {"id", "title", "description", "status", "priority", "labels", "notes", "dependsOn", "passes"}
    | {"acceptanceCriteria", "number", "body", "state", "stateReason", "closed", "url", "createdAt"}
    | {"closedAt", "updatedAt", "issue_type", "acceptance_criteria", "dependencies", "created_at"}
    | {"closed_at", "updated_at", "close_reason", "completed", "parallel_group", "order", "section"}
    | {"design", "estimated_minutes", "external_ref", MEMBER}
)


def source_of(record: Record, *formats: str) -> Record:
    """The origin of a task, if that was a list of one of these formats; else nothing."""
    source = record.get("source")
    return source if isinstance(source, Mapping) and source.get("format") in formats else {}


def kept_of(record: Record, *formats: str) -> Record:
    """Things that such a list said of a task and we have no place for."""
    kept = source_of(record, *formats).get("kept")
    return kept if isinstance(kept, Mapping) else {}


def values_of(record: Record, *formats: str) -> Record:
    """Members of the object that a task came from, as they were, that our fields do not say."""
    values = kept_of(record, *formats).get("values")
    return values if isinstance(values, Mapping) else {}


def names_for(tasks: Sequence[Record], *formats: str) -> dict[str, str]:
    """The names of tasks in a list of such a format, by their ids with us. What came from one keeps
    its name there; no two have the same."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for record in sorted(tasks, key=lambda task: not source_of(task, *formats)):
        task = str(record["id"])
        wanted = str(source_of(record, *formats).get("key") or task)
        wanted = wanted if wanted not in taken else task
        numbers = count(2)
        while wanted in taken:
            wanted = f"{task}-{next(numbers)}"
        names[task] = wanted
        taken.add(wanted)
    return names


def status_of(record: Record) -> Status:
    """The status of a task; without a word it is pending, as in tasks.jsonl."""
    return Status(record.get("status") or Status.PENDING)


def text_of(record: Record, name: str) -> str:
    """A field that is a text, "" where it is not there."""
    found = record.get(name)
    return found if isinstance(found, str) else ""


def list_of(record: Record, name: str) -> list[Any]:
    found = record.get(name)
    return found if isinstance(found, list) else []


def texts_of(record: Record, name: str) -> list[str]:
    return [one for one in list_of(record, name) if isinstance(one, str)]


def notes_of(record: Record) -> str:
    """Notes that people have added to a task; some tools keep them as a list."""
    notes = record.get("notes")
    return "\n".join(map(str, notes)) if isinstance(notes, list) else text_of(record, "notes")


def priority_of(record: Record) -> int:
    found = record.get("priority")
    return found if type(found) is int else 0


def moment(text: object) -> str | None:
    """A time as tasks.jsonl has it; None for what is no time."""
    if not isinstance(text, str):
        return None
    try:
        return iso(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return None


def beside(
    record: Record, held: Collection[str], names: Mapping[str, str], status: str
) -> dict[str, Any]:
    """The fields of a task for which a format has no member, `held` being those it has, with the
    names that tasks have in the list; and its status, if that is not what the list says."""
    ours = {name: record[name] for name in _TYPES if name in record and name not in held}
    if "parent" in ours:
        ours["parent"] = names.get(str(ours["parent"]))
    if status_of(record) != status:
        ours["status"] = status_of(record).value
    return {name: content for name, content in ours.items() if content not in NOTHING}


def from_beside(found: object, held: Collection[str], name: str, status: object) -> dict[str, Any]:
    """These fields again, of the item with this name; a status only for what the list takes for
    open. ValueError for what can be none of ours."""
    member = found if isinstance(found, dict) else {}
    fields = {field: member[field] for field in _TYPES if field in member and field not in held}
    for field, content in fields.items():
        good = isinstance(content, _TYPES[field]) and not isinstance(content, bool)
        if not good or (field in _LISTS and len(texts_of(member, field)) != len(content)):
            raise ValueError(f"{name[:80]}: {field} in {MEMBER} cannot be what it is here")
    if status == Status.PENDING and member.get("status") in _UNSAID:
        fields["status"] = member["status"]
    return fields


class Names:
    """Gives names that nobody has yet: a number behind those that are used."""

    def __init__(self, used: Iterable[str] = ()) -> None:
        self._used = set(used)
        self._numbers: Counter[str] = Counter()

    def free(self, name: str) -> str:
        """The name, cut if it is long, that is used from now on."""
        if len(name) > _LONGEST:
            name = f"{name[:_LONGEST]}… {digest_of([name.encode('utf-8', 'replace')], 4)}"
        found = name
        while found in self._used:
            self._numbers[name] += 1
            found = f"{name} ({self._numbers[name] + 1})"
        self._used.add(found)
        return found


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
    """The tasks that another loop may work on: most lists know no cancelled task."""
    for task in tasks:
        if status_of(task) is Status.CANCELLED:
            losses.add("cancelled tasks, which are left out", task["id"])
    return [task for task in tasks if status_of(task) is not Status.CANCELLED]
