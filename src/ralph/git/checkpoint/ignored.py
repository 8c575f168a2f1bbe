"""Small ignored files, such as a person's `.env`: git keeps none, so a checkpoint has copies
(ADR 28)."""

import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress

from ralph.files.state_dir import lstat
from ralph.git.checkpoint.files import FileRestore, content
from ralph.git.repository import RepositoryPlace
from ralph.kernel.value import replace, value

_LARGEST = 1 << 20
_LARGEST_OF_ALL = 16 << 20
_MOST = 200
DIRECTORY = "ignored"  # of a checkpoint


@value
class Copy:
    """A copy, and what its original looked like by then."""

    name: str  # in the checkpoint's directory
    size: int
    mode: int
    changed: tuple[int, int, int]  # inode and times: the same in a file that nobody touched


def _copy_of(found: os.stat_result, name: str) -> Copy:
    changed = (found.st_ino, found.st_mtime_ns, found.st_ctime_ns)
    return Copy(name, found.st_size, found.st_mode, changed)


def keep(
    place: RepositoryPlace,
    ignored: Iterable[str],
    directory: str,
    last: Mapping[str, tuple[Copy, str]],
) -> dict[str, Copy]:
    """Copy what is small, those nearest to the top first; `last` are copies of before, each with
    the directory it is in: they serve again where nothing was changed."""
    copies: dict[str, Copy] = {}
    total = 0
    for path in sorted(ignored, key=lambda path: (path.count("/"), path)):
        found = None if path.endswith("/") else lstat(place.path(path))
        if found is None or not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
            continue
        if total + found.st_size > _LARGEST_OF_ALL:
            continue
        if not copies:
            os.mkdir(os.path.join(directory, DIRECTORY), mode=0o700)
        name = os.path.join(DIRECTORY, str(len(copies)))
        copy = _copy_of(found, name)
        if _copied(place.path(path), os.path.join(directory, name), copy, last.get(path)):
            copies[path] = copy
            total += found.st_size
        if len(copies) == _MOST:
            break
    return copies


def _copied(source: str, target: str, copy: Copy, last: tuple[Copy, str] | None) -> bool:
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


def put_back(files: FileRestore, copies: Mapping[str, Copy], directory: str) -> list[str]:
    """Put back what was changed or deleted; what stands there is put aside. The paths."""
    return [
        path
        for path, copy in copies.items()
        if _put_back(files, path, copy, os.path.join(directory, copy.name))
    ]


def _put_back(files: FileRestore, path: str, copy: Copy, kept: str) -> bool:
    target, mode = files.repository.place.path(path), stat.S_IMODE(copy.mode)
    found = lstat(target)
    if found and (_copy_of(found, copy.name) == copy or _holds(target, found, kept)):
        changed = stat.S_IMODE(found.st_mode) != mode
        if changed:
            os.chmod(target, mode)
        return changed
    files.make_way_above(path)
    files.put_aside([path])
    os.makedirs(os.path.dirname(target), exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with open(kept, "rb") as source, open(os.open(target, flags, 0o600), "wb") as file:
        shutil.copyfileobj(source, file)
    os.chmod(target, mode)
    os.utime(target, ns=(copy.changed[1], copy.changed[1]))
    return True


def _holds(path: str, found: os.stat_result, kept: str) -> bool:
    """True if the file holds the same, also if it was written anew."""
    if not stat.S_ISREG(found.st_mode) or found.st_size != os.stat(kept).st_size:
        return False
    return os.access(path, os.R_OK) and content(path) == content(kept)
