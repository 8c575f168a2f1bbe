"""Lets one run work in a workspace (ADR 10): flock, and the owner's pid and start time."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ralph.errors import LockedError, StateError, failing
from ralph.files.safe_open import open_regular, regular
from ralph.kernel.value import value
from ralph.processes.procfs import start_time

NAME = "run.lock"  # in a project's state directory
_LARGEST = 64 * 1024  # bytes; whatever is longer was not written by us
_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
_REMEDY = "Make room, make it writable, or choose another: export RALPH_STATE_DIR=/some/where"


@value
class Owner:
    """The process that wrote its name into a lock, whether or not it still holds it."""

    pid: int
    start: str
    run: str
    since: float

    def is_alive(self) -> bool:
        """True if that very process runs: a pid alone may be someone else's by now."""
        try:
            os.kill(self.pid, 0)
        except PermissionError:
            pass  # another user's process
        except (OSError, OverflowError):
            return False
        return start_time(self.pid) == self.start


def read_owner(path: str) -> Owner | None:
    """The owner that a lock file names, if any. The lock itself is not touched: taking it only to
    look would get in the way of a run that is just starting."""
    try:
        with open_regular(path) as file:
            named = json.loads(file.read(_LARGEST))
        owner = Owner(
            int(named["pid"]), str(named["start"]), str(named["run"]), float(named["since"])
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return owner if owner.pid > 0 else None


def is_held(path: str) -> bool:
    """True if somebody has that lock, seen from here or not. It is taken for a moment, so this is
    only for one whose owner looks dead."""
    try:
        with open_regular(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


class Lock:
    """Held from `acquire` to `release`, or until the process is gone, however it went.

    `place` and `remedy` are for whoever may not write there.
    """

    def __init__(
        self, path: str, place: str = "the state directory", remedy: str = _REMEDY
    ) -> None:
        self._path, self._place, self._remedy = path, place, remedy
        self._file: int | None = None

    def acquire(self, run: str, now: float) -> None:
        """Take the lock, or name who has it."""
        owner = {"pid": os.getpid(), "start": start_time(os.getpid()), "run": run, "since": now}
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            self._file = regular(os.open(self._path, _OPEN, 0o600), self._path)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, json.dumps(owner).encode(), 0)
        except BlockingIOError as error:
            self._close()
            raise self._refusal() from error
        except OSError as error:
            self._close()
            message = f"cannot write {self._place}: {self._path}: {error.strerror}"
            raise StateError(message, self._remedy) from error

    def release(self) -> None:
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
            try:
                since = time.strftime(", since %H:%M:%S", time.localtime(owner.since))
            except (OSError, ValueError, OverflowError):
                since = ""  # no moment that a calendar knows
            who = f"pid {owner.pid}, run {owner.run}{since}"
            remedy = f"Wait for it, or end it: ralph stop (or kill -INT {owner.pid})"
        return LockedError(f"another ralph works in this directory ({who})", remedy)


@contextmanager
def claimed(directory: str) -> Iterator[None]:
    """Hold a directory itself, against whoever keeps his locks elsewhere: another user, or one
    with another state directory."""
    with failing(f"cannot use {directory}", "Put it back, then try again.", StateError):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        message = f"another ralph works in {directory}, with another state directory"
        raise LockedError(message, "Wait for it, or end it where it was started.") from error
    except OSError:
        pass  # this file system has no locks
    try:
        yield
    finally:
        os.close(descriptor)
