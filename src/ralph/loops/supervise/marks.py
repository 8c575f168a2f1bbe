"""Marks that people and agents leave in a task's folder: DONE, WAIT_WITHOUT_RESTART, a message."""

import errno
import os
import stat
import time

from ralph.kernel.value import value
from ralph.kernel.world import Signals
from ralph.loops.supervise.bus import Bus, Follower
from ralph.loops.supervise.folder import TaskFolder

WAIT_TYPE = "wait_without_restart"  # of a message on the task's bus
_WORDS = 200


@value
class SeenMarks:
    """The marks that stood there when the run began: an old one asks for nothing.

    A file is told from another one of its name, or from itself after a new touch, by its inode and
    time of change, never by the clock: file times are coarse.
    """

    wait: tuple[int, int] | None = None
    bus: int = 0  # bytes


def marker_at(path: str) -> tuple[int, int] | None:
    """The inode and the time of change of what stands at a path; None where nothing can be seen."""
    try:
        seen = os.stat(path)
    except OSError:
        return None
    return seen.st_ino, seen.st_mtime_ns


def seen_in(folder: TaskFolder) -> SeenMarks:
    return SeenMarks(marker_at(folder.wait), Bus(folder.bus).end())


class TaskSignals:
    def __init__(self, folder: TaskFolder, seen: SeenMarks) -> None:
        self._folder = folder
        self._seen = seen
        self._messages = Follower(folder.bus, seen.bus)
        self._done_at: float | None = None
        self._asked: str | None = None  # by a message, which stands

    def __call__(self) -> Signals:
        problem = self._look_for_done()
        return Signals(done_at=self._done_at, wait=self._wait(), problem=problem)

    def _look_for_done(self) -> str | None:
        """Note when DONE was first seen; what is wrong with it."""
        path = self._folder.done
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            self._done_at = None
            missing = error.errno in (errno.ENOENT, errno.ENOTDIR)
            return None if missing else f"cannot look at {path}: {error.strerror}"
        if stat.S_ISDIR(mode):
            self._done_at = None
            return f"DONE is a directory: {path}. Remove it; a file says that the task is done"
        self._done_at = self._done_at or time.time()
        return None

    def _wait(self) -> str | None:
        marker = marker_at(self._folder.wait)
        if marker is not None and marker != self._seen.wait:
            return f"{os.path.basename(self._folder.wait)} marker"
        if self._asked is None:
            self._asked = self._read_bus()
        return self._asked

    def _read_bus(self) -> str | None:
        try:
            asked = [m for m in self._messages.new() if m.type.lower() == WAIT_TYPE]
        except OSError:
            return None  # whoever posts to it will tell
        if not asked:
            return None
        first = asked[0].body.strip().partition("\n")[0][:_WORDS]
        return f"bus message: {first}" if first else "bus message"
