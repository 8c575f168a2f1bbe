"""Running a contender and weighing it: time, processor time of its whole tree, memory."""

import ctypes
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_LOOK_EVERY = 0.004
_FAREWELL = 5.0  # how long what a contender leaves behind may take to end by itself


@dataclass(frozen=True)
class Weight:
    """What one run took. Memory is the peak resident set of one process, in MB."""

    code: int
    began: int  # nanoseconds of the monotonic clock
    ended: int
    cpu: float  # seconds, with everything it started
    memory: float | None = None
    helper: float | None = None  # a process that lives beside it all the time

    @property
    def milliseconds(self) -> float:
        """From the moment before it was started to its end."""
        return (self.ended - self.began) / 1e6


def adopt_orphans() -> None:
    """From now on every descendant whose parent dies is ours: to be weighed, and to be ended."""
    ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)


def weigh(
    argv: tuple[str, ...],
    env: dict[str, str],
    *,
    agent: str = "",
    look: bool = False,
    said: str = os.devnull,
    sent: str = os.devnull,
) -> Weight:
    """Run a command to its end. With `look` its memory is watched, which costs it a little."""
    nowhere = [
        (os.POSIX_SPAWN_OPEN, 0, sent, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, said, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    memory = _Memory(agent)
    began = time.monotonic_ns()
    try:
        pid = os.posix_spawnp(argv[0], argv, env, file_actions=nowhere, setsid=True)
        if look:
            memory.watch(pid)
        _, status, usage = os.wait4(pid, 0)
        ended = time.monotonic_ns()
        cpu = usage.ru_utime + usage.ru_stime + sum(_farewell())
    finally:
        end_everything()
    code = os.waitstatus_to_exitcode(status)
    return Weight(code, began, ended, cpu, memory.peak, memory.helper)


def end_everything() -> None:
    """Kill every descendant; those whose parents die become ours and are next."""
    while children := _children(os.getpid()):
        for child in children:
            try:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            except (ProcessLookupError, ChildProcessError):
                pass  # it was quicker


def _farewell() -> Iterator[float]:
    """Processor seconds of what the contender left behind and did not wait for."""
    deadline = time.monotonic() + _FAREWELL
    while time.monotonic() < deadline:
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid:
            yield usage.ru_utime + usage.ru_stime
        else:
            time.sleep(_LOOK_EVERY)
    print("bench: a contender left processes behind; they are ended", file=sys.stderr)


@dataclass
class _Memory:
    """The last peak seen of a process, and of the helper that lives beside it.

    The last, not the largest: before its exec a new process still shows its parent's memory. And
    not what wait4 tells, which is the largest of a process, its children and that parent.
    """

    agent: str
    peak: float | None = None
    _looks: int = 0
    _seen: Counter[int] = field(default_factory=Counter)
    _peaks: dict[int, float] = field(default_factory=dict)

    @property
    def helper(self) -> float | None:
        """A child that was there most of the time and is not the agent."""
        steady = [self._peaks[pid] for pid, seen in self._seen.items() if 2 * seen > self._looks]
        return max(steady, default=None)

    def watch(self, pid: int) -> None:
        """Look again and again, until the process has ended."""
        while not _has_ended(pid):
            peak = _peak_memory(pid)
            if peak is not None:
                self.peak = peak
                self._looks += 1
            for child in _children(pid):
                self._look_at(child)
            time.sleep(_LOOK_EVERY)

    def _look_at(self, child: int) -> None:
        peak = _peak_memory(child)
        if peak is not None and _program(child) != self.agent:
            self._seen[child] += 1
            self._peaks[child] = peak


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def _program(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def _peak_memory(pid: int) -> float | None:
    """In MB; None for a process that is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    return None
