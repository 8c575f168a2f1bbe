"""Other people's lists as tasks of ours: what is new is added, what changed there is changed here,
and what changed on both sides is told and stays (a three-way comparison by `source.seen`)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from ralph.files.digest import digest_of
from ralph.formats.base import ListedTask, TaskList
from ralph.kernel.tasks.backlog import ENDED
from ralph.kernel.tasks.task import Status
from ralph.kernel.value import replace, value
from ralph.loops.backlog.store.ids import next_id
from ralph.loops.backlog.store.lines import usable
from ralph.text.timestamps import iso
from ralph.text.words import listed

Record = dict[str, Any]
_NO_LONGER: Record = {"reason": None, "question": None, "completedAt": None}  # of another status
_NOTHING: tuple[object, ...] = (None, "", [])
_TIMES = ("createdAt", "completedAt")
_PIPED = {"path": "-"}  # another list may come from there each time


@value
class Origin:
    """Where a list is from."""

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
    """What an import does."""

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
    """By which a field is known again; "" for one that is not there."""
    if content in _NOTHING:
        return ""
    text = json.dumps(content, ensure_ascii=False, sort_keys=True)
    return digest_of([text.encode("utf-8", "surrogatepass")], 4)


def same_place(record: Mapping[str, Any], place: Mapping[str, str]) -> bool:
    """Whether a task came from there."""
    source = record.get("source")
    return isinstance(source, dict) and all(source.get(k) == v for k, v in place.items())


class Merge:
    """One import into the tasks there are."""

    def __init__(self, reading: TaskList, origin: Origin, now: str, *, by_agent: bool) -> None:
        self._reading, self._origin = reading, origin
        self._now = now
        self._by_agent = by_agent  # who may add tasks, and say of none that it is done
        self._ids: dict[str, str] = {}  # ours, by their keys
        self._keys: dict[str, str] = {}  # theirs, by our ids
        self._found: dict[str, list[Any]] = {}
        self.result = Import()

    def __call__(self, records: list[Record], taken: frozenset[str]) -> tuple[Record, ...]:
        """What is to be written; `result` says what that is."""
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
            if "root" in record["source"]:
                self._note("bare", _without_root(record, self._now))
        self.result = Import(**{name: tuple(held) for name, held in self._found.items()})
        return self.result.records

    def _note(self, what: str, found: object) -> None:
        self._found.setdefault(what, []).append(found)

    def _new_ids(self, keys: Sequence[str], taken: frozenset[str]) -> Iterator[tuple[str, str]]:
        """An id for each: its own if it can be, else the next number."""
        used = set(taken)
        own = {key for key in keys if _is_id(key) and key not in taken}
        used |= own
        number = ""
        for key in keys:
            if key in own:
                yield key, key
                continue
            number = next_id((number,) if number else used)
            while number in used:
                number = next_id((number,))
            used.add(number)
            yield key, number

    # -------------------------------------------------------------- new ones

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

    # -------------------------------------------------------------- known ones

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
            if digest(self._as_there(record, name)) == seen.get(name, ""):
                changes[name] = theirs
            elif digest(record.get(name)) != digest(theirs):
                self._note("conflicts", Conflict(record["id"], name, record.get(name), theirs))
                source["seen"] = _with(source["seen"], name, seen.get(name))
        changes |= self._status({**record, **changes}, item, seen, source)
        self._finish(record, changes, source)

    def _as_there(self, record: Record, name: str) -> object:
        """A field of ours with their keys, where they know such."""
        keys, held = self._keys, record.get(name)
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
        """What becomes of a status that changed there. What is under work or has ended here is not
        set back."""
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
            noted = _noted(record.get("notes"), words)
            return {**_NO_LONGER, "status": there.value, "completedAt": at, **noted}
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
        fields |= {name: _time(fields[name]) for name in _TIMES if name in fields}
        held = {name: held for name, held in fields.items() if held not in _NOTHING}
        items.append(replace(item, fields=held))
    return items, tuple(lost)


def _is_id(key: str) -> bool:
    """Whether a key can be our id too; one that was made from a text is a poor one."""
    return usable(key) and " " not in key


def _time(text: object) -> str | None:
    try:
        return iso(datetime.fromisoformat(str(text)))
    except (ValueError, OverflowError):
        return None


def _with(seen: Mapping[str, str], name: str, old: str | None) -> dict[str, str]:
    """What was seen, but for a field that is in dispute: there it stays what both once had."""
    kept = {field: held for field, held in seen.items() if field != name}
    return kept | ({name: old} if old else {})


def _noted(notes: object, words: str) -> Record:
    if isinstance(notes, list):
        return {"notes": [*notes, words]}
    return {"notes": f"{notes}\n{words}" if notes else words}


def _without_root(record: Record, now: str) -> Record:
    """A task that is not in its list any more does not speak for it."""
    source = {name: held for name, held in record["source"].items() if name != "root"}
    return {**record, "source": source, "updatedAt": now}
