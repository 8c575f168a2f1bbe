"""Keep a sandbox: apply its changes to the project, file by file, each at once.

Nothing that a person changed since the sandbox was opened is overwritten. What would run on the
host by itself is held for review. The list of changes is on disk before the first is applied, so
that a commit which is killed in the middle can be finished. Whatever happens to one change, the
others are applied, and it is named.
"""

import errno
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress

from ralph.kernel.value import value
from ralph.sandbox.changes import git_state, review
from ralph.sandbox.changes.by_descriptor import READ, WRITE, Reach, handle_of
from ralph.sandbox.changes.commit import NO_FILE, NO_LOCK, NOT_WORK, Commit, path_of
from ralph.sandbox.changes.compare import difference
from ralph.sandbox.changes.copying import put
from ralph.sandbox.interface import Change, ChangeKind, CommitResult, FileType, Spared, type_of

_IN_THE_WAY = (errno.ENOTEMPTY, errno.EEXIST, errno.ELOOP, errno.ENOTDIR, errno.EISDIR)
_DONE, _FREE = ("done", ""), ("", "")  # it is there already; nothing speaks against it
_CHANGED = "someone changed it meanwhile"
_Verdict = tuple[str, str]  # where it is listed ("" is applied), and why
_Stamp = tuple[int, ...]


@value
class _Job:
    """A commit under way, and the trees that it is about."""

    commit: Commit
    project: Reach
    source: Reach


def doubtful(
    project: str, opened: int, since: Mapping[str, int], changes: Iterable[Change]
) -> list[str]:
    """Paths that look new, but stand where somebody added or deleted something meanwhile: an upper
    layer does not tell whether a file was there before; who deleted it wants it gone."""
    added = [change.path for change in changes if change.kind is ChangeKind.ADDED]
    times = {}
    for above in {os.path.dirname(path) for path in added}:
        with suppress(OSError):
            times[above] = os.stat(os.path.join(project, above)).st_ctime_ns
    return [
        path for path in added if times.get(os.path.dirname(path), -1) >= since.get(path, opened)
    ]


def stage(source: str, changes: Collection[Change], into: str) -> None:
    """Copy the results of changes, from a source that does not outlive us. An ordinary user can
    read all of it; `commit.modes_of` the source tells the true modes."""
    ours = os.geteuid() != 0
    with Reach(source, needs=READ) as tree, Reach(into) as to:
        made = []
        for change in _in_order(changes):
            path = path_of(change)
            if change.gone or change.entry is FileType.OTHER:
                continue
            info = tree.info(path)
            if info is None:
                continue
            if path:
                head, _, name = path.rpartition(b"/")
                directory = to.directory(head, make=0o700)
                put(tree, path, info, (directory, name), name)
                if ours and stat.S_ISREG(info.st_mode):
                    mode = tree.mode(path, info) | stat.S_IRUSR
                    os.chmod(name, mode, dir_fd=directory)
            if stat.S_ISDIR(info.st_mode):
                made.append((path, info))
        for path, info in reversed(made):
            mode = tree.mode(path, info) | (stat.S_IRWXU if ours else 0)
            to.close_directory(path, mode, (info.st_uid, info.st_gid))


def save(commit: Commit, kept: CommitResult, into: str) -> str:
    """Put what was not applied where a person can look at it; "" if there is nothing to see."""
    paths = {spared.path for spared in kept.spared if spared.why not in NOT_WORK} - {"."}
    wanted = [c for c in commit.changes if c.path in paths and not c.gone]
    wanted = [c for c in wanted if c.entry is not FileType.OTHER]
    if not wanted:
        return ""
    os.makedirs(into, mode=0o700, exist_ok=True)
    stage(commit.source, wanted, into)
    return into


def apply(commit: Commit) -> CommitResult:
    """Apply what may be applied; the rest is named with the reason."""
    applied: list[Change] = []
    spared: dict[str, dict[str, Spared]] = {"held": {}, "changed": {}, "failed": {}}
    name = commit.name.encode()
    with (
        Reach(commit.project, needs=WRITE, modes=commit.closed) as project,
        Reach(commit.source, needs=READ, modes=commit.modes) as source,
    ):
        job = _Job(commit, project, source)
        for number, (change, (where, why), stamp) in enumerate(_all_judged(job)):
            if not where:
                where, why = _applied(job, change, stamp, b".ralph-%b-%d" % (name, number))  # noqa: PLW2901
            if where in spared:
                spared[where].setdefault(change.path, Spared(change.path, why))
            else:
                applied.append(change)
        for change, why in _close_directories(job, applied):
            spared["failed"].setdefault(change.path, Spared(change.path, why))
    held, changed, failed = (tuple(found.values()) for found in spared.values())
    paths = {change.path for change in applied}.difference(*spared.values())
    return CommitResult(tuple(sorted(paths)), held, changed, failed)


def _all_judged(job: _Job) -> list[tuple[Change, _Verdict, _Stamp]]:
    """Look at all before the first is applied: a change of one name of a file shows in another."""
    held = review.held(job.commit, job.project, job.source)
    judged = [(c, *_judged(job, c, held.get(c.path, ""))) for c in _in_order(job.commit.changes)]
    apart = (change for change, (where, _), _ in judged if where in ("changed", "failed"))
    if not any(git_state.decides(change.path) for change in apart):
        return judged
    return [  # somebody changed git's state: ours is not applied in part
        (change, ("changed", git_state.APART), stamp)
        if not verdict[0] and git_state.is_state(change.path)
        else (change, verdict, stamp)
        for change, verdict, stamp in judged
    ]


def _in_order(changes: Iterable[Change]) -> list[Change]:
    """Deletions first, the inner before the outer; then the outer before the inner."""
    changes = sorted(changes, key=lambda change: change.path)
    gone = [change for change in changes if change.gone]
    return [*reversed(gone), *(change for change in changes if not change.gone)]


def _judged(job: _Job, change: Change, held: str) -> tuple[_Verdict, _Stamp]:
    """The verdict about a change, and what stands there."""
    if not change.gone:
        if change.entry is FileType.OTHER:
            return ("failed", NO_FILE), ()
        if git_state.is_lock(change.path):
            return ("failed", NO_LOCK), ()
    if held or change.path == ".":
        return ("held" if held else "", held), ()
    try:
        here = job.project.info(path_of(change))
        return _verdict(job, change, here), _stamp(change, here)
    except OSError as error:
        return ("failed", error.strerror or str(error)), ()


def _verdict(job: _Job, change: Change, here: os.stat_result | None) -> _Verdict:
    if here is None:
        was_there = change.kind in (ChangeKind.MODIFIED, ChangeKind.MODE)
        if not change.gone and (was_there or change.path in job.commit.copies):
            return "changed", "someone deleted it meanwhile"
        return _FREE
    opened = job.commit.since.get(change.path, job.commit.opened)
    meanwhile = here.st_ctime_ns >= opened and not stat.S_ISDIR(here.st_mode)
    if not meanwhile and not (change.gone and change.entry is not type_of(here.st_mode)):
        return _FREE
    if _is_done(job, change, here):
        return _DONE
    return _FREE if _is_refreshed(job, change) else ("changed", _CHANGED)


def _is_refreshed(job: _Job, change: Change) -> bool:
    index = change.path == git_state.INDEX and not change.gone
    return index and git_state.is_refreshed(job.commit)


def _stamp(change: Change, here: os.stat_result | None) -> _Stamp:
    """Numbers that change with a file's content; none for a directory."""
    if here is None or change.entry is FileType.DIRECTORY or stat.S_ISDIR(here.st_mode):
        return ()
    return here.st_ino, here.st_size, here.st_mtime_ns


def _is_done(job: _Job, change: Change, here: os.stat_result) -> bool:
    """True if the project has it already: a commit that was cut off had applied it."""
    path = path_of(change)
    try:
        new = job.source.info(path)
        if new is None:
            return False
        if stat.S_ISDIR(here.st_mode) and stat.S_ISDIR(new.st_mode):
            return True  # their modes come last
        return difference((job.project, path, here), (job.source, path, new)) is None
    except OSError:
        return False


def _applied(job: _Job, change: Change, stamp: _Stamp, temporary: bytes) -> _Verdict:
    if change.path == ".":
        return _FREE  # its mode is set with the other directories'
    try:
        here = job.project.info(path_of(change))
        if _stamp(change, here) != stamp and not _is_refreshed(job, change):
            return "changed", _CHANGED  # while we were at the others
        _apply(job, change, here, temporary)
    except FileNotFoundError:
        return _FREE if change.gone else ("changed", "its directory is gone or a link now")
    except OSError as error:
        if error.errno in _IN_THE_WAY:
            return "changed", "someone put something there meanwhile"
        return "failed", error.strerror or str(error)
    return _FREE


def _apply(job: _Job, change: Change, here: os.stat_result | None, temporary: bytes) -> None:
    path = path_of(change)
    directory, name = job.project.above(path)
    if change.gone:
        remove = os.rmdir if change.entry is FileType.DIRECTORY else os.unlink
        remove(name, dir_fd=directory)
        return
    new = job.source.info(path)
    if new is None:
        raise OSError(errno.EIO, "it is not in the layer any more")
    shared = here is not None and here.st_nlink > 1  # other names must keep their mode
    if change.kind is not ChangeKind.MODE or change.entry is not FileType.FILE or shared:
        put(job.source, path, new, (directory, name), temporary)
    elif here is not None:
        with handle_of(directory, name) as (handle, info):
            if info.st_ino != here.st_ino or not stat.S_ISREG(info.st_mode):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            if os.geteuid() == 0:
                os.chown(handle, new.st_uid, new.st_gid)
            os.chmod(handle, job.source.mode(path, new))


def _close_directories(job: _Job, applied: list[Change]) -> Iterator[tuple[Change, str]]:
    """Set the modes of directories, last since one may allow no writing in it; what failed."""
    for change in sorted(applied, key=lambda change: change.path, reverse=True):
        if change.entry is FileType.DIRECTORY and not change.gone:
            path = path_of(change)
            try:
                new = job.source.info(path)
                if new is not None:
                    mode = job.source.mode(path, new)
                    job.project.close_directory(path, mode, (new.st_uid, new.st_gid))
            except OSError as error:
                yield change, f"its mode was not set: {error.strerror}"
