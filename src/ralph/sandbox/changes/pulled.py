"""The changes in a machine of its own: its files are listed twice, and what differs is fetched."""

import errno
import os
import shutil
import stat
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import IO

from ralph.kernel.value import value
from ralph.sandbox.changes.by_descriptor import Reach
from ralph.sandbox.changes.compare import deleted, entry_changes
from ralph.sandbox.changes.tree import FileTree, parts_of
from ralph.sandbox.interface import Change, ChangeKind, FileType

_KINDS = {b"f": FileType.FILE, b"d": FileType.DIRECTORY, b"l": FileType.LINK}
_FIELDS = 8


@value
class GuestEntry:
    """An entry as `find` tells it: two are equal if nobody has touched it between them."""

    entry: FileType
    mode: int
    owner: tuple[bytes, bytes]
    content: tuple[bytes, ...]  # size, number and times; nothing of a directory


Listing = Mapping[bytes, GuestEntry]


def parse(output: bytes) -> dict[bytes, GuestEntry]:
    """Parse a listing; lines that are none of it are left out."""
    found = {}
    for line in output.split(b"\0"):
        fields = line.split(b" ", _FIELDS)
        if len(fields) == _FIELDS + 1 and fields[1].isdigit():
            kind, mode, user, group, *content, path = fields
            entry = _KINDS.get(kind, FileType.OTHER)
            kept = () if entry is FileType.DIRECTORY else tuple(content)
            found[path] = GuestEntry(entry, int(mode, 8), (user, group), kept)
    return found


def differing(before: Listing, now: Listing) -> list[bytes]:
    """Every path that is new, gone, or not as it was; sorted."""
    return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))


def wanted(paths: list[bytes], now: Listing) -> list[bytes]:
    """Paths for `tar`; what is no file, directory or link is not fetched."""
    return [path for path in paths if path in now and now[path].entry is not FileType.OTHER]


def unpack(archive: IO[bytes], into: str) -> None:
    """Put files, directories and links of an archive into a directory, and nowhere else.

    Whoever works in the sandbox decides what is in the archive. Modes come later. OSError for an
    archive that is none, or torn.
    """
    tree = FileTree(into)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        with tarfile.open(fileobj=archive, mode="r|") as members:
            for member in members:
                if not parts_of(member.name):
                    continue
                with tree.above(member.name, make=True) as (above, name):
                    if member.isdir():
                        with suppress(FileExistsError):  # something in it came first
                            os.mkdir(name, 0o700, dir_fd=above)
                    elif member.issym():
                        os.symlink(os.fsencode(member.linkname), name, dir_fd=above)
                    elif member.isreg() and (data := members.extractfile(member)) is not None:
                        with os.fdopen(os.open(name, flags, 0o600, dir_fd=above), "wb") as file:
                            shutil.copyfileobj(data, file)
                        times = (member.mtime, member.mtime)
                        os.utime(name, times, dir_fd=above, follow_symlinks=False)
    except tarfile.TarError as error:
        raise OSError(errno.EIO, f"the archive is torn: {error}") from error


def like_the_project(
    path: bytes, project: str, fetched: str, before: Listing, now: Listing
) -> None:
    """Give what was fetched the owner that it has here, and the mode unless that was changed."""
    there = os.path.join(os.fsencode(fetched), path)
    old, new = before.get(path), now[path]
    try:
        here = os.lstat(os.path.join(os.fsencode(project), path))
    except OSError:
        here = None
    owner = here or os.stat(project)
    if os.geteuid() == 0:
        os.chown(there, owner.st_uid, owner.st_gid, follow_symlinks=False)
    same = old is not None and (old.entry, old.mode) == (new.entry, new.mode)
    mode = stat.S_IMODE(here.st_mode) if here is not None and same else new.mode
    if new.entry is not FileType.LINK:
        os.chmod(there, mode)


def against(
    project: str, fetched: str, paths: list[bytes], before: Listing, now: Listing
) -> Iterator[Change]:
    """Changes by comparing what was fetched with the project."""
    with Reach(project) as lower, Reach(fetched) as upper:
        for path in paths:
            new, here = now.get(path), upper.info(path)
            if new is None:
                yield from islice(deleted(lower, path), 1)  # what was in it is told by itself
            elif new.entry is FileType.OTHER:
                yield Change(os.fsdecode(path), _kind(before.get(path), new), FileType.OTHER)
            elif here is not None:
                yield from entry_changes(lower, path, lower.seen(path), (upper, path, here))


def by_listing(paths: list[bytes], before: Listing, now: Listing) -> Iterator[Change]:
    """Changes by the listings alone, for a project that is its own past."""
    for path in paths:
        old, new = before.get(path), now.get(path)
        if new is not None:
            yield Change(os.fsdecode(path), _kind(old, new), new.entry)
        elif old is not None:
            yield Change(os.fsdecode(path), ChangeKind.DELETED, old.entry)


def _kind(old: GuestEntry | None, new: GuestEntry) -> ChangeKind:
    if new.entry is FileType.LINK:
        return ChangeKind.SYMLINK
    if old is None:
        return ChangeKind.ADDED
    same = old.entry is new.entry and old.content[:3] == new.content[:3]  # but for its last time
    return ChangeKind.MODE if same and old.mode != new.mode else ChangeKind.MODIFIED
