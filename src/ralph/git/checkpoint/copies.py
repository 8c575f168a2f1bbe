"""Copies of what git does not keep, so that a checkpoint can bring it back (ADR 28): small ignored
files, such as a person's `.env`, and other repositories in the work tree, such as a clone in
`vendor`."""

import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress

from ralph.files.digest import digest_of
from ralph.files.state_dir import lstat
from ralph.git.checkpoint.files import FileRestore, content
from ralph.git.repository import RepositoryPlace
from ralph.git.view import is_repository
from ralph.kernel.value import replace, value

_LARGEST = 1 << 20  # bytes of an ignored file
_LARGEST_OF_ALL = 16 << 20
_MOST = 200
_LARGEST_REPOSITORIES = 64 << 20  # together
_MOST_ENTRIES = 5000  # files and directories in them
_COPIED = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)
_HALF = ".git.ralph"  # until all of it is there
_FILES, _REPOSITORIES = "ignored", "repositories"  # of a checkpoint


@value
class CopiedFile:
    """A copy, and what its original looked like by then."""

    name: str  # in the checkpoint's directory
    size: int
    mode: int
    changed: tuple[int, int, int]  # inode and times: the same in a file that nobody touched


@value
class CopiedRepository:
    """A copy of all that is in a repository, and what its files looked like by then."""

    name: str  # in the checkpoint's directory; "" if it was too large to copy
    digest: str  # of names, sizes, inodes and times


# The copies of the checkpoint before, each with the directory it is in: they serve again where
# nothing was changed.
LastFiles = Mapping[str, tuple[CopiedFile, str]]
LastRepositories = Mapping[str, tuple[CopiedRepository, str]]


def _nearest_first(paths: Iterable[str]) -> list[str]:
    return sorted(paths, key=lambda path: (path.count("/"), path))


def keep_files(
    place: RepositoryPlace, ignored: Iterable[str], directory: str, last: LastFiles
) -> dict[str, tuple[CopiedFile, str]]:
    """Copy what is small, those nearest to the top first."""
    copies: dict[str, tuple[CopiedFile, str]] = {}
    total = 0
    for path in _nearest_first(ignored):
        found = None if path.endswith("/") else lstat(place.path(path))
        if found is None or not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
            continue
        if total + found.st_size > _LARGEST_OF_ALL:
            continue
        if not copies:
            os.mkdir(os.path.join(directory, _FILES), mode=0o700)
        copy = _copy_of(found, os.path.join(_FILES, str(len(copies))))
        if _copied_file(place.path(path), os.path.join(directory, copy.name), copy, last.get(path)):
            copies[path] = copy, directory
            total += found.st_size
        if len(copies) == _MOST:
            break
    return copies


def _copy_of(found: os.stat_result, name: str) -> CopiedFile:
    changed = (found.st_ino, found.st_mtime_ns, found.st_ctime_ns)
    return CopiedFile(name, found.st_size, found.st_mode, changed)


def _copied_file(
    source: str, target: str, copy: CopiedFile, last: tuple[CopiedFile, str] | None
) -> bool:
    """False for what nobody may read, or what is gone by now."""
    if last and replace(last[0], name=copy.name) == copy:
        with suppress(OSError):
            os.link(os.path.join(last[1], last[0].name), target)
            return True
    if not os.access(source, os.R_OK):
        return False
    try:
        shutil.copyfile(source, target, follow_symlinks=False)
    except FileNotFoundError:
        return False
    os.chmod(target, 0o600)
    return True


def put_file_back(files: FileRestore, path: str, copy: CopiedFile, kept: str) -> bool:
    """Restore a changed or deleted file, and keep what stands there. False if it is as it was."""
    target, mode = files.repository.place.path(path), stat.S_IMODE(copy.mode)
    found = lstat(target)
    if found and (_copy_of(found, copy.name) == copy or _holds_the_same(target, found, kept)):
        changed = stat.S_IMODE(found.st_mode) != mode
        if changed:
            os.chmod(target, mode)
        return changed
    files.make_way_for(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with open(kept, "rb") as source, open(os.open(target, flags, 0o600), "wb") as file:
        shutil.copyfileobj(source, file)
    os.chmod(target, mode)
    os.utime(target, ns=(copy.changed[1], copy.changed[1]))
    return True


def _holds_the_same(path: str, found: os.stat_result, kept: str) -> bool:
    """True also for a file that was written anew."""
    if not stat.S_ISREG(found.st_mode) or found.st_size != os.stat(kept).st_size:
        return False
    return os.access(path, os.R_OK) and content(path) == content(kept)


def keep_repositories(
    place: RepositoryPlace, apart: Iterable[str], directory: str, last: LastRepositories
) -> dict[str, tuple[CopiedRepository, str]]:
    """Copy those that are small, nearest to the top first."""
    copies: dict[str, tuple[CopiedRepository, str]] = {}
    count, size = _MOST_ENTRIES, _LARGEST_REPOSITORIES
    for path in _nearest_first(path for path in apart if is_repository(place.path(path))):
        name = os.path.join(_REPOSITORIES, str(len(copies)))
        copies[path] = CopiedRepository("", ""), directory
        measured = _measure(place.path(path), count, size)
        if measured is not None:
            copy = CopiedRepository(name, measured[2])
            if _copied_repository(place.path(path), directory, copy, last.get(path)):
                copies[path] = copy, directory
                count, size = count - measured[0], size - measured[1]
    return copies


def _measure(path: str, most: int, largest: int) -> tuple[int, int, str] | None:
    """The count of files, their size and a digest; None if too large or not readable."""
    count = size = 0
    stamps: list[bytes] = []
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted((*folders, *names)):
            inner = os.path.join(folder, name)
            found = lstat(inner)
            if found is None:
                return None
            mode = found.st_mode
            needed = os.R_OK | os.X_OK if stat.S_ISDIR(mode) else os.R_OK
            if not stat.S_ISLNK(mode) and not os.access(inner, needed):
                return None
            length = found.st_size if stat.S_ISREG(mode) else 0
            count, size = count + 1, size + length
            stamp = (mode, length, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)
            stamps.append(os.fsencode(repr((folder, name, stamp))))
        if count > most or size > largest:
            return None
    return count, size, digest_of(stamps)


def _copied_repository(
    source: str, directory: str, copy: CopiedRepository, last: tuple[CopiedRepository, str] | None
) -> bool:
    """False if somebody changed it meanwhile, or there is no space: half a repository is none."""
    target = os.path.join(directory, copy.name)
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    if last and last[0].name and last[0].digest == copy.digest:
        with suppress(OSError):
            _copy_all(os.path.join(last[1], last[0].name), target, links=True)
            return True
        shutil.rmtree(target, ignore_errors=True)
    try:
        _copy_all(source, target)
    except OSError:
        shutil.rmtree(target, ignore_errors=True)
        return False
    return True


def _copy_all(source: str, target: str, *, links: bool = False, without: str = "") -> None:
    """Copy all of a directory but pipes and sockets, and one name at its top."""

    def left_out(folder: str, names: list[str]) -> list[str]:
        modes = {name: lstat(os.path.join(folder, name)) for name in names}
        special = [n for n, at in modes.items() if at and stat.S_IFMT(at.st_mode) not in _COPIED]
        return [*special, without] if folder == source else special

    one = os.link if links else shutil.copy2
    shutil.copytree(source, target, symlinks=True, ignore=left_out, copy_function=one)


def put_repository_back(files: FileRestore, path: str, kept: str) -> None:
    """Put back one that is no more; what stands there is put aside. Its `.git` comes last and at
    once: without one, whoever was killed begins again."""
    target = files.repository.place.path(path.rstrip("/"))
    files.make_way_for(path.rstrip("/"))
    _copy_all(kept, target, without=".git")
    source, half = os.path.join(kept, ".git"), os.path.join(target, _HALF)
    if os.path.isdir(source):
        _copy_all(source, half)
    else:
        shutil.copy2(source, half, follow_symlinks=False)
    os.rename(half, os.path.join(target, ".git"))
    shutil.copystat(kept, target)
