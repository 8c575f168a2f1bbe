"""GitHub's issues: the JSON of `gh issue list --json ...` and `gh issue view --json ...`, from a
file or from `gh` itself."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ralph.adapters.formats.base import ListedTask, TaskList, Writing, is_id, leading_id, urgency
from ralph.adapters.formats.json_lists import (
    all_are,
    first_place,
    items,
    parsed,
    thinned,
    with_members,
)
from ralph.adapters.formats.records import MEMBER, NOTHING, Names, from_beside, moment
from ralph.core.json_text import Item as Place
from ralph.core.timestamps import iso
from ralph.errors import ConfigError

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
FIELDS = "number,title,body,state,labels,assignees,milestone,url,createdAt,updatedAt,closedAt"
FIELDS += ",stateReason"
STATES = ("open", "closed", "all")
MOST = 10_000  # issues
Run = Callable[[Sequence[str]], tuple[int, str, str]]  # argv in; exit code, output, errors out
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}/[A-Za-z0-9_.][A-Za-z0-9_.-]{0,99}")
_NOT_FOUND = 127
_NOT_LOGGED_IN = 4


class GitHub:
    """Issues as `gh` shows them. `now` is the time at which one is closed in a file."""

    name = NAME

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now

    def fits(self, name: str, text: str) -> bool:
        return all_are(text, _is_issue)

    def read(self, text: str, name: str) -> TaskList:
        found = parsed(text)
        issues = found if isinstance(found, list) else [found]
        lost: list[str] = []
        keys = keys_in(_checked(issues))
        known = set(keys)
        made = tuple(_item(*one, known, lost) for one in zip(keys, issues, strict=True))
        root: dict[str, Any] = {} if isinstance(found, list) else {"single": True}
        if "\n" not in text.strip():
            root["compact"] = True
        return TaskList(made, root if made else {}, tuple(lost))

    def write(self, tasks: Sequence[Mapping[str, Any]], root: Mapping[str, Any]) -> Writing:
        from ralph.adapters.formats.github_write import written

        return written(tasks, root, iso(self._now()))

    def marked(self, text: str, keys: Collection[str], done: bool) -> str:
        at, found = first_place(text), parsed(text)
        whole = Place("", at, at, len(text.rstrip()), found)
        places = items(text, at) if isinstance(found, list) else [whole]
        issues = _checked([place.content for place in places])
        state = "CLOSED" if done else "OPEN"
        changes = []
        for key, place in zip(keys_in(issues), places, strict=True):
            issue = place.content
            if key in keys and is_closed(issue) is not done:
                wanted: dict[str, object] = {
                    "state": state if str(issue["state"]).isupper() else state.lower(),
                    "closedAt": f"{iso(self._now())[:19]}Z" if done else None,
                    "stateReason": "COMPLETED" if done else "",
                    "closed": done,
                }
                changes.append((place, {name: it for name, it in wanted.items() if name in issue}))
        return with_members(text, changes)


def _is_issue(issue: Issue) -> bool:
    """True if it has what `gh` shows, and a state that it shows."""
    known = not issue.keys().isdisjoint({"number", "url", "labels", "body"})
    return known and isinstance(issue.get("title"), str) and _state(issue) in _STATES


def _checked(issues: Sequence[object]) -> list[Issue]:
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


def _item(key: str, issue: Issue, known: set[str], lost: list[str]) -> ListedTask:
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


# ------------------------------------------------------------------ from gh itself


def fetch(repo: str, *, labels: Sequence[str], state: str, run: Run) -> str:
    """The output of `gh issue list` for a repository, as JSON; ConfigError with what to type if it
    cannot. `run` may raise OSError for a program that is not there."""
    checked(repo)
    if state not in STATES:
        raise ConfigError(f"{state!r:.40} is no state of issues", "Say open, closed or all")
    argv = ["gh", "issue", "list", f"--repo={repo}", f"--state={state}", f"--limit={MOST}"]
    argv.append(f"--json={FIELDS}")
    for label in labels:  # one field of comma separated values, which is how gh reads it
        quoted = label.replace('"', '""')
        argv.append(f'--label="{quoted}"' if set(label) & set(',"\n') else f"--label={label}")
    try:
        code, out, err = run(argv)
    except OSError as error:
        raise _missing(str(error.strerror or error)) from None
    if code == 0:
        return out
    raise _failed(repo, code, err)


def checked(repo: str) -> str:
    """The name of a repository; ConfigError for what is none."""
    if not _REPOSITORY.fullmatch(repo):
        raise ConfigError(
            f"{repo!r:.80} is no repository", "Say which: ralph tasks import github:owner/name"
        )
    return repo


def _missing(why: str) -> ConfigError:
    return ConfigError(
        f"gh, with which GitHub's issues are read, cannot be started: {why}",
        "Install it (https://cli.github.com), then: gh auth login",
    )


def _failed(repo: str, code: int, err: str) -> ConfigError:
    lines = [line for line in err.splitlines() if line.strip()]
    if code == _NOT_FOUND:
        return _missing("not found")
    if code == _NOT_LOGGED_IN or "gh auth login" in err:
        return ConfigError("gh is not logged in at GitHub", "Type: gh auth login")
    said = lines[-1].strip()[:300] if lines else f"it ended with {code}"
    return ConfigError(
        f"gh cannot list the issues of {repo}: {said}",
        f"See what it says: gh issue list --repo {repo}. To log in again: gh auth login",
    )


FORMAT = GitHub(lambda: datetime.now(UTC))
