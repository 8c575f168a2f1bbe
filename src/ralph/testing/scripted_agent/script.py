"""The script of a scripted agent: what it is told to do, and what it was asked so far.

A script is a JSON file. Beside it lie `<script>.count`, how many turns were taken,
`<script>.calls.jsonl`, one line for each call, and `<script>.probes.jsonl`, one line for each
`--version` or `--help`. Standard library only and quick to import: it is loaded by every call.
"""

import fcntl
import json
import os
import sys
import time
from typing import Any, Literal, TypedDict

# Values a test may want to see; of every other variable only the name is written down.
SHOWN = frozenset({"HOME", "PATH", "PWD", "TMPDIR", "TERM", "LANG", "CI", "CLAUDECODE"})


class ScriptedTool(TypedDict, total=False):
    """A tool call. With `run` the command is really run, and decides output and error."""

    name: str
    input: dict[str, Any]
    run: str
    output: str
    is_error: bool
    denied: bool  # permission was denied: an error that the result names


class ScriptedFailure(TypedDict, total=False):
    """An error by which the service fails the turn."""

    status: int
    message: str
    resets_at: float  # Unix time


class Bytes(TypedDict):
    """Bytes that need not be text."""

    base64: str


class Spawned(TypedDict, total=False):
    """A command left running in the background."""

    run: str
    setsid: bool


class ScriptedTurn(TypedDict, total=False):
    """Everything that one call does. The order of the keys here is the order of what happens."""

    prompt_must: list[str]  # regexes the prompt has to match, or exit 97
    ignore: list[str]  # signals: "INT", "TERM"
    files: dict[str, str]  # written in the current directory
    spawn: list[str | Spawned]
    stderr: str
    frame: bool  # False: no opening and no result, only what follows
    echo_prompt: bool
    raw: str | Bytes  # printed as it is
    lines_of: tuple[int, int]  # count and bytes of noise lines
    rate_limit_event: dict[str, Any] | bool
    thinking: str
    text: str | list[str]  # of a list, all but the last are said before the tools
    tools: list[ScriptedTool]
    todo: list[tuple[str, str]]  # text and status: pending, in_progress, completed
    subagent_text: str
    hook_text: str
    response: str  # `<response>…</response>` after the last text
    usage: dict[str, int]  # input, output, cache_read, cache_write
    cost: float
    error: ScriptedFailure  # in place of a good result; exit 1
    no_result: bool
    hang: float | Literal["before"]  # seconds between result and exit; or never a word
    exit: int


class Book(TypedDict, total=False):
    """A whole script."""

    kind: str
    turns: list[ScriptedTurn]
    after: str  # when turns run out: "repeat" the last one, or "stop" with exit 98
    version: str
    help: str


class AgentScript:
    """A script file in use; safe when many calls use it at once."""

    def __init__(self, path: str) -> None:
        self.path = path
        with open(path, encoding="utf-8") as file:
            self.book: Book = json.load(file)

    @property
    def kind(self) -> str:
        """The CLI that the agent plays."""
        return self.book.get("kind", "text")

    def take_turn(self, argv: list[str], prompt: str) -> ScriptedTurn | None:
        """Write the call down and take its turn; None when the script is over."""
        with open(f"{self.path}.count", "a+", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            taken = int(file.read() or 0)
            file.truncate(0)
            file.write(str(taken + 1))
            self._append("calls", argv, {"prompt": prompt})
        turns = self.book.get("turns", [])
        if taken < len(turns):
            return turns[taken]
        return turns[-1] if turns and self.book.get("after", "repeat") == "repeat" else None

    def note_probe(self, argv: list[str]) -> None:
        """Write down that the agent was only asked for its version or help."""
        self._append("probes", argv, {})

    def _append(self, what: str, argv: list[str], more: dict[str, Any]) -> None:
        environment = {  # every name; values only where no secret can be
            name: value if name in SHOWN or name.startswith("RALPH_") else None
            for name, value in os.environ.items()
        }
        entry = {"argv": argv, **more, "cwd": os.getcwd(), "pid": os.getpid()}
        entry |= {"env": environment, "time": time.time()}
        # One write of one line: calls at the same time do not mix.
        data = (json.dumps(entry) + "\n").encode()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        descriptor = os.open(f"{self.path}.{what}.jsonl", flags, 0o600)
        os.write(descriptor, data)
        os.close(descriptor)


def read_input() -> str:
    """Standard input to its end; nothing where it is closed."""
    if sys.stdin is None:
        return ""
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
