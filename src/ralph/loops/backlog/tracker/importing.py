"""Merges other tools' lists into ours: new items are added, changes there are made here, and
conflicting changes are reported and left (a three-way comparison by `source.seen`)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ralph.files.digest import digest_of
from ralph.formats.base import ListedTask, TaskList
from ralph.formats.records import moment
from ralph.kernel.tasks.task import ENDED, Status, Task, cycle
from ralph.kernel.value import replace, value
from ralph.loops.backlog.store.lines import usable
from ralph.loops.backlog.store.task_file import next_id
from ralph.text.words import listed

Record = dict[str, Any]
_NO_LONGER: Record = {"reason": None, "question": None, "completedAt": None}  # of another status
_NOTHING: tuple[object, ...] = (None, "", [])
_TIMES = ("createdAt", "completedAt")
_PIPED = {"path": "-"}  # another list may come from there each time


@value
class Origin:
    """The place that a list comes from."""

    format: str
    place: Mapping[str, str]  # {"path": ...} or {"repo": ...}
    shown: str  # for people


@value
class Conflict:
    """A field that was changed here and there. Ours stays."""

    task: str
    field: str
    ours: object
    theirs: object


@value
class Import:
    """The changes of an import."""

    added: tuple[Record, ...] = ()
    updated: tuple[tuple[Record, tuple[str, ...]], ...] = ()  # with the fields that change
    unchanged: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    missing: tuple[str, ...] = ()  # ours, in the list no more; they stay
    kept: tuple[str, ...] = ()  # what is left as it is here, in words
    lost: tuple[str, ...] = ()
    bare: tuple[Record, ...] = ()  # written too, and nothing that people care about

    @property
    def records(self) -> tuple[Record, ...]:
        """All that is to be written."""
        return (*self.added, *(record for record, _ in self.updated), *self.bare)


def digest(content: object) -> str:
    """The digest by which a field is recognized; "" for one that is not there."""
    if content in _NOTHING:
        return ""
    text = json.dumps(content, ensure_ascii=False, sort_keys=True)
    return digest_of([text.encode("utf-8", "surrogatepass")], 4)


def same_place(record: Mapping[str, Any], place: Mapping[str, str]) -> bool:
    """True if a task came from there."""
    source = record.get("source")
    return isinstance(source, dict) and all(source.get(k) == v for k, v in place.items())


class Merge:
    """One import into the tasks there are."""

    def __init__(self, reading: TaskList, origin: Origin, now: str, *, by_agent: bool) -> None:
        self._reading, self._origin, self._now = reading, origin, now
        self._by_agent = by_agent  # who may add tasks, and say of none that it is done
        self._ids: dict[str, str] = {}  # ours, by their keys
        self._keys: dict[str, str] = {}  # theirs, by our ids
        self._found: dict[str, list[Any]] = {}
        self.result = Import()

    def __call__(self, records: list[Record], taken: frozenset[str]) -> tuple[Record, ...]:
        """The records to write; `result` explains them."""
        known = {r["source"].get("key"): r for r in records if same_place(r, self._origin.place)}
        items, lost = proper(self._reading)
        self._ids = {key: record["id"] for key, record in known.items()}
        self._ids |= self._new_ids([item.key for item in items if item.key not in known], taken)
        self._keys = {task_id: key for key, task_id in self._ids.items()}
        self._found = {"lost": list(lost)}
        for number, item in enumerate(items):
            if item.key in known:
                self._meet(known.pop(item.key), item, first=not number)
            else:
                self._add(item, first=not number)
        for record in known.values() if self._origin.place != _PIPED else ():
            self._note("missing", record["id"])
            if "root" in record["source"]:  # what is not in its list any more does not speak for it
                source = {n: held for n, held in record["source"].items() if n != "root"}
                self._note("bare", {**record, "source": source, "updatedAt": self._now})
        self.result = Import(**{name: tuple(held) for name, held in self._found.items()})
        return self.result.records

    def _note(self, what: str, found: object) -> None:
        self._found.setdefault(what, []).append(found)

    def _new_ids(self, keys: Sequence[str], taken: frozenset[str]) -> Iterator[tuple[str, str]]:
        """An id for each: its own if it can be, else the next number."""
        # A key that was made from a text would be a poor id.
        own = {key for key in keys if usable(key) and " " not in key and key not in taken}
        used = taken | own
        number = ""
        for key in keys:
            if key in own:
                yield key, key
                continue
            number = next_id((number,) if number else used)
            while number in used:
                number = next_id((number,))
            used |= {number}
            yield key, number

    def _add(self, item: ListedTask, *, first: bool) -> None:
        ours = self._translated(item.fields)
        times = {"createdAt": ours.pop("createdAt", self._now), "updatedAt": self._now}
        head = {"id": self._ids[item.key], "title": ours.pop("title", "")}
        status = Status(ours.pop("status", Status.PENDING))
        if self._by_agent and status in ENDED:
            self._note("kept", f"{head['id']} is added as pending: an agent does not say {status}")
            status = Status.PENDING
            ours.pop("completedAt", None)
        if status is Status.DONE:
            ours.setdefault("completedAt", self._now)
        source = self._source(item, first=first)
        if status is Status.PENDING:  # what a person imports later may be done
            source["seen"]["status"] = digest(status.value)
        self._note("added", {**head, "status": status.value, **ours, "source": source, **times})

    def _source(self, item: ListedTask, *, first: bool) -> Record:
        source: Record = {"format": self._origin.format, **self._origin.place, "key": item.key}
        source |= {"kept": dict(item.kept)} if item.kept else {}
        source["seen"] = {name: digest(held) for name, held in item.fields.items()}
        return source | ({"root": dict(self._reading.root)} if first and self._reading.root else {})

    def _translated(self, fields: Mapping[str, Any]) -> Record:
        """Fields with our ids in place of their keys."""
        ours = dict(fields)
        if "blockedBy" in ours:
            ours["blockedBy"] = [self._ids[key] for key in ours["blockedBy"]]
        if "parent" in ours:
            ours["parent"] = self._ids[ours["parent"]]
        return ours

    def _meet(self, record: Record, item: ListedTask, *, first: bool) -> None:
        """Bring together what became of a task here and there."""
        if self._by_agent:
            self._note("unchanged", record["id"])
            return
        seen = record["source"].get("seen") or {}
        source = self._source(item, first=first)
        ours = self._translated(item.fields)
        changes: Record = {}
        for name in dict.fromkeys((*item.fields, *seen)):
            if name in ("status", *_TIMES) or digest(item.fields.get(name)) == seen.get(name, ""):
                continue
            theirs = ours.get(name)
            if digest(self._as_there(name, record.get(name))) == seen.get(name, ""):
                changes[name] = theirs
            elif digest(record.get(name)) != digest(theirs):
                self._note("conflicts", Conflict(record["id"], name, record.get(name), theirs))
                source["seen"] = _with(source["seen"], name, seen.get(name))
        changes |= self._status({**record, **changes}, item, seen, source)
        self._finish(record, changes, source)

    def _as_there(self, name: str, held: object) -> object:
        """A field of ours with their keys, where they know such."""
        keys = self._keys
        if name == "blockedBy" and isinstance(held, list):
            return [keys.get(one, one) for one in held]
        return keys.get(held, held) if name == "parent" and isinstance(held, str) else held

    def _finish(self, record: Record, changes: Record, source: Record) -> None:
        fields = [n for n in changes if digest(changes[n]) != digest(record.get(n))]
        if not fields and source == record["source"]:
            self._note("unchanged", record["id"])
            return
        both = {**record, **changes, "source": source, "updatedAt": self._now}
        new = {name: held for name, held in both.items() if held is not None}
        if fields or source.get("kept") != record["source"].get("kept"):
            self._note("updated", (new, tuple(fields)))
        else:
            self._note("unchanged", record["id"])
            self._note("bare", new)

    def _status(
        self, record: Record, item: ListedTask, seen: Mapping[str, str], source: Record
    ) -> Record:
        """The changes for a status that changed there. A task that is in progress or has ended
        here is not set back."""
        there = Status(item.fields.get("status", Status.PENDING))
        here = Status(record.get("status") or Status.PENDING)
        if there is here or digest(there.value) == seen.get("status", ""):
            return {}
        name, where = record["id"], self._origin.shown
        if here is Status.IN_PROGRESS:
            self._note("kept", f"{name} is under work here, and {there.value} in {where}")
        elif there is Status.DONE and here not in ENDED:
            at = item.fields.get("completedAt", self._now)
            words = f"Called done by {where}, imported {self._now}."
            notes = record.get("notes")
            if isinstance(notes, list):
                notes = [*notes, words]
            else:
                notes = f"{notes}\n{words}" if notes else words
            return {**_NO_LONGER, "status": there.value, "completedAt": at, "notes": notes}
        elif here in ENDED or digest(here.value) != seen.get("status", ""):
            self._note("conflicts", Conflict(name, "status", here.value, there.value))
        else:
            return {**_NO_LONGER, "status": there.value}
        source["seen"] = _with(source["seen"], "status", seen.get("status"))
        return {}


def proper(reading: TaskList) -> tuple[list[ListedTask], tuple[str, ...]]:
    """Items whose fields can be ours: they wait for items of the list only, and their times are
    times. And what is lost by that, with what was lost before."""
    keys = {item.key for item in reading.items}
    items, lost = [], [*reading.lost]
    for item in reading.items:
        fields = dict(item.fields)
        waits = fields.get("blockedBy") or []
        fields["blockedBy"] = [key for key in waits if key in keys]
        if len(fields["blockedBy"]) < len(waits):
            strangers = listed([key for key in waits if key not in keys])
            lost.append(f"{item.key} waits for {strangers}, which is not in the list")
        if fields.get("parent") and fields["parent"] not in keys:
            lost.append(f"{item.key} is a part of {fields.pop('parent')}, which is not in the list")
        for name in fields.keys() & _TIMES:
            fields[name] = moment(str(fields[name]))
        held = {name: held for name, held in fields.items() if held not in _NOTHING}
        items.append(replace(item, fields=held))
    return _children_first(items) if reading.nested else items, tuple(lost)


def _children_first(items: list[ListedTask]) -> list[ListedTask]:
    """Items that wait for those below them too, unless one of these waits for them."""
    waits = {item.key: [*item.fields.get("blockedBy", ())] for item in items}
    pairs = ((item.fields.get("parent"), item.key) for item in items)
    below = dict.fromkeys((above, key) for above, key in pairs if above and key not in waits[above])
    for parent, key in below:
        waits[parent].append(key)
    while circle := cycle(Task(key, blocked_by=tuple(names)) for key, names in waits.items()):
        ours = {*zip(circle, (*circle[1:], circle[0]), strict=True)} & below.keys()
        if not ours:
            return items  # the list says so itself, and is refused for it
        for parent, key in ours:
            waits[parent].remove(key)
    return [
        replace(item, fields={**item.fields, "blockedBy": waits[item.key]})
        if waits[item.key]
        else item
        for item in items
    ]


def _with(seen: Mapping[str, str], name: str, old: str | None) -> dict[str, str]:
    """The digests as seen, except for a field in conflict, which keeps the old one."""
    kept = {field: held for field, held in seen.items() if field != name}
    return kept | ({name: old} if old else {})
