"""Holds the process of one attempt: feeds it, hears it, and ends what does not end by itself.

Its pipe is JSON lines. To it: first {"job", "incarnation"}, then {"until": boottime} or {"cut":
{"why", "grace"}}. From it: {"launched"}, {"pulse"}, and last {"done"} or {"failed"}. Its
environment says RALPH_RUN, as that of all that it starts should.
"""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from ralph.fleet.lease import Held
from ralph.fleet.messages import Message, failure, message_of, plain
from ralph.fleet.port import MOST_BYTES, Job
from ralph.kernel.verdict import Cut
from ralph.processes import keeper, keeper_main, procfs
from ralph.processes.child import pidfd_of
from ralph.processes.clock import boottime

_TICK = 0.25
_LOOK = 1.0  # seconds between looks at who is below it
_CHUNK = 65_536
_MOST_AT_ONCE = 16  # chunks
_LAST_WORDS = 2048  # bytes of stderr
_AFTER_CUT = (
    6.0  # seconds beyond the grace of a cut, after which it is killed; 10 have its tree gone
)
_AFTER_LAST = 45.0  # the same after its last message; keepers take up to 30 to give up
_KEEPERS = 3.0  # for which its keeper may take to end what is left of it
_PATIENCE = 30.0  # after which something is unkillable
_FORKING = 2.0  # for which something may fork as fast as it is killed
_PAUSE = 0.05


class Desk(Protocol):
    """Where those who hold an attempt and those who ask for it meet."""

    job: Job
    incarnation: str
    held: Held
    cut: tuple[Cut, float] | None  # and since when
    wake: int  # readable when one of these has changed

    def hear(self, message: Message) -> None:
        """It has said something, which is not its last message."""


def mark(job: Job) -> str:
    """RALPH_RUN of all that belongs to an attempt. That of another one is never this and a number,
    which is how the attempts of a supervised task are named."""
    task, _, number = job.ref.rpartition("/")
    return f"{job.run}-{task.rpartition('/')[2]}.{number}"


def hold(command: Sequence[str], desk: Desk) -> Message:
    """Have the attempt made, from its start until nothing of it lives; its result."""
    if left := settle({}, mark(desk.job), desk.held):  # an earlier process of ours may have had it
        return failure(f"{len(left)} of an earlier process of it would not die", passes=True)
    try:
        holding = _Holding(command, desk)
    except OSError as error:
        return failure(f"the attempt cannot be started: {error.strerror or error}", passes=True)
    try:
        return holding.run()
    finally:
        holding.close()


class _Holding:
    def __init__(self, command: Sequence[str], desk: Desk) -> None:
        self._desk = desk
        self._mark = mark(desk.job)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "RALPH_RUN": self._mark},
            start_new_session=True,
            bufsize=0,
        )
        streams = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._stdin, self._stdout, self._stderr = (one.fileno() for one in streams if one)
        for descriptor in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(descriptor, False)
        self._open = [self._stdout, self._stderr]
        self._pidfd = pidfd_of(self._process.pid)
        self._to_say = bytearray()
        self._line = bytearray()
        self._last_words = bytearray()
        self._until: float | None = None  # as it was told
        self._cut: Cut | None = None  # the same
        self._result: Message | None = None
        self._due = float("inf")  # when it should have ended, having said its last
        self._below: dict[int, str] = {}  # who is of its tree, with the start of each
        self._next_look = 0.0

    def run(self) -> Message:
        desk = self._desk
        self._say({"job": plain(desk.job), "incarnation": desk.incarnation})
        why = ""
        while not self._has_ended(why):
            why = why or self._killed()
            self._tell()
            self._wait()
            self._look()
        self._hear()
        stubborn = settle(self._below, self._mark, desk.held)
        if self._result is not None:
            return self._result
        if stubborn:
            return failure(f"{why or 'it ended'}, and {len(stubborn)} of it would not die")
        if desk.cut is not None:
            return failure(f"{desk.cut[0].why}; it gave no result{' and was killed' * bool(why)}")
        words = self._last_words.decode("utf-8", "replace").strip()
        code = self._process.returncode
        return failure(why or f"the attempt ended with {code}: {words}", passes=True)

    def close(self) -> None:
        """Let go of it, also where something went wrong here."""
        if self._process.poll() is None:
            end_from_below(self._process.pid)
            self._process.wait()
            settle(self._below, self._mark, Held())
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        if self._pidfd is not None:
            os.close(self._pidfd)

    def _has_ended(self, killed: str) -> bool:
        if killed and self._process.poll() is None:
            end_from_below(self._process.pid)
            self._process.wait()
        return self._process.poll() is not None

    def _killed(self) -> str:
        """Why it is to be killed now, if it is."""
        now, desk = boottime(), self._desk
        if desk.held.is_killing(now):
            return "its lease was over"
        if now >= self._due:
            return "it did not end after its last message"
        if desk.cut is not None and now >= desk.cut[1] + desk.cut[0].grace + _AFTER_CUT:
            return "it did not end when it was cut"
        return ""

    def _tell(self) -> None:
        """Tell it what has changed at the desk."""
        desk = self._desk
        if desk.held.until is not None and desk.held.until != self._until:
            self._until = desk.held.until
            self._say({"until": self._until})
        if desk.cut is not None and desk.cut[0] != self._cut:
            self._cut = desk.cut[0]
            self._say({"cut": {"why": self._cut.why, "grace": self._cut.grace}})
        with suppress(BlockingIOError, BrokenPipeError):
            while self._to_say:
                del self._to_say[: os.write(self._stdin, self._to_say)]

    def _say(self, message: Message) -> None:
        if len(self._to_say) <= 4 * MOST_BYTES:  # else it reads nothing; a renewal may be lost
            self._to_say += json.dumps(message).encode() + b"\n"

    def _wait(self) -> None:
        poller = select.poll()
        for descriptor in (*self._open, self._desk.wake):
            poller.register(descriptor, select.POLLIN)
        if self._pidfd is not None:
            poller.register(self._pidfd, select.POLLIN)
        if self._to_say:
            poller.register(self._stdin, select.POLLOUT)
        for descriptor, _ in poller.poll(_TICK * 1000):
            if descriptor == self._desk.wake:
                os.read(descriptor, _CHUNK)
        self._hear()

    def _hear(self) -> None:
        """Read what there is, but not for ever."""
        for descriptor in [*self._open]:
            for _ in range(_MOST_AT_ONCE):
                try:
                    chunk = os.read(descriptor, _CHUNK)
                except BlockingIOError:
                    break
                if not chunk:
                    self._open.remove(descriptor)
                    break
                (self._said if descriptor == self._stdout else self._grumbled)(chunk)

    def _grumbled(self, chunk: bytes) -> None:
        self._last_words += chunk
        del self._last_words[:-_LAST_WORDS]

    def _said(self, chunk: bytes) -> None:
        *lines, self._line = (self._line + chunk).split(b"\n")
        for line in lines:
            self._take(bytes(line))
        del self._line[: max(0, len(self._line) - 2 * MOST_BYTES)]  # that is no message

    def _take(self, line: bytes) -> None:
        try:
            message = message_of(line)
        except ValueError:
            return  # not of our protocol: some program wrote into its stdout
        last = message.get("done", message.get("failed"))
        if not isinstance(last, dict):
            self._desk.hear(message)
        elif self._result is None:
            self._result = last
            self._due = boottime() + _AFTER_LAST

    def _look(self) -> None:
        """See who is below it, while that can be seen."""
        if (now := time.monotonic()) < self._next_look:
            return
        self._next_look = now + _LOOK
        below = keeper_main.descendants(self._process.pid)
        self._below = {pid: start for pid in below if (start := procfs.start_time(pid))}


def settle(below: Mapping[int, str], name: str, held: Held) -> list[int]:
    """See to it that nothing is left of an attempt whose process has ended: those below it, and
    whoever names it in the environment. Its keeper has some time to do that; who would not die."""
    begun = time.monotonic()
    while left := [pid for pid, start in below.items() if procfs.start_time(pid) == start] + [
        pid for pid in keeper.orphans(name) if procfs.start_time(pid)
    ]:
        late = time.monotonic() - begun
        if late > _PATIENCE:
            return left
        kept = late < _KEEPERS and any(map(_is_keeper, left))
        if not kept or (held.until is not None and boottime() > held.until - 2 * _PAUSE):
            for pid in sorted(left, key=_is_keeper, reverse=True):
                end_from_below(pid)
        time.sleep(_PAUSE)
    return []


def end_from_below(pid: int) -> None:
    """Kill a process after all that is below it. An agent that has stopped its keeper may fork and
    end all the time: whoever inherits it is the last to go, else it would be out of reach."""
    keeper_main.signal_all([pid], signal.SIGSTOP)
    keeper_main.signal_all(keeper_main.descendants(pid), signal.SIGKILL)
    end, before = time.monotonic() + _FORKING, list[int]()
    while (below := _children(pid)) and time.monotonic() < end:
        keeper_main.signal_all(reversed(below), signal.SIGKILL)  # the youngest is alive, if any
        if below == before and not any(map(procfs.start_time, below)):
            break  # it is stopped and reaps nobody: whoever was born would be there
        before = below
    keeper_main.signal_all([pid], signal.SIGKILL)


def _children(pid: int) -> list[int]:
    """Those right below it, the youngest last; also those that have ended."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def _is_keeper(pid: int) -> bool:
    return any(word.endswith("/keeper_main.py") for word in procfs.command_line(pid)[:5])
