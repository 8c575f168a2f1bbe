"""The differences between two trees: a project, and what a sandbox made of it."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from ralph.sandbox.changes.by_descriptor import READ, Reach
from ralph.sandbox.interface import Change, ChangeKind, FileType, type_of

OPAQUE = "user.overlay.opaque"
_CHUNK = 1024 * 1024
Seen = tuple[Reach, bytes, os.stat_result]  # a tree, a path in it, and what stands there


def layer_changes(upper: str, lower: str) -> Iterator[Change]:
    """Changes that an overlay's upper layer makes to the lower one.

    A whiteout is a character device 0/0. An opaque directory hides what was in the lower one, and
    so at every depth below it. An upper layer with attributes of users (`userxattr`) has neither
    redirects nor files without their content, and whiteouts by attribute are for lower ones.
    """
    with Reach(upper, needs=READ) as layer, Reach(lower) as project:
        new, old = layer.info(b""), project.info(b"")
        if new and old and layer.mode(b"", new) != stat.S_IMODE(old.st_mode):
            yield Change(".", ChangeKind.MODE, FileType.DIRECTORY)
        waiting = [(b"", True, False)]  # whether the project has it too; whether that is hidden
        while waiting:
            place, known, hidden = waiting.pop()
            hidden = hidden or (place != b"" and is_opaque(layer, place))
            found = layer.entries(place)
            for name, info in found:
                path = os.path.join(place, name)
                if stat.S_ISCHR(info.st_mode) and info.st_rdev == 0:  # a whiteout
                    yield from deleted(project, path)
                    continue
                before = project.seen(path) if known else None
                yield from entry_changes(project, path, before, (layer, path, info))
                if stat.S_ISDIR(info.st_mode):
                    both = before is not None and stat.S_ISDIR(before.st_mode)
                    waiting.append((path, both, hidden))
            if known and hidden:
                for name in project.names(place) - {name for name, _ in found}:
                    yield from deleted(project, os.path.join(place, name))


def is_opaque(layer: Reach, path: bytes) -> bool:
    """True if a directory of an upper layer hides what the lower one has there."""
    return layer.attribute(path, OPAQUE) == b"y"


def entry_changes(
    project: Reach, path: bytes, before: os.stat_result | None, new: Seen
) -> Iterator[Change]:
    """Changes of one entry from what the project has there; not of anything below a directory."""
    entry, was = type_of(new[2].st_mode), None if before is None else type_of(before.st_mode)
    name = os.fsdecode(path)
    if was is not None and FileType.DIRECTORY in (was, entry) and was is not entry:
        yield from deleted(project, path)
        before = None
    if before is None:
        kind = ChangeKind.SYMLINK if entry is FileType.LINK else ChangeKind.ADDED
        yield Change(name, kind, entry)
    elif changed := difference((project, path, before), new):
        yield Change(name, changed, entry)


def difference(old: Seen, new: Seen) -> ChangeKind | None:
    """The difference of an entry from another, or None. Times are no difference."""
    entry, was = type_of(new[2].st_mode), type_of(old[2].st_mode)
    if entry is FileType.LINK:
        same = was is FileType.LINK and old[0].link(old[1]) == new[0].link(new[1])
        return None if same else ChangeKind.SYMLINK
    if entry is not was or (entry is FileType.FILE and not _same_file(old, new)):
        return ChangeKind.MODIFIED
    return None if _rights(old) == _rights(new) else ChangeKind.MODE


def _same_file(old: Seen, new: Seen) -> bool:
    if old[2].st_size != new[2].st_size:
        return False
    with (
        suppress(OSError),  # what nobody can read is taken to have changed
        os.fdopen(old[0].file(old[1]), "rb", buffering=0) as one,
        os.fdopen(new[0].file(new[1]), "rb", buffering=0) as other,
    ):
        while (here := one.read(_CHUNK)) == other.read(_CHUNK):
            if not here:
                return True
    return False


def _rights(seen: Seen) -> tuple[int, int, int]:
    tree, path, info = seen
    return tree.mode(path, info), info.st_uid, info.st_gid


def deleted(project: Reach, path: bytes) -> Iterator[Change]:
    """A change for everything that is gone with a path, the inner after the outer."""
    waiting = [path]
    while waiting:
        here = waiting.pop()
        try:
            info = project.info(here)
        except PermissionError:
            # We may not look there; applying it finds out what it is.
            yield Change(os.fsdecode(here), ChangeKind.DELETED)
            continue
        if info is None:
            continue  # nobody has it any more
        entry = type_of(info.st_mode)
        yield Change(os.fsdecode(here), ChangeKind.DELETED, entry)
        if entry is FileType.DIRECTORY:
            names = sorted(project.names(here), reverse=True)
            waiting += (os.path.join(here, name) for name in names)
