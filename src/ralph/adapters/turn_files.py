"""Where a turn's files are: its prompt, what the agent printed, its answer."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from io import FileIO
from itertools import chain, count
from typing import IO, Protocol

from ralph.adapters.agents import as_bytes
from ralph.adapters.process import Command, Exit, Starter
from ralph.core.redact import redact, redacting
from ralph.core.turn import Order, Role
from ralph.core.value import replace, value
from ralph.core.verdict import Cut


@value
class TurnFiles:
    """The files of one turn, and what its agent's environment says beside the usual."""

    stream: str  # what it prints
    answer: str  # where a CLI may write its last message
    errors: str | None = None  # its standard error, where that is kept
    env: Mapping[str, str] = field(default_factory=dict)


class Filing(Protocol):
    """Gives every turn its files. Raises OSError where they cannot be made."""

    def begin(self, order: Order) -> TurnFiles:
        """The files of a turn that is about to start; its prompt is saved."""

    def started(self, pid: int) -> None:
        """Its process runs."""


class NumberedFiles:
    """`001.prompt` and `001.stream` in a run's directory; `001.2` where a turn is taken again."""

    def __init__(self, run_dir: str) -> None:
        self._run_dir = run_dir
        self._prompts = SavedPrompts()

    def begin(self, order: Order) -> TurnFiles:
        """Files that nobody has used yet: what was said is kept."""
        stem = self._free_stem(order)
        self._prompts.save(f"{stem}.prompt", as_bytes(redact(order.prompt)))
        return TurnFiles(f"{stem}.stream", f"{stem}.answer")

    def started(self, pid: int) -> None:
        """The lock names the run's own process; that is enough."""

    def _free_stem(self, order: Order) -> str:
        role = "" if order.role is Role.WORK else f".{order.role}"
        first = os.path.join(self._run_dir, f"{order.iteration:03d}{role}")
        stems = chain([first], (f"{first}.{number}" for number in count(2)))
        return next(stem for stem in stems if not os.path.exists(f"{stem}.stream"))


class SavedPrompts:
    """Prompts on disk. One that did not change is a link: a new file takes ten times as long."""

    def __init__(self) -> None:
        self._last: tuple[str, bytes] | None = None  # where a file of our own is, and what it holds

    def save(self, path: str, data: bytes) -> None:
        """Have this at this path. What stands there may be shared: it is not written into."""
        with suppress(FileNotFoundError):
            os.unlink(path)
        if self._last is not None and self._last[1] == data:
            with suppress(OSError):  # this file system has no links, or this file too many
                os.link(self._last[0], path)
                return
        with open(path, "wb", opener=private) as file:
            file.write(data)
        self._last = path, data


class SavedStream:
    """What a process prints, on disk, without secrets. A full disk ends this, never the process."""

    def __init__(self, file: IO[bytes] | FileIO) -> None:
        self._file = file
        self._redactor = redacting()
        self.problem = ""

    def write(self, chunk: bytes) -> bytes:
        """Save what may be saved by now; that is the answer, too."""
        return self._write(self._redactor.feed(chunk))

    def end(self) -> bytes:
        """Save what was held back; that is the answer, too."""
        return self._write(self._redactor.end())

    def _write(self, data: bytes) -> bytes:
        rest = memoryview(data if not self.problem else b"")
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self.problem = f"the stream is not saved from here on: {error.strerror}"
        return data


def logged(
    start: Starter, command: Command, log: IO[bytes], watch: Callable[[float], Cut | None]
) -> Exit:
    """Run a command to its end; what it prints is in the log. `watch` is told the seconds. Where it
    cannot be kept the command has failed, as if it had written there itself."""
    saved = SavedStream(log)

    def hear(chunk: bytes) -> None:
        saved.write(chunk)

    child = start(command, hear, hear)
    ended = child.wait(lambda: watch(child.seconds()))
    saved.end()
    return replace(ended, code=ended.code or 1) if saved.problem else ended


def private(path: str, flags: int) -> int:
    """An opener of files for this user only."""
    return os.open(path, flags, 0o600)
