"""Keeping a sandbox: its changes are applied to the project, file by file, each at once.

What a person changed since the sandbox was opened is never overwritten. What would run on the
host by itself is held for review. The list of changes is on disk before the first is applied, so
that a commit which is killed in the middle can be finished.
"""

import errno
import json
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Mapping

from ralph.adapters.files import write_atomically
from ralph.adapters.sandbox.compare import difference
from ralph.adapters.sandbox.held import held_because, leads_out
from ralph.adapters.sandbox.interface import Change, Entry, Kept, Kind, Spared
from ralph.adapters.sandbox.tree import Tree, entry_of, parts_of
from ralph.core.value import value

_CHUNK = 1024 * 1024
_IN_THE_WAY = (errno.ENOTEMPTY, errno.EEXIST, errno.ELOOP, errno.ENOTDIR)
_DONE = "done"
_HISTORY = ".git"
_GONE = "its directory is gone or a link now"
_DELETED = "someone deleted it meanwhile"
_CHANGED = "someone changed it meanwhile"


@value
class Commit:
    """What is to be applied: changes, and the tree that holds what they lead to."""

    project: str
    source: str
    opened: int  # nanoseconds; what has changed since then was changed by somebody else
    changes: tuple[Change, ...]
    copies: frozenset[str] = frozenset()  # paths that stood in the project when it was opened
    everything: bool = False
    name: str = "0"  # of the temporary files

    def write(self, path: str) -> None:
        """The journal, from which `read` and `apply` finish what was begun."""
        words = {
            "project": self.project,
            "source": self.source,
            "opened": self.opened,
            "changes": [[c.path, c.kind.value, c.entry.value] for c in self.changes],
            "copies": sorted(self.copies),
            "everything": self.everything,
            "name": self.name,
        }
        write_atomically(path, json.dumps(words), mode=0o600)


def read(path: str) -> Commit | None:
    """A commit that had begun; None if there is none, or it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            words = json.load(file)
        changes = tuple(Change(p, Kind(k), Entry(e)) for p, k, e in words.pop("changes"))
        copies = frozenset(words.pop("copies"))
        return Commit(changes=changes, copies=copies, **words)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def doubtful(project: str, opened: int, changes: Iterable[Change]) -> list[str]:
    """What looks new, but stands where somebody added or deleted something meanwhile.

    An upper layer does not tell whether a file was there before; who deleted it wants it gone.
    """
    changed: dict[str, bool] = {}
    found = []
    for change in changes:
        if change.kind is Kind.ADDED:
            above = os.path.dirname(change.path)
            if above not in changed:
                changed[above] = _changed_since(os.path.join(project, above), opened)
            found += [change.path] if changed[above] else []
    return found


def _changed_since(directory: str, opened: int) -> bool:
    try:
        return os.stat(directory).st_ctime_ns >= opened
    except OSError:
        return False


def stage(source: str, changes: Collection[Change], into: str) -> None:
    """Copy what the changes lead to, for a source that does not outlive us."""
    to, at = Tree(into), os.fsencode(source)
    for change in _in_order(changes):
        if change.kind is not Kind.DELETED and change.path != ".":
            with to.above(change.path, make=True) as (directory, name):
                _put(directory, name, os.path.join(at, os.fsencode(change.path)), name)
    _set_modes(to, source, changes)


def save(commit: Commit, kept: Kept, into: str) -> str:
    """Put what was not applied where a person can look at it; "" if there is nothing to see."""
    paths = {spared.path for spared in kept.spared}
    wanted = [c for c in commit.changes if c.path in paths and c.entry is not Entry.OTHER]
    wanted = [c for c in wanted if c.kind is not Kind.DELETED and c.path != "."]
    if not wanted:
        return ""
    os.makedirs(into, mode=0o700, exist_ok=True)
    stage(commit.source, wanted, into)
    return into


def apply(commit: Commit, progress: Callable[[Change], None] = lambda _: None) -> Kept:
    """Apply what may be applied; the rest is named with the reason."""
    applied: list[str] = []
    spared: dict[str, list[Spared]] = {"held": [], "changed": [], "failed": []}
    # All are looked at before the first is applied: of two names of one file, each change of one
    # shows in the other.
    tree, held = Tree(commit.project), _held(commit)
    judged = [(c, _verdict(commit, c, held), _content(tree, c)) for c in _in_order(commit.changes)]
    for number, (change, verdict, content) in enumerate(judged):
        if not verdict[0] and _content(tree, change) != content:
            verdict = "changed", _CHANGED  # while we were at the others  # noqa: PLW2901
        if not verdict[0]:
            progress(change)
            temporary = b".ralph-%b-%d" % (commit.name.encode(), number)
            verdict = _applied(commit, change, temporary)  # noqa: PLW2901
        where, why = verdict
        if where and where != _DONE:
            spared[where].append(Spared(change.path, why))
        else:
            applied.append(change.path)
    _close_directories(commit, frozenset(applied))
    return Kept(
        tuple(sorted(applied)),
        held=tuple(spared["held"]),
        changed=tuple(spared["changed"]),
        failed=tuple(spared["failed"]),
    )


def _content(tree: Tree, change: Change) -> tuple[int, ...]:
    """What changes with a file's content; nothing for a directory, which has none of its own."""
    info = None if change.entry is Entry.DIRECTORY else tree.info(change.path)
    if info is None or stat.S_ISDIR(info.st_mode):
        return ()
    return info.st_ino, info.st_size, info.st_mtime_ns


def _in_order(changes: Iterable[Change]) -> list[Change]:
    """Deletions first, the inner before the outer; then the outer before the inner."""
    changes = sorted(changes, key=lambda change: change.path)
    gone = [change for change in changes if change.kind is Kind.DELETED]
    return [*reversed(gone), *(change for change in changes if change.kind is not Kind.DELETED)]


def _verdict(commit: Commit, change: Change, held: Mapping[str, str]) -> tuple[str, str]:
    """Why a change must not be applied; two empty words if it may be."""
    if change.entry is Entry.OTHER and change.kind is not Kind.DELETED:
        return "failed", "a socket, a pipe or a device is not kept"
    if change.path in held:
        return "held", held[change.path]
    if change.path == ".":
        return "", ""
    here = Tree(commit.project).info(change.path)
    if here is None:
        missing = change.kind in (Kind.MODIFIED, Kind.MODE) or change.path in commit.copies
        return ("changed", _DELETED) if missing and change.kind is not Kind.DELETED else ("", "")
    meanwhile = here.st_ctime_ns >= commit.opened and not stat.S_ISDIR(here.st_mode)
    another = change.kind is Kind.DELETED and change.entry is not entry_of(here)
    if not meanwhile and not another:
        return "", ""
    return (_DONE, "") if _is_done(commit, change) else ("changed", _CHANGED)


def _held(commit: Commit) -> dict[str, str]:
    """What waits for review, and why; with it the directories that it would be deleted with."""
    if commit.everything:
        return {}
    gone = any(c.path == _HISTORY and c.kind is Kind.DELETED for c in commit.changes)
    held = {c.path: why for c in commit.changes if (why := _held_because(commit, c, gone))}
    above = {path[:end] for path in held for end in range(len(path)) if path[end] == "/"}
    kept = (c.path for c in commit.changes if c.kind is Kind.DELETED and c.path in above - {*held})
    return {**held, **dict.fromkeys(kept, "something in it is held")}


def _held_because(commit: Commit, change: Change, history_gone: bool) -> str:
    if history_gone and f"{change.path}/".startswith(f"{_HISTORY}/"):
        return "it is the project's history"
    if why := held_because(change.path):
        return why
    if change.kind is not Kind.SYMLINK:
        return ""
    try:
        target = os.readlink(os.path.join(commit.source, change.path))
    except OSError:
        return ""
    return "a link that leads out" if leads_out(change.path, target, commit.project) else ""


def _is_done(commit: Commit, change: Change) -> bool:
    """Whether the project has it already: a commit that was cut off had applied it."""
    paths = [os.fsencode(os.path.join(top, change.path)) for top in (commit.project, commit.source)]
    try:
        old, new = ((path, os.lstat(path)) for path in paths)
        directories = stat.S_ISDIR(old[1].st_mode) and stat.S_ISDIR(new[1].st_mode)
        return directories or difference(old, new) is None  # their modes come last
    except OSError:
        return False


def _applied(commit: Commit, change: Change, temporary: bytes) -> tuple[str, str]:
    try:
        _apply(commit, change, temporary)
    except FileNotFoundError:
        return ("", "") if change.kind is Kind.DELETED else ("changed", _GONE)
    except OSError as error:
        if error.errno in _IN_THE_WAY:
            return "changed", "someone put something there meanwhile"
        return "failed", error.strerror or str(error)
    return "", ""


def _apply(commit: Commit, change: Change, temporary: bytes) -> None:
    if change.path == ".":
        return  # its mode is set with the other directories'
    source = os.path.join(os.fsencode(commit.source), os.fsencode(change.path))
    with Tree(commit.project).above(change.path) as (directory, name):
        if change.kind is Kind.DELETED:
            remove = os.rmdir if change.entry is Entry.DIRECTORY else os.unlink
            remove(name, dir_fd=directory)
        elif change.kind is Kind.MODE and change.entry is Entry.FILE:
            info = os.lstat(source)
            _own(directory, name, info)
            os.chmod(name, stat.S_IMODE(info.st_mode), dir_fd=directory)
        else:
            _put(directory, name, source, temporary)


def _put(directory: int, name: bytes, source: bytes, temporary: bytes) -> None:
    """Make what stands at the source; a file or link appears at once and whole."""
    info = os.lstat(source)
    if stat.S_ISDIR(info.st_mode):
        try:
            os.mkdir(name, 0o700, dir_fd=directory)
        except FileExistsError:
            if not stat.S_ISDIR(os.lstat(name, dir_fd=directory).st_mode):
                raise
        return
    try:
        os.unlink(temporary, dir_fd=directory)  # of a commit that was cut off
    except FileNotFoundError:
        pass
    try:
        if stat.S_ISLNK(info.st_mode):
            os.symlink(os.readlink(source), temporary, dir_fd=directory)
        else:
            _copy(source, directory, temporary, info)
        _own(directory, temporary, info)
        if temporary != name:
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        if temporary != name:
            _forget(directory, temporary)
        raise


def _copy(source: bytes, directory: int, name: bytes, info: os.stat_result) -> None:
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(reading, "rb", buffering=0) as old:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(name, flags, 0o600, dir_fd=directory), "wb", buffering=0) as new:
            shutil.copyfileobj(old, new, _CHUNK)
            os.fchmod(new.fileno(), stat.S_IMODE(info.st_mode))
            os.utime(new.fileno(), ns=(info.st_atime_ns, info.st_mtime_ns))


def _own(directory: int, name: bytes, info: os.stat_result) -> None:
    """Root's sandboxes may change owners."""
    there = os.lstat(name, dir_fd=directory)
    if os.geteuid() == 0 and (there.st_uid, there.st_gid) != (info.st_uid, info.st_gid):
        os.chown(name, info.st_uid, info.st_gid, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISREG(info.st_mode):
            os.chmod(name, stat.S_IMODE(info.st_mode), dir_fd=directory)


def _forget(directory: int, name: bytes) -> None:
    try:
        os.unlink(name, dir_fd=directory)
    except OSError:
        pass


def _close_directories(commit: Commit, applied: frozenset[str]) -> None:
    """Modes of directories come last: one may allow no writing in it."""
    made = [change for change in commit.changes if change.path in applied]
    _set_modes(Tree(commit.project), commit.source, made)


def _set_modes(tree: Tree, source: str, changes: Iterable[Change]) -> None:
    for change in sorted(changes, key=lambda change: change.path, reverse=True):
        if change.entry is Entry.DIRECTORY and change.kind is not Kind.DELETED:
            info = os.lstat(os.path.join(source, change.path))
            try:
                with tree.within(parts_of(change.path)) as directory:
                    if os.geteuid() == 0:
                        os.fchown(directory, info.st_uid, info.st_gid)
                    os.fchmod(directory, stat.S_IMODE(info.st_mode))
            except OSError:
                pass  # it is not ours; what is in it was applied
