"""Trees remembered by the stamps of their entries: whatever was touched has another stamp."""

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from ralph.errors import StateError
from ralph.files.digest import digest_of
from ralph.files.safe_open import read_or_nothing
from ralph.files.state_dir import write_atomically
from ralph.kernel.value import value
from ralph.sandbox.changes.by_descriptor import READ, Reach
from ralph.sandbox.changes.compare import deleted, entry_changes
from ralph.sandbox.interface import Change, ChangeKind, FileType, type_of


@value
class Stamp:
    """An entry at one moment; it differs whenever someone has touched the entry."""

    entry: FileType
    mode: int
    owner: tuple[object, object]
    content: tuple[object, ...]  # size, number, time of it, of anything; not of directories


Listing = Mapping[bytes, Stamp]


def differing(before: Listing, now: Listing) -> list[bytes]:
    """Every path that is new, gone, or not as it was; sorted."""
    return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))


def by_stamps(before: Listing, now: Listing) -> Iterator[Change]:
    """Changes by the stamps alone, for a tree that is its own past."""
    for path in differing(before, now):
        old, new = before.get(path), now.get(path)
        if new is not None:
            yield Change(os.fsdecode(path), _kind(old, new), new.entry)
        elif old is not None:
            yield Change(os.fsdecode(path), ChangeKind.DELETED, old.entry)


def against(project: str, tree: Reach, before: Listing, now: Listing) -> Iterator[Change]:
    """Changes by comparing what has another stamp with the project; a tree need not have more."""
    with Reach(project) as lower:
        for path in differing(before, now):
            new, here = now.get(path), tree.info(path)
            if new is None:
                yield from islice(deleted(lower, path), 1)  # what was in it is told by itself
            elif here is not None:
                yield from entry_changes(lower, path, lower.seen(path), (tree, path, here))
            elif new.entry is FileType.OTHER:
                yield Change(os.fsdecode(path), _kind(before.get(path), new), FileType.OTHER)


def _kind(old: Stamp | None, new: Stamp) -> ChangeKind:
    if new.entry is FileType.LINK:
        return ChangeKind.SYMLINK
    if old is None:
        return ChangeKind.ADDED
    same = old.entry is new.entry and old.content[:3] == new.content[:3]
    return ChangeKind.MODE if same and old.mode != new.mode else ChangeKind.MODIFIED


class Manifest:
    """The stamps of a tree at one moment. With `ours` nobody else's work is in the tree, and its
    modes may be lifted to look at it. `known` are those of an earlier moment."""

    def __init__(
        self, root: str, *, git: bool, ours: bool = False, known: Listing | None = None
    ) -> None:
        self._root = root
        self._git = git
        self._needs = READ if ours else 0
        self._known: Listing = known or {}
        if known is None:
            with self._reach() as tree:
                self._known = self._listed(tree)

    def knows(self, path: str) -> bool:
        return os.fsencode(path) in self._known

    def digest(self, *, but_for: "re.Pattern[bytes]") -> str:
        """All of it in a few letters, without the paths that this matches."""
        found = sorted(path for path in self._known if not but_for.fullmatch(path))
        return digest_of(repr((path, self._known[path])).encode() for path in found)

    def accept(self, paths: Iterable[str]) -> None:
        """Take these as they are now for what they were."""
        known = dict(self._known)
        with self._reach() as tree:
            for path in map(os.fsencode, paths):
                info = tree.seen(path)
                if info is None:
                    known.pop(path, None)
                else:
                    known[path] = _stamp_of(info)
        self._known = known

    def write(self, path: str) -> None:
        """Write it down, for whoever goes on in the same tree."""
        rows = [
            (os.fsdecode(name), one.entry, one.mode, one.owner, one.content)
            for name, one in self._known.items()
        ]
        write_atomically(path, json.dumps(rows), mode=0o600)

    def changes(self) -> Iterator[Change]:
        with self._reach() as tree:
            yield from by_stamps(self._known, self._listed(tree))

    def against(self, project: str) -> Iterator[Change]:
        with self._reach() as tree:
            yield from against(project, tree, self._known, self._listed(tree))

    def _reach(self) -> Reach:
        return Reach(self._root, needs=self._needs)

    def _listed(self, tree: Reach) -> Listing:
        """Everything below; what nobody can see any more is taken to be as it was."""
        found: dict[bytes, Stamp] = {}
        waiting = [b""]
        while waiting:
            place = waiting.pop()
            try:
                entries = tree.entries(place)
            except OSError:
                below = os.path.join(place, b"")
                found |= {path: old for path, old in self._known.items() if path.startswith(below)}
                continue
            for name, info in entries:
                path = os.path.join(place, name)
                if self._git or path != b".git":
                    found[path] = _stamp_of(info)
                    waiting += [path] if stat.S_ISDIR(info.st_mode) else []
        return found


def read_listing(path: str) -> Listing:
    """What `Manifest.write` has written; StateError if it cannot be read."""
    try:
        return {
            os.fsencode(name): Stamp(FileType(entry), mode, tuple(owner), tuple(content))
            for name, entry, mode, owner, content in json.loads(read_or_nothing(path))
        }
    except (ValueError, TypeError) as error:
        raise StateError(f"{path} cannot be read", "Discard that sandbox.") from error


def _stamp_of(info: os.stat_result) -> Stamp:
    entry, content = type_of(info.st_mode), (info.st_size, info.st_ino, info.st_mtime_ns)
    kept = () if entry is FileType.DIRECTORY else (*content, info.st_ctime_ns)
    return Stamp(entry, stat.S_IMODE(info.st_mode), (info.st_uid, info.st_gid), kept)
