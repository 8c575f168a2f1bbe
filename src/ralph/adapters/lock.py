"""One run a workspace (ADR 10): flock, with the owner's pid and start time to name it."""

import fcntl
import json
import os
import time

from ralph.core.value import value
from ralph.errors import LockedError, StateError

NAME = "run.lock"  # in a project's state directory
_GONE = ("Z", "X")  # a process that has ended and is not reaped yet


@value
class Owner:
    """Who wrote its name into a lock. Whether it still holds it is another question."""

    pid: int
    start: str
    run: str
    since: float

    def is_alive(self) -> bool:
        """Whether that very process runs: a pid alone may be someone else's by now."""
        try:
            os.kill(self.pid, 0)
        except PermissionError:
            pass  # another user's process
        except (OSError, OverflowError):
            return False
        return start_time(self.pid) == self.start


def read_owner(path: str) -> Owner | None:
    """Who a lock file names; None where nobody does. The lock itself is not touched: taking it
    only to look would get in the way of a run that is just starting."""
    try:
        with open(path, encoding="utf-8") as file:
            named = json.load(file)
        owner = Owner(
            int(named["pid"]), str(named["start"]), str(named["run"]), float(named["since"])
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return owner if owner.pid > 0 else None


class Lock:
    """Held from `acquire` to `release`, or until the process is gone, however it went."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: int | None = None

    def acquire(self, run: str, now: float) -> None:
        """Take the lock, or name who has it."""
        owner = {"pid": os.getpid(), "start": start_time(os.getpid()), "run": run, "since": now}
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, json.dumps(owner).encode(), 0)
        except BlockingIOError as error:
            self._close()
            raise self._refusal() from error
        except OSError as error:
            self._close()
            raise StateError(
                f"cannot write the state directory: {self._path}: {error.strerror}",
                "Make room, make it writable, or choose another: "
                "export RALPH_STATE_DIR=/some/where",
            ) from error

    def release(self) -> None:
        """Give the lock back."""
        if self._file is not None:
            os.ftruncate(self._file, 0)
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _refusal(self) -> LockedError:
        owner = read_owner(self._path)
        if owner is None:
            who, remedy = "it is just starting or ending", "Try again in a moment."
        else:
            who = f"pid {owner.pid}, run {owner.run}{_since(owner.since)}"
            remedy = f"Wait for it, or end it: ralph stop (or kill -INT {owner.pid})"
        return LockedError(f"another ralph works in this directory ({who})", remedy)


def _since(moment: float) -> str:
    try:
        return time.strftime(", since %H:%M:%S", time.localtime(moment))
    except (OSError, ValueError, OverflowError):
        return ""  # no moment that a calendar knows


def start_time(pid: int) -> str:
    """When a process started, in the kernel's own ticks; empty where it, or /proc, is missing."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
            return "" if fields[0] in _GONE else fields[19]
    except (OSError, IndexError):
        return ""
