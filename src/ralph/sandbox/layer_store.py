"""The directories where sandboxes keep their layers, in the project's state directory.

The owner of one holds a lock on it. What a killed owner left is tidied up by the next: a commit
that had begun is finished, a layer that was sealed waits for the run that sealed it, anything else
is thrown away.
"""

import fcntl
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ralph.files.state_dir import project_dir, unwritable_state
from ralph.sandbox.changes.by_descriptor import WRITE, handle_of
from ralph.sandbox.interface import SandboxPolicy

SEALED = "sealed.json"  # what a layer would change, when its turn was over
JOURNAL = "commit.json"  # the same, since it is being applied
_LOCK = "lock"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class LayerDir:
    """The directory of one sandbox, ours until we leave it or end."""

    def __init__(self, path: str, lock: int) -> None:
        self.path = path
        self._lock = lock

    def directory(self, name: str) -> str:
        path = os.path.join(self.path, name)
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def remove(self) -> None:
        """Delete it, unless it holds a commit that is not finished, and leave it."""
        if not _is_begun(self.path):
            remove(self.path)
        self.leave()

    def leave(self) -> None:
        """Let others have it. Again it does nothing: the number may be another file's by then."""
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)


def claim(state: str, project: str, name: str = "") -> LayerDir:
    """Make a directory, of this name if one is given. StateError if that fails."""
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
    return LayerDir(path, lock)


@contextmanager
def claimed(policy: SandboxPolicy, project: str) -> Iterator[LayerDir]:
    """The same, removed again if the sandbox cannot be opened to the end."""
    kept = claim(policy.state, project, policy.name)
    try:
        yield kept
    except OSError as error:
        kept.remove()
        raise unwritable_state(kept.path, error) from error
    except BaseException:
        kept.remove()
        raise


def reclaimed(path: str) -> LayerDir | None:
    """A directory that somebody left, once its owner is gone; None if there is none."""
    try:
        lock = os.open(os.path.join(path, _LOCK), os.O_RDWR)
    except FileNotFoundError:
        return None
    fcntl.flock(lock, fcntl.LOCK_EX)
    found = LayerDir(path, lock)
    if os.path.exists(os.path.join(path, _LOCK)):
        return found
    found.leave()  # it was removed while we waited
    return None


def forget_journal(path: str) -> None:
    """Note that the commit which had begun there is finished."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(path, JOURNAL))


def sandboxes(state: str, project: str) -> str:
    return os.path.join(project_dir(state, project), "sandboxes")


def abandoned(state: str, project: str) -> Iterator[str]:
    """Directories of owners that are gone; each is removed after it was looked at, unless its
    journal is still there."""
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
                lock = os.open(os.path.join(path, _LOCK), os.O_RDWR | os.O_CREAT, 0o600)
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
    """Remove a tree, however deep, also what overlayfs or a command made unreadable.

    Killed in the middle, what is left is nobody's: what says otherwise goes first.
    """
    for name in (JOURNAL, SEALED):
        with suppress(OSError):
            os.unlink(os.path.join(path, name))
    with suppress(OSError):
        above = os.open(os.path.dirname(path), _DIRECTORY & ~os.O_NOFOLLOW)
        try:
            _clear(above, os.fsencode(os.path.basename(path)))
        finally:
            os.close(above)
    if os.path.isdir(path):  # on a file system that does not let us move them
        with suppress(RecursionError):
            shutil.rmtree(path, ignore_errors=True)


def _clear(above: int, top: bytes) -> None:
    """Empty a directory and remove it. Inner ones are moved up before they are emptied, so that
    none is too deep."""
    root = _unlocked(above, top)
    try:
        mark, number, waiting = os.urandom(6).hex().encode(), 0, _emptied(root)
        while waiting:
            name = waiting.pop()
            with suppress(OSError):
                here = _unlocked(root, name)
                try:
                    for inner in _emptied(here):
                        number += 1
                        moved = b"%b-%d" % (mark, number)
                        with suppress(OSError):
                            os.close(_unlocked(here, inner))
                            os.rename(inner, moved, src_dir_fd=here, dst_dir_fd=root)
                            waiting.append(moved)
                finally:
                    os.close(here)
                os.rmdir(name, dir_fd=root)
    finally:
        os.close(root)
    os.rmdir(top, dir_fd=above)


def _unlocked(directory: int, name: bytes) -> int:
    """Open a directory that we may empty and move."""
    with handle_of(directory, name) as (handle, info):
        if stat.S_ISDIR(info.st_mode) and info.st_mode & WRITE != WRITE:
            os.chmod(handle, WRITE)
    return os.open(name, _DIRECTORY, dir_fd=directory)


def _emptied(directory: int) -> list[bytes]:
    """Remove everything that is no directory; the directories that are left."""
    left = []
    with os.scandir(directory) as found:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
    for name, inner in entries:
        if inner:
            left.append(os.fsencode(name))
        else:
            with suppress(OSError):
                os.unlink(name, dir_fd=directory)
    return left


def _waits(path: str) -> bool:
    """True if it is sealed and nobody has begun to apply it."""
    return os.path.exists(os.path.join(path, SEALED)) and not _is_begun(path)


def _is_begun(path: str) -> bool:
    """True if its changes are being applied, or were when somebody was killed."""
    return os.path.exists(os.path.join(path, JOURNAL))


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
