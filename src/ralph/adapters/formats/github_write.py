"""Tasks as the JSON of GitHub's issues."""

from collections.abc import Mapping, Sequence
from typing import Any

from ralph.adapters.formats.base import OPTIONAL, PRIORITIES, Writing, is_id, urgency
from ralph.adapters.formats.github import (
    NAME,
    PLAIN,
    described,
    held_in,
    labels,
    links,
    repository,
    status,
    urgency_of,
)
from ralph.adapters.formats.json_lists import dumped, thickened
from ralph.adapters.formats.losses import Losses
from ralph.adapters.formats.records import (
    MEMBER,
    Record,
    beside,
    kept_of,
    moment,
    names_for,
    priority_of,
    source_of,
    status_of,
    text_of,
    texts_of,
)
from ralph.core.task import Status

_WORDS = {number: word.lower() for number, word in PRIORITIES.items()} | {OPTIONAL: "lowest"}
Issue = dict[str, Any]


def written(tasks: Sequence[Record], root: Mapping[str, Any], now: str) -> Writing:
    """All tasks as one list, or as one object if they were one."""
    losses = Losses()
    writer = _Writer(tasks, losses, now)
    issues: list[Issue] = [writer.issue(record) for record in tasks]
    losses.strangers(tasks, writer.keys)
    losses.statuses(tasks, (Status.PENDING, Status.DONE, Status.CANCELLED), "open")
    losses.kept(tasks, NAME)
    alone = root.get("single") and len(issues) == 1
    text = dumped(issues[0] if alone else issues, compact=bool(root.get("compact")))
    return Writing(f"{text}\n", losses.words())


class _Writer:
    """Makes issues of records that know of each other."""

    def __init__(self, tasks: Sequence[Record], losses: Losses, now: str) -> None:
        self.keys = names_for(tasks, NAME)
        self.known = set(self.keys.values())
        self.losses = losses
        self.now = now

    def issue(self, record: Record) -> Issue:
        if source_of(record, NAME):
            issue = thickened(kept_of(record, NAME), record, PLAIN)
            issue["title"] = self._title(record, "number" in issue)
        else:
            issue = self._new(record)
        if described(issue) != text_of(record, "description"):
            issue["body"] = text_of(record, "description")
        self._state(record, issue)
        self._labels(record, issue)
        self._links(record, issue)
        exact = priority_of(record) == (urgency_of(labels(issue)) or 0)
        held = held_in(issue) | ({"priority"} if exact else set())
        ours = beside(record, held, self.keys, status(issue))
        if ours or MEMBER in issue:
            issue[MEMBER] = ours
        return issue

    def _title(self, record: Record, is_numbered: bool) -> str:
        """With its id in front where there is no number by which to find it."""
        title, name = text_of(record, "title"), self.keys[str(record["id"])]
        if is_numbered or name.startswith("/"):
            return title
        if not is_id(name):
            self.losses.add("id", name)
            return title
        return f"{name}: {title}"

    def _new(self, record: Record) -> Issue:
        issue: Issue = {"title": self._title(record, False) or str(record["id"]), "body": ""}
        issue |= {"state": "OPEN", "labels": []}
        if created := moment(record.get("createdAt")):
            issue["createdAt"] = created
        return issue

    def _state(self, record: Record, issue: Issue) -> None:
        said = status_of(record)
        if said == status(issue):
            return
        if said not in ("done", "cancelled"):
            issue |= {"state": "OPEN"} | _present(issue, {"closedAt": None, "stateReason": ""})
            return
        issue["state"] = "CLOSED"
        issue["closedAt"] = moment(record.get("completedAt")) or self.now
        if said == "cancelled":
            issue["stateReason"] = "NOT_PLANNED"
        else:
            issue |= _present(issue, {"stateReason": "COMPLETED"})

    def _labels(self, record: Record, issue: Issue) -> None:
        wanted = self._with_priority(record, texts_of(record, "tags"))
        if wanted == labels(issue):
            return
        found = issue.get("labels")
        have = {one["name"]: one for one in _objects(found)}
        issue["labels"] = [have.get(name, {"name": name}) for name in wanted]

    def _with_priority(self, record: Record, names: list[str]) -> list[str]:
        """The labels, and one that says how urgent it is if they do not."""
        ours = priority_of(record)
        if ours == (urgency_of(names) or 0):
            return names
        names = [name for name in names if urgency(name) is None]
        number = min(max(ours, OPTIONAL), max(_WORDS))
        return [*names, f"priority: {_WORDS[number]}"] if number in _WORDS else names

    def _links(self, record: Record, issue: Issue) -> None:
        """Lines at the end of the body for those that it does not name."""
        waits, parent = links(issue)
        task = str(record["id"])
        wanted = self._keys(texts_of(record, "blockedBy"))
        above = self._keys([text_of(record, "parent")])
        lines = [f"Blocked by {self._name(one, issue)}" for one in wanted if one not in waits]
        if above and parent != above[0]:
            lines.append(f"Part of {self._name(above[0], issue)}")
        if any(one in self.known and one not in wanted and one != self.keys[task] for one in waits):
            self.losses.add("that it waits no more for what its body names", task)
        if lines:
            body = described(issue)
            issue["body"] = (f"{body}\n\n" if body else "") + "\n".join(lines)

    def _keys(self, tasks: Sequence[str]) -> list[str]:
        return [self.keys[one] for one in tasks if one in self.keys]

    def _name(self, key: str, issue: Issue) -> str:
        home, _, number = key.rpartition("#")
        return f"#{number}" if number.isdigit() and home == repository(issue) else key


def _present(issue: Issue, changes: Issue) -> Issue:
    """Those of the changes whose members are there."""
    return {name: content for name, content in changes.items() if name in issue}


def _objects(found: object) -> list[dict[str, Any]]:
    return [
        one
        for one in (found if isinstance(found, list) else ())
        if isinstance(one, dict) and isinstance(one.get("name"), str)
    ]
