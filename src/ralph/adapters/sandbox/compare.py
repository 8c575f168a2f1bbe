"""What differs between two trees: a project, and what a sandbox made of it."""

import os
import stat
from collections.abc import Iterator

from ralph.adapters.sandbox.interface import Change, Entry, Kind
from ralph.adapters.sandbox.tree import entry_of, same_content

_OPAQUE = "user.overlay.opaque"


def layer_changes(upper: bytes, lower: bytes) -> Iterator[Change]:
    """What an overlay's upper layer makes of the lower one.

    A whiteout is a character device 0/0; an opaque directory hides what was in the lower one.
    """
    yield from _mode_of_root(upper, lower)
    waiting = [(b"", True)]  # each with whether the project has that directory too
    while waiting:
        place, known = waiting.pop()
        with os.scandir(os.path.join(upper, place)) as entries:
            found = {entry.name: entry.stat(follow_symlinks=False) for entry in entries}
        for name, info in found.items():
            path = os.path.join(place, name)
            if _is_whiteout(info):
                yield from deleted(lower, path)
                continue
            before = _info(os.path.join(lower, path)) if known else None
            yield from entry_changes(lower, path, before, (os.path.join(upper, path), info))
            if stat.S_ISDIR(info.st_mode):
                both = before is not None and stat.S_ISDIR(before.st_mode)
                waiting.append((path, both))
        if known and place and _is_opaque(os.path.join(upper, place)):
            for name in _names(os.path.join(lower, place)) - found.keys():
                yield from deleted(lower, os.path.join(place, name))


Seen = tuple[bytes, os.stat_result]  # a path, and what stands there


def entry_changes(
    lower: bytes, path: bytes, before: os.stat_result | None, new: Seen
) -> Iterator[Change]:
    """How one entry differs from what the project has there; below a directory nobody looks."""
    entry, was = entry_of(new[1]), None if before is None else entry_of(before)
    name = os.fsdecode(path)
    if was is not None and Entry.DIRECTORY in (was, entry) and was is not entry:
        yield from deleted(lower, path)
        before = None
    if before is None:
        yield Change(name, Kind.SYMLINK if entry is Entry.LINK else Kind.ADDED, entry)
    elif kind := difference((os.path.join(lower, path), before), new):
        yield Change(name, kind, entry)


def difference(old: Seen, new: Seen) -> Kind | None:
    """How an entry differs from another; None if it does not."""
    entry, was = entry_of(new[1]), entry_of(old[1])
    if entry is Entry.LINK:
        same = was is Entry.LINK and os.readlink(old[0]) == os.readlink(new[0])
        return None if same else Kind.SYMLINK
    if entry is not was or (entry is Entry.FILE and not _same_file(old, new)):
        return Kind.MODIFIED
    return None if _rights(old[1]) == _rights(new[1]) else Kind.MODE


def _same_file(old: Seen, new: Seen) -> bool:
    if old[1].st_size != new[1].st_size:
        return False
    try:
        return same_content(old[0], new[0])
    except PermissionError:
        return False  # what nobody can read is taken to have changed


def _rights(info: os.stat_result) -> tuple[int, int, int]:
    return stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid


def deleted(lower: bytes, path: bytes) -> Iterator[Change]:
    """Everything that is gone with a path, the inner after the outer."""
    waiting = [path]
    while waiting:
        here = waiting.pop()
        info = _info(os.path.join(lower, here))
        if info is None:
            continue  # nobody has it any more
        entry = entry_of(info)
        yield Change(os.fsdecode(here), Kind.DELETED, entry)
        if entry is Entry.DIRECTORY:
            names = _names(os.path.join(lower, here))
            waiting += [os.path.join(here, name) for name in sorted(names, reverse=True)]


def _mode_of_root(upper: bytes, lower: bytes) -> Iterator[Change]:
    if stat.S_IMODE(os.stat(upper).st_mode) != stat.S_IMODE(os.stat(lower).st_mode):
        yield Change(".", Kind.MODE, Entry.DIRECTORY)


def _is_whiteout(info: os.stat_result) -> bool:
    return stat.S_ISCHR(info.st_mode) and info.st_rdev == 0


def _is_opaque(path: bytes) -> bool:
    try:
        return os.getxattr(path, _OPAQUE, follow_symlinks=False) == b"y"
    except OSError:
        return False


def _names(path: bytes) -> set[bytes]:
    try:
        return set(os.listdir(path)) if stat.S_ISDIR(os.lstat(path).st_mode) else set()
    except OSError:
        return set()


def _info(path: bytes) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
