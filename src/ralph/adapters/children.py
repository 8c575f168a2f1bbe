"""Child runs of a task: which of them go on, whom a sweep spares, and how they are ended (S).

What a run's directory says is a claim: the agent can write it. A process counts as a run's only
where nothing speaks against it, and gets a signal only where something proves that it is.
"""

import os
import signal
import time
from collections.abc import Callable, Collection, Sequence

from ralph.adapters.lock import NAME, Owner, read_owner, start_time
from ralph.adapters.process import pidfd_of
from ralph.adapters.run_info import RunInfo, read_run_info, timestamp, write_run_info
from ralph.adapters.runs import directories
from ralph.adapters.task_folder import TaskFolder
from ralph.core.value import replace, value

_STARTING = 3.0  # seconds that a `ralph job` has to register
_UNKNOWN = 0.1  # seconds that anything else has to become one
_LATER = 5.0  # seconds after a run's beginning from which on a process cannot be its own
_KILLED = 5.0  # seconds that a killed process may take to be gone
_TICK = 0.02
_LARGEST = 64 * 1024


@value
class ChildRun:
    """A run that goes on; its `info.pid` is that of the process which lives."""

    info: RunInfo
    directory: str

    @property
    def pid(self) -> int:
        """Its process."""
        return self.info.pid or 0


# ------------------------------------------------------------------ who is there


def active_children(folder: TaskFolder, but: Collection[str] = ()) -> list[ChildRun]:
    """The runs without an end whose process lives, but for those left out; oldest first.

    A process above us is nobody's child, whoever says so.
    """
    above = _line(os.getpid())
    names = (name for name in sorted(directories(folder.runs)) if name not in but)
    found = (_living(folder.run_dir(name)) for name in names)
    return [child for child in found if child is not None and child.pid not in above]


def _living(directory: str) -> ChildRun | None:
    info = read_run_info(directory)
    if info is None or info.end_time is not None:
        return None
    owner = _owner(directory)
    if owner is not None:  # it holds, or held, the run: its word is newer than the pid
        return ChildRun(replace(info, pid=owner.pid), directory) if owner.is_alive() else None
    if info.pid is None or info.pid <= 1 or not _is_the_one(info.pid, info.start_time):
        return None
    return ChildRun(info, directory)


def _owner(directory: str) -> Owner | None:
    owner = read_owner(os.path.join(directory, NAME))
    return owner if owner is not None and owner.pid > 1 else None


def _is_the_one(pid: int, begun: str) -> bool:
    """Whether a process lives that can have begun then; its number may be someone else's now."""
    if not _has_proc():
        return _exists(pid)
    ticks = start_time(pid)
    if not ticks:
        return False
    since, run = _moment(ticks), _parsed(begun)
    return since is None or run is None or since <= run + _LATER


def _has_proc() -> bool:
    return os.path.exists("/proc/self/stat")


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _moment(ticks: str) -> float | None:
    """The kernel's ticks since it was booted, as Unix time."""
    try:
        booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, AttributeError):
        return None
    return booted + int(ticks) / os.sysconf("SC_CLK_TCK")


def _parsed(moment: str) -> float | None:
    """Unix time of a moment as ISO 8601 has it; without a zone it is UTC."""
    from datetime import UTC, datetime

    try:
        parsed = datetime.fromisoformat(moment)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


# ------------------------------------------------------------------ whom to spare


def job_pids(
    folder: TaskFolder, below: Callable[[], list[int]], but: Collection[str]
) -> tuple[int, ...]:
    """The processes of active children, which outlive whoever started them.

    A `ralph job` among `below()` that has not registered yet is waited for, and anything else may
    become one: a shell is about to start it.
    """
    from ralph.adapters.keeper_process import descendants  # Linux only, as `below` is

    begun = time.monotonic()
    while True:
        left = below()  # looked at first: who registers in between is in both
        pids = tuple(child.pid for child in active_children(folder, but))
        known = {below_it for pid in pids for below_it in (pid, *descendants(pid))}
        others = [pid for pid in left if pid not in known and start_time(pid)]
        patience = _STARTING if any(map(_is_job, others)) else _UNKNOWN
        if not others or time.monotonic() - begun >= patience:
            return pids
        time.sleep(_TICK)


def _is_job(pid: int) -> bool:
    """Whether it was called as `ralph job` or `python -m ralph job`."""
    words = _file(f"/proc/{pid}/cmdline").decode("utf-8", "replace").split("\0")
    return any(_calls_job(words[at:]) for at in range(len(words)))


def _calls_job(words: Sequence[str]) -> bool:
    if words[:2] == ["-m", "ralph"]:
        rest = words[2:]
    elif os.path.basename(words[0]) == "ralph":
        rest = words[1:]
    else:
        return False
    rest = rest[2:] if rest[:1] == ["-C"] else rest
    return rest[:1] == ["job"]


# ------------------------------------------------------------------ ending them


def end_children(children: Sequence[ChildRun], grace: float) -> None:
    """End these runs: TERM, at most so many seconds, then KILL. Whoever cannot be proven to be
    of the task is left alone. A run that did not tell its end is told to have stopped."""
    lives = [(child, start_time(child.pid)) for child in children]
    told: set[ChildRun] = set()

    def left() -> list[ChildRun]:
        alive = [child for child, since in lives if _is_alive(child.pid, since)]
        # A job that is just starting proves in a moment what it is.
        return [child for child in alive if _is_proven(child) or _is_job(child.pid)]

    def ask() -> bool:
        told.update(c for c in left() if c not in told and _signal(c, signal.SIGTERM))
        return bool(left())

    _wait_while(ask, grace)
    for child in left():
        _signal(child, signal.SIGKILL)
    _wait_while(lambda: bool(left()), _KILLED)
    for child, since in lives:
        if not _is_alive(child.pid, since):
            _tell_end(child)


def _wait_while(going: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while going() and time.monotonic() < end:
        time.sleep(_TICK)


def _is_alive(pid: int, since: str) -> bool:
    """Whether it is still the process that it was."""
    return start_time(pid) == since != "" if _has_proc() else _exists(pid)


def _signal(child: ChildRun, number: int) -> bool:
    """Send a signal to the very process that is proven; whether it was sent."""
    descriptor = pidfd_of(child.pid)  # from here on its number cannot become another's
    try:
        if not _is_proven(child):
            return False
        if descriptor is None:
            os.kill(child.pid, number)
        else:
            signal.pidfd_send_signal(descriptor, number)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return True


def _is_proven(child: ChildRun) -> bool:
    """Whether a process is of this task: it holds the run's lock, has the task in its
    environment, or is below us. We, and whoever is above us, are not to be ended."""
    if child.pid <= 1 or child.pid in _line(os.getpid()):
        return False
    owner = _owner(child.directory)
    if owner is not None and owner.pid == child.pid and owner.is_alive():
        return True
    task = os.path.realpath(os.path.dirname(os.path.dirname(child.directory)))
    return task in _tasks_of(child.pid) or is_below(child.pid, os.getpid())


def _tasks_of(pid: int) -> set[str]:
    """The task folders that stand in the environment with which a process was started."""
    entries = _file(f"/proc/{pid}/environ", whole=True).split(b"\0")
    marks = (b"RALPH_TASK_DIR=", b"TASK_FOLDER=")
    found = (entry.partition(b"=")[2] for entry in entries if entry.startswith(marks))
    return {os.path.realpath(os.fsdecode(path)) for path in found if path}


def is_below(pid: int, other: int) -> bool:
    """Whether a process descends from another, or is it."""
    return other in _line(pid)


def _line(pid: int) -> list[int]:
    """A process and everybody above it."""
    line: list[int] = []
    while pid > 0 and pid not in line:
        line.append(pid)
        pid = _parent(pid)
    return line


def _parent(pid: int) -> int:
    if pid == os.getpid():
        return os.getppid()
    try:
        return int(_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()[1])
    except (ValueError, IndexError):
        return 0  # it is gone, or there is no /proc


def _file(path: str, *, whole: bool = False) -> bytes:
    """What /proc tells; nothing of a process that is gone, or of another user's."""
    try:
        with open(path, "rb") as file:
            return file.read(-1 if whole else _LARGEST)
    except OSError:
        return b""


def _tell_end(child: ChildRun) -> None:
    info = read_run_info(child.directory)
    if info is None or info.end_time is not None:
        return
    try:
        write_run_info(
            child.directory, replace(info, status="stopped", end_time=timestamp(time.time()))
        )
    except OSError:
        pass  # its process is gone, which is what counts
