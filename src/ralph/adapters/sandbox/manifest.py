"""What a tree was, remembered by its stamps: for sandboxes without a layer of their own."""

import os
import stat
from collections.abc import Iterator

from ralph.adapters.sandbox.compare import Seen, deleted, entry_changes
from ralph.adapters.sandbox.interface import Change, Entry, Kind
from ralph.adapters.sandbox.tree import entry_of

_OF_GIT = b".git"
Stamp = tuple[int, int, int, int, int]


def stamp_of(info: os.stat_result) -> Stamp:
    """Different whenever someone has touched the entry; a directory's times do not count."""
    if stat.S_ISDIR(info.st_mode):
        return info.st_mode, info.st_uid, info.st_gid, 0, 0
    return info.st_mode, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def entries(root: bytes, *, git: bool) -> Iterator[tuple[bytes, os.stat_result]]:
    """Everything below a directory, without following links; with or without `.git` at the top."""
    waiting = [b""]
    while waiting:
        place = waiting.pop()
        try:
            with os.scandir(os.path.join(root, place)) as found:
                listed = [(entry.name, entry.stat(follow_symlinks=False)) for entry in found]
        except OSError:
            continue  # nobody can read it, so nobody changes it
        for name, info in listed:
            path = os.path.join(place, name)
            if not git and path == _OF_GIT:
                continue
            yield path, info
            if stat.S_ISDIR(info.st_mode):
                waiting.append(path)


class Manifest:
    """The stamps of every entry at one moment."""

    def __init__(self, root: str, *, git: bool) -> None:
        self._root = os.fsencode(root)
        self._git = git
        self._known = {path: stamp_of(info) for path, info in entries(self._root, git=git)}
        self._kinds = {path: stamp[0] for path, stamp in self._known.items()}

    def knows(self, path: str) -> bool:
        """Whether it was there."""
        return os.fsencode(path) in self._known

    def differing(self) -> Iterator[tuple[bytes, os.stat_result | None]]:
        """Every path whose stamp is another now; None is one that is gone."""
        now = dict(entries(self._root, git=self._git))
        for path, info in now.items():
            if self._known.get(path) != stamp_of(info):
                yield path, info
        for path in self._known.keys() - now.keys():
            yield path, None

    def changes(self) -> Iterator[Change]:
        """By the stamps alone, for a tree that is its own past."""
        for path, info in self.differing():
            name, was = os.fsdecode(path), self._kinds.get(path)
            if info is None:
                assert was is not None
                yield Change(name, Kind.DELETED, _entry(was))
            elif was is None:
                link = stat.S_ISLNK(info.st_mode)
                yield Change(name, Kind.SYMLINK if link else Kind.ADDED, entry_of(info))
            else:
                yield Change(name, self._how(path, info), entry_of(info))

    def _how(self, path: bytes, info: os.stat_result) -> Kind:
        if stat.S_ISLNK(info.st_mode):
            return Kind.SYMLINK
        known = self._known[path]
        content = (info.st_ino, info.st_size, info.st_mtime_ns)
        same = stat.S_ISDIR(info.st_mode) or known[1:4] == content
        return Kind.MODE if same and known[0] != info.st_mode else Kind.MODIFIED

    def against(self, project: str) -> Iterator[Change]:
        """By comparing what has another stamp with the project."""
        lower = os.fsencode(project)
        for path, info in self.differing():
            there = os.path.join(lower, path)
            if info is None:
                yield from _gone(lower, path)
                continue
            try:
                before: os.stat_result | None = os.lstat(there)
            except OSError:
                before = None
            new: Seen = (os.path.join(self._root, path), info)
            yield from entry_changes(lower, path, before, new)


def _gone(lower: bytes, path: bytes) -> Iterator[Change]:
    """One entry; what was in a directory is in the manifest by itself, and told by itself."""
    first = next(deleted(lower, path), None)
    if first is not None:
        yield first


def _entry(mode: int) -> Entry:
    kinds = {stat.S_IFREG: Entry.FILE, stat.S_IFDIR: Entry.DIRECTORY, stat.S_IFLNK: Entry.LINK}
    return kinds.get(stat.S_IFMT(mode), Entry.OTHER)
