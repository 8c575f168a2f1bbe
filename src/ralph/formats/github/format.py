"""GitHub's issues: the JSON of `gh issue list --json ...` and `gh issue view --json ...`, from a
file or from `gh` itself."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ralph.errors import ConfigError
from ralph.files.json_edit import Item as Place
from ralph.formats.base import TaskList, Writing
from ralph.formats.github.fields import (
    NAME,
    is_closed,
    is_issue,
    issues_in,
    item_of,
    keys_in,
)
from ralph.formats.json_lists import all_are, first_place, items, parsed, with_members
from ralph.text.timestamps import iso

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
        return all_are(text, is_issue)

    def read(self, text: str, name: str) -> TaskList:
        found = parsed(text)
        issues = found if isinstance(found, list) else [found]
        lost: list[str] = []
        keys = keys_in(issues_in(issues))
        known = set(keys)
        made = tuple(item_of(*one, known, lost) for one in zip(keys, issues, strict=True))
        root: dict[str, Any] = {} if isinstance(found, list) else {"single": True}
        if "\n" not in text.strip():
            root["compact"] = True
        return TaskList(made, root if made else {}, tuple(lost))

    def write(self, tasks: Sequence[Mapping[str, Any]], root: Mapping[str, Any]) -> Writing:
        from ralph.formats.github.write import written

        return written(tasks, root, iso(self._now()))

    def marked(self, text: str, keys: Collection[str], done: bool) -> str:
        at, found = first_place(text), parsed(text)
        whole = Place("", at, at, len(text.rstrip()), found)
        places = items(text, at) if isinstance(found, list) else [whole]
        issues = issues_in([place.content for place in places])
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
