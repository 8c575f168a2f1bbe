"""The changes of a commit that wait for review, and why: what would run on the host by itself
later, links that lead out of the project, and the project's history."""

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import dropwhile

from ralph.sandbox.changes import git_state
from ralph.sandbox.changes.by_descriptor import Reach
from ralph.sandbox.changes.commit import Commit, path_of
from ralph.sandbox.interface import Change, ChangeKind, FileType, is_within

_HISTORY = ".git"
_OBJECTS = re.compile(r"\.git/objects(?:/(?:[0-9a-f]{2}|pack)(?:/.*)?)?")
_PACK = re.compile(r"\.git/objects/pack/[^/]+\.pack")
_SPECIAL = stat.S_ISUID | stat.S_ISGID
_LOST = "it is the project's history"
_OBEYS = "git obeys it"
_OF_REPOSITORIES = ("config", "config.worktree", "commondir")
_TELLS_ONE = frozenset((*_OF_REPOSITORIES, "HEAD", "objects", "refs", "hooks"))

_PART = r"\.git/(?:(?:modules|worktrees)/(?:.+/)?)?"  # a repository, and those that it keeps

# A path, or anything below it, in the project or in a repository within it.
_RUNS_BY_ITSELF = (
    (rf"{_PART}(?:hooks|rebase-merge/git-rebase-todo)", "git runs it"),
    (rf"{_PART}(?:config(?:\.worktree)?|commondir|gitdir)", "git obeys it"),
    (rf"{_PART}(?:info/(?:attributes|grafts)|refs/replace)", "git obeys it"),
    (rf"{_PART}objects/info/(?:http-)?alternates", "git reads objects from there"),
    (r"\.husky|\.pre-commit-config\.ya?ml|\.?lefthook[^/]*\.ya?ml", "git runs it"),
    (r"\.claude/(?:settings[^/]*|hooks|skills|commands|agents)", "Claude Code obeys it"),
    (r"\.mcp\.json", "Claude Code obeys it"),
    (r"\.codex", "Codex obeys it"),
    (r"\.gemini/settings[^/]*", "Gemini CLI obeys it"),
    (r"opencode\.jsonc?|\.opencode/(?:plugin[^/]*|opencode\.jsonc?)", "OpenCode obeys it"),
    (r"\.cursor/(?:mcp|hooks)\.json", "Cursor obeys it"),
    (r"\.amp/settings[^/]*", "Amp obeys it"),
    (r"\.vscode/tasks\.json|\.devcontainer(?:\.json)?", "an editor runs it"),
    (r"\.npmrc|\.yarnrc(?:\.ya?ml)?", "package managers obey it"),
    (r"\.envrc", "direnv runs it"),
    (r"\.ralph/settings[^/]*|\.ralph-active", "Ralph obeys it"),
    (r"\.(?:github|gitea|forgejo)/(?:workflows|actions)|\.gitlab(?:-ci\.ya?ml|/ci)", "CI runs it"),
    (r"\.(?:circleci|buildkite|woodpecker|semaphore|teamcity|tekton)", "CI runs it"),
    (r"\.(?:travis|drone|appveyor|cirrus|woodpecker)\.ya?ml|Jenkinsfile[^/]*", "CI runs it"),
    (r"azure-pipelines[^/]*\.ya?ml", "CI runs it"),
    (r"(?:bitbucket-pipelines|appveyor|buildspec|cloudbuild)\.ya?ml", "CI runs it"),
)
_RULES = tuple(
    (re.compile(rf"(?:.*/)?(?:{pattern})(?:/.*)?", re.DOTALL | re.IGNORECASE), why)
    for pattern, why in _RUNS_BY_ITSELF
)
# What such a path may go on with, where a link takes the place of a directory.
_TAILS = (
    *("config", "hooks", "settings.json", "workflows", "actions", "ci"),
    *("plugin", "mcp.json", "tasks.json", "attributes", "replace"),
    *("alternates", "info/alternates"),
)
_MOST_LINKS = 40  # as many as the kernel follows


def held(commit: Commit, project: Reach, source: Reach) -> dict[str, str]:
    """Changes that wait for review, and why; with them what they replace, and directories above."""
    if commit.everything:
        return {}
    review = _Review(commit, project, source)
    # Of what is deleted and stands there anew, the deletion says more.
    changes = sorted(commit.changes, key=lambda change: change.gone)
    found = {c.path: why for c in changes if (why := review.because(c))}
    # The deletions that make room for what is held.
    taken = {path for path in found if path in review.new and path in review.gone}
    for path in review.gone:
        if any(is_within(path, one) for one in taken):
            found.setdefault(path, "what takes its place is held")
    above = {path[:end] for path in found for end in range(len(path)) if path[end] == "/"}
    for change in commit.changes:
        if change.path in above and change.path not in found and change.path in review.gone:
            found[change.path] = "something in it is held"  # so is what would stand there
    return found


class _Review:
    def __init__(self, commit: Commit, project: Reach, source: Reach) -> None:
        self._commit = commit
        self._project = project
        self._source = source
        self.gone = {c.path for c in commit.changes if c.gone}
        self.new = {c.path for c in commit.changes if not c.gone}
        self._lost = commit.anew or _HISTORY in self.gone
        self._repacked = any(_PACK.fullmatch(path) for path in self.new)
        # Packed references may do what `refs/replace` does; git's state is held with them.
        packed = git_state.PACKED in self.new
        self._replaces = packed and not _replaced(source) <= _replaced(project)
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
            or self._config_hook(change)
            or self._in_repository(change)
            or self._link(change)
            or self._special(change)
        )

    def _of_git(self, change: Change) -> str:
        """Git itself: a file or link that takes its directory's place, and the whole history."""
        name = change.path.rpartition("/")[2].lower()
        gone, directory = change.gone, change.entry is FileType.DIRECTORY
        if name == _HISTORY and not gone and change.kind is not ChangeKind.MODE and not directory:
            return _OBEYS
        if _OBJECTS.fullmatch(change.path):
            # Git never changes an object, and takes one away only once another pack has it.
            changed = change.kind is ChangeKind.MODIFIED and not directory
            if (gone and not self._repacked) or changed:
                return _LOST
        if self._lost and is_within(change.path, _HISTORY):
            return _LOST if gone else "it stands in place of the project's history"
        if self._replaces and git_state.is_state(change.path):
            return "it puts other objects in the place of the history's"
        if git_state.is_lock(change.path):
            return "whoever made this lock of git removes it"
        return ""

    def _config_hook(self, change: Change) -> str:
        path, link = change.path, change.kind is ChangeKind.SYMLINK
        for hook in self._commit.config_hooks:
            if is_within(path, hook) or (link and is_within(hook, path)):
                return _OBEYS
        return ""

    def _link(self, change: Change) -> str:
        if change.kind is not ChangeKind.SYMLINK:
            return ""
        # A link here, wherever it leads, would name anew what is held.
        if why := next(filter(None, (held_because(f"{change.path}/{t}") for t in _TAILS)), ""):
            return why
        try:
            target = os.fsdecode(self._source.link(os.fsencode(change.path)))
        except OSError:
            return ""

        def applied(path: str) -> str:
            there = self._source.info(os.fsencode(path)) is not None
            old = "" if path in self.gone else _target(self._project, path)
            return _target(self._source, path) if there else old

        # Once everything is applied, and as it is now, since not everything may be.
        for link in (applied, lambda path: _target(self._project, path)):
            if leads_out(change.path, target, self._commit.project, link):
                return "a link that leads out"
        return ""

    def _special(self, change: Change) -> str:
        """Files that run with their owner's rights; some may have done so before."""
        if change.entry is not FileType.FILE or change.gone:
            return ""
        path = path_of(change)
        try:
            new, old = self._source.info(path), self._project.info(path)
        except OSError:
            return ""  # nor can it be applied
        mode = self._source.mode(path, new) & _SPECIAL if new else 0
        if new is None or not mode:
            return ""
        same = old and (old.st_uid, old.st_gid) == (new.st_uid, new.st_gid)
        before = old.st_mode if old and same and stat.S_ISREG(old.st_mode) else 0
        return "it would run with its owner's rights" if mode & ~before else ""

    def _is_one(self, place: str, *, now: bool) -> bool:
        def has(name: str) -> bool:
            path = os.path.join(place, name)
            if now and path in self.new:
                return True
            try:
                there = self._project.info(os.fsencode(path)) is not None
            except OSError:
                return True  # who knows
            return there and not (now and path in self.gone)

        return has("HEAD") and (has("commondir") or (has("objects") and has("refs")))

    def _in_repository(self, change: Change) -> str:
        for place, name in _places(change.path):
            was_one = self._repositories.get(place)
            if was_one is False:
                return "git would take it for a repository"
            if was_one and name == "hooks":
                return "git runs it"
            if was_one and name in _OF_REPOSITORIES:
                return _OBEYS
        return ""


def _places(path: str) -> Iterator[tuple[str, str]]:
    """The directories that a path may be of a repository in, and which part of it."""
    steps = path.split("/")
    for number, step in enumerate(steps):
        if step in _TELLS_ONE:
            yield "/".join(steps[:number]), step


def _target(tree: Reach, path: str) -> str:
    """The target of a link; "" if there is none."""
    name = os.fsencode(path)
    info = tree.info(name)
    return os.fsdecode(tree.link(name)) if info and stat.S_ISLNK(info.st_mode) else ""


def _replaced(tree: Reach) -> set[bytes]:
    """Lines of packed references that put something in the place of other objects."""
    try:
        with os.fdopen(tree.file(os.fsencode(git_state.PACKED)), "rb") as file:
            return {line.rstrip() for line in file if b" refs/replace/" in line}
    except OSError:
        return set()


def held_because(path: str) -> str:
    """The reason why a changed path is held, or ""."""
    return next((why for rule, why in _RULES if rule.fullmatch(path)), "")


def leads_out(
    path: str, target: str, project: str, link: Callable[[str], str] = lambda _: ""
) -> bool:
    """True if a link at this path of the project leads out of it, or nobody can tell. `link` says
    where a link at another path leads; "" if there is none. A `..` behind a name leads wherever
    that name does, which may be a link tomorrow."""
    names = (step for step in target.split("/") if step not in ("", "."))
    if ".." in dropwhile(lambda step: step == "..", names):
        return True
    here, top = path.split("/")[:-1], project.split("/")
    left: list[str] = []  # what is still to follow
    with suppress(OSError, IndexError):  # nobody can tell, or it goes up from the project
        for _ in range(_MOST_LINKS):
            left = target.split("/") + left
            if target.startswith("/"):
                if left[: len(top)] != top:
                    return True
                here, left = [], left[len(top) :]
            target = ""
            while left and not target:
                step = left.pop(0)
                if step == "..":
                    here.pop()
                elif step not in ("", "."):
                    target = link("/".join((*here, step)))
                    here += [] if target else [step]
            if not target:
                return False
    return True
