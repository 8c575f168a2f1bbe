"""beads' `issues.jsonl`, one issue a line, and the list that `bd list --json` prints. Tombstones,
templates and messages are no tasks; they stay in the list when it is written again."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ralph.adapters.formats.base import ListedTask, TaskList, Writing
from ralph.adapters.formats.json_lists import (
    ABSENT,
    all_are,
    first_place,
    items,
    parsed,
    thinned,
    with_members,
)
from ralph.adapters.formats.records import MEMBER, NOTHING, from_beside, moment, text_of, texts_of
from ralph.core.json_text import Item as Place
from ralph.core.timestamps import iso

NAME = "beads"
PLAIN = {"title": "title", "description": "description", "notes": "notes", "labels": "tags"}
PLAIN |= {"issue_type": "type"}
CANCELLED = "Cancelled"  # the reason that says so
WAITS = frozenset({"blocks", "conditional-blocks", "waits-for"})
STATUSES = {"open": "pending", "in_progress": "in_progress", "hooked": "in_progress"}
STATUSES |= {"blocked": "blocked", "deferred": "blocked", "closed": "done"}
_OWN = frozenset({"issue_type", "created_at", "updated_at", "deleted_at"})  # nobody else has these
_OWN_STATUSES = ("open", "closed", "deferred", "hooked", "pinned", "tombstone")
_NO_TASKS = frozenset({"message", "event"})
_LARGEST_ROOT = 1 << 19  # characters; the way back must fit into a line of tasks.jsonl
_MOST = 10**9
_ESCAPES = ("\\u003c", "\\u003e", "\\u0026")  # as Go writes < > & by default
Issue = Mapping[str, Any]


class Beads:
    """Issues. `now` is the time at which one is closed, reopened or new."""

    name = NAME

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now

    def fits(self, name: str, text: str) -> bool:
        bare = text.removeprefix("\ufeff").lstrip()
        first = bare if bare.startswith("[") else bare.partition("\n")[0]
        other = name.casefold().endswith((".md", ".yaml", ".yml"))
        return not other and all_are(first, _is_issue)

    def read(self, text: str, name: str) -> TaskList:
        places = _places(text)
        tasks = [place.content for place in places if is_task(place.content)]
        keys = {str(issue["id"]) for issue in tasks}
        lost: list[str] = []
        made = tuple(_item(issue, keys, lost) for issue in tasks)
        others = [(n, place) for n, place in enumerate(places) if not is_task(place.content)]
        root: dict[str, Any] = {}
        if sum(place.end - place.at for _, place in others) > _LARGEST_ROOT:
            lost.append(f"{name}: its {len(others)} issues that are no tasks are too long to keep")
        elif others:
            root["others"] = [[n, text[place.at : place.end]] for n, place in others]
        if any(escape in text for escape in _ESCAPES):
            root["escaped"] = True
        if _is_array(text):
            root["array"] = "lines" if "\n" in text.strip() else "line"
        return TaskList(made, root if made else {}, tuple(lost))

    def write(self, tasks: Sequence[Mapping[str, Any]], root: Mapping[str, Any]) -> Writing:
        from ralph.adapters.formats.beads_write import written

        return written(tasks, root, iso(self._now()))

    def marked(self, text: str, keys: Collection[str], done: bool) -> str:
        now = iso(self._now())
        changes = {
            "status": "closed" if done else "open",
            "updated_at": now,
            "closed_at": now if done else ABSENT,
            "close_reason": "Completed" if done else ABSENT,
        }
        wrong = [
            (place, changes)
            for place in _places(text)
            if place.content["id"] in keys
            and is_task(place.content)
            and (place.content.get("status") == "closed") is not done
        ]
        return with_members(text, wrong)


def _is_issue(issue: Issue) -> bool:
    own = not issue.keys().isdisjoint(_OWN) or issue.get("status") in _OWN_STATUSES
    return own and {"id", "title", "status"} <= issue.keys()


def is_task(issue: Issue) -> bool:
    """True for work to be done, or done."""
    gone = issue.get("status") in ("tombstone", "pinned") or issue.get("deleted_at")
    return (
        not gone and not issue.get("is_template") and text_of(issue, "issue_type") not in _NO_TASKS
    )


def _is_array(text: str) -> bool:
    return text.removeprefix("\ufeff").lstrip()[:1] == "["


def _places(text: str) -> list[Place]:
    """All issues and where they are, by lines as in issues.jsonl, or in an array as `bd list`
    prints it; ValueError for what is none, or an id again."""
    found: list[Place] = []
    seen: dict[str, str] = {}
    for where, place in _in_array(text) if _is_array(text) else _in_lines(text):
        issue = place.content
        if not isinstance(issue, dict):
            raise ValueError(f"{where}: an issue is an object, in braces")
        for name in ("id", "title"):
            if not isinstance(issue.get(name), str) or not issue[name].strip():
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
        bare = line.removeprefix("\ufeff").strip(" \t\r") if number == 1 else line.strip(" \t\r")
        if bare:
            try:
                issue = parsed(bare)
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
            at = start + line.index(bare)
            yield f"line {number}", Place("", at, at, at + len(bare), issue)
        start += len(line) + 1


def _in_array(text: str) -> Iterator[tuple[str, Place]]:
    parsed(text)
    for number, place in enumerate(items(text, first_place(text)), 1):
        yield f"issue {number}", place


def _item(issue: Issue, keys: set[str], lost: list[str]) -> ListedTask:
    key = issue["id"]
    waits, parent = links(issue)
    strangers = [other for other in waits if other not in keys]
    lost += [f"{key} waits for {other}, which is no task of this list" for other in strangers]
    fields = {
        "title": issue["title"],
        "description": composed(issue),
        "status": status(issue, lost),
        "priority": -issue["priority"] if issue.get("priority") else None,
        "type": text_of(issue, "issue_type"),
        "tags": texts_of(issue, "labels"),
        "blockedBy": [other for other in waits if other in keys],
        "parent": parent if parent in keys else None,
        "notes": text_of(issue, "notes"),
        "estimate": estimate(issue),
        "createdAt": moment(issue.get("created_at")),
        "completedAt": moment(issue.get("closed_at")),
        "externalId": text_of(issue, "external_ref"),
    }
    fields |= from_beside(ours_in(issue), held_in(issue), key, fields["status"])
    fields = {name: it for name, it in fields.items() if it not in NOTHING}
    return ListedTask(key, fields, thinned(issue, fields, PLAIN))


def held_in(issue: Issue) -> set[str]:
    """The fields of ours that an issue says by itself."""
    held = {"tags", "parent", "notes", "priority", "externalId"}
    held |= {"type"} if text_of(issue, "issue_type") not in ("", "task") else set()
    return held | ({"estimate"} if estimate(issue) else set())


def ours_in(issue: Issue) -> object:
    """The fields of ours in an issue: beads keeps `metadata` for others."""
    metadata = issue.get("metadata")
    return metadata.get(MEMBER) if isinstance(metadata, dict) else None


def status(issue: Issue, lost: list[str]) -> str:
    """Its status with us. Gates wait for something else than work."""
    said = text_of(issue, "status") or "open"
    if said == "closed":
        return "cancelled" if issue.get("close_reason") == CANCELLED else "done"
    if issue.get("issue_type") == "gate":
        return "blocked"
    if said not in STATUSES:
        lost.append(f"{issue['id']}: the status {said!r:.40} is taken for blocked")
    return STATUSES.get(said, "blocked")


def links(issue: Issue) -> tuple[list[str], str | None]:
    """The ids that an issue waits for, and its parent."""
    found = issue.get("dependencies")
    waits: dict[str, None] = {}
    parent = None
    for link in found if isinstance(found, list) else ():
        other = link.get("depends_on_id") if isinstance(link, dict) else None
        if isinstance(other, str) and other != issue["id"]:
            kind = text_of(link, "type") or "blocks"
            if kind in WAITS:
                waits[other] = None
            elif kind == "parent-child":
                parent = parent or other
    return list(waits), parent


def composed(issue: Issue) -> str:
    """The text that an agent must read: the description, the design and the acceptance criteria."""
    parts = [text_of(issue, "description")]
    for name, head in (("design", "Design"), ("acceptance_criteria", "Acceptance criteria")):
        if text := text_of(issue, name):
            parts.append(f"{head}:\n{text}")
    return "\n\n".join(part for part in parts if part)


def estimate(issue: Issue) -> str | None:
    """Minutes, as our estimates have times."""
    minutes = issue.get("estimated_minutes")
    return f"{minutes}m" if type(minutes) is int and minutes > 0 else None


FORMAT = Beads(lambda: datetime.now(UTC))
