"""The fields of beads' issues, as tasks have them."""

from collections.abc import Iterator, Mapping
from typing import Any

from ralph.files.json_edit import Item as Place
from ralph.formats.base import ListedTask
from ralph.formats.json_lists import (
    first_place,
    items,
    parsed,
    thinned,
)
from ralph.formats.records import MEMBER, NOTHING, from_beside, moment, text_of, texts_of

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
_MOST = 10**9
Issue = Mapping[str, Any]


def is_issue(issue: Issue) -> bool:
    """Whether only beads has such an object."""
    own = not issue.keys().isdisjoint(_OWN) or issue.get("status") in _OWN_STATUSES
    return own and {"id", "title", "status"} <= issue.keys()


def is_task(issue: Issue) -> bool:
    """True for work to be done, or done."""
    gone = issue.get("status") in ("tombstone", "pinned") or issue.get("deleted_at")
    return (
        not gone and not issue.get("is_template") and text_of(issue, "issue_type") not in _NO_TASKS
    )


def is_array(text: str) -> bool:
    """Whether it is a list as `bd` prints it, and not lines."""
    return text.removeprefix("\ufeff").lstrip()[:1] == "["


def places_in(text: str) -> list[Place]:
    """All issues and where they are, by lines as in issues.jsonl, or in an array as `bd list`
    prints it; ValueError for what is none, or an id again."""
    found: list[Place] = []
    seen: dict[str, str] = {}
    for where, place in _in_array(text) if is_array(text) else _in_lines(text):
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


def item_of(issue: Issue, keys: set[str], lost: list[str]) -> ListedTask:
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
