"""The fields of GitHub's issues, as tasks have them."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ralph.formats.base import ListedTask, is_id, leading_id, urgency
from ralph.formats.json_lists import thinned
from ralph.formats.records import MEMBER, NOTHING, Names, from_beside, moment

NAME = "github"
PLAIN = {"title": "title", "body": "description", "url": "externalUrl"}
_URL = re.compile(r"https?://[^/\s]+/([^/\s]+/[^/\s]+)/(?:issues|pull)/[0-9]+(?:[/?#].*)?")
_STATES = {"OPEN": "pending", "CLOSED": "done"}
_DROPPED = ("NOT_PLANNED", "DUPLICATE")
_BULLET = r"^[ \t]*(?:[-*+>][ \t]+)?(?:\[[ xX]\][ \t]+)?(?:\*\*|__)?"
_WAITS = re.compile(rf"{_BULLET}(?:blocked by|depends on)\b(.*)$", re.IGNORECASE | re.MULTILINE)
_PARENT = re.compile(rf"{_BULLET}(?:part of|parent)\b(.*)$", re.IGNORECASE | re.MULTILINE)
_REFERENCE = re.compile(
    r"https?://[^/\s]{1,100}/([\w.-]{1,100}/[\w.-]{1,100})/issues/([0-9]{1,12})"
    r"|(?<![\w/.-])((?:[\w.-]{1,100}/[\w.-]{1,100})?)#([0-9]{1,12})\b"
    r"|(?<![\w/.#-])([A-Za-z][\w.]{0,60}-[\w.-]{0,60})"
)
Issue = Mapping[str, Any]


def is_issue(issue: Issue) -> bool:
    """True if it has what `gh` shows, and a state that it shows."""
    known = not issue.keys().isdisjoint({"number", "url", "labels", "body"})
    return known and isinstance(issue.get("title"), str) and _state(issue) in _STATES


def issues_in(issues: Sequence[object]) -> list[Issue]:
    """The issues; ValueError for what is none."""
    found: list[Issue] = []
    for number, issue in enumerate(issues, 1):
        if not isinstance(issue, dict):
            raise ValueError(f"item {number}: an issue is an object, in braces")
        if not isinstance(issue.get("title"), str) or not issue["title"].strip():
            raise ValueError(f"item {number}: title must be a text")
        if _state(issue) not in _STATES:
            raise ValueError(f"item {number}: state must be OPEN or CLOSED")
        if type(issue.get("number", 0)) is not int:
            raise ValueError(f"item {number}: number must be a whole number")
        found.append(issue)
    return found


def _state(issue: Issue) -> str:
    state = issue.get("state")
    return state.upper() if isinstance(state, str) else ""


def is_closed(issue: Issue) -> bool:
    return _state(issue) == "CLOSED"


def repository(issue: Issue) -> str:
    """`owner/name` of the issue, "" if nothing says it."""
    url = issue.get("url")
    found = _URL.fullmatch(url) if isinstance(url, str) else None
    return found[1] if found else ""


def keys_in(issues: Sequence[Issue]) -> list[str]:
    """`owner/name#12`, or `#12` without a URL; the id in its title, or that, without a number."""
    numbered = [f"{repository(one)}#{one['number']}" for one in issues if "number" in one]
    if twice := [key for key, count in Counter(numbered).items() if count > 1]:
        raise ValueError(f"{twice[0]} is there twice")
    rest = Counter(leading_id(one["title"])[0] for one in issues if "number" not in one)
    names = Names({name for name, count in rest.items() if count == 1})
    keys: list[str] = []
    for issue in issues:
        name = leading_id(issue["title"])[0]
        if "number" in issue:
            keys.append(f"{repository(issue)}#{issue['number']}")
        else:
            keys.append(name if name and rest[name] == 1 else names.free(f"/{issue['title']}"))
    return keys


def item_of(key: str, issue: Issue, known: set[str], lost: list[str]) -> ListedTask:
    waits, parent = links(issue)
    strangers = [other for other in waits if other not in known and "#" in other]
    lost += [f"{key} waits for {other}, which is not in this list" for other in strangers]
    title, numbered = issue["title"], "number" in issue
    name, at = leading_id(title)
    fields = {
        "title": title[at:] if not numbered and name == key else title,
        "description": described(issue),
        "status": status(issue),
        "priority": urgency_of(labels(issue)),
        "tags": labels(issue),
        "blockedBy": [other for other in waits if other in known and other != key],
        "parent": parent if parent in known and parent != key else None,
        "createdAt": moment(issue.get("createdAt")),
        "completedAt": moment(issue.get("closedAt")),
        "externalId": key if numbered else None,
        "externalUrl": issue.get("url") if isinstance(issue.get("url"), str) else None,
    }
    fields |= from_beside(issue.get(MEMBER), held_in(issue), key, status(issue))
    fields = {name: it for name, it in fields.items() if it not in NOTHING}
    return ListedTask(key, fields, thinned(issue, fields, PLAIN))


def held_in(issue: Issue) -> set[str]:
    """The fields of ours that an issue says by itself, of those that it might not."""
    held = {"tags", "parent"}
    held |= {"externalId"} if "number" in issue else set()
    return held | ({"externalUrl"} if issue.get("url") else set())


def status(issue: Issue) -> str:
    dropped = str(issue.get("stateReason") or "").upper() in _DROPPED
    return "cancelled" if is_closed(issue) and dropped else _STATES[_state(issue)]


def described(issue: Issue) -> str:
    """Its body, with the line ends of everybody else."""
    body = issue.get("body")
    return body.replace("\r\n", "\n") if isinstance(body, str) else ""


def labels(issue: Issue) -> list[str]:
    found = issue.get("labels")
    if isinstance(found, dict):  # as the API's connections have them
        found = found.get("nodes")
    found = found if isinstance(found, list) else ()
    names = [one.get("name") if isinstance(one, dict) else one for one in found]
    return list(dict.fromkeys(name for name in names if isinstance(name, str) and name))


def urgency_of(names: Sequence[str]) -> int | None:
    """The highest priority that labels give; None if none does."""
    found = [number for name in names if (number := urgency(name)) is not None]
    return max(found, default=None)


def links(issue: Issue) -> tuple[list[str], str | None]:
    """The keys of those that an issue says it waits for, and of the one it is a part of."""
    text, home = described(issue), repository(issue)
    waits = [key for line in _WAITS.findall(text) for key in _references(line, home)]
    above = [key for line in _PARENT.findall(text) for key in _references(line, home)]
    return list(dict.fromkeys(waits)), above[0] if above else None


def _references(line: str, home: str) -> list[str]:
    keys: list[str] = []
    for url_home, url_number, other_home, number, name in _REFERENCE.findall(line):
        if is_id(name.rstrip(".-")):
            keys.append(name.rstrip(".-"))
        elif not name:
            keys.append(f"{url_home or other_home or home}#{url_number or number}")
    return keys
