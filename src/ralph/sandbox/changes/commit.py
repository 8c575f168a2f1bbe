"""A commit: what is to be applied to a project, written down so that anybody can finish it."""

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields

from ralph.files.safe_open import read_or_nothing
from ralph.files.state_dir import write_atomically
from ralph.kernel.value import replace, value
from ralph.sandbox.changes.by_descriptor import READ, WRITE, Reach
from ralph.sandbox.interface import (
    Change,
    ChangeKind,
    CommitResult,
    FileType,
    is_within,
)

Modes = Mapping[str, int]
_GIT = ".git"
NO_FILE = "a socket, a pipe or a device is not kept"
NO_LOCK = "a lock of git is not kept"
NOT_WORK = (NO_FILE, NO_LOCK)  # nobody misses it


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
    config_hooks: frozenset[str] = frozenset()  # what git's configuration has git run or read
    index: str = ""  # where git's index is as it was then
    modes: Modes = field(default_factory=dict)  # in the source, of what keeps us out
    closed: Modes = field(default_factory=dict)  # in the project, of directories that keep us out
    # Paths that count from another moment: work that was resumed, or kept by an earlier commit.
    since: Mapping[str, int] = field(default_factory=dict)

    def write(self, path: str) -> None:
        """Write the journal, from which `read` and `apply` finish what was begun."""
        words = {one.name: getattr(self, one.name) for one in fields(self)}
        words["changes"] = [(c.path, c.kind, c.entry) for c in self.changes]
        write_atomically(path, json.dumps(words, default=sorted), mode=0o600)


def read(path: str) -> Commit | None:
    """A commit from its journal; None if there is none, or it cannot be read."""
    try:
        words = json.loads(read_or_nothing(path))
        changes = tuple(Change(p, ChangeKind(k), FileType(e)) for p, k, e in words.pop("changes"))
        copies, config_hooks = (
            frozenset(words.pop(name, ())) for name in ("copies", "config_hooks")
        )
        return Commit(changes=changes, copies=copies, config_hooks=config_hooks, **words)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def is_at(change: Change, path: str) -> bool:
    """True for a change at a path or below it; "" is the project."""
    return not path or is_within(change.path, path)


def selected(commit: Commit, paths: Sequence[str]) -> Commit:
    """The part of a commit at these paths and below, with the directories that it stands in. Git's
    own files fit together: some of them are all."""
    wanted = [_GIT if is_within(path, _GIT) else path for path in paths]
    new = (c for c in commit.changes if c.kind is ChangeKind.ADDED)
    made = {change.path for change in new if change.entry is FileType.DIRECTORY}

    def is_wanted(change: Change) -> bool:
        return any(
            is_at(change, path) or (change.path in made and is_within(path, change.path))
            for path in wanted
        )

    return replace(commit, changes=tuple(filter(is_wanted, commit.changes)))


def rest_of(commit: Commit, done: CommitResult, moment: int) -> Commit:
    """The part that an applied one has left. Whatever was applied counts from this moment."""
    gone = {*done.applied, *(one.path for one in done.failed if one.why in NOT_WORK)}
    left = tuple(change for change in commit.changes if change.path not in gone)
    since = {**commit.since, **dict.fromkeys(done.applied, moment)}
    deleted = {c.path for c in commit.changes if c.gone} & {*done.applied}
    return replace(commit, changes=left, since=since, copies=commit.copies - deleted)


def there_before(commit: Commit) -> Iterator[str]:
    """Paths that the project had when the work of a commit began."""
    yield from commit.copies
    yield from (c.path for c in commit.changes if c.kind in (ChangeKind.MODIFIED, ChangeKind.MODE))


def modes_of(source: str, changes: Iterable[Change]) -> dict[str, int]:
    """Modes in a tree of ours that keep us out, before they are lifted there or in a copy."""
    found: dict[str, int] = {}
    if os.geteuid() == 0:
        return found
    with Reach(source, needs=READ) as tree:
        for change in sorted(changes, key=lambda change: change.path):
            needs = {FileType.DIRECTORY: WRITE, FileType.FILE: stat.S_IRUSR}.get(change.entry, 0)
            if needs and not change.gone:
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
            info = tree.seen(os.fsencode(above))  # None also where one above it keeps us out
            if info and info.st_uid == os.geteuid() and info.st_mode & WRITE != WRITE:
                found[above] = stat.S_IMODE(info.st_mode)
    return found


def path_of(change: Change) -> bytes:
    """The path of a change, as a tree has it."""
    return b"" if change.path == "." else os.fsencode(change.path)
