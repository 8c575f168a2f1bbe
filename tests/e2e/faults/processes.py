"""Who is there: an agent's processes, whatever their parents, sessions and environments."""

import fcntl
import os
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path

_KEEPER = b"keeper_main.py"
_LOOK_EVERY = 0.005


def is_held(program: Path) -> bool:
    """Whether any process of this hostile agent is alive.

    The kernel's word, true of one moment: every one of them shares a lock on the program's file
    (hostile.c), and a process that has ended, reaped or not, holds none.
    """
    descriptor = os.open(program, os.O_RDONLY)
    try:
        return _is_locked(descriptor)
    finally:
        os.close(descriptor)


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def running(program: Path) -> list[int]:
    """Who runs this very file, also if it was deleted. One that forks and exits may be missed."""
    wanted = os.stat(program)
    return [pid for pid in _everybody() if _is_same(f"/proc/{pid}/exe", wanted)]


def marked(place: Path) -> list[int]:
    """Whose environment names this place: ralph, its keeper, whoever else does not hide."""
    mark = os.fsencode(place) + b"/"
    return [pid for pid in _everybody() if mark in _read(f"/proc/{pid}/environ")]


def left(program: Path, place: Path) -> int:
    """How many processes of a run are left, at least."""
    held = is_held(program)  # first: what is seen later may have ended by itself
    return max(int(held), len({*running(program), *marked(place)}))


def keeper_of(ralph: int) -> int | None:
    """The keeper of a ralph; None while it has none."""
    children = _read(f"/proc/{ralph}/task/{ralph}/children").split()
    keepers = (int(pid) for pid in children if _KEEPER in _read(f"/proc/{int(pid)}/cmdline"))
    return next(keepers, None)


def end_all(program: Path, place: Path) -> None:
    """End whatever is left of a run, and come back when it is gone. The agent ends by itself when
    its file is deleted: one that is always new could hardly be caught."""
    descriptor = os.open(program, os.O_RDONLY)
    try:
        program.unlink()
        while (rest := marked(place)) or _is_locked(descriptor):
            for pid in rest:
                _kill(pid)
            time.sleep(_LOOK_EVERY)
    finally:
        os.close(descriptor)


class Watched:
    """A process that is not our child, by a descriptor: its number may become someone else's."""

    def __init__(self, pid: int) -> None:
        self.descriptor = os.pidfd_open(pid)

    def kill(self) -> None:
        """Kill it."""
        signal.pidfd_send_signal(self.descriptor, signal.SIGKILL)

    def has_ended(self) -> bool:
        """Whether it is gone, reaped or not."""
        return bool(select.select([self.descriptor], [], [], 0)[0])

    def close(self) -> None:
        """Look no more."""
        os.close(self.descriptor)


def _kill(pid: int) -> None:
    try:
        watched = Watched(pid)
    except ProcessLookupError:
        return
    try:
        watched.kill()
    except ProcessLookupError:
        pass
    finally:
        watched.close()


def _everybody() -> Iterator[int]:
    return map(int, filter(str.isdigit, os.listdir("/proc")))


def _is_same(path: str, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), wanted)
    except OSError:
        return False  # it is gone, or another user's


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
