"""Finds the child runs of a task, spares them in a sweep, and ends them (S).

A run's directory is only a claim, since the agent can write it. A process counts as a run's only
if nothing speaks against it, and gets a signal only if something proves that it is.
"""

import os
import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress

from ralph.journal.lock import NAME, read_owner
from ralph.journal.run_id import timestamp
from ralph.kernel.value import replace, value
from ralph.loops.supervise.folder import TaskFolder
from ralph.loops.supervise.run_info import RunInfo, read_run_info, write_run_info
from ralph.processes import procfs
from ralph.processes.child import pidfd_of
from ralph.processes.procfs import line_of, start_time

_STARTING = 3.0  # seconds that a `ralph job` has to register
_UNKNOWN = 0.1  # seconds that anything else has to become one
_LATER = 5.0  # seconds after a run's beginning from which on a process cannot be its own
_KILLED = 5.0  # seconds that a killed process may take to be gone
_TICK = 0.02
_MARK = b"RALPH_TASK_DIR"  # people export TASK_FOLDER themselves


@value
class ChildRun:
    """A run without an end. If it goes on, `info.pid` is that of the process which lives."""

    info: RunInfo
    directory: str

    @property
    def pid(self) -> int:
        return self.info.pid or 0


def active_children(
    folder: TaskFolder, but: Collection[str] = (), *, keeper: int = 0
) -> list[ChildRun]:
    """The runs without an end whose process lives, except for `but`; oldest first.

    Neither our keeper nor a process above us is anybody's child, whatever a directory says.
    """
    others = {keeper, *line_of(os.getpid())}
    living = (_living(run) for run in _unended(folder) if run.info.run_id not in but)
    return [child for child in living if child is not None and child.pid not in others]


def dead_runs(folder: TaskFolder) -> list[ChildRun]:
    """The runs without an end whose process is gone."""
    return [run for run in _unended(folder) if _living(run) is None]


def _unended(folder: TaskFolder) -> Iterator[ChildRun]:
    """The runs without an end. A link is none: it would lead to the run of another task."""
    try:
        with os.scandir(folder.runs) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in names:
        info = read_run_info(folder.run_dir(name))
        if info is not None and info.end_time is None:
            yield ChildRun(info, folder.run_dir(name))


def _living(run: ChildRun) -> ChildRun | None:
    owner = read_owner(os.path.join(run.directory, NAME))
    if owner is not None and owner.pid > 1:  # it holds, or held, the run: newer than the pid
        alive = owner.is_alive()
        return ChildRun(replace(run.info, pid=owner.pid), run.directory) if alive else None
    return run if run.pid > 1 and _is_the_one(run.pid, run.info.start_time) else None


def _is_the_one(pid: int, begun: str) -> bool:
    """True if a process lives that can have begun then; its number may be someone else's now."""
    if not procfs.is_there():
        return _exists(pid)
    ticks = start_time(pid)
    if not ticks:
        return False
    try:
        booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, AttributeError):
        return True
    since, run = booted + int(ticks) / os.sysconf("SC_CLK_TCK"), _parsed(begun)
    return run is None or since <= run + _LATER


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _parsed(moment: str) -> float | None:
    """The Unix time of an ISO 8601 time; without a zone it is UTC."""
    from datetime import UTC, datetime

    try:
        parsed = datetime.fromisoformat(moment)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def job_pids(
    folder: TaskFolder,
    below: Callable[[], list[int]],
    but: Collection[str] = (),
    *,
    keeper: int = 0,
) -> tuple[int, ...]:
    """The processes of active children, which outlive the agent that started them.

    Waits for a `ralph job` among `below()` that has not registered yet, and a moment for anything
    else that may become one, such as a shell.
    """
    from ralph.processes.keeper_main import descendants  # Linux only, as `below` is

    begun = time.monotonic()
    while True:
        left = below()  # looked at first: who registers in between is in both
        pids = tuple(child.pid for child in active_children(folder, but, keeper=keeper))
        known = {below_it for pid in pids for below_it in (pid, *descendants(pid))}
        others = [pid for pid in left if pid not in known and start_time(pid)]
        patience = _STARTING if any(map(_is_job, others)) else _UNKNOWN
        if not others or time.monotonic() - begun >= patience:
            return pids
        time.sleep(_TICK)


def _is_job(pid: int) -> bool:
    """True for `ralph job` and `python -m ralph job`."""
    words = procfs.command_line(pid)
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


def end_children(children: Sequence[ChildRun], grace: float, *, keeper: int = 0) -> list[ChildRun]:
    """End these runs: TERM, at most so many seconds, then KILL. Returns those still alive.

    A process that cannot be proven to be of the task is left alone. A run that did not write its
    end is recorded as stopped.
    """
    lives = [(child, start_time(child.pid)) for child in children]
    told: set[ChildRun] = set()
    moment = time.monotonic() + _UNKNOWN

    def alive() -> list[ChildRun]:
        if not procfs.is_there():
            return [child for child, _ in lives if _exists(child.pid)]
        return [child for child, since in lives if start_time(child.pid) == since != ""]

    def ask() -> bool:
        left = [child for child in alive() if child not in told]
        told.update(child for child in left if _signal(child, signal.SIGTERM, keeper))
        # A job that is just starting has yet to take its lock, and a program that is just being
        # loaded shows no environment: they prove in a moment what they are.
        early = time.monotonic() < moment
        return any(child in told or early or _is_job(child.pid) for child in alive())

    _wait_while(ask, grace)
    killed = [child for child in alive() if _signal(child, signal.SIGKILL, keeper)]
    _wait_while(lambda: not set(killed).isdisjoint(alive()), _KILLED)
    left = alive()
    for child in children:
        info = read_run_info(child.directory) if child not in left else None
        if info is not None and info.end_time is None:
            ended = replace(info, status="stopped", end_time=timestamp(time.time()))
            with suppress(OSError):  # its process is gone, which is what counts
                write_run_info(child.directory, ended)
    return left


def _wait_while(going: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while going() and time.monotonic() < end:
        time.sleep(_TICK)


def _signal(child: ChildRun, number: int, keeper: int) -> bool:
    """Send a signal to the very process that is proven; returns True if it was sent."""
    descriptor = pidfd_of(child.pid)  # from here on its number cannot become another's
    try:
        if not _is_proven(child, keeper):
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


def _is_proven(child: ChildRun, keeper: int) -> bool:
    """True if a process is of this task: it has the task in its environment, is below our keeper,
    or holds the run's lock. The keeper, we, and processes above us are not to be ended."""
    if child.pid <= 1 or child.pid in (keeper, *line_of(os.getpid())):
        return False
    task = os.path.realpath(os.path.dirname(os.path.dirname(child.directory)))
    entries = (entry.partition(b"=") for entry in procfs.environment(child.pid))
    tasks = (path for name, _, path in entries if name == _MARK and path)
    if task in {os.path.realpath(os.fsdecode(path)) for path in tasks}:
        return True
    if keeper > 1 and is_below(child.pid, keeper):
        return True
    lock = os.path.join(child.directory, NAME)
    # The text of the lock is the agent's word as well, and a link on the way to it would lead to
    # the lock of another task.
    within = os.path.join(task, "runs", os.path.basename(child.directory), NAME)
    return os.path.realpath(lock) == within and procfs.holds_lock(child.pid, lock)


def is_below(pid: int, other: int) -> bool:
    """True if a process descends from another."""
    return other in line_of(pid)[1:]
