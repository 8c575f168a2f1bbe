"""Where sandboxes keep their layers: a directory each, in the project's state directory.

Its owner holds a lock on it. What a killed owner left is tidied up by the next: a commit that had
begun is finished, anything else is thrown away.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ralph.adapters.files import project_dir, unwritable_state

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
        with suppress(OSError):
            os.close(self._lock)


def claim(state: str, project: str) -> Place:
    """A new place. StateError if there can be none."""
    above = sandboxes(state, project)
    try:
        with _alone(above):
            name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}"
            path = os.path.join(above, name)
            os.mkdir(path, 0o700)
            lock = os.open(os.path.join(path, _LOCK), os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError as error:
        raise unwritable_state(above, error) from error
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
            if os.path.isdir(path) and not _is_owned(path):
                yield path
                remove(path)


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


def _is_owned(path: str) -> bool:
    try:
        lock = os.open(os.path.join(path, _LOCK), os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


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
