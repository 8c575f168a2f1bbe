"""A commit: what is to be applied to a project, written down so that anybody can finish it."""

import json
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import field

from ralph.files.state_dir import write_atomically
from ralph.kernel.value import value
from ralph.sandbox.changes.by_descriptor import READ, WRITE, Reach, Root
from ralph.sandbox.interface import Change, ChangeKind, FileType

_READ_FILE = 0o400
_OPEN = 0o700  # so are all directories that are staged
Modes = Mapping[str, int]


@value
class Commit:
    """Changes to be applied, and the tree that holds their results."""

    project: str
    source: str
    opened: int  # nanoseconds; what has changed since then was changed by somebody else
    changes: tuple[Change, ...]
    copies: frozenset[str] = frozenset()  # paths that stood in the project when it was opened
    everything: bool = False
    name: str = "0"  # of the temporary files
    anew: bool = False  # `.git` was made anew: it has another history
    obeyed: frozenset[str] = frozenset()  # what git's configuration has git run or read
    index: str = ""  # where git's index is as it was then
    modes: Modes = field(default_factory=dict)  # in the source, of what keeps us out
    closed: Modes = field(default_factory=dict)  # in the project, of directories that keep us out

    def write(self, path: str) -> None:
        """Write the journal, from which `read` and `apply` finish what was begun."""
        words = {
            "project": self.project,
            "source": self.source,
            "opened": self.opened,
            "changes": [[c.path, c.kind.value, c.entry.value] for c in self.changes],
            "copies": sorted(self.copies),
            "everything": self.everything,
            "name": self.name,
            "anew": self.anew,
            "obeyed": sorted(self.obeyed),
            "index": self.index,
            "modes": dict(self.modes),
            "closed": dict(self.closed),
        }
        write_atomically(path, json.dumps(words), mode=0o600)


def read(path: str) -> Commit | None:
    """A commit from its journal; None if there is none, or it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            words = json.load(file)
        changes = tuple(Change(p, ChangeKind(k), FileType(e)) for p, k, e in words.pop("changes"))
        copies, obeyed = (frozenset(words.pop(name, ())) for name in ("copies", "obeyed"))
        return Commit(changes=changes, copies=copies, obeyed=obeyed, **words)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def modes_of(source: str | Root, changes: Iterable[Change]) -> dict[str, int]:
    """Modes of what an ordinary user cannot work with in a tree of his own, before they are lifted
    there or in a copy."""
    found: dict[str, int] = {}
    if os.geteuid() == 0:
        return found
    with Reach(source, needs=READ) as tree:
        for change in sorted(changes, key=lambda change: change.path):
            needs = {FileType.DIRECTORY: _OPEN, FileType.FILE: _READ_FILE}.get(change.entry, 0)
            if needs and change.kind is not ChangeKind.DELETED:
                path = path_of(change)
                info = tree.info(path)
                mode = needs if info is None else tree.mode(path, info)
                if mode & needs != needs:
                    found[os.fsdecode(path)] = mode
    return found


def closed_in(project: str, changes: Iterable[Change]) -> dict[str, int]:
    """Modes of directories of ours in the project that we may not work in."""
    found: dict[str, int] = {}
    if os.geteuid() == 0:
        return found
    with Reach(project) as tree:
        for above in sorted({os.path.dirname(change.path) for change in changes}):
            try:
                info = tree.info(os.fsencode(above))
            except OSError:
                continue  # above it is another that keeps us out
            if info and info.st_uid == os.geteuid() and info.st_mode & WRITE != WRITE:
                found[above] = stat.S_IMODE(info.st_mode)
    return found


def path_of(change: Change) -> bytes:
    """The path of a change, as a tree has it."""
    return b"" if change.path == "." else os.fsencode(change.path)
