"""Tasks as the JSON of GitHub's issues."""

from collections.abc import Mapping, Sequence
from typing import Any

from ralph.formats.base import OPTIONAL, PRIORITIES, Writing, is_id, urgency
from ralph.formats.github.fields import (
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
from ralph.formats.json_lists import dumped, thickened
from ralph.formats.losses import Losses
from ralph.formats.records import (
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
from ralph.kernel.tasks.task import Status

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
        issue: Issue = {"title": "", "body": "", "state": "OPEN", "labels": []}
        if source_of(record, NAME):
            issue = thickened(kept_of(record, NAME), record, PLAIN)
            issue["title"] = self._title(record, "number" in issue)
        else:
            issue["title"] = self._title(record, False) or str(record["id"])
            if created := moment(record.get("createdAt")):
                issue["createdAt"] = created
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

    def _state(self, record: Record, issue: Issue) -> None:
        said = status_of(record)
        if said == status(issue):
            return
        if said not in ("done", "cancelled"):
            closed = {"closedAt": None, "stateReason": ""}
            issue |= {"state": "OPEN"} | {n: it for n, it in closed.items() if n in issue}
            return
        issue["state"] = "CLOSED"
        issue["closedAt"] = moment(record.get("completedAt")) or self.now
        if said == "cancelled" or "stateReason" in issue:
            issue["stateReason"] = "NOT_PLANNED" if said == "cancelled" else "COMPLETED"

    def _labels(self, record: Record, issue: Issue) -> None:
        wanted, ours = texts_of(record, "tags"), priority_of(record)
        if ours != (urgency_of(wanted) or 0):  # one must say how urgent it is
            wanted = [name for name in wanted if urgency(name) is None]
            number = min(max(ours, OPTIONAL), max(_WORDS))
            wanted += [f"priority: {_WORDS[number]}"] if number in _WORDS else []
        if wanted == labels(issue):
            return
        have = {}
        found = issue.get("labels")
        for one in found if isinstance(found, list) else ():
            if isinstance(one, dict) and isinstance(one.get("name"), str):
                have[one["name"]] = one
        issue["labels"] = [have.get(name, {"name": name}) for name in wanted]

    def _links(self, record: Record, issue: Issue) -> None:
        """Add lines at the end of the body for those that it does not name."""

        def named(key: str) -> str:
            home, _, number = key.rpartition("#")
            return f"#{number}" if number.isdigit() and home == repository(issue) else key

        waits, parent = links(issue)
        task = str(record["id"])
        wanted = [self.keys[one] for one in texts_of(record, "blockedBy") if one in self.keys]
        above = self.keys.get(text_of(record, "parent"))
        lines = [f"Blocked by {named(one)}" for one in wanted if one not in waits]
        if above and parent != above:
            lines.append(f"Part of {named(above)}")
        if any(one in self.known and one not in wanted and one != self.keys[task] for one in waits):
            self.losses.add("that it waits no more for what its body names", task)
        if lines:
            body = described(issue)
            issue["body"] = (f"{body}\n\n" if body else "") + "\n".join(lines)
