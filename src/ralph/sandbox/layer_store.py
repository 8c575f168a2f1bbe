"""The directories where sandboxes keep their layers, in the project's state directory.

The owner of one holds a lock on it. What a killed owner left is tidied up by the next: a commit
that had begun is finished, a layer that was sealed waits for the run that sealed it, one that a
person named waits for that person, anything else is thrown away.
"""

import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from ralph.errors import LockedError
from ralph.files.safe_open import read_or_nothing, remove_file
from ralph.files.state_dir import project_dir, write_atomically, writing_state
from ralph.sandbox.interface import SandboxPolicy

SEALED = "sealed.json"  # what a layer would change, when its turn was over
JOURNAL = "commit.json"  # the same, since it is being applied
KEPT = "kept.json"  # a person comes back to it; with what it takes to go on
NAMED = "kept-"  # before the name that a person gave; runs begin with a number
LOCK = "lock"
_COARSE = 5  # CLOCK_REALTIME_COARSE
_TICK = 0.0005


class LayerDir:
    """The directory of one sandbox, ours until we leave it or end."""

    def __init__(self, path: str, lock: int) -> None:
        self.path = path
        self.opened = time.time_ns()  # whatever has changed since was changed by somebody else
        self.since: dict[str, int] = {}  # paths for which it is another time
        self.had: frozenset[str] = frozenset()  # paths that the project is known to have had
        self.record: Mapping[str, Any] = {}  # of one that somebody comes back to
        self._began = self.opened
        self._lock = lock

    def settle(self) -> None:
        """Note the time, when files are stamped later than all that was written before."""
        began, self._began = self._began, 0
        self.opened = moment(began)

    def note(self, **record: object) -> None:
        """Write down that somebody will come back to it."""
        self.record = {**self.record, **record}
        words = {"opened": self.opened, "since": self.since, "had": sorted(self.had)}
        text = json.dumps({**self.record, **words})
        write_atomically(os.path.join(self.path, KEPT), text, mode=0o600)

    def recall(self) -> None:
        """Take up what was noted."""
        self.record = record_of(self.path)
        self.opened = self.record.get("opened", self.opened)
        self.since = dict(self.record.get("since", {}))
        self.had = frozenset(self.record.get("had", ()))

    def directory(self, name: str) -> str:
        path = os.path.join(self.path, name)
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def remove(self) -> None:
        """Delete it, unless it holds a commit that is not finished, and leave it."""
        if not self.is_begun():
            remove(self.path)
        self.leave()

    def is_begun(self) -> bool:
        """True if its changes are being applied, or were when somebody was killed."""
        return os.path.exists(os.path.join(self.path, JOURNAL))

    def leave(self) -> None:
        """Let others have it. Again it does nothing: the number may be another file's by then."""
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)


def moment(began: int = 0) -> int:
    """A time, once files are stamped later than all that was written before this one, or now.

    The kernel stamps by ticks of some milliseconds, or exactly: what was written before an exact
    time has an earlier stamp only if the ticking clock has passed that time.
    """
    began, now = began or time.time_ns(), time.clock_gettime_ns(_COARSE)
    while now <= began:
        time.sleep(_TICK)
        now = time.clock_gettime_ns(_COARSE)
    return now


def record_of(path: str) -> Mapping[str, Any]:
    """What was noted of a directory that somebody comes back to; empty if nobody does."""
    try:
        found = json.loads(read_or_nothing(os.path.join(path, KEPT)))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def claim(state: str, project: str, name: str = "", *, again: bool = False) -> LayerDir:
    """Make a directory, of this name if one is given; or take up the one that is there, if it may
    be. LockedError if somebody has that, StateError if it fails."""
    above = sandboxes(state, project)
    with writing_state(above), _alone(above):
        name = name or f"{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}"
        path = os.path.join(above, name)
        if again and os.path.isdir(path):
            found = taken(path)
            if record_of(path):
                found.recall()
                return found
            found.remove()  # of somebody who was killed before anything ran in it
        os.mkdir(path, 0o700)
        lock = os.open(os.path.join(path, LOCK), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
    return LayerDir(path, lock)


@contextmanager
def claimed(policy: SandboxPolicy, project: str) -> Iterator[LayerDir]:
    """The same, removed again if the sandbox cannot be opened to the end."""
    kept = claim(policy.state, project, policy.name, again=policy.kept)
    try:
        with writing_state(kept.path):
            yield kept
    except BaseException:
        if kept.record:
            kept.leave()  # there is work in it
        else:
            kept.remove()
        raise


def taken(path: str) -> LayerDir:
    """The directory, ours from now on. LockedError if somebody has it."""
    lock = os.open(os.path.join(path, LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        name = os.path.basename(path).removeprefix(NAMED)
        raise LockedError(
            f"the sandbox {name} is in use by another ralph", "Leave that, or use another name."
        ) from None
    return LayerDir(path, lock)


def reclaimed(path: str) -> LayerDir | None:
    """A directory that somebody left, once its owner is gone; None if there is none."""
    try:
        lock = os.open(os.path.join(path, LOCK), os.O_RDWR)
    except FileNotFoundError:
        return None
    fcntl.flock(lock, fcntl.LOCK_EX)
    found = LayerDir(path, lock)
    if os.path.exists(os.path.join(path, LOCK)):
        return found
    found.leave()  # it was removed while we waited
    return None


def forget_journal(path: str) -> None:
    """Note that the commit which had begun there is finished."""
    remove_file(os.path.join(path, JOURNAL))


def sandboxes(state: str, project: str) -> str:
    return os.path.join(project_dir(state, project), "sandboxes")


def abandoned(state: str, project: str) -> Iterator[str]:
    """Directories of owners that are gone; each is then removed unless its journal is left."""
    above = sandboxes(state, project)
    try:
        if not any(os.path.isdir(os.path.join(above, name)) for name in os.listdir(above)):
            return
    except OSError:
        return
    with _alone(above):
        for name in sorted(os.listdir(above)):
            path = os.path.join(above, name)
            if not os.path.isdir(path) or _waits(path):
                continue
            try:
                lock = os.open(os.path.join(path, LOCK), os.O_RDWR | os.O_CREAT, 0o600)
            except OSError:
                continue  # it is another user's, or the disk is full
            left = LayerDir(path, lock)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                left.leave()  # it has an owner
                continue
            try:
                yield path
                if not _waits(path):
                    left.remove()
            finally:
                left.leave()


def remove(path: str) -> None:
    """Remove a tree, however deep, also what overlayfs or a command made unreadable."""
    for name in (JOURNAL, SEALED, KEPT):  # first, so that what a kill leaves is nobody's
        with suppress(OSError):
            os.unlink(os.path.join(path, name))
    with suppress(RecursionError):
        shutil.rmtree(path, ignore_errors=True)
    for words in (("chmod", "-R", "u+rwx", "--", path), ("rm", "-rf", "--", path)):
        if os.path.isdir(path):  # its modes or its depth are in the way
            with suppress(OSError):
                subprocess.run(words, capture_output=True, check=False)


def _waits(path: str) -> bool:
    """True if somebody comes back to it and nobody has begun to apply it."""
    sealed, kept, journal = (os.path.join(path, name) for name in (SEALED, KEPT, JOURNAL))
    return (os.path.exists(sealed) or os.path.exists(kept)) and not os.path.exists(journal)


@contextmanager
def _alone(above: str) -> Iterator[None]:
    """Keep others from making or tidying up a directory meanwhile."""
    os.makedirs(above, mode=0o700, exist_ok=True)
    lock = os.open(os.path.join(above, "places"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
