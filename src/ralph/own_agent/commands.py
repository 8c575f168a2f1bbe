"""Runs commands for a model: with a time limit, no terminal, and an output that stays small."""

import os
from collections.abc import Mapping, Sequence

from ralph.agents.providers import KEYS
from ralph.errors import ConfigError
from ralph.kernel.value import value
from ralph.kernel.verdict import Cut
from ralph.own_agent.files import Denied
from ralph.processes.child import Command, Starter
from ralph.processes.interpreters import LANGUAGES, python_of, typescript_runner
from ralph.processes.which import which
from ralph.text.words import duration

MOST = 30_000  # characters of an output that the model is shown
_HEAD = MOST // 3
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
_GRACE = 2.0
_QUIET = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "false"}


class Clip:
    """The head and the tail of a long output, which is never all in memory."""

    def __init__(self, most: int = MOST, head: int = _HEAD) -> None:
        self._room = head
        self._most = most - head
        self._head = bytearray()
        self._tail = bytearray()
        self._size = 0

    def add(self, data: bytes) -> None:
        self._size += len(data)
        taken = data[: max(0, self._room - len(self._head))]
        self._head += taken
        self._tail += data[len(taken) :]
        if len(self._tail) > 2 * self._most:
            del self._tail[: -self._most]

    @property
    def text(self) -> str:
        tail = self._tail[-self._most :]
        left_out = self._size - len(self._head) - len(tail)
        middle = f"\n[{left_out} bytes are left out here]\n".encode() if left_out else b""
        return (
            (bytes(self._head) + middle + bytes(tail))
            .decode("utf-8", "replace")
            .replace("\0", "\ufffd")
        )


@value
class Ran:
    """How a command ended."""

    output: str
    code: int
    seconds: float
    is_late: bool = False  # its time was up

    def words(self) -> str:
        """What the model reads of it."""
        said = self.output.rstrip("\n")
        if self.is_late:
            return f"{said}\n[ended: its {duration(self.seconds)} were up]".lstrip()
        if self.code:
            return f"{said}\n[exit code {self.code}]".lstrip()
        return said or "[no output]"


def shell(environ: Mapping[str, str]) -> str:
    return which("bash", environ.get("PATH")) or "sh"


def of_commands(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of commands: without the keys that the model is paid by."""
    return {k: v for k, v in environ.items() if k not in KEYS} | _QUIET


def run(
    start: Starter,
    argv: Sequence[str],
    cwd: str,
    environ: Mapping[str, str],
    *,
    seconds: float,
    stdin: bytes | None = None,
) -> Ran:
    """Run a program to its end, or for so many seconds; nothing that it started goes on."""
    clip = Clip()
    try:
        child = start(Command(tuple(argv), cwd, environ, stdin), clip.add, clip.add)
    except (OSError, ValueError) as error:
        code = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE
        reason = getattr(error, "strerror", None) or str(error)
        return Ran(f"{os.fsdecode(argv[0])}: {reason}", code, 0.0)
    ended = child.wait(lambda: Cut("late", _GRACE) if child.seconds() > seconds else None)
    return Ran(clip.text, ended.code, round(ended.seconds, 3), ended.cut is not None)


def interpreter(language: object, workspace: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The command that runs code from its standard input; Denied where nothing does."""
    path = environ.get("PATH", os.defpath)
    if language == "python":
        return (python_of(workspace, path), "-")
    if language != "typescript":
        raise Denied(f"there is no interpreter for {language!r}: say {' or '.join(LANGUAGES)}")
    try:
        return typescript_runner(path)
    except ConfigError as error:
        raise Denied(error.words) from None
