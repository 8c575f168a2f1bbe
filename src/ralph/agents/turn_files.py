"""The files of a turn: its prompt, what the agent printed, its answer."""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from io import FileIO
from itertools import chain, count
from typing import IO, Protocol

from ralph.agents.kinds import as_bytes
from ralph.files.safe_open import open_regular, remove_file
from ralph.kernel.turn import Order, Role
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Cut
from ralph.processes.child import Command, Exit, Starter
from ralph.text.redact import redact, redacting

MOST_SAVED = 64 * 1024 * 1024  # bytes of one stream
WHOLE = sys.maxsize
LEFT_OUT = b"\n... %d bytes are left out here: only the beginning and the end are kept ...\n"
_BLOCK = 1024 * 1024


@value
class TurnFiles:
    """The files of one turn, and what its agent's environment says beside the usual."""

    stream: str  # what it prints
    answer: str  # where a CLI may write its last message
    errors: str  # what it prints on standard error
    env: Mapping[str, str] = field(default_factory=dict)


class Filing(Protocol):
    """Gives every turn its files. Raises OSError where they cannot be made."""

    def begin(self, order: Order) -> TurnFiles:
        """The files of a turn that is about to start; its prompt is saved."""

    def started(self, pid: int) -> None:
        """Its process runs."""


class NumberedFiles:
    """`001.prompt`, `001.stream` and `001.stderr` in a run's directory; `001.2` on a second try."""

    def __init__(self, run_dir: str) -> None:
        self._run_dir = run_dir
        self._prompts = SavedPrompts()

    def begin(self, order: Order) -> TurnFiles:
        """Files that nobody has used yet: what was said is kept."""
        role = "" if order.role is Role.WORK else f".{order.role}"
        first = os.path.join(self._run_dir, f"{order.iteration:03d}{role}")
        stems = chain([first], (f"{first}.{number}" for number in count(2)))
        stem = next(stem for stem in stems if not os.path.exists(f"{stem}.stream"))
        self._prompts.save(f"{stem}.prompt", as_bytes(redact(order.prompt)))
        return TurnFiles(f"{stem}.stream", f"{stem}.answer", f"{stem}.stderr")

    def started(self, pid: int) -> None:
        """The lock names the run's own process; that is enough."""


class SavedPrompts:
    """Prompts on disk. One that did not change is a link: a new file takes ten times as long."""

    def __init__(self) -> None:
        self._last: tuple[str, bytes] | None = None  # where a file of our own is, and what it holds

    def save(self, path: str, data: bytes) -> None:
        """Have this at this path. What stands there may be shared: it is not written into."""
        remove_file(path)
        if self._last is not None and self._last[1] == data:
            with suppress(OSError):  # this file system has no links, or this file too many
                os.link(self._last[0], path)
                return
        with open(path, "wb", opener=private) as file:
            file.write(data)
        self._last = path, data


class SavedStream:
    """The output of a process, on disk, without secrets. A full disk ends this, never the process.
    The file is opened for the first byte; what is longer than `most` bytes loses its middle."""

    def __init__(self, open_file: Callable[[], IO[bytes] | FileIO], most: int = MOST_SAVED) -> None:
        self._open = open_file
        self._file: IO[bytes] | FileIO | None = None
        self._redactor = redacting()
        self._most = most
        self._size = 0  # of the file
        self._written = 0  # all told
        self.problem = ""

    def write(self, chunk: bytes) -> bytes:
        """Save what may be saved by now; that is the answer, too."""
        return self._write(self._redactor.feed(chunk))

    def end(self) -> bytes:
        """Save what was held back; that is the answer, too."""
        return self._write(self._redactor.end())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def is_short(self) -> bool:
        """True if something was left out of the file."""
        return self._written > self._size

    def _write(self, data: bytes) -> bytes:
        rest = memoryview(data if not self.problem else b"")
        try:
            while rest:
                self._file = self._file or self._open()
                count = self._file.write(rest)
                rest = rest[count:]
                self._size += count
                self._written += count
                if self._size > self._most:
                    self._shorten(self._file)
        except OSError as error:
            self.problem = f"the stream is not saved from here on: {error.strerror}"
        return data

    def _shorten(self, file: IO[bytes] | FileIO) -> None:
        """Keep a quarter from the beginning and one from the end. What is read by then is in order
        at every moment: who is killed here leaves nothing worse than words that stand twice."""
        kept = self._most // 4
        mark = LEFT_OUT % (self._written - 2 * kept)
        begin, end = kept + len(mark), self._size - kept
        os.pwrite(file.fileno(), mark, kept)
        for at in range(0, kept, _BLOCK):
            block = os.pread(file.fileno(), min(_BLOCK, kept - at), end + at)
            os.pwrite(file.fileno(), block, begin + at)
        self._size = begin + kept
        file.truncate(self._size)
        file.seek(self._size)


def is_shortened(path: str) -> bool:
    """True if the middle of a saved stream was left out. Raises OSError."""
    kept, begin = MOST_SAVED // 4, LEFT_OUT[: LEFT_OUT.index(b"%")]
    if os.path.getsize(path) < 2 * kept:
        return False
    with open_regular(path) as file:
        file.seek(kept)
        return file.read(len(begin)) == begin


def logged(
    start: Starter, command: Command, log: IO[bytes], watch: Callable[[float], Cut | None]
) -> Exit:
    """Run a command to its end; what it prints is in the log. `watch` is told the seconds. Where it
    cannot be kept the command has failed, as if it had written there itself."""
    saved = SavedStream(lambda: log, WHOLE)
    hear = saved.write  # one reader for both, so that what is printed stays in order
    child = start(command, hear, hear)
    ended = child.wait(lambda: watch(child.seconds()))
    saved.end()
    return replace(ended, code=ended.code or 1) if saved.problem else ended


def private(path: str, flags: int) -> int:
    """An opener of files for this user only."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
