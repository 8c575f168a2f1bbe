"""Puts files back as they were at a checkpoint, as git would check them out. What git does not keep
and is in the way is put aside, never deleted."""

import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, fields
from functools import partial
from typing import Any

from ralph.errors import StateError
from ralph.files.safe_open import open_regular, remove_file
from ralph.files.state_dir import lstat, write_atomically
from ralph.git import repository as git_work
from ralph.git import under_way
from ralph.git.repository import LINK, NOTHING, GitResult, Repository, TreeChange
from ralph.git.status import is_among
from ralph.kernel.value import value

_LOCKED_FOR = 5.0


@value
class Apart:
    """The part of a checkpoint that git does not keep."""

    apart: frozenset[str] = frozenset()  # other repositories, unreadable files
    ignored: frozenset[str] = frozenset()  # whatever is ignored later
    modes: Mapping[str, int] = field(default_factory=dict)  # of changed files
    # What is in changed files, before git makes its own of it.
    raw: Mapping[str, str] = field(default_factory=dict)
    exclude: str | None = None  # the repository's own list of ignored files, if it has one
    # What was changed inside submodules, as a digest.
    inner: Mapping[str, str] = field(default_factory=dict)
    refs: Mapping[str, str] = field(default_factory=dict)  # branches and tags, and their places
    stash: tuple[tuple[str, str], ...] = ()  # commits with their words, newest first
    copies: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # fields of a `CopiedFile`
    repositories: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def text(self) -> str:
        """As JSON, beside the copies."""
        return json.dumps({f.name: getattr(self, f.name) for f in fields(self)}, default=sorted)

    @staticmethod
    def of(text: str) -> "Apart":
        """Read what `text` wrote; ValueError for anything else."""
        said = json.loads(text)
        sets = {name: frozenset(said[name]) for name in ("apart", "ignored")}
        stash = tuple((commit, words) for commit, words in said["stash"])
        return Apart(**{**said, **sets, "stash": stash})

    @property
    def spared(self) -> frozenset[str]:
        """Paths that are never touched."""
        return self.apart | self.ignored


@value
class FileRestore:
    """Puts files back in a work tree; what is in the way goes to `aside`."""

    repository: Repository
    workspace: str
    run_dir: str
    aside: str
    known: Apart

    def put_aside(self, path: str) -> bool:
        """Move what git cannot keep into the run's directory; false if nothing is there."""
        import shutil

        source = self.repository.place.path(path.rstrip("/"))
        if not os.path.lexists(source):
            return False
        target = os.path.join(self.aside, path.rstrip("/"))
        while os.path.lexists(target):
            target += "~"
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        make_usable(os.path.dirname(source))
        shutil.move(source, target)
        self._remove_empty(os.path.dirname(source))
        return True

    def put_back(self, differing: Sequence[TreeChange]) -> None:
        """Remove what was not there, write what was."""
        for entry in differing:
            if entry.old_mode == NOTHING and not is_among(entry.path, self.known.spared):
                self._remove(entry)
        written = [entry for entry in differing if entry.old_mode != NOTHING]
        for entry in written:
            # Put aside what git does not see and would delete, a directory with all that is in it.
            path = self.repository.place.path(entry.path)
            self.make_way_above(entry.path)
            unseen = entry.mode == NOTHING and os.path.lexists(path)
            if entry.old_mode != LINK and (unseen or _is_directory(path)):
                self.put_aside(entry.path)
        moved = [entry for entry in written if entry.mode == entry.old_mode == LINK]
        self._write([entry for entry in written if entry not in moved])
        for entry in moved:
            # A submodule goes back to its commit; what is changed in it stays.
            if os.path.lexists(os.path.join(self.repository.place.path(entry.path), ".git")):
                words = ("reset", "--quiet", "--keep", entry.old_identifier)
                done = self.repository.inside(entry.path, *words)
                if done.code != 0:
                    raise StateError(f"{entry.path}: {done.said}")

    def put_modes_back(self) -> None:
        """Put back the modes that git does not keep."""
        for name, mode in self.known.modes.items():
            path = self.repository.place.path(name)
            found = os.lstat(path).st_mode if os.path.lexists(path) else 0
            if stat.S_ISREG(found) and stat.S_IMODE(found) != mode:
                os.chmod(path, mode)

    def _remove(self, entry: TreeChange) -> None:
        if entry.mode == LINK:
            self.put_aside(entry.path)
            return
        path = self.repository.place.path(entry.path)
        self._make_usable_above(path)
        with suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(path)
        self._remove_empty(os.path.dirname(path))

    def _remove_empty(self, directory: str) -> None:
        """Directories that became empty go, up to the workspace."""
        while len(directory) > len(self.repository.place.top):
            if os.path.join(self.workspace, "").startswith(os.path.join(directory, "")):
                return
            try:
                os.rmdir(directory)
            except OSError:
                return  # not empty, or gone
            directory = os.path.dirname(directory)

    def make_way_above(self, name: str) -> None:
        """Put aside what is no directory where one has to be: a link might lead anywhere."""
        self._make_usable_above(self.repository.place.path(name))
        parts = name.split("/")
        for above in ("/".join(parts[:depth]) for depth in range(1, len(parts))):
            path = self.repository.place.path(above)
            if os.path.lexists(path) and not _is_directory(path):
                self.put_aside(above)

    def make_way_for(self, name: str) -> None:
        """Make room for what git does not see: what stands in its place is put aside."""
        self.make_way_above(name)
        self.put_aside(name)
        os.makedirs(os.path.dirname(self.repository.place.path(name)), exist_ok=True)

    def _make_usable_above(self, path: str) -> None:
        above = os.path.dirname(path)
        while len(above) >= len(self.repository.place.top):
            if _is_directory(above) and not os.access(above, os.W_OK | os.X_OK):
                make_usable(above)
            above = os.path.dirname(above)

    def _write(self, entries: list[TreeChange]) -> None:
        """Let git write the files, as it would check them out."""
        if not entries:
            return
        with git_work.scratch_index(self.run_dir) as index:
            lines = index_lines(entries)
            self.repository.ask("update-index", "-z", "--index-info", stdin=lines, index=index)
            done = self.repository.run("checkout-index", "--all", "--force", "--quiet", index=index)
        if done.code != 0:
            raise StateError(done.said)
        for entry in entries:
            raw = self.known.raw.get(entry.path, entry.old_identifier)
            if raw != entry.old_identifier:  # other ends of lines, for one
                with open(self.repository.place.path(entry.path), "wb") as file:
                    file.write(self.repository.ask("cat-file", "blob", raw))


def put_index_back(saved: str, index: str, is_idle: Callable[[], bool]) -> None:
    """As git does it: the lock is made, then takes the place of the index. An old lock is removed
    if no git is at work: an agent that is cut leaves such behind."""
    new, lock = f"{index}.ralph", f"{index}.lock"
    if content(index) == content(saved):
        remove_file(new)
        return
    made, locked = lstat(new), lstat(lock)
    if not (made and locked and os.path.samestat(made, locked)):  # else we were killed with it
        remove_file(new)
        if os.path.exists(saved):
            git_work.copy_index(saved, new)
        else:
            open(new, "xb").close()
        deadline = time.monotonic() + _LOCKED_FOR
        while True:
            try:
                os.link(new, lock)
                break
            except FileExistsError:
                _wait_for(lock, deadline, is_idle)
    if os.path.exists(saved):
        os.rename(lock, index)
    else:
        remove_file(index)
        os.unlink(lock)
    os.unlink(new)


def _wait_for(lock: str, deadline: float, is_idle: Callable[[], bool]) -> None:
    if time.monotonic() < deadline:
        time.sleep(0.05)
    elif is_idle():
        remove_file(lock)
    else:
        message = f"another git is at work; if there is none: rm {lock}"
        raise StateError(message, "Then go on: ralph resume")


def when_unlocked(repository: Repository, change: Callable[[], GitResult]) -> GitResult:
    """Change something when nobody else has locked it; a StateError if somebody keeps it so. Only
    the words of git say that a lock was the reason."""
    # In any language. A hook may speak of other locks, such as those of packages.
    common = repository.place.git_dir.partition("/worktrees/")[0]
    pattern = re.compile(rf"{re.escape(common)}/[^\n]*?\.lock\b")
    done = change()
    deadline = time.monotonic() + _LOCKED_FOR
    while done.code != 0 and (found := pattern.search(done.said)):
        lock = found[0]
        if not os.path.lexists(lock) and time.monotonic() >= deadline:
            break
        of_index = lock == f"{repository.index}.lock"
        idle = partial(under_way.is_idle, repository) if of_index else lambda: False
        _wait_for(lock, deadline, idle)
        done = change()
    return done


# Writes entries, as `ls-files --stage` shows them, into an index.
ENTER = ("update-index", "--replace", "-z", "--index-info")


def index_lines(entries: Iterable[TreeChange]) -> bytes:
    """Entries as they were, for `git update-index --index-info`."""
    return git_work.nul_joined(f"{e.old_mode} {e.old_identifier}\t{e.path}" for e in entries)


def mark(path: str, text: str | None) -> None:
    """Remember what is under way, for whoever goes on after a kill; None: nothing is."""
    if text is not None:
        write_atomically(path, text, 0o600)
    elif os.path.exists(path):
        os.unlink(path)


def content(path: str) -> bytes | None:
    """All of a file; None if there is none."""
    try:
        with open_regular(path) as file:
            return file.read()
    except FileNotFoundError:
        return None


def is_same_index(one: str, other: str) -> bool:
    """True if they hold the same, and were written at the same time."""
    try:
        times = {os.stat(path).st_mtime_ns for path in (one, other)}
    except FileNotFoundError:
        return False
    return len(times) == 1 and content(one) == content(other)


def _is_directory(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def make_usable(path: str) -> bool:
    """Let the owner read a file, and change a directory; true if that was needed."""
    try:
        found = os.lstat(path).st_mode
        needed = 0o700 if stat.S_ISDIR(found) else 0o400 if stat.S_ISREG(found) else 0
        if found & needed == needed:
            return False
        os.chmod(path, found | needed)
    except OSError:
        return False
    return True
