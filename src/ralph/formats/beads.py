"""beads' `issues.jsonl`, one issue a line, and the list that `bd list --json` prints.

Tombstones, templates and messages are no tasks; they stay in the list when it is written again.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ralph.files.json_edit import Item as Place
from ralph.formats.base import LARGEST_ROOT, ListedTask, TaskList, Writing, split_at
from ralph.formats.json_lists import (
    ABSENT,
    all_are,
    dumped,
    first_place,
    items,
    listed_task,
    opening,
    parsed,
    thickened,
    with_members,
)
from ralph.formats.records import (
    MEMBER,
    Losses,
    Record,
    beside,
    from_beside,
    list_of,
    moment,
    names_for,
    notes_of,
    priority_of,
    source_of,
    status_of,
    text_of,
    texts_of,
    values_of,
)
from ralph.kernel.value import value
from ralph.text.timestamps import iso

_NAME = "beads"
_PLAIN = {"title": "title", "description": "description", "notes": "notes", "labels": "tags"}
_PLAIN |= {"issue_type": "type"}
_CANCELLED = "Cancelled"  # the reason that says so
_STATUSES = {"open": "pending", "in_progress": "in_progress", "hooked": "in_progress"}
_STATUSES |= {"blocked": "blocked", "deferred": "blocked", "closed": "done"}
_SPELLED = {"in_progress": "in_progress", "blocked": "blocked", "review": "in_progress"}
_SPELLED |= {"done": "closed", "cancelled": "closed"}
_OWN = frozenset({"issue_type", "created_at", "updated_at", "deleted_at"})  # nobody else has these
_OWN_STATUSES = ("open", "closed", "deferred", "hooked", "pinned", "tombstone")
_TYPES = frozenset({"bug", "feature", "task", "epic", "chore", "decision", "message", "molecule"})
_TYPES |= {"gate", "spike", "story", "milestone"}
_TIME = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhd])")
_MINUTES = {"s": 1 / 60, "m": 1, "h": 60, "d": 24 * 60}
_MOST = 10**9
_LOWEST = 4
_DESIGN, _CRITERIA = "Design:\n", "Acceptance criteria:\n"  # paragraphs of our description
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}  # as Go writes them by default
Issue = dict[str, Any]


@value
class Beads:
    """Issues. `now` is the time at which one is closed, reopened or new."""

    now: Callable[[], datetime]
    name = _NAME
    nests = True  # it says what is a part of what

    def fits(self, name: str, text: str) -> bool:
        bare = text.removeprefix("\ufeff").lstrip()
        first = bare if bare[:1] == "[" else bare.partition("\n")[0]
        other = name.casefold().endswith((".md", ".yaml", ".yml"))
        return not other and all_are(first, _is_issue)

    def read(self, text: str, name: str) -> TaskList:
        places = _places_in(text)
        tasks = [place.content for place in places if _is_task(place.content)]
        keys = {str(issue["id"]) for issue in tasks}
        lost: list[str] = []
        made = tuple(_read(issue, keys, lost) for issue in tasks)
        others = [(n, place) for n, place in enumerate(places) if not _is_task(place.content)]
        root: dict[str, Any] = {}
        if sum(place.end - place.at for _, place in others) > LARGEST_ROOT:
            lost.append(f"{name}: its {len(others)} issues that are no tasks are too long to keep")
        elif others:
            root["others"] = [[n, text[place.at : place.end]] for n, place in others]
        if any(escape in text for escape in _ESCAPES.values()):
            root["escaped"] = True
        if opening(text) == "[":
            root["array"] = "lines" if "\n" in text.strip() else "line"
        return TaskList(made, root if made else {}, tuple(lost))

    def write(self, tasks: Sequence[Record], root: Mapping[str, Any]) -> Writing:
        """All tasks as a list; the issues that are no tasks stand where they stood."""
        losses, array = Losses(), root.get("array")
        writer = _Writer(tasks, losses, iso(self.now()))
        issues = [dumped(writer.issue(record), compact=array != "lines") for record in tasks]
        for sign, escape in _ESCAPES.items() if root.get("escaped") else ():
            issues = [issue.replace(sign, escape) for issue in issues]
        for place, other in sorted(root.get("others") or ()):
            issues.insert(place, dumped(parsed(other)) if array == "lines" else other)
        losses.strangers(tasks, writer.keys)
        losses.kept(tasks, _NAME)
        text = "".join(f"{issue}\n" for issue in issues)
        if array == "line":
            text = f"[{','.join(issues)}]\n"
        elif array == "lines":
            inner = ",\n".join(issues).replace("\n", "\n  ")
            text = f"[\n  {inner}\n]\n" if issues else "[]\n"
        return Writing(text, losses.words())

    def marked(self, text: str, keys: Collection[str], done: bool) -> str:
        now = iso(self.now())
        changes = {
            "status": "closed" if done else "open",
            "updated_at": now,
            "closed_at": now if done else ABSENT,
            "close_reason": "Completed" if done else ABSENT,
        }
        wrong = [
            (place, changes)
            for place in _places_in(text)
            if place.content["id"] in keys
            and _is_task(place.content)
            and (place.content.get("status") == "closed") is not done
        ]
        return with_members(text, wrong)


def _is_issue(issue: Record) -> bool:
    """True if only beads has such an object."""
    own = not issue.keys().isdisjoint(_OWN) or issue.get("status") in _OWN_STATUSES
    return own and {"id", "title", "status"} <= issue.keys()


def _is_task(issue: Issue) -> bool:
    """True for work to be done, or done."""
    gone = issue.get("status") in ("tombstone", "pinned") or issue.get("deleted_at")
    other = issue.get("is_template") or text_of(issue, "issue_type") in ("message", "event")
    return not gone and not other


def _places_in(text: str) -> list[Place]:
    """All issues and their places, by lines as in issues.jsonl, or in an array as `bd list`
    prints it; ValueError for what is none, or an id again."""
    found: list[Place] = []
    seen: dict[str, str] = {}
    places: Iterable[tuple[str, Place]] = _in_lines(text)
    if opening(text) == "[":
        parsed(text)
        listed = enumerate(items(text, first_place(text)), 1)
        places = ((f"issue {number}", place) for number, place in listed)
    for where, place in places:
        issue = place.content
        if not isinstance(issue, dict):
            raise ValueError(f"{where}: an issue is an object, in braces")
        for name in ("id", "title"):
            if not text_of(issue, name).strip():
                raise ValueError(f"{where}: {name} must be a text")
        priority = issue.get("priority")
        if priority is not None and (type(priority) is not int or abs(priority) > _MOST):
            raise ValueError(f"{where}: priority must be a whole number, 0 to 4")
        before = seen.setdefault(issue["id"], where)
        if before != where:
            raise ValueError(f"{where}: {issue['id']} is in {before} already")
        found.append(place)
    return found


def _in_lines(text: str) -> Iterator[tuple[str, Place]]:
    start = 0
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.removeprefix("\ufeff" if number == 1 else "").strip(" \t\r")
        if bare:
            try:
                issue = parsed(bare)
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
            at = start + line.index(bare)
            yield f"line {number}", Place("", at, at, at + len(bare), issue)
        start += len(line) + 1


def _read(issue: Issue, keys: set[str], lost: list[str]) -> ListedTask:
    """An issue as a task. Gates wait for something else than work."""
    key = issue["id"]
    waits, parent = _links(issue)
    strangers = [other for other in waits if other not in keys]
    lost += [f"{key} waits for {other}, which is no task of this list" for other in strangers]
    said = text_of(issue, "status") or "open"
    if said not in _STATUSES and issue.get("issue_type") != "gate":
        lost.append(f"{key}: the status {said!r:.40} is taken for blocked")
    fields = {
        "title": issue["title"],
        "description": _description(issue),
        "status": _status(issue),
        "priority": -issue["priority"] if issue.get("priority") else None,
        "type": text_of(issue, "issue_type"),
        "tags": texts_of(issue, "labels"),
        "blockedBy": [other for other in waits if other in keys],
        "parent": parent if parent in keys else None,
        "notes": text_of(issue, "notes"),
        "estimate": _estimate(issue),
        "createdAt": moment(issue.get("created_at")),
        "completedAt": moment(issue.get("closed_at")),
        "externalId": text_of(issue, "external_ref"),
    }
    fields |= from_beside(_ours_in(issue), _held_in(issue), key, fields["status"])
    return listed_task(key, issue, fields, _PLAIN)


def _held_in(issue: Issue) -> set[str]:
    """The fields of ours that an issue says by itself."""
    held = {"tags", "parent", "notes", "priority", "externalId"}
    held |= {"type"} if text_of(issue, "issue_type") not in ("", "task") else set()
    return held | ({"estimate"} if _estimate(issue) else set())


def _ours_in(issue: Issue) -> object:
    """The fields of ours in an issue: beads keeps `metadata` for others."""
    metadata = issue.get("metadata")
    return metadata.get(MEMBER) if isinstance(metadata, dict) else None


def _status(issue: Issue) -> str:
    said = text_of(issue, "status") or "open"
    if said == "closed":
        return "cancelled" if issue.get("close_reason") == _CANCELLED else "done"
    return "blocked" if issue.get("issue_type") == "gate" else _STATUSES.get(said, "blocked")


def _links(issue: Issue) -> tuple[list[str], str | None]:
    """The ids that an issue waits for, and its parent."""
    waits: dict[str, None] = {}
    parent = None
    for link in list_of(issue, "dependencies"):
        other = link.get("depends_on_id") if isinstance(link, dict) else None
        if isinstance(other, str) and other != issue["id"]:
            kind = text_of(link, "type") or "blocks"
            if kind in ("blocks", "conditional-blocks", "waits-for"):
                waits[other] = None
            elif kind == "parent-child":
                parent = parent or other
    return list(waits), parent


def _description(issue: Issue) -> str:
    """The text that an agent must read: the description, the design and the acceptance criteria."""
    parts = [text_of(issue, "description")]
    for name, head in (("design", _DESIGN), ("acceptance_criteria", _CRITERIA)):
        if text := text_of(issue, name):
            parts.append(f"{head}{text}")
    return "\n\n".join(part for part in parts if part)


def _estimate(issue: Issue) -> str | None:
    """Minutes, as our estimates have times."""
    minutes = issue.get("estimated_minutes")
    return f"{minutes}m" if type(minutes) is int and minutes > 0 else None


class _Writer:
    """Makes issues of records that know of each other."""

    def __init__(self, tasks: Sequence[Record], losses: Losses, now: str) -> None:
        self.keys = names_for(tasks, _NAME)
        self.known = set(self.keys.values())
        mine = (task for task in tasks if not _is_as_urgent_as_before(task))
        self.top = max([0, *map(priority_of, mine)])
        self.losses = losses
        self.now = now

    def issue(self, record: Record) -> Issue:
        is_new = not source_of(record, _NAME)
        before = self._new(record) if is_new else thickened(record, _NAME, _PLAIN)
        issue = dict(before)
        issue["id"] = self.keys[str(record["id"])]
        text = text_of(record, "description")
        if _description(issue) != text:
            text, criteria = split_at(text, _CRITERIA)
            text, design = split_at(text, _DESIGN)
            parts = {"description": text, "design": design, "acceptance_criteria": criteria}
            issue |= {name: part for name, part in parts.items() if part or name in issue}
        self._status(record, issue)
        if not _is_as_urgent_as_before(record):
            wanted = self.top - priority_of(record)  # 0 is the most urgent with them
            issue["priority"] = min(max(wanted, 0), _LOWEST)
            if wanted > _LOWEST:
                self.losses.add(f"priorities below {_LOWEST} (written as {_LOWEST})", record["id"])
        self._links(record, issue)
        said = record.get("estimate")
        found = _TIME.fullmatch(said) if isinstance(said, str) else None
        minutes = round(float(found[1]) * _MINUTES[found[2]]) if found else 0
        if minutes and said != _estimate(issue):
            issue["estimated_minutes"] = minutes
        elif said and not minutes:
            issue.pop("estimated_minutes", None)
        self._beside(record, issue)
        if not is_new and issue != before and "updated_at" in issue:
            issue["updated_at"] = moment(record.get("updatedAt")) or self.now
        return issue

    def _new(self, record: Record) -> Issue:
        kind = text_of(record, "type")
        created = moment(record.get("createdAt")) or self.now
        issue = {
            "title": text_of(record, "title") or str(record["id"]),
            "notes": notes_of(record),
            "status": "open",
            "priority": None,
            "issue_type": kind if kind in _TYPES else "task",
            "created_at": created,
            "updated_at": moment(record.get("updatedAt")) or created,
            "external_ref": text_of(record, "externalId"),
            "labels": texts_of(record, "tags"),
        }
        return {"id": ""} | {name: it for name, it in issue.items() if it not in ("", [])}

    def _status(self, record: Record, issue: Issue) -> None:
        said = status_of(record)
        if said == _status(issue):
            return
        if said == "review":
            self.losses.add("status review (written as in_progress)", str(record["id"]))
        issue["status"] = _SPELLED.get(said, "open")
        if issue["status"] != "closed":
            issue.pop("closed_at", None)
            issue.pop("close_reason", None)
            return
        issue["closed_at"] = moment(record.get("completedAt")) or self.now
        issue["close_reason"] = _CANCELLED if said == "cancelled" else "Completed"

    def _links(self, record: Record, issue: Issue) -> None:
        waits, parent = _links(issue)
        wanted = [self.keys.get(one) for one in texts_of(record, "blockedBy")]
        over = self.keys.get(text_of(record, "parent"))
        # What is not in this list is no business of ours.
        gone = {one for one in waits if one in self.known and one not in wanted}
        new = [(one, "blocks") for one in wanted if one and one not in waits]
        if parent != over and (over or parent in self.known):
            gone |= {parent} if parent else set()
            new = [*([(over, "parent-child")] if over else []), *new]
        if not gone and not new:
            return
        kept = [
            link
            for link in list_of(issue, "dependencies")
            if not isinstance(link, dict) or link.get("depends_on_id") not in gone
        ]
        ends = {"created_at": self.now, "created_by": "ralph"}
        issue["dependencies"] = kept + [
            {"issue_id": issue["id"], "depends_on_id": other, "type": kind, **ends}
            for other, kind in new
        ]

    def _beside(self, record: Record, issue: Issue) -> None:
        """Put into `metadata` what only we know."""
        held = _held_in(issue)
        held |= {"type"} if text_of(record, "type") == issue.get("issue_type") else set()
        ours = beside(record, held, self.keys, status_of(record))
        if ours == (_ours_in(issue) or {}):
            return
        metadata = issue.get("metadata") or {}
        if not isinstance(metadata, dict):
            self.losses.fields([ours | {"id": record["id"]}], list(ours))
            return
        rest = {name: held for name, held in metadata.items() if name != MEMBER}
        issue["metadata"] = rest | ({MEMBER: ours} if ours else {})


def _is_as_urgent_as_before(record: Record) -> bool:
    """True if its priority is still the one it has in a list of issues."""
    there = values_of(record, _NAME).get("priority")
    return bool(source_of(record, _NAME)) and priority_of(record) == -(there or 0)


FORMAT = Beads(lambda: datetime.now(UTC))
