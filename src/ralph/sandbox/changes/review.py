"""The changes of a commit that wait for review, and why."""

import os
import re
import stat
from collections.abc import Iterator

from ralph.sandbox.changes import git_state
from ralph.sandbox.changes.by_descriptor import Reach
from ralph.sandbox.changes.commit import Commit, path_of
from ralph.sandbox.changes.held import held_because, leads_out, stands_for
from ralph.sandbox.interface import Change, ChangeKind, FileType

_HISTORY = ".git"
_OBJECTS = re.compile(r"\.git/objects(?:/(?:[0-9a-f]{2}|pack)(?:/.*)?)?")
_PACK = re.compile(r"\.git/objects/pack/[^/]+\.pack")
_SPECIAL = stat.S_ISUID | stat.S_ISGID
_LOST = "it is the project's history"
_INSTEAD = "it stands in place of the project's history"
_OBEYS, _RUNS = "git obeys it", "git runs it"
_LOCKED = "whoever made this lock of git removes it"
_REPLACES = "it puts other objects in the place of the history's"
_WITHIN, _THERE = "something in it is held", "what takes its place is held"
_WOULD_BE = "git would take it for a repository"
_RIGHTS = "it would run with its owner's rights"
_OF_REPOSITORIES = ("config", "config.worktree", "commondir")
_TELLS_ONE = frozenset((*_OF_REPOSITORIES, "HEAD", "objects", "refs", "hooks"))


def held(commit: Commit, project: Reach, source: Reach) -> dict[str, str]:
    """Changes that wait for review, and why; with them what they take the place of, and the
    directories that they would be deleted with."""
    if commit.everything:
        return {}
    review = _Review(commit, project, source)
    # Of what is deleted and stands there anew, the deletion says more.
    changes = sorted(commit.changes, key=lambda change: change.kind is ChangeKind.DELETED)
    found = {c.path: why for c in changes if (why := review.because(c))}
    found |= review.room_for(found)
    above = {path[:end] for path in found for end in range(len(path)) if path[end] == "/"}
    for change in commit.changes:
        if change.path in above and change.path not in found and change.path in review.gone:
            found[change.path] = _WITHIN  # and so is what would stand there instead
    return found


class _Review:
    def __init__(self, commit: Commit, project: Reach, source: Reach) -> None:
        self._commit = commit
        self._project = project
        self._source = source
        self.gone = {c.path for c in commit.changes if c.kind is ChangeKind.DELETED}
        self._new = {c.path for c in commit.changes if c.kind is not ChangeKind.DELETED}
        self._lost = commit.anew or _HISTORY in self.gone
        self._repacked = any(_PACK.fullmatch(path) for path in self._new)
        # Packed references may do what `refs/replace` does; git's state is held with them.
        self._replaces = False
        if git_state.PACKED in self._new:
            path = os.fsencode(git_state.PACKED)
            new, old = (git_state.replacements(_read(tree, path)) for tree in (source, project))
            self._replaces = not new <= old
        # Directories that git would take for a repository now, with whether they were one.
        places = {place for change in commit.changes for place, _ in _places(change.path)}
        self._repositories = {
            place: self._is_one(place, now=False)
            for place in places
            if _HISTORY not in place.lower().split("/") and self._is_one(place, now=True)
        }

    def because(self, change: Change) -> str:
        return (
            self._of_git(change)
            or held_because(change.path)
            or self._obeyed(change)
            or self._in_repository(change)
            or self._link(change)
            or self._special(change)
        )

    def room_for(self, found: dict[str, str]) -> Iterator[tuple[str, str]]:
        """The deletions that make room for what is held."""
        taken = {path for path in found if path in self._new and path in self.gone}
        for path in self.gone:
            if any(path == one or path.startswith(f"{one}/") for one in taken):
                yield path, found.get(path, _THERE)

    def _of_git(self, change: Change) -> str:
        """Git itself: a file or link that takes its directory's place, and the whole history."""
        name = change.path.rpartition("/")[2].lower()
        gone, directory = change.kind is ChangeKind.DELETED, change.entry is FileType.DIRECTORY
        if name == _HISTORY and not gone and change.kind is not ChangeKind.MODE and not directory:
            return _OBEYS
        if _OBJECTS.fullmatch(change.path):
            # Git never changes an object, and takes one away only once another pack has it.
            changed = change.kind is ChangeKind.MODIFIED and not directory
            if (gone and not self._repacked) or changed:
                return _LOST
        if self._lost and f"{change.path}/".startswith(f"{_HISTORY}/"):
            return _LOST if gone else _INSTEAD
        if self._replaces and git_state.is_state(change.path):
            return _REPLACES
        return _LOCKED if git_state.is_lock(change.path) else ""

    def _obeyed(self, change: Change) -> str:
        path = change.path
        for obeyed in self._commit.obeyed:
            inside = path == obeyed or path.startswith(f"{obeyed}/")
            above = change.kind is ChangeKind.SYMLINK and obeyed.startswith(f"{path}/")
            if inside or above:
                return _OBEYS
        return ""

    def _link(self, change: Change) -> str:
        if change.kind is not ChangeKind.SYMLINK:
            return ""
        if why := stands_for(change.path):
            return why
        try:
            target = os.fsdecode(self._source.link(os.fsencode(change.path)))
        except OSError:
            return ""
        where = (change.path, target, self._commit.project)
        out = leads_out(*where, self._new_link) or leads_out(*where, self._old_link)
        return "a link that leads out" if out else ""

    def _new_link(self, path: str) -> str:
        """The target of a link once everything is applied."""
        name = os.fsencode(path)
        info = self._source.info(name)
        if info is None:
            return "" if path in self.gone else self._old_link(path)
        return os.fsdecode(self._source.link(name)) if stat.S_ISLNK(info.st_mode) else ""

    def _old_link(self, path: str) -> str:
        """The target of a link in the project, since not everything may be applied."""
        name = os.fsencode(path)
        info = self._project.info(name)
        there = info is not None and stat.S_ISLNK(info.st_mode)
        return os.fsdecode(self._project.link(name)) if there else ""

    def _special(self, change: Change) -> str:
        """Files that run with their owner's rights; some may have done so before."""
        if change.entry is not FileType.FILE or change.kind is ChangeKind.DELETED:
            return ""
        path = path_of(change)
        try:
            new = self._source.info(path)
            mode = 0 if new is None else self._source.mode(path, new) & _SPECIAL
            if new is None or not mode:
                return ""
            old = self._project.info(path)
        except OSError:
            return ""  # nor can it be applied
        if old is None or not stat.S_ISREG(old.st_mode) or mode & ~old.st_mode:
            return _RIGHTS
        return "" if (old.st_uid, old.st_gid) == (new.st_uid, new.st_gid) else _RIGHTS

    def _is_one(self, place: str, *, now: bool) -> bool:
        def has(name: str) -> bool:
            return self._has(os.path.join(place, name), now=now)

        return has("HEAD") and (has("commondir") or (has("objects") and has("refs")))

    def _has(self, path: str, *, now: bool) -> bool:
        if now and path in self._new:
            return True
        try:
            there = self._project.info(os.fsencode(path)) is not None
        except OSError:
            return True  # who knows
        return there and not (now and path in self.gone)

    def _in_repository(self, change: Change) -> str:
        for place, name in _places(change.path):
            was_one = self._repositories.get(place)
            if was_one is False:
                return _WOULD_BE
            if was_one and name == "hooks":
                return _RUNS
            if was_one and name in _OF_REPOSITORIES:
                return _OBEYS
        return ""


def _places(path: str) -> Iterator[tuple[str, str]]:
    """The directories that a path may be of a repository in, and which part of it."""
    steps = path.split("/")
    for number, step in enumerate(steps):
        if step in _TELLS_ONE:
            yield "/".join(steps[:number]), step


def _read(tree: Reach, path: bytes) -> bytes:
    """A whole file; nothing where there is none that can be read."""
    try:
        with os.fdopen(tree.file(path), "rb") as file:
            return file.read()
    except OSError:
        return b""
