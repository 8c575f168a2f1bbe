"""Other repositories in the work tree, such as a clone in `vendor`: git keeps none of what is in
them, so a checkpoint has copies of small ones, for when one is deleted (ADR 28)."""

import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress

from ralph.files.digest import digest_of
from ralph.files.state_dir import lstat
from ralph.git.checkpoint.files import FileRestore
from ralph.git.repository import RepositoryPlace
from ralph.git.view import is_repository
from ralph.kernel.value import value

_LARGEST_OF_ALL = 64 << 20
_MOST = 5000  # files and directories

_COPIED = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)
_HALF = ".git.ralph"  # until all of it is there
DIRECTORY = "repositories"  # of a checkpoint


@value
class CopiedRepository:
    """A copy of all that is in a repository, and what its files looked like by then."""

    name: str  # in the checkpoint's directory; "" if it was too large to copy
    digest: str  # of names, sizes, inodes and times


@value
class _Size:
    count: int
    size: int
    digest: str


def keep(
    place: RepositoryPlace,
    apart: Iterable[str],
    directory: str,
    last: Mapping[str, tuple[CopiedRepository, str]],
) -> dict[str, CopiedRepository]:
    """Copy those that are small, nearest to the top first; `last` are copies of before, each with
    the directory it is in: they serve again where nothing was changed."""
    copies: dict[str, CopiedRepository] = {}
    found = [path for path in apart if is_repository(place.path(path))]
    count, size = _MOST, _LARGEST_OF_ALL
    for path in sorted(found, key=lambda path: (path.count("/"), path)):
        name = os.path.join(DIRECTORY, str(len(copies)))
        measured = _measure(place.path(path), count, size)
        if measured and _copied(place.path(path), directory, name, measured, last.get(path)):
            copies[path] = CopiedRepository(name, measured.digest)
            count, size = count - measured.count, size - measured.size
        else:
            copies[path] = CopiedRepository("", "")
    return copies


def _measure(path: str, most: int, largest: int) -> _Size | None:
    """None for what is too large, or cannot be read as a whole."""
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
    return _Size(count, size, digest_of(stamps))


def _copied(
    source: str,
    directory: str,
    name: str,
    measured: _Size,
    last: tuple[CopiedRepository, str] | None,
) -> bool:
    """False if somebody changed it meanwhile, or there is no space: half a repository is none."""
    target = os.path.join(directory, name)
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    if last and last[0].name and last[0].digest == measured.digest:
        with suppress(OSError):
            _copy(os.path.join(last[1], last[0].name), target, links=True)
            return True
        shutil.rmtree(target, ignore_errors=True)
    try:
        _copy(source, target)
    except OSError:
        shutil.rmtree(target, ignore_errors=True)
        return False
    return True


def _copy(source: str, target: str, *, links: bool = False, without: str = "") -> None:
    """Copy all of a directory but pipes and sockets, and one name at its top."""

    def left_out(folder: str, names: list[str]) -> list[str]:
        modes = {name: lstat(os.path.join(folder, name)) for name in names}
        special = [n for n, at in modes.items() if at and stat.S_IFMT(at.st_mode) not in _COPIED]
        return [*special, without] if folder == source else special

    one = os.link if links else shutil.copy2
    shutil.copytree(source, target, symlinks=True, ignore=left_out, copy_function=one)


def put_back(
    files: FileRestore, copies: Mapping[str, CopiedRepository], directory: str
) -> tuple[list[str], list[str]]:
    """Put back those that are no more; what stands there is put aside. The paths, and those of
    which there is no copy."""
    back: list[str] = []
    lost: list[str] = []
    for path, copy in copies.items():
        if is_repository(files.repository.place.path(path)):
            continue
        if copy.name:
            _put_back(files, path.rstrip("/"), os.path.join(directory, copy.name))
        (back if copy.name else lost).append(path)
    return back, lost


def _put_back(files: FileRestore, path: str, kept: str) -> None:
    """Its `.git` comes last and at once: without one, whoever was killed begins again."""
    target = files.repository.place.path(path)
    files.make_way_above(path)
    files.put_aside([path])
    os.makedirs(os.path.dirname(target), exist_ok=True)
    _copy(kept, target, without=".git")
    source, half = os.path.join(kept, ".git"), os.path.join(target, _HALF)
    if os.path.isdir(source):
        _copy(source, half)
    else:
        shutil.copy2(source, half, follow_symlinks=False)
    os.rename(half, os.path.join(target, ".git"))
    shutil.copystat(kept, target)
