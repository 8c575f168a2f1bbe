"""beads' `issues.jsonl`: one issue a line. Tombstones, templates and messages are no tasks; they
stay in the list when it is written again."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ralph.adapters.formats.base import Item, Reading, Writing
from ralph.adapters.formats.json_lists import (
    ABSENT,
    first_place,
    parsed,
    thinned,
    with_member,
)
from ralph.adapters.formats.records import moment
from ralph.adapters.task_lines import iso

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
    """issues.jsonl. `now` is the time at which an issue is closed, reopened or new."""

    name = NAME

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now

    def fits(self, name: str, text: str) -> bool:
        """By what its first line says."""
        first = text.removeprefix("\ufeff").lstrip().partition("\n")[0]
        if not first.startswith("{") or name.casefold().endswith((".md", ".yaml", ".yml")):
            return False
        try:
            issue = parsed(first)
        except ValueError:
            return False
        own = not issue.keys().isdisjoint(_OWN) or issue.get("status") in _OWN_STATUSES
        return own and {"id", "title", "status"} <= issue.keys()

    def read(self, text: str, name: str) -> Reading:
        """All issues that are tasks, in their order."""
        issues = list(enumerate(_issues(text)))
        tasks = [issue for _, (_, issue) in issues if is_task(issue)]
        keys = {str(issue["id"]) for issue in tasks}
        lost: list[str] = []
        items = tuple(_item(issue, keys, lost) for issue in tasks)
        others = [[n, line] for n, (line, issue) in issues if not is_task(issue)]
        root: dict[str, Any] = {"others": others} if others else {}
        if sum(len(line) for _, (line, issue) in issues if not is_task(issue)) > _LARGEST_ROOT:
            root = {}
            lost.append(f"{name}: its {len(others)} issues that are no tasks are too long to keep")
        if any(escape in text for escape in _ESCAPES):
            root["escaped"] = True
        return Reading(items, root if items else {}, tuple(lost))

    def write(self, tasks: Sequence[Mapping[str, Any]], root: Mapping[str, Any]) -> Writing:
        """One line for each task; what came from such a list keeps all it had."""
        from ralph.adapters.formats.beads_write import written

        return written(tasks, root, iso(self._now()))

    def marked(self, text: str, key: str, done: bool) -> str | None:
        """Only this issue's line changes: its status, closed_at, close_reason and updated_at."""
        start = 0
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip("\ufeff \t\r"):
                issue = _issue(line, number)
                if issue["id"] == key and is_task(issue):
                    new = self._closed(line, issue, done)
                    return text[:start] + new + text[start + len(line) :]
            start += len(line) + 1
        return None

    def _closed(self, line: str, issue: Issue, done: bool) -> str:
        if (issue.get("status") == "closed") is done:
            return line
        now = iso(self._now())
        changes = {
            "status": "closed" if done else "open",
            "updated_at": now,
            "closed_at": now if done else ABSENT,
            "close_reason": "Completed" if done else ABSENT,
        }
        at = first_place(line)
        for name, content in changes.items():
            line = with_member(line, at, name, content)
        return line


def is_task(issue: Issue) -> bool:
    """Whether it is work to be done, or done."""
    gone = issue.get("status") in ("tombstone", "pinned") or issue.get("deleted_at")
    return not gone and not issue.get("is_template") and _text(issue, "issue_type") not in _NO_TASKS


def _issues(text: str) -> list[tuple[str, Issue]]:
    """The lines with what they say; ValueError for one that says nothing, or an id again."""
    found: list[tuple[str, Issue]] = []
    lines: dict[str, int] = {}
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if line.strip(" \t\r"):
            issue = _issue(line, number)
            before = lines.setdefault(issue["id"], number)
            if before != number:
                raise ValueError(f"line {number}: {issue['id']} is in line {before} already")
            found.append((line.rstrip("\r"), issue))
    return found


def _issue(line: str, number: int) -> Issue:
    try:
        issue = parsed(line)
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from None
    if not isinstance(issue, dict):
        raise ValueError(f"line {number}: an issue is an object, in braces")
    for name in ("id", "title"):
        if not isinstance(issue.get(name), str) or not issue[name].strip():
            raise ValueError(f"line {number}: {name} must be a text")
    priority = issue.get("priority")
    if priority is not None and (type(priority) is not int or abs(priority) > _MOST):
        raise ValueError(f"line {number}: priority must be a whole number, 0 to 4")
    return issue


def _item(issue: Issue, keys: set[str], lost: list[str]) -> Item:
    key = issue["id"]
    waits, parent = links(issue)
    strangers = [other for other in waits if other not in keys]
    lost += [f"{key} waits for {other}, which is no task of this list" for other in strangers]
    fields = {
        "title": issue["title"],
        "description": composed(issue),
        "status": status(issue, lost),
        "priority": -issue["priority"] if issue.get("priority") else None,
        "type": _text(issue, "issue_type"),
        "tags": _texts(issue.get("labels")),
        "blockedBy": [other for other in waits if other in keys],
        "parent": parent if parent in keys else None,
        "notes": _text(issue, "notes"),
        "estimate": estimate(issue),
        "createdAt": moment(issue.get("created_at")),
        "completedAt": moment(issue.get("closed_at")),
        "externalId": _text(issue, "external_ref"),
    }
    fields = {name: it for name, it in fields.items() if it not in (None, "", [])}
    return Item(key, fields, thinned(issue, fields, PLAIN))


def status(issue: Issue, lost: list[str]) -> str:
    """Its status with us. Gates wait for something else than work."""
    said = _text(issue, "status") or "open"
    if said == "closed":
        return "cancelled" if issue.get("close_reason") == CANCELLED else "done"
    if issue.get("issue_type") == "gate":
        return "blocked"
    if said not in STATUSES:
        lost.append(f"{issue['id']}: the status {said!r:.40} is taken for blocked")
    return STATUSES.get(said, "blocked")


def links(issue: Issue) -> tuple[list[str], str | None]:
    """Whom an issue waits for, and its parent."""
    found = issue.get("dependencies")
    waits: dict[str, None] = {}
    parent = None
    for link in found if isinstance(found, list) else ():
        other = link.get("depends_on_id") if isinstance(link, dict) else None
        if isinstance(other, str) and other != issue["id"]:
            kind = _text(link, "type") or "blocks"
            if kind in WAITS:
                waits[other] = None
            elif kind == "parent-child":
                parent = parent or other
    return list(waits), parent


def composed(issue: Issue) -> str:
    """All that an agent must read: the description, the design and the acceptance criteria."""
    parts = [_text(issue, "description")]
    for name, head in (("design", "Design"), ("acceptance_criteria", "Acceptance criteria")):
        if text := _text(issue, name):
            parts.append(f"{head}:\n{text}")
    return "\n\n".join(part for part in parts if part)


def estimate(issue: Issue) -> str | None:
    """Minutes, as our estimates have times."""
    minutes = issue.get("estimated_minutes")
    return f"{minutes}m" if type(minutes) is int and minutes > 0 else None


def _text(issue: Issue, name: str) -> str:
    found = issue.get(name)
    return found if isinstance(found, str) else ""


def _texts(found: object) -> list[str]:
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


FORMAT = Beads(lambda: datetime.now(UTC))
