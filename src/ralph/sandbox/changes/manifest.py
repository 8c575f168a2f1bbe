"""A tree remembered by the stamps of its files: for sandboxes without a layer of their own."""

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from itertools import islice

from ralph.sandbox.changes.by_descriptor import READ, Reach
from ralph.sandbox.changes.compare import deleted, entry_changes
from ralph.sandbox.changes.tree import entry_of
from ralph.sandbox.interface import Change, ChangeKind

_OF_GIT = b".git"
Stamp = tuple[int, int, int, int, int]
_Found = dict[bytes, os.stat_result]


def stamp_of(info: os.stat_result) -> Stamp:
    """Numbers that differ whenever someone has touched the entry; a directory's times do not
    count."""
    if stat.S_ISDIR(info.st_mode):
        return info.st_mode, info.st_uid, info.st_gid, 0, 0
    return info.st_mode, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


class Manifest:
    """The stamps of every entry at one moment. With `ours` nobody else's work is in the tree, and
    its modes may be lifted to look at it."""

    def __init__(self, root: str, *, git: bool, ours: bool = False) -> None:
        self._root = os.fsencode(root)
        self._git = git
        self._needs = READ if ours else 0
        with Reach(self._root, needs=self._needs) as tree:
            found, _ = self._entries(tree)
        self._known = {path: stamp_of(info) for path, info in found.items()}

    def knows(self, path: str) -> bool:
        """True if it was there."""
        return os.fsencode(path) in self._known

    def digest(self, *, but_for: "re.Pattern[bytes]") -> str:
        """All of it in a few letters, without the paths that this matches."""
        found = sorted(item for item in self._known.items() if not but_for.fullmatch(item[0]))
        return hashlib.sha256(repr(found).encode()).hexdigest()

    def changes(self) -> Iterator[Change]:
        """Changes by the stamps alone, for a tree that is its own past."""
        with Reach(self._root, needs=self._needs) as tree:
            for path, info in self._differing(tree):
                name, was = os.fsdecode(path), self._known.get(path)
                if info is None:
                    assert was is not None
                    yield Change(name, ChangeKind.DELETED, entry_of(was[0]))
                    continue
                content = (info.st_ino, info.st_size, info.st_mtime_ns)
                if stat.S_ISLNK(info.st_mode):
                    kind = ChangeKind.SYMLINK
                elif was is None:
                    kind = ChangeKind.ADDED
                elif stat.S_ISDIR(info.st_mode) or was[1:4] == content:
                    kind = ChangeKind.MODE if was[0] != info.st_mode else ChangeKind.MODIFIED
                else:
                    kind = ChangeKind.MODIFIED
                yield Change(name, kind, entry_of(info.st_mode))

    def against(self, project: str) -> Iterator[Change]:
        """Changes by comparing what has another stamp with the project."""
        with Reach(self._root, needs=self._needs) as tree, Reach(project) as lower:
            for path, info in self._differing(tree):
                if info is None:
                    yield from islice(deleted(lower, path), 1)  # what was in it is told by itself
                else:
                    yield from entry_changes(lower, path, lower.seen(path), (tree, path, info))

    def _differing(self, tree: Reach) -> Iterator[tuple[bytes, os.stat_result | None]]:
        """Every path whose stamp is another now; None is one that is gone."""
        now, closed = self._entries(tree)
        for path, info in now.items():
            if self._known.get(path) != stamp_of(info):
                yield path, info
        for path in self._known.keys() - now.keys():
            if not path.startswith(closed):
                yield path, None

    def _entries(self, tree: Reach) -> tuple[_Found, tuple[bytes, ...]]:
        """Everything below, and the beginnings of paths that nobody can see."""
        found: _Found = {}
        closed = []
        waiting = [b""]
        while waiting:
            place = waiting.pop()
            try:
                listed = tree.entries(place)
            except OSError:
                closed.append(os.path.join(place, b""))
                continue
            for name, info in listed:
                path = os.path.join(place, name)
                if self._git or path != _OF_GIT:
                    found[path] = info
                    waiting += [path] if stat.S_ISDIR(info.st_mode) else []
        return found, tuple(closed)
