"""Tasks as lines of beads' `issues.jsonl`."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ralph.adapters.formats.base import Writing
from ralph.adapters.formats.beads import (
    CANCELLED,
    NAME,
    PLAIN,
    composed,
    estimate,
    links,
    status,
)
from ralph.adapters.formats.json_lists import dumped, thickened
from ralph.adapters.formats.records import (
    Losses,
    Record,
    kept_of,
    keys_of,
    moment,
    priority_of,
    status_of,
    text_of,
    texts_of,
)

_TYPES = frozenset({"bug", "feature", "task", "epic", "chore", "decision", "message", "molecule"})
_TYPES |= {"gate", "spike", "story", "milestone"}
_STATUSES = {"pending": "open", "in_progress": "in_progress", "blocked": "blocked"}
_STATUSES |= {"review": "in_progress", "done": "closed", "cancelled": "closed"}
_TIME = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhd])")
_MINUTES = {"s": 1 / 60, "m": 1, "h": 60, "d": 24 * 60}
_LOST = ("completion", "limits", "externalUrl")
_LOWEST = 4
Issue = dict[str, Any]


def written(tasks: Sequence[Record], root: Mapping[str, Any], now: str) -> Writing:
    """All tasks as a list; the issues that are no tasks stand where they stood."""
    losses = Losses()
    writer = _Writer(tasks, losses, now)
    lines = [dumped(writer.issue(record), compact=True) for record in tasks]
    if root.get("escaped"):
        lines = [_escaped(line) for line in lines]
    others = root.get("others")
    woven = _woven(lines, dict(others) if isinstance(others, list) else {})
    return Writing("".join(f"{line}\n" for line in woven), losses.words())


def _woven(lines: Sequence[str], others: dict[int, str]) -> list[str]:
    """The lines, with the others at the places they had."""
    woven: list[str] = []
    for line in lines:
        while len(woven) in others:
            woven.append(others.pop(len(woven)))
        woven.append(line)
    return woven + [line for _, line in sorted(others.items())]


def _escaped(line: str) -> str:
    """As Go writes them by default."""
    return line.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


class _Writer:
    """Makes issues of records that know of each other."""

    def __init__(self, tasks: Sequence[Record], losses: Losses, now: str) -> None:
        self.keys = keys_of(tasks, NAME)
        self.known = set(self.keys.values())
        self.parents = {str(record["id"]): text_of(record, "parent") for record in tasks}
        self.top = max([0, *map(priority_of, tasks)])
        self.losses = losses
        self.now = now

    def issue(self, record: Record) -> Issue:
        kept = kept_of(record, NAME)
        before = self._new(record) if kept is None else thickened(kept, record, PLAIN)
        issue = dict(before)
        issue["id"] = self.keys[str(record["id"])]
        self._texts(record, issue)
        self._status(record, issue)
        self._priority(record, issue, is_new=kept is None)
        self._links(record, issue)
        self._estimate(record, issue)
        if kept is not None and issue != before and "updated_at" in issue:
            issue["updated_at"] = moment(record.get("updatedAt")) or self.now
        self.losses.fields(record, _LOST)
        return issue

    def _new(self, record: Record) -> Issue:
        kind = text_of(record, "type") or "task"
        if kind not in _TYPES:
            self.losses.add(f"type {kind} (written as task)", str(record["id"]))
            kind = "task"
        created = moment(record.get("createdAt")) or self.now
        issue: Issue = {"id": "", "title": text_of(record, "title") or str(record["id"])}
        for name in ("description", "design", "acceptance_criteria"):
            issue[name] = ""
        issue |= {"notes": text_of(record, "notes"), "status": "open", "priority": None}
        issue |= {"issue_type": kind, "created_at": created}
        issue["updated_at"] = moment(record.get("updatedAt")) or created
        issue |= {"external_ref": text_of(record, "externalId")}
        issue |= {"labels": list(texts_of(record, "tags"))}
        return {name: it for name, it in issue.items() if it not in ("", []) or name == "id"}

    def _texts(self, record: Record, issue: Issue) -> None:
        text = text_of(record, "description")
        if composed(issue) == text:
            return
        text, criteria = _cut(text, "Acceptance criteria:\n")
        text, design = _cut(text, "Design:\n")
        parts = {"description": text, "design": design, "acceptance_criteria": criteria}
        issue |= {name: part for name, part in parts.items() if part or name in issue}

    def _status(self, record: Record, issue: Issue) -> None:
        said = status_of(record)
        if said == status({"id": "", **issue}, []):
            return
        if said == "review":
            self.losses.add("status review (written as in_progress)", str(record["id"]))
        issue["status"] = _STATUSES.get(said, "open")
        if issue["status"] != "closed":
            issue.pop("closed_at", None)
            issue.pop("close_reason", None)
            return
        issue["closed_at"] = moment(record.get("completedAt")) or self.now
        issue["close_reason"] = CANCELLED if said == "cancelled" else "Completed"

    def _priority(self, record: Record, issue: Issue, *, is_new: bool) -> None:
        """0 is the most urgent with them, higher with us."""
        ours = priority_of(record)
        if not is_new and self.top == 0 and ours == -(issue.get("priority") or 0):
            return
        wanted = self.top - ours
        issue["priority"] = min(max(wanted, 0), _LOWEST)
        if wanted > _LOWEST:
            self.losses.add(f"priorities below {_LOWEST} (written as {_LOWEST})", str(record["id"]))

    def _links(self, record: Record, issue: Issue) -> None:
        waits, parent = links(issue)
        wanted = [self._key(one, record) for one in texts_of(record, "blockedBy")]
        above = self.parents[str(record["id"])]
        over = self._key(above, record) if above else None
        have = issue.get("dependencies")
        have = list(have) if isinstance(have, list) else []
        # What is not in this list is no business of ours.
        gone = {one for one in waits if one in self.known and one not in wanted}
        if parent != over and (over or parent in self.known):
            gone |= {parent} if parent else set()
            new = [(over, "parent-child")] if over else []
        else:
            new = []
        new += [(one, "blocks") for one in wanted if one and one not in waits]
        if gone or new:
            have = [link for link in have if not _is_to(link, gone)]
            issue["dependencies"] = have + [self._link(issue, *one) for one in new]

    def _key(self, task: str, record: Record) -> str | None:
        if task not in self.keys:
            self.losses.add("blockers and parents that are not in this list", str(record["id"]))
        return self.keys.get(task)

    def _link(self, issue: Issue, other: str, kind: str) -> Issue:
        link = {"issue_id": issue["id"], "depends_on_id": other, "type": kind}
        return {**link, "created_at": self.now, "created_by": "ralph"}

    def _estimate(self, record: Record, issue: Issue) -> None:
        said = record.get("estimate")
        if said == estimate(issue) or said in (None, ""):
            return
        found = _TIME.fullmatch(said) if isinstance(said, str) else None
        minutes = round(float(found[1]) * _MINUTES[found[2]]) if found else 0
        if minutes:
            issue["estimated_minutes"] = minutes
        else:
            self.losses.add("estimate", str(record["id"]))


def _cut(text: str, head: str) -> tuple[str, str]:
    """A text, and what stands in it behind this line at the beginning of a paragraph."""
    before, found, rest = text.rpartition(head)
    if not found or (before and not before.endswith("\n\n")):
        return text, ""
    return before.removesuffix("\n\n"), rest


def _is_to(link: object, others: set[str]) -> bool:
    return isinstance(link, dict) and link.get("depends_on_id") in others
