"""Files below a directory, reached without ever following a link: whoever works in a sandbox can
put one anywhere, and it must not lead us out."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ralph.files.safe_open import regular
from ralph.sandbox.changes.by_descriptor import Reach
from ralph.sandbox.interface import FileType


def entry_of(mode: int) -> FileType:
    kinds = {
        stat.S_IFREG: FileType.FILE,
        stat.S_IFDIR: FileType.DIRECTORY,
        stat.S_IFLNK: FileType.LINK,
    }
    return kinds.get(stat.S_IFMT(mode), FileType.OTHER)


def parts_of(path: str) -> list[bytes]:
    """The steps of a relative path; ValueError for one that leads elsewhere."""
    steps = os.fsencode(path).split(b"/")
    if path.startswith("/") or b".." in steps or b"\0" in os.fsencode(path):
        raise ValueError(f"not a path within the project: {path!r}")
    return [step for step in steps if step not in (b"", b".")]


class FileTree:
    """The project's files below a directory, which is given by descriptor or by path."""

    def __init__(self, root: int | str) -> None:
        self._root = f"/proc/self/fd/{root}" if isinstance(root, int) else root

    def read(self, path: str) -> bytes:
        with self.above(path) as (directory, name):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            file = regular(os.open(name, flags, dir_fd=directory), path)
            with os.fdopen(file, "rb") as opened:
                return opened.read()

    def write(self, path: str, data: bytes, mode: int | None = None) -> None:
        with self.above(path, make=True) as (directory, name):
            old = 0o644
            with suppress(FileNotFoundError):
                info = os.lstat(name, dir_fd=directory)
                if stat.S_ISDIR(info.st_mode):
                    words = os.strerror(errno.EISDIR)
                    raise IsADirectoryError(errno.EISDIR, words, os.fsdecode(name))
                old = stat.S_IMODE(info.st_mode) if stat.S_ISREG(info.st_mode) else old
                os.unlink(name, dir_fd=directory)  # whatever it is: a link is not followed
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with os.fdopen(os.open(name, flags, 0o600, dir_fd=directory), "wb") as file:
                file.write(data)
                os.fchmod(file.fileno(), old if mode is None else mode)

    def list(self, path: str = "") -> tuple[str, ...]:
        with Reach(self._root) as tree:
            return tuple(sorted(os.listdir(tree.directory(b"/".join(parts_of(path))))))

    def delete(self, path: str) -> None:
        with self.above(path) as (directory, name):
            if stat.S_ISDIR(os.lstat(name, dir_fd=directory).st_mode):
                import shutil

                shutil.rmtree(os.fsdecode(name), dir_fd=directory)
            else:
                os.unlink(name, dir_fd=directory)

    @contextmanager
    def above(self, path: str, *, make: bool = False) -> Iterator[tuple[int, bytes]]:
        """The directory that holds it, and its name there."""
        steps = parts_of(path)
        if not steps:
            raise ValueError("the project itself is not a file")
        with Reach(self._root) as tree:
            yield tree.directory(b"/".join(steps[:-1]), make=0o777 if make else 0), steps[-1]
