"""GitHub's issues by its own command, `gh`: an argument vector, no shell, and a time limit."""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ralph.adapters.process import Command, start
from ralph.core.plain import plain
from ralph.core.value import value
from ralph.core.verdict import Cut
from ralph.core.words import duration
from ralph.errors import ConfigError

FIELDS = (
    "number,title,body,state,stateReason,labels,assignees,milestone,author,url,"
    "createdAt,updatedAt,closedAt"
)
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9_.][\w.-]*")
_PATIENCE = 120.0  # seconds
_LARGEST = 256 << 20  # bytes of its answer
_MOST = 100_000  # issues
_QUIET = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1", "GH_PAGER": ""}


@value
class Answer:
    """What a command said, and why it failed, if it did."""

    text: str
    trouble: str = ""


Runner = Callable[[Sequence[str]], Answer]


def is_repository(name: object) -> bool:
    """Whether it is `owner/name`, and nothing that a command could take for an option."""
    return isinstance(name, str) and _REPOSITORY.fullmatch(name) is not None


def runner(workspace: str, environ: Mapping[str, str], patience: float = _PATIENCE) -> Runner:
    """Runs commands there. Whatever goes wrong is words, never an exception."""

    def run(argv: Sequence[str]) -> Answer:
        out, err = bytearray(), bytearray()
        command = Command(tuple(argv), workspace, {**environ, **_QUIET})
        try:
            child = start(command, out.extend, err.extend)
            ended = child.wait(lambda: _late(child.seconds(), patience, len(out)))
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error)
            return Answer("", f"{argv[0]} cannot be run: {words}")
        text = out.decode("utf-8", "replace")
        if ended.cut is not None:
            return Answer(text, f"{argv[0]}: {ended.cut.why}")
        said = err.decode("utf-8", "replace").strip().splitlines()[-1:]
        trouble = ": ".join((f"{argv[0]} failed ({ended.code})", *map(plain, said)))
        return Answer(text, trouble if ended.code else "")

    return run


def _late(seconds: float, patience: float, size: int) -> Cut | None:
    if size > _LARGEST:
        return Cut("it says too much", grace=1.0)
    late = Cut(f"it took longer than {duration(patience)}", grace=1.0)
    return late if seconds >= patience else None


def issues(run: Runner, repository: str, state: str, labels: Sequence[str]) -> str:
    """The issues of a repository, as `gh --json` prints them; ConfigError where it cannot."""
    argv = ["gh", "issue", "list", f"--repo={repository}", f"--state={state}"]
    argv += [f"--label={label}" for label in labels]
    answer = run([*argv, f"--limit={_MOST}", f"--json={FIELDS}"])
    if answer.trouble:
        remedy = f"See whether this works: gh issue list --repo {repository}"
        raise ConfigError(f"github:{repository}: {answer.trouble}", remedy)
    return answer.text


def issue(run: Runner, repository: str, number: str) -> tuple[str, str]:
    """One issue, as a list of one, and why that cannot be had."""
    answer = run(["gh", "issue", "view", number, f"--repo={repository}", f"--json={FIELDS}"])
    if answer.trouble:
        return "", answer.trouble
    try:
        found: Any = json.loads(answer.text)
    except ValueError:
        return "", "gh said no JSON"
    return json.dumps([found]), ""


def turn(run: Runner, repository: str, number: str, *, done: bool, comment: str) -> str:
    """Close an issue, or open it again, with a comment; why that failed, or ""."""
    verb = "close" if done else "reopen"
    said = [f"--comment={comment}"] if comment else []
    return run(["gh", "issue", verb, number, f"--repo={repository}", *said]).trouble


def is_there(environ: Mapping[str, str]) -> bool:
    """Whether `gh` can be found."""
    import shutil

    return shutil.which("gh", path=environ.get("PATH", os.defpath)) is not None
