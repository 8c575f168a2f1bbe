"""GitHub's issues: the JSON of `gh issue list --json ...` and `gh issue view --json ...`, from a
file or from `gh` itself."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ralph.files.json_edit import Item as Place
from ralph.formats.base import (
    OPTIONAL,
    PRIORITIES,
    ListedTask,
    TaskList,
    Writing,
    is_id,
    leading_id,
    urgency,
)
from ralph.formats.json_lists import (
    all_are,
    dumped,
    first_place,
    items,
    listed_task,
    parsed,
    thickened,
    with_members,
)
from ralph.formats.records import (
    MEMBER,
    Losses,
    Names,
    Record,
    beside,
    from_beside,
    list_of,
    moment,
    names_for,
    priority_of,
    source_of,
    status_of,
    text_of,
    texts_of,
)
from ralph.kernel.tasks.task import Status
from ralph.kernel.value import value
from ralph.text.timestamps import iso

_NAME = "github"
_PLAIN = {"title": "title", "body": "description", "url": "externalUrl"}
_STATES = {"OPEN": "pending", "CLOSED": "done"}
_WORDS = {number: word.lower() for number, word in PRIORITIES.items()} | {OPTIONAL: "lowest"}
_URL = re.compile(r"https?://[^/\s]+/([^/\s]+/[^/\s]+)/(?:issues|pull)/[0-9]+(?:[/?#].*)?")
_BULLET = r"^[ \t]*(?:[-*+>][ \t]+)?(?:\[[ xX]\][ \t]+)?(?:\*\*|__)?"
_WAITS = re.compile(rf"{_BULLET}(?:blocked by|depends on)\b(.*)$", re.IGNORECASE | re.MULTILINE)
_PARENT = re.compile(rf"{_BULLET}(?:part of|parent)\b(.*)$", re.IGNORECASE | re.MULTILINE)
_REFERENCE = re.compile(
    r"https?://[^/\s]{1,100}/([\w.-]{1,100}/[\w.-]{1,100})/issues/([0-9]{1,12})"
    r"|(?<![\w/.-])((?:[\w.-]{1,100}/[\w.-]{1,100})?)#([0-9]{1,12})\b"
    r"|(?<![\w/.#-])([A-Za-z][\w.]{0,60}-[\w.-]{0,60})"
)
Issue = dict[str, Any]


@value
class GitHub:
    """Issues as `gh` shows them. `now` is the time at which one is closed in a file."""

    now: Callable[[], datetime]
    name = _NAME
    nests = True  # it says what is a part of what

    def fits(self, name: str, text: str) -> bool:
        return all_are(text, _is_issue)

    def read(self, text: str, name: str) -> TaskList:
        found = parsed(text)
        issues = _checked(found if isinstance(found, list) else [found])
        lost: list[str] = []
        keys = _keys_in(issues)
        known = set(keys)
        made = tuple(_read(*one, known, lost) for one in zip(keys, issues, strict=True))
        root: dict[str, Any] = {} if isinstance(found, list) else {"single": True}
        if "\n" not in text.strip():
            root["compact"] = True
        return TaskList(made, root if made else {}, tuple(lost))

    def write(self, tasks: Sequence[Record], root: Mapping[str, Any]) -> Writing:
        """All tasks as one list, or as one object if they were one."""
        losses = Losses()
        writer = _Writer(tasks, losses, iso(self.now()))
        issues: list[Issue] = [writer.issue(record) for record in tasks]
        losses.strangers(tasks, writer.keys)
        losses.statuses(tasks, (Status.PENDING, Status.DONE, Status.CANCELLED), "open")
        losses.kept(tasks, _NAME)
        alone = root.get("single") and len(issues) == 1
        text = dumped(issues[0] if alone else issues, compact=bool(root.get("compact")))
        return Writing(f"{text}\n", losses.words())

    def marked(self, text: str, keys: Collection[str], done: bool) -> str:
        at, found = first_place(text), parsed(text)
        whole = Place("", at, at, len(text.rstrip()), found)
        places = items(text, at) if isinstance(found, list) else [whole]
        issues = _checked([place.content for place in places])
        state = "CLOSED" if done else "OPEN"
        changes = []
        for key, issue, place in zip(_keys_in(issues), issues, places, strict=True):
            if key in keys and (_state(issue) == "CLOSED") is not done:
                wanted: dict[str, object] = {
                    "state": state if str(issue["state"]).isupper() else state.lower(),
                    "closedAt": f"{iso(self.now())[:19]}Z" if done else None,
                    "stateReason": "COMPLETED" if done else "",
                    "closed": done,
                }
                changes.append((place, {name: it for name, it in wanted.items() if name in issue}))
        return with_members(text, changes)


def _is_issue(issue: Record) -> bool:
    """True if it has what `gh` shows, and a state that it shows."""
    known = not issue.keys().isdisjoint({"number", "url", "labels", "body"})
    return known and isinstance(issue.get("title"), str) and _state(issue) in _STATES


def _checked(issues: Sequence[object]) -> list[Issue]:
    """The issues; ValueError for what is none."""
    found: list[Issue] = []
    for number, issue in enumerate(issues, 1):
        if not isinstance(issue, dict):
            raise ValueError(f"item {number}: an issue is an object, in braces")
        if not text_of(issue, "title").strip():
            raise ValueError(f"item {number}: title must be a text")
        if _state(issue) not in _STATES:
            raise ValueError(f"item {number}: state must be OPEN or CLOSED")
        if type(issue.get("number", 0)) is not int:
            raise ValueError(f"item {number}: number must be a whole number")
        found.append(issue)
    return found


def _keys_in(issues: Sequence[Issue]) -> list[str]:
    """`owner/name#12`, or `#12` without a URL; the id in its title, or that, without a number."""
    rest = Counter(leading_id(one["title"])[0] for one in issues if "number" not in one)
    names = Names({name for name, count in rest.items() if count == 1})
    keys: list[str] = []
    for issue in issues:
        name = leading_id(issue["title"])[0]
        if "number" in issue:
            keys.append(f"{_repository(issue)}#{issue['number']}")
        else:
            keys.append(name if name and rest[name] == 1 else names.free(f"/{issue['title']}"))
    if twice := [key for key, count in Counter(keys).items() if count > 1]:
        raise ValueError(f"{twice[0]} is there twice")
    return keys


def _read(key: str, issue: Issue, known: set[str], lost: list[str]) -> ListedTask:
    waits, parent = _links(issue)
    strangers = [other for other in waits if other not in known and "#" in other]
    lost += [f"{key} waits for {other}, which is not in this list" for other in strangers]
    title, numbered = issue["title"], "number" in issue
    name, at = leading_id(title)
    fields = {
        "title": title[at:] if not numbered and name == key else title,
        "description": _body(issue),
        "status": _status(issue),
        "priority": _urgency(_labels(issue)),
        "tags": _labels(issue),
        "blockedBy": [other for other in waits if other in known and other != key],
        "parent": parent if parent in known and parent != key else None,
        "createdAt": moment(issue.get("createdAt")),
        "completedAt": moment(issue.get("closedAt")),
        "externalId": key if numbered else None,
        "externalUrl": text_of(issue, "url"),
    }
    fields |= from_beside(issue.get(MEMBER), _held_in(issue), key, _status(issue))
    return listed_task(key, issue, fields, _PLAIN)


def _held_in(issue: Issue) -> set[str]:
    """The fields of ours that an issue says by itself, of those that it might not."""
    held = {"tags", "parent"}
    held |= {"externalId"} if "number" in issue else set()
    return held | ({"externalUrl"} if issue.get("url") else set())


def _state(issue: Record) -> str:
    return text_of(issue, "state").upper()


def _status(issue: Issue) -> str:
    dropped = str(issue.get("stateReason") or "").upper() in ("NOT_PLANNED", "DUPLICATE")
    status = _STATES[_state(issue)]
    return "cancelled" if status == "done" and dropped else status


def _repository(issue: Issue) -> str:
    """`owner/name` of the issue, "" if nothing says it."""
    found = _URL.fullmatch(text_of(issue, "url"))
    return found[1] if found else ""


def _body(issue: Issue) -> str:
    """Its body, with the line ends of everybody else."""
    return text_of(issue, "body").replace("\r\n", "\n")


def _labels(issue: Issue) -> list[str]:
    found = issue.get("labels")
    if isinstance(found, dict):  # as the API's connections have them
        found = found.get("nodes")
    found = found if isinstance(found, list) else ()
    names = [one.get("name") if isinstance(one, dict) else one for one in found]
    return list(dict.fromkeys(name for name in names if isinstance(name, str) and name))


def _urgency(names: Sequence[str]) -> int | None:
    """The highest priority that labels give; None if none does."""
    found = [number for name in names if (number := urgency(name)) is not None]
    return max(found, default=None)


def _links(issue: Issue) -> tuple[list[str], str | None]:
    """The keys of those that an issue says it waits for, and of the one it is a part of."""
    text, home = _body(issue), _repository(issue)
    waits, above = (
        [key for line in pattern.findall(text) for key in _references(line, home)]
        for pattern in (_WAITS, _PARENT)
    )
    return list(dict.fromkeys(waits)), above[0] if above else None


def _references(line: str, home: str) -> list[str]:
    keys: list[str] = []
    for url_home, url_number, other_home, number, name in _REFERENCE.findall(line):
        if is_id(name.rstrip(".-")):
            keys.append(name.rstrip(".-"))
        elif not name:
            keys.append(f"{url_home or other_home or home}#{url_number or number}")
    return keys


class _Writer:
    """Makes issues of records that know of each other."""

    def __init__(self, tasks: Sequence[Record], losses: Losses, now: str) -> None:
        self.keys = names_for(tasks, _NAME)
        self.known = set(self.keys.values())
        self.losses = losses
        self.now = now

    def issue(self, record: Record) -> Issue:
        issue: Issue = {"title": "", "body": "", "state": "OPEN", "labels": []}
        if source_of(record, _NAME):
            issue = thickened(record, _NAME, _PLAIN)
            issue["title"] = self._title(record, "number" in issue)
        else:
            issue["title"] = self._title(record, False) or str(record["id"])
            if created := moment(record.get("createdAt")):
                issue["createdAt"] = created
        if _body(issue) != text_of(record, "description"):
            issue["body"] = text_of(record, "description")
        self._state(record, issue)
        self._labels(record, issue)
        self._links(record, issue)
        exact = priority_of(record) == (_urgency(_labels(issue)) or 0)
        held = _held_in(issue) | ({"priority"} if exact else set())
        ours = beside(record, held, self.keys, _status(issue))
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
        if said == _status(issue):
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
        if ours != (_urgency(wanted) or 0):  # one must say how urgent it is
            wanted = [name for name in wanted if urgency(name) is None]
            number = min(max(ours, OPTIONAL), max(_WORDS))
            wanted += [f"priority: {_WORDS[number]}"] if number in _WORDS else []
        if wanted != _labels(issue):
            labels = [one for one in list_of(issue, "labels") if isinstance(one, dict)]
            have = {text_of(one, "name"): one for one in labels}
            issue["labels"] = [have.get(name, {"name": name}) for name in wanted]

    def _links(self, record: Record, issue: Issue) -> None:
        """Add lines at the end of the body for those that it does not name."""

        def named(key: str) -> str:
            home, _, number = key.rpartition("#")
            return f"#{number}" if number.isdigit() and home == _repository(issue) else key

        waits, parent = _links(issue)
        task = str(record["id"])
        wanted = [self.keys[one] for one in texts_of(record, "blockedBy") if one in self.keys]
        above = self.keys.get(text_of(record, "parent"))
        lines = [f"Blocked by {named(one)}" for one in wanted if one not in waits]
        if above and parent != above:
            lines.append(f"Part of {named(above)}")
        if any(one in self.known and one not in wanted and one != self.keys[task] for one in waits):
            self.losses.add("that it waits no more for what its body names", task)
        if lines:
            body = _body(issue)
            issue["body"] = (f"{body}\n\n" if body else "") + "\n".join(lines)


FORMAT = GitHub(lambda: datetime.now(UTC))
