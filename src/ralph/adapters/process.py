"""Starting and ending what a run starts: agents, guardrails and SCM commands.

Each child leads a new session. Until the keeper exists the tree is ended by its process group.
"""

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO

from ralph.core.value import value
from ralph.core.verdict import Cut

_TICK = 0.25
_CHUNK = 128 * 1024
# What a child can have written before it ended. As much as Linux allows everybody: some CLIs exit
# without waiting for a full pipe, and lose their last words.
_MOST_IN_A_PIPE = 8 * _CHUNK
_ROUTE = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


@value
class Command:
    """What to start. `stdin` is fed from memory; None is /dev/null."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    stdin: bytes | None = None


@value
class Exit:
    """How a child ended. `code` is 128 + n for signal n, as shells have it."""

    code: int
    seconds: float
    cut: Cut | None = None


@dataclass
class _Ending:
    """The route by which a tree is being ended: INT, TERM, KILL, a grace apart."""

    cut: Cut
    taken: int = 0
    due: float = 0.0

    def advance(self, group: int, now: float) -> None:
        if now < self.due or self.taken == len(_ROUTE):
            return
        _signal_group(group, _ROUTE[self.taken])
        self.taken += 1
        self.due = now + self.cut.grace

    def hasten(self, cut: Cut, now: float) -> None:
        """A more urgent request came while the tree was already being ended."""
        if cut.grace < self.cut.grace:
            self.cut, self.due = Cut(self.cut.why, cut.grace, self.cut.finished), now


@dataclass
class Child:
    """A running child, and the one poll loop that reads and watches it."""

    process: "subprocess.Popen[bytes]"
    started: float
    readers: dict[int, Callable[[bytes], None]] = field(default_factory=dict)

    def seconds(self) -> float:
        """How long it has been running."""
        return time.monotonic() - self.started

    def wait(self, watch: Callable[[], Cut | None]) -> Exit:
        """Read until the child is gone. Whoever keeps its pipes open longer is not waited for."""
        poller = select.poll()
        for descriptor in self.readers:
            os.set_blocking(descriptor, False)
            poller.register(descriptor, select.POLLIN)
        ended = _Sentinel(self.process)
        if ended.descriptor is not None:
            poller.register(ended.descriptor, select.POLLIN)
        try:
            cut = self._loop(poller, ended, watch)
        finally:
            ended.close()
            _signal_group(self.process.pid, signal.SIGKILL)  # what the child left behind
            code = self.process.wait()
            self._close()
        return Exit(code if code >= 0 else 128 - code, self.seconds(), cut)

    def _loop(
        self, poller: select.poll, ended: "_Sentinel", watch: Callable[[], Cut | None]
    ) -> Cut | None:
        ending: _Ending | None = None
        next_tick = time.monotonic() + _TICK
        while True:
            now = time.monotonic()
            if now >= next_tick:
                ending = _watched(watch(), ending, now)
                next_tick = now + _TICK
            if ending is not None:
                ending.advance(self.process.pid, now)
            # Asked before reading: what is written before the exit is in the pipe by then.
            gone = ended.is_gone()
            for descriptor, _ in poller.poll(0 if gone else ended.patience(next_tick - now)):
                self._read(poller, descriptor)
            if gone:
                self._drain()
                return ending.cut if ending else None

    def _read(self, poller: select.poll, descriptor: int) -> None:
        reader = self.readers.get(descriptor)
        if reader is None:
            return  # the child's end: the next round sees it
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return
        if chunk:
            reader(chunk)
        else:
            poller.unregister(descriptor)

    def _drain(self) -> None:
        """What the child wrote last. Someone else may still hold the pipe, and fill it."""
        for descriptor, reader in self.readers.items():
            try:
                for _ in range(_MOST_IN_A_PIPE // _CHUNK):
                    chunk = os.read(descriptor, _CHUNK)
                    if not chunk:
                        break
                    reader(chunk)
            except BlockingIOError:
                pass

    def _close(self) -> None:
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


class _Sentinel:
    """Tells when a child has ended: by pidfd, else by asking."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self.descriptor: int | None = None
        if hasattr(os, "pidfd_open"):
            try:
                self.descriptor = os.pidfd_open(process.pid)
            except OSError:
                pass  # an old kernel: ask instead

    def is_gone(self) -> bool:
        """Whether the child has ended. It is not reaped: its group keeps its number till then."""
        if not hasattr(os, "waitid"):  # macOS before Python 3.13
            return self._process.poll() is not None
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, flags) is not None

    def patience(self, seconds: float) -> float:
        """How long to poll, in milliseconds."""
        longest = seconds if self.descriptor is not None else min(seconds, 0.02)
        return max(0.0, longest * 1000)

    def close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)


def start(
    command: Command,
    on_output: Callable[[bytes], None] | None = None,
    on_error: Callable[[bytes], None] | None = None,
    log: IO[bytes] | None = None,
) -> Child:
    """Start a child in a session of its own. With `log`, all it prints goes there unread.

    Raises OSError (not found, not executable, too long) or ValueError (a NUL in an argument).
    """
    stdin = _memory_file(command.stdin) if command.stdin is not None else subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env=dict(command.env),
            stdin=stdin,
            stdout=log or subprocess.PIPE,
            stderr=subprocess.STDOUT if log else subprocess.PIPE,
            start_new_session=True,
            pipesize=_MOST_IN_A_PIPE,
        )
    finally:
        if stdin != subprocess.DEVNULL:
            os.close(stdin)
    readers: dict[int, Callable[[bytes], None]] = {}
    for pipe, reader in ((process.stdout, on_output), (process.stderr, on_error)):
        if pipe is not None:
            readers[pipe.fileno()] = reader or _ignore
    return Child(process, time.monotonic(), readers)


def _ignore(_: bytes) -> None:
    """Output that nobody asked for."""


def _memory_file(data: bytes) -> int:
    """A file in memory holding the data, so that no pipe can fill up or need a writer."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("prompt")
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _watched(answer: Cut | None, ending: _Ending | None, now: float) -> _Ending | None:
    if answer is None:
        return ending
    if ending is None:
        return _Ending(answer)
    ending.hasten(answer, now)
    return ending


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass  # nobody is left, or only a zombie that is ours to reap
