"""Where sandboxes keep their layers: a directory each, in the project's state directory.

Its owner holds a lock on it. What a killed owner left is tidied up by the next: a commit that had
begun is finished, a layer that was sealed waits for the run that sealed it, anything else is thrown
away.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ralph.adapters.files import project_dir, unwritable_state

SEALED = "sealed.json"  # what a layer would change, when its turn was over
JOURNAL = "commit.json"  # the same, since it is being applied
_LOCK = "lock"


class Place:
    """The directory of one sandbox, which is ours as long as we live."""

    def __init__(self, path: str, lock: int) -> None:
        self.path = path
        self._lock = lock

    def directory(self, name: str) -> str:
        """A directory in it, made if it is missing."""
        path = os.path.join(self.path, name)
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def remove(self) -> None:
        """Forget everything in it."""
        remove(self.path)
        self.leave()

    def leave(self) -> None:
        """Let others have it."""
        with suppress(OSError):
            os.close(self._lock)


def claim(state: str, project: str, name: str = "") -> Place:
    """A new place, of this name if it has one. StateError if there can be none."""
    above = sandboxes(state, project)
    try:
        with _alone(above):
            name = name or f"{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}"
            path = os.path.join(above, name)
            os.mkdir(path, 0o700)
            lock = os.open(os.path.join(path, _LOCK), os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError as error:
        raise unwritable_state(above, error) from error
    return Place(path, lock)


def reclaimed(path: str) -> Place | None:
    """A place that somebody left, once nobody is at it any more; None if there is none."""
    try:
        lock = os.open(os.path.join(path, _LOCK), os.O_RDWR)
    except FileNotFoundError:
        return None
    fcntl.flock(lock, fcntl.LOCK_EX)
    return Place(path, lock)


def sandboxes(state: str, project: str) -> str:
    """Where the sandboxes of a project are."""
    return os.path.join(project_dir(state, project), "sandboxes")


def abandoned(state: str, project: str) -> Iterator[str]:
    """The places of owners that are gone; each is removed after it was looked at."""
    above = sandboxes(state, project)
    try:
        if not any(os.path.isdir(os.path.join(above, name)) for name in os.listdir(above)):
            return
    except OSError:
        return
    with _alone(above):
        for name in sorted(os.listdir(above)):
            path = os.path.join(above, name)
            lock = _free(path) if os.path.isdir(path) and not _waits(path) else None
            if lock is None:
                continue
            yield path
            left = Place(path, lock)
            left.leave() if _waits(path) else left.remove()


def remove(path: str) -> None:
    """Remove a tree, also what overlayfs or a command made unreadable."""
    shutil.rmtree(path, ignore_errors=True)
    if os.path.isdir(path):
        _unlock(path)
        shutil.rmtree(path, ignore_errors=True)


def _unlock(path: str) -> None:
    """Let us into every directory; what is not ours stays as it is."""
    waiting = [path]
    while waiting:
        here = waiting.pop()
        with suppress(OSError):
            os.chmod(here, 0o700)
            with os.scandir(here) as found:
                waiting += [entry.path for entry in found if entry.is_dir(follow_symlinks=False)]


def _waits(path: str) -> bool:
    """Whether it is sealed, and nobody has begun to apply it."""
    sealed, begun = (os.path.exists(os.path.join(path, name)) for name in (SEALED, JOURNAL))
    return sealed and not begun


def _free(path: str) -> int | None:
    """The lock of a place, which is ours now; None if it has an owner."""
    lock = os.open(os.path.join(path, _LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


@contextmanager
def _alone(above: str) -> Iterator[None]:
    """Nobody else makes or tidies up a place meanwhile."""
    os.makedirs(above, mode=0o700, exist_ok=True)
    lock = os.open(os.path.join(above, "places"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
