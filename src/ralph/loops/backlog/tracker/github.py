"""Reads and closes GitHub issues by its own command, `gh`, without a shell and in limited time."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ralph.errors import ConfigError
from ralph.kernel.verdict import Cut
from ralph.processes.child import Command, Starter, start
from ralph.text.plain import plain
from ralph.text.words import duration

_PATIENCE = 120.0  # seconds
_LARGEST = 256 << 20  # bytes of its answer
_NOT_FOUND, _LATE = 127, 124  # exit codes, as shells and `timeout` have them
_NOT_LOGGED_IN = 4  # gh's own
_MOST = 10_000  # issues
_FIELDS = "number,title,body,state,labels,assignees,milestone,url,createdAt,updatedAt,closedAt"
_FIELDS += ",stateReason"
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}/[A-Za-z0-9_.][A-Za-z0-9_.-]{0,99}")
_QUIET = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1", "GH_PAGER": ""}
Run = Callable[[Sequence[str]], tuple[int, str, str]]  # argv in; exit code, output, errors out


def runner(
    workspace: str,
    environ: Mapping[str, str],
    patience: float = _PATIENCE,
    *,
    starter: Starter = start,
) -> Run:
    """A function that runs commands there. Whatever goes wrong is an exit code and words."""

    def run(argv: Sequence[str]) -> tuple[int, str, str]:
        out, err = bytearray(), bytearray()
        command = Command(tuple(argv), workspace, {**environ, **_QUIET})

        def cut() -> Cut | None:
            if len(out) > _LARGEST:
                return Cut("it says too much", grace=1.0)
            late = Cut(f"it took longer than {duration(patience)}", grace=1.0)
            return late if child.seconds() >= patience else None

        try:
            child = starter(command, out.extend, err.extend)
            ended = child.wait(cut)
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error)
            return _NOT_FOUND, "", f"it cannot be run: {words}"
        if ended.cut is not None:
            return _LATE, "", ended.cut.why
        return ended.code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    return run


def issues(
    run: Run, repository: str, state: str, labels: Sequence[str], known: Iterable[str]
) -> tuple[str, str]:
    """The issues of a repository as JSON: those asked for, and the known ones that are no longer
    among them, since they may be closed. And what is missing. Raises ConfigError if gh fails."""
    listed = fetch(repository, labels=labels, state=state, run=run)
    try:
        found = json.loads(listed)
        there = {str(one["number"]) for one in found}
    except (ValueError, RecursionError, TypeError, KeyError):
        return listed, ""  # whoever reads it says what is wrong with it
    full = len(found) >= _MOST
    for number in known:
        if number not in there:
            text, _ = issue(run, repository, number)  # one that is gone is gone
            found += json.loads(text) if text else []
    words = f"issues behind the newest {_MOST}, for which gh was not asked; narrow it by --label"
    return json.dumps(found), words if full else ""


def fetch(repo: str, *, labels: Sequence[str], state: str, run: Run) -> str:
    """The output of `gh issue list` for a repository, as JSON; ConfigError if it fails."""
    if not _REPOSITORY.fullmatch(repo):
        remedy = "Say which: ralph tasks import github:owner/name"
        raise ConfigError(f"{repo!r:.80} is no repository", remedy)
    if state not in ("open", "closed", "all"):
        raise ConfigError(f"{state!r:.40} is no state of issues", "Say open, closed or all")
    argv = ["gh", "issue", "list", f"--repo={repo}", f"--state={state}", f"--limit={_MOST}"]
    argv.append(f"--json={_FIELDS}")
    for label in labels:  # one field of comma separated values, which is how gh reads it
        quoted = label.replace('"', '""')
        argv.append(f'--label="{quoted}"' if set(label) & set(',"\n') else f"--label={label}")
    code, out, err = run(argv)
    if code == 0:
        return out
    if code == _NOT_FOUND:
        raise ConfigError(
            "gh, with which GitHub's issues are read, cannot be started: not found",
            "Install it (https://cli.github.com), then: gh auth login",
        )
    if code == _NOT_LOGGED_IN or "gh auth login" in err:
        raise ConfigError("gh is not logged in at GitHub", "Type: gh auth login")
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    said = lines[-1][:300] if lines else f"it ended with {code}"
    raise ConfigError(
        f"gh cannot list the issues of {repo}: {said}",
        f"See what it says: gh issue list --repo {repo}. To log in again: gh auth login",
    )


def issue(run: Run, repository: str, number: str) -> tuple[str, str]:
    """One issue as JSON, and why that cannot be had."""
    argv = ["gh", "issue", "view", number, f"--repo={repository}", f"--json={_FIELDS}"]
    code, text, err = run(argv)
    if code:
        return "", _trouble(code, err)
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return "", "gh said no JSON"
    return json.dumps([found]), ""


def turn(run: Run, repository: str, number: str, *, done: bool, comment: str) -> str:
    """Close an issue, or open it again, with a comment; why that failed, or ""."""
    verb = "close" if done else "reopen"
    where = (f"--repo={repository}", f"--comment={comment}")
    code, _, err = run(["gh", "issue", verb, number, *where])
    return _trouble(code, err) if code else ""


def _trouble(code: int, err: str) -> str:
    """The error of gh: the last thing it said."""
    last = [line for line in err.splitlines() if line.strip()][-1:]
    return ": ".join((f"gh failed ({code})", *(plain(line.strip()) for line in last)))
