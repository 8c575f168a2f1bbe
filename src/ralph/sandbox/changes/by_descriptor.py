"""Trees reached by descriptors: no path is too long, no link is followed, whoever made it, and what
is ours is reached even where its mode keeps us out."""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Self

from ralph.errors import ConfigError
from ralph.files.safe_open import regular
from ralph.sandbox.interface import is_within
from ralph.text.plain import escaped

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_HANDLE = os.O_PATH | os.O_NOFOLLOW
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW  # a file that nobody has yet
_OF_OURS = b"/proc/self/fd/"  # a descriptor by its name, the only link that we follow
READ, WRITE = 0o500, 0o700  # what it takes to look into a directory, and to work in it
_MOST_OPEN = 48
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class Reach:
    """A directory and all below it. Paths are relative, b"" is the directory itself.

    With `needs` the modes of our own directories are lifted on the way, and put back by `close`.
    `modes` are those of a tree that somebody had lifted when he was killed. The last directories on
    the way stay open, so that neighbours cost nothing; but not all, so that no depth is too much.
    """

    def __init__(
        self, root: str, *, needs: int = 0, modes: Mapping[str, int] | None = None
    ) -> None:
        self._root = os.fsencode(root)
        self._user = os.geteuid()
        self._needs = needs if self._user else 0  # root is kept out of nothing
        self._modes = {os.fsencode(path): mode for path, mode in (modes or {}).items()}
        self._lifted: dict[bytes, tuple[int, int]] = {}  # a directory's number, and its mode
        self._trail: list[tuple[bytes, int]] = []  # directories that are open, each in the last

    def info(self, path: bytes) -> os.stat_result | None:
        """The entry itself; None if there is none, or a link is in the way."""
        try:
            if not path:
                return os.fstat(self.directory(b""))
            directory, name = self.above(path)
            return os.lstat(name, dir_fd=directory)
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise

    def seen(self, path: bytes) -> os.stat_result | None:
        """The same; None also where we may not look."""
        try:
            return self.info(path)
        except OSError:
            return None

    def names(self, path: bytes) -> set[bytes]:
        """The names in a directory; none where we may not look."""
        try:
            return {name for name, _ in self.entries(path)}
        except OSError:
            return set()

    def mode(self, path: bytes, info: os.stat_result) -> int:
        """The mode that it had before anybody lifted it."""
        lifted = self._lifted.get(path)
        own = stat.S_IMODE(info.st_mode) if lifted is None else lifted[1]
        return self._modes.get(path, own)

    def entries(self, path: bytes) -> list[tuple[bytes, os.stat_result]]:
        with os.scandir(self.directory(path)) as found:
            return [(os.fsencode(one.name), one.stat(follow_symlinks=False)) for one in found]

    def link(self, path: bytes) -> bytes:
        directory, name = self.above(path)
        return os.readlink(name, dir_fd=directory)

    def file(self, path: bytes) -> int:
        directory, name = self.above(path)
        try:
            return os.open(name, _FILE, dir_fd=directory)
        except PermissionError:
            if not self._needs:
                raise
        with handle_of(directory, name) as (handle, info):
            if not stat.S_ISREG(info.st_mode) or info.st_uid != self._user:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            os.chmod(handle, stat.S_IMODE(info.st_mode) | stat.S_IRUSR)
            try:
                return os.open(name, _FILE, dir_fd=directory)
            finally:
                os.chmod(handle, stat.S_IMODE(info.st_mode))

    def attribute(self, path: bytes, name: str) -> bytes:
        """An extended attribute of a directory; empty if it has none."""
        try:
            return os.getxattr(self.directory(path), name)
        except OSError:
            return b""

    def above(self, path: bytes) -> tuple[int, bytes]:
        """The directory that holds it, open until the next call, and its name there."""
        head, _, name = path.rpartition(b"/")
        if not name or name in (b".", b".."):
            raise ValueError(f"not a path within the tree: {path!r}")
        return self.directory(head), name

    def directory(self, path: bytes, *, make: int = 0) -> int:
        """A directory, open until the next call, by no link; missing ones get the mode `make`."""
        while self._trail and not _is_at_or_below(path, self._trail[-1][0]):
            os.close(self._trail.pop()[1])
        if not self._trail:
            ours = self._root.startswith(_OF_OURS)
            if self._needs:
                self._lift(b"", self._root, None)
            flags = _DIRECTORY & ~os.O_NOFOLLOW if ours else _DIRECTORY
            self._trail.append((b"", os.open(self._root, flags)))
        here, handle = self._trail[-1]
        for step in filter(None, path[len(here) :].split(b"/")):
            here = b"%b/%b" % (here, step) if here else step
            if step == b"..":
                raise ValueError(f"not a path within the tree: {here!r}")
            if make:
                with suppress(FileExistsError):
                    os.mkdir(step, make, dir_fd=handle)
            if self._needs:
                self._lift(here, step, handle)
            handle = os.open(step, _DIRECTORY, dir_fd=handle)
            self._trail.append((here, handle))
            if len(self._trail) > _MOST_OPEN:
                os.close(self._trail.pop(0)[1])
        return handle

    def _lift(self, path: bytes, name: bytes, directory: int | None) -> None:
        """Let us into a directory of ours."""
        info = os.stat(name, dir_fd=directory, follow_symlinks=directory is None)
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != self._user:
            return
        mode = stat.S_IMODE(info.st_mode)
        before = self._modes.get(path, mode)
        if before | self._needs != mode:
            before = mode  # nobody had lifted it, or somebody has set another since
        if before != mode or mode & self._needs != self._needs:
            self._lifted.setdefault(path, (info.st_ino, before))
        if mode & self._needs != self._needs:
            self._set_mode(path, info.st_ino, mode | self._needs)

    def _set_mode(self, path: bytes, number: int, mode: int) -> None:
        """Set the mode of the directory with this number, if it still stands there."""
        if not path:
            os.chmod(self._root, mode)
        else:
            directory, name = self.above(path)
            with handle_of(directory, name) as (handle, info):
                if info.st_ino == number and stat.S_ISDIR(info.st_mode):
                    os.chmod(handle, mode)

    def close_directory(self, path: bytes, mode: int, owner: tuple[int, int]) -> None:
        """Give a directory its owner (root alone can) and its mode; after everything below it."""
        directory = self.directory(path)
        if self._user == 0:
            os.fchown(directory, *owner)
        if path in self._lifted:  # it is needed still
            self._lifted[path] = self._lifted[path][0], mode
        else:
            os.fchmod(directory, mode)

    def close(self) -> None:
        """Put back what was lifted, the inner before the outer."""
        for path, (number, mode) in sorted(self._lifted.items(), reverse=True):
            with suppress(OSError):
                self._set_mode(path, number, mode)
        self._lifted.clear()
        while self._trail:
            os.close(self._trail.pop()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def handle_of(directory: int, name: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
    """A name for an entry, which stays with it whatever becomes of the path."""
    handle = os.open(name, _HANDLE, dir_fd=directory)
    try:
        yield b"%b%d" % (_OF_OURS, handle), os.fstat(handle)
    finally:
        os.close(handle)


def _is_at_or_below(path: bytes, directory: bytes) -> bool:
    return not directory or path == directory or path.startswith(directory + b"/")


def parts_of(path: str) -> list[bytes]:
    """The steps of a relative path; ValueError for one that leads elsewhere."""
    steps = os.fsencode(path).split(b"/")
    if path.startswith("/") or b".." in steps or b"\0" in os.fsencode(path):
        raise ValueError(f"not a path within the project: {path!r}")
    return [step for step in steps if step not in (b"", b".")]


def path_in(project: str, path: str) -> str:
    """A path as one below the project. ConfigError if it leads elsewhere."""
    inner = os.path.relpath(path, project) if is_within(path, project) else path
    try:
        return os.fsdecode(b"/".join(parts_of(inner)))
    except ValueError:
        raise ConfigError(
            f"{escaped(path)} is not in the project {project}", "Name a path below that, without .."
        ) from None


class FileTree:
    """The project's files by paths below a directory; OSError for a link, a pipe or a device."""

    def __init__(self, root: str) -> None:
        self._root = root

    def read(self, path: str) -> bytes:
        with self.above(path) as (directory, name):
            file = regular(os.open(name, _FILE, dir_fd=directory), path)
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
            with os.fdopen(os.open(name, NEW, 0o600, dir_fd=directory), "wb") as file:
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
