"""Tasks as lines of beads' `issues.jsonl`."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ralph.formats.base import Writing
from ralph.formats.beads.fields import (
    CANCELLED,
    NAME,
    PLAIN,
    composed,
    estimate,
    held_in,
    links,
    ours_in,
    status,
)
from ralph.formats.json_lists import dumped, parsed, thickened
from ralph.formats.losses import Losses
from ralph.formats.records import (
    MEMBER,
    Record,
    beside,
    kept_of,
    moment,
    names_for,
    notes_of,
    priority_of,
    source_of,
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
_LOWEST = 4
Issue = dict[str, Any]


def written(tasks: Sequence[Record], root: Mapping[str, Any], now: str) -> Writing:
    """All tasks as a list; the issues that are no tasks stand where they stood."""
    losses = Losses()
    writer = _Writer(tasks, losses, now)
    array = root.get("array")
    lines = [dumped(writer.issue(record), compact=array != "lines") for record in tasks]
    if root.get("escaped"):  # as Go writes them by default
        for sign, escape in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
            lines = [line.replace(sign, escape) for line in lines]
    others = dict(root.get("others") or ())
    if array == "lines":
        others = {n: dumped(parsed(issue)) for n, issue in others.items()}
    issues: list[str] = []
    for line in lines:
        while len(issues) in others:
            issues.append(others.pop(len(issues)))
        issues.append(line)
    issues += [line for _, line in sorted(others.items())]
    losses.strangers(tasks, writer.keys)
    losses.kept(tasks, NAME)
    text = "".join(f"{issue}\n" for issue in issues)
    if array == "line":
        text = f"[{','.join(issues)}]\n"
    elif array == "lines":
        inner = ",\n".join(issues).replace("\n", "\n  ")
        text = f"[\n  {inner}\n]\n" if issues else "[]\n"
    return Writing(text, losses.words())


class _Writer:
    """Makes issues of records that know of each other."""

    def __init__(self, tasks: Sequence[Record], losses: Losses, now: str) -> None:
        self.keys = names_for(tasks, NAME)
        self.known = set(self.keys.values())
        mine = (task for task in tasks if not _is_as_urgent_as_before(task))
        self.top = max([0, *map(priority_of, mine)])
        self.losses = losses
        self.now = now

    def issue(self, record: Record) -> Issue:
        is_new = not source_of(record, NAME)
        before = self._new(record) if is_new else thickened(kept_of(record, NAME), record, PLAIN)
        issue = dict(before)
        issue["id"] = self.keys[str(record["id"])]
        text = text_of(record, "description")
        if composed(issue) != text:
            text, criteria = _cut(text, "Acceptance criteria:\n")
            text, design = _cut(text, "Design:\n")
            parts = {"description": text, "design": design, "acceptance_criteria": criteria}
            issue |= {name: part for name, part in parts.items() if part or name in issue}
        self._status(record, issue)
        if not _is_as_urgent_as_before(record):
            wanted = self.top - priority_of(record)  # 0 is the most urgent with them
            issue["priority"] = min(max(wanted, 0), _LOWEST)
            if wanted > _LOWEST:
                self.losses.add(f"priorities below {_LOWEST} (written as {_LOWEST})", record["id"])
        self._links(record, issue)
        self._estimate(record, issue)
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

    def _links(self, record: Record, issue: Issue) -> None:
        waits, parent = links(issue)
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
        have = issue.get("dependencies")
        kept = [
            link
            for link in (have if isinstance(have, list) else ())
            if not isinstance(link, dict) or link.get("depends_on_id") not in gone
        ]
        ends = {"created_at": self.now, "created_by": "ralph"}
        issue["dependencies"] = kept + [
            {"issue_id": issue["id"], "depends_on_id": other, "type": kind, **ends}
            for other, kind in new
        ]

    def _estimate(self, record: Record, issue: Issue) -> None:
        said = record.get("estimate")
        found = _TIME.fullmatch(said) if isinstance(said, str) else None
        minutes = round(float(found[1]) * _MINUTES[found[2]]) if found else 0
        if minutes and said != estimate(issue):
            issue["estimated_minutes"] = minutes
        elif said and not minutes:
            issue.pop("estimated_minutes", None)

    def _beside(self, record: Record, issue: Issue) -> None:
        """Put into `metadata` what only we know."""
        held = held_in(issue)
        held |= {"type"} if text_of(record, "type") == issue.get("issue_type") else set()
        ours = beside(record, held, self.keys, status_of(record))
        if ours == (ours_in(issue) or {}):
            return
        metadata = issue.get("metadata") or {}
        if not isinstance(metadata, dict):
            self.losses.fields([ours | {"id": record["id"]}], list(ours))
            return
        rest = {name: held for name, held in metadata.items() if name != MEMBER}
        issue["metadata"] = rest | ({MEMBER: ours} if ours else {})


def _is_as_urgent_as_before(record: Record) -> bool:
    """True if its priority is still the one it has in a list of issues."""
    values = kept_of(record, NAME).get("values")
    there = values.get("priority") if isinstance(values, Mapping) else None
    return bool(source_of(record, NAME)) and priority_of(record) == -(there or 0)


def _cut(text: str, head: str) -> tuple[str, str]:
    """A text, and the rest of it behind this line at the beginning of a paragraph."""
    before, found, rest = text.rpartition(head)
    if not found or (before and not before.endswith("\n\n")):
        return text, ""
    return before.removesuffix("\n\n"), rest
