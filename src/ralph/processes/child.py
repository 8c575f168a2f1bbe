"""Starts and ends what a run starts: agents, guardrails and SCM commands.

Each child leads a new session. `start` starts it directly and ends it by its process group, which
is enough for what behaves; agents and their like are started by the keeper (ADR 23).
"""

import fcntl
import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self

from ralph.kernel.value import value
from ralph.kernel.verdict import Cut
from ralph.processes.keeper_main import ROUTE, signal_group

if TYPE_CHECKING:
    import subprocess

_TICK = 0.25
_ASK = 0.02  # seconds between looks at a child whose end cannot be waited for
_CHUNK = 128 * 1024
# What a child can have written before it ended. As much as Linux allows everybody: some CLIs exit
# without waiting for a full pipe, and lose their last words.
_MOST_IN_A_PIPE = 8 * _CHUNK
_MOST_AT_ONCE = 8  # chunks, before one looks whether it has ended
Reader = Callable[[bytes], object] | None  # of what a child prints; None throws it away
UNBOUND = float("inf")  # seconds for each step of the route, unless someone says less


@value
class Command:
    """A program to start. `stdin` is fed from memory; None is /dev/null."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    stdin: bytes | None = None


@value
class Exit:
    """The end of a child. `code` is 128 + n for signal n, as shells have it."""

    code: int
    seconds: float
    cut: Cut | None = None
    stubborn: tuple[int, ...] = ()  # processes that would not die


class Handle(Protocol):
    """A running process: its end can be seen, and brought about."""

    pid: int  # it leads a session and a group of that number
    stubborn: tuple[int, ...]  # of its processes, those that would not die: known when it is closed
    descriptor: int | None  # readable when it may have ended; None where one has to ask

    def is_gone(self) -> bool:
        """True if it has ended."""

    def end(self, grace: float) -> None:
        """Begin to end it, by INT, TERM and KILL, so many seconds apart; or make haste."""

    def advance(self, now: float) -> None:
        """Called often while it is being ended."""

    def close(self) -> int:
        """End whatever is left of it; its exit code, as shells have it."""


@dataclass
class Child:
    """A running child, and the one poll loop that reads and watches it."""

    handle: Handle
    started: float
    readers: dict[int, Callable[[bytes], object]] = field(default_factory=dict)
    most_grace: float = UNBOUND

    def seconds(self) -> float:
        """The time for which it has been running."""
        return time.monotonic() - self.started

    def wait(self, watch: Callable[[], Cut | None]) -> Exit:
        """Read until the child is gone. Whoever keeps its pipes open longer is not waited for."""
        poller = select.poll()
        for descriptor in self.readers:
            os.set_blocking(descriptor, False)
            poller.register(descriptor, select.POLLIN)
        if self.handle.descriptor is not None:
            poller.register(self.handle.descriptor, select.POLLIN)
        try:
            cut = self._loop(poller, watch)
        finally:
            code = self.handle.close()
            for descriptor in self.readers:
                os.close(descriptor)
        return Exit(code, self.seconds(), cut, self.handle.stubborn)

    def _loop(self, poller: select.poll, watch: Callable[[], Cut | None]) -> Cut | None:
        cut: Cut | None = None
        next_tick = time.monotonic() + _TICK
        while True:
            now = time.monotonic()
            if now >= next_tick:
                cut = self._watched(watch(), cut)
                next_tick = now + _TICK
            if cut is not None:
                self.handle.advance(now)
            # Asked before reading: what is written before the exit is in the pipe by then.
            gone = self.handle.is_gone()
            longest = _TICK if self.handle.descriptor is not None else _ASK
            wait = 0.0 if gone else max(0.0, min(next_tick - now, longest) * 1000)
            for descriptor, _ in poller.poll(wait):
                self._read(poller, descriptor)
            if gone:
                self._drain()
                return cut

    def _watched(self, answer: Cut | None, cut: Cut | None) -> Cut | None:
        """A cut begins the end; one with less grace only hastens it."""
        if answer is None:
            return cut
        grace = min(answer.grace, self.most_grace)
        if cut is not None and grace >= cut.grace:
            return cut
        self.handle.end(grace)
        begun = cut or answer
        return Cut(begun.why, grace, begun.finished)

    def _read(self, poller: select.poll, descriptor: int) -> None:
        reader = self.readers.get(descriptor)
        if reader is None:
            return  # the child's end: the next round sees it
        for _ in range(_MOST_AT_ONCE):
            try:
                chunk = os.read(descriptor, _CHUNK)
            except BlockingIOError:
                return
            if not chunk:
                poller.unregister(descriptor)
                return
            reader(chunk)
            if len(chunk) < _CHUNK:
                return  # else there is more, as a rule

    def _drain(self) -> None:
        """Read what the child wrote last. Someone else may still hold the pipe, and fill it."""
        for descriptor, reader in self.readers.items():
            with suppress(BlockingIOError):
                for _ in range(_MOST_IN_A_PIPE // _CHUNK):
                    chunk = os.read(descriptor, _CHUNK)
                    if not chunk:
                        break
                    reader(chunk)


class Starter(Protocol):
    """Starts a child in a session of its own. Raises OSError (not found, not executable, too long)
    or ValueError (a NUL in an argument)."""

    def __call__(
        self, command: Command, on_output: Reader = None, on_error: Reader = None
    ) -> Child: ...


def run_and_hear(
    start: Starter, command: Command, watch: Callable[[float], Cut | None], most: int
) -> tuple[Exit, str]:
    """Run a command to its end; the last `most` bytes printed. `watch` is told the seconds."""
    said = bytearray()

    def hear(chunk: bytes) -> None:
        said.extend(chunk)
        del said[:-most]

    child = start(command, hear, hear)
    ended = child.wait(lambda: watch(child.seconds()))
    return ended, said.decode("utf-8", "replace").strip()


class _Group:
    """A process that we started ourselves, ended by its group."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self.pid = process.pid
        self.stubborn: tuple[int, ...] = ()
        self._taken = 0  # steps of the route
        self._grace = self._due = 0.0
        self.descriptor = pidfd_of(process.pid)  # None on an old kernel: ask instead

    def is_gone(self) -> bool:
        """It is not reaped: its group keeps its number till then."""
        if not hasattr(os, "waitid"):  # macOS before Python 3.13
            return self._process.poll() is not None
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, flags) is not None

    def end(self, grace: float) -> None:
        self._grace, self._due = grace, 0.0

    def advance(self, now: float) -> None:
        if now < self._due or self._taken == len(ROUTE):
            return
        signal_group(self._process.pid, ROUTE[self._taken])
        self._taken += 1
        self._due = now + self._grace

    def close(self) -> int:
        """Kill what the child left behind in its group."""
        if self.descriptor is not None:
            os.close(self.descriptor)
        signal_group(self._process.pid, signal.SIGKILL)
        return shell_code(self._process.wait())


def pidfd_of(pid: int) -> int | None:
    """A descriptor that is readable when the process has ended; None where there can be none."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return None


def shell_code(code: int) -> int:
    """Python's exit code as shells have it: 128 + n for signal n."""
    return code if code >= 0 else 128 - code


def start(
    command: Command,
    on_output: Reader = None,
    on_error: Reader = None,
    *,
    most_grace: float = UNBOUND,
) -> Child:
    """A `Starter` that starts the child directly."""
    import subprocess  # the keeper needs none of it

    with Streams(command, on_output, on_error) as streams:
        process = subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env=dict(command.env),
            stdin=streams.stdin,
            stdout=streams.stdout,
            stderr=streams.stderr,
            start_new_session=True,
        )
        return Child(_Group(process), time.monotonic(), streams.taken(), most_grace)


class Streams:
    """A child's three streams: its own ends are closed on leaving, ours too unless taken."""

    def __init__(self, command: Command, on_output: Reader, on_error: Reader) -> None:
        self._readers: dict[int, Callable[[bytes], object]] = {}
        text = command.stdin
        self.stdin = os.open(os.devnull, os.O_RDONLY) if text is None else memory_file(text)
        self._theirs = [self.stdin]
        self.stdout = self._pipe(on_output)
        # One reader for both hears them in the order in which they were written.
        self.stderr = self.stdout if on_error is on_output else self._pipe(on_error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in (*self._theirs, *self._readers):
            os.close(descriptor)

    def taken(self) -> dict[int, Callable[[bytes], object]]:
        """Our ends of the pipes, each with its reader; whoever takes them closes them."""
        readers, self._readers = self._readers, {}
        return readers

    def _pipe(self, reader: Reader) -> int:
        ours, theirs = os.pipe()
        with suppress(OSError, AttributeError):  # macOS chooses its own size, and so may a quota
            fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, _MOST_IN_A_PIPE)
        self._readers[ours] = reader or (lambda _: None)
        self._theirs.append(theirs)
        return theirs


class CallerStreams(Streams):
    """Streams that the caller has and keeps."""

    def __init__(self, stdin: int, stdout: int, stderr: int) -> None:
        self._readers = {}
        self._theirs = []
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr


def memory_file(data: bytes) -> int:
    """A file in memory holding the data, so that no pipe can fill up or need a writer."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("prompt")
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    with open(descriptor, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
