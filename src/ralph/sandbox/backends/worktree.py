"""The backend `worktree`: a git worktree beside the project. What is done in it can be undone; a
command can still reach everything that you can, and call anybody."""

import os
import shutil
from collections.abc import Iterable, Iterator

from ralph.errors import ConfigError
from ralph.files.safe_open import remove_file
from ralph.git.digest import entry_path, git_line, git_output
from ralph.kernel.value import replace
from ralph.processes.keeper import Keeper
from ralph.sandbox import layer_store
from ralph.sandbox.backends.base import missing_keeper, real_project
from ralph.sandbox.backends.layered import Layered
from ralph.sandbox.changes.commit import Commit, read
from ralph.sandbox.changes.manifest import Manifest, read_listing
from ralph.sandbox.interface import (
    Capabilities,
    Change,
    CommitResult,
    SandboxPolicy,
    ordered,
    unusable,
)
from ralph.text.words import listed

REMEDY = "Try: git init && git add -A && git commit"
_WHY = "a git worktree, without files that git ignores; it can be undone, and contains nothing"
_STATUS = ("status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames")
_MOST_NAMED = 3


def probe(project: str, policy: SandboxPolicy) -> Capabilities:
    why = problem(os.path.realpath(project), policy)
    return unusable(why) if why else WorktreeSandbox.able


def problem(project: str, policy: SandboxPolicy) -> str:
    """The reason why git cannot make a second tree of the project, or ""."""
    if why := missing_keeper():
        return why
    top = git_line(project, policy.environ, "rev-parse", "--show-toplevel")
    if top is None:
        return "not a git repository"
    if top != project:
        return "not the top directory of its git repository"
    if git_output(project, policy.environ, "rev-parse", "--verify", "--quiet", "HEAD") is None:
        return "the git repository has no commit yet"
    return ""


def open(project: str, policy: SandboxPolicy) -> "WorktreeSandbox":  # noqa: A001  the interface has it so
    """A worktree with everything that the project has now, but for ignored files."""
    project = real_project(project)
    if why := problem(project, policy):
        raise ConfigError(f"no worktree: {why}", REMEDY)
    try:
        with layer_store.claimed(policy, project) as kept:
            # Those of owners that were killed, whose directories are gone.
            if os.path.exists(os.path.join(project, ".git", "worktrees")):
                _prune(project, policy)
            return WorktreeSandbox(project, policy, kept)
    except BaseException:
        _prune(project, policy)
        raise


class WorktreeSandbox(Layered):
    """A second working tree; commands work in it. Others make theirs in another way."""

    kind = "worktree"
    able = Capabilities(False, True, False, _WHY)

    def __init__(self, project: str, policy: SandboxPolicy, kept: layer_store.LayerDir) -> None:
        tree, self._listing = (os.path.join(kept.path, name) for name in ("tree", "manifest.json"))
        unread: list[bytes] = []
        if not kept.record:
            kept.settle()
            self.make(project, policy, tree)
            # What cannot be read, or is gone by now, is left out and told.
            whole, into = os.fsencode(project), os.fsencode(os.path.realpath(tree))
            unread = [p for p in uncommitted(project, policy) if not _copy(whole, into, p)]
        able = replace(self.able, lacks=lacking(unread))
        super().__init__(project, policy, able, kept, tree)
        sealed = read(os.path.join(kept.path, layer_store.SEALED))
        if not kept.record:
            self._manifest = Manifest(tree, git=False, ours=True)
        else:
            self._manifest = Manifest(tree, git=False, ours=True, known=read_listing(self._listing))
            if sealed is not None:
                self._resume(sealed)
                left = {change.path for change in sealed.changes}
                self._manifest.accept(path for path in sealed.since if path not in left)
        self._note()
        if sealed is not None:
            remove_file(os.path.join(kept.path, layer_store.SEALED))

    @staticmethod
    def make(project: str, policy: SandboxPolicy, tree: str) -> None:
        words = ("worktree", "add", "--detach", "--quiet", tree, "HEAD")
        if git_output(project, policy.environ, *words) is None:
            raise ConfigError("git cannot add a worktree", f"See why: git worktree add {tree} HEAD")

    def changes(self) -> tuple[Change, ...]:
        return ordered(self._manifest.against(self.origin))

    def _copies(self, changes: tuple[Change, ...]) -> frozenset[str]:
        return frozenset(change.path for change in changes if self._manifest.knows(change.path))

    def _go_on(self, rest: Commit, done: CommitResult) -> None:
        self._keeper = Keeper()
        self._manifest.accept(done.applied)
        self._resume(rest)
        self._note()

    def _note(self) -> None:
        if self.policy.kept:
            self._manifest.write(self._listing)
        super()._note()

    def _leave(self) -> None:
        super()._leave()
        _prune(self.origin, self.policy)


def lacking(unread: Iterable[bytes]) -> str:
    """Words about files that could not be read, or ""."""
    names = [repr(os.fsdecode(path))[1:-1] for path in unread]
    missing = listed(names, _MOST_NAMED)
    return f"files are missing that cannot be read: {missing}" if names else ""


def uncommitted(project: str, policy: SandboxPolicy) -> Iterator[bytes]:
    """Paths that differ from the last commit; some may be gone. Ralph's own are left out."""
    state = os.fsencode(os.path.realpath(policy.state))
    listing = git_output(project, policy.environ, *_STATUS) or b""
    for path in map(entry_path, filter(None, listing.split(b"\0"))):
        if not os.path.join(os.fsencode(project), path).startswith(state + b"/"):
            yield path


def is_copied(project: bytes, path: bytes) -> bool:
    """True if a file or link is there itself; behind a link it is another file."""
    whole = os.path.join(project, path)
    return is_plain(whole) and (os.path.islink(whole) or os.path.isfile(whole))


def is_plain(whole: bytes) -> bool:
    """True if no link is above it, where the beginning has none."""
    above = os.path.dirname(whole)
    return os.path.realpath(above) == above


def _copy(project: bytes, tree: bytes, path: bytes) -> bool:
    """Copy one path; False if it is there and cannot be read."""
    source, to = os.path.join(project, path), os.path.join(tree, path)
    if not is_plain(to):
        return True  # a link is there now, instead of a directory
    copied = is_copied(project, path)
    if os.path.islink(to) or os.path.isfile(to):
        os.unlink(to)
    elif copied and os.path.isdir(to):
        shutil.rmtree(to)
    if not copied:
        return True
    os.makedirs(os.path.dirname(to), exist_ok=True)
    try:
        shutil.copy2(source, to, follow_symlinks=False)
    except (PermissionError, FileNotFoundError):
        remove_file(to)
        return False
    return True


def _prune(project: str, policy: SandboxPolicy) -> None:
    git_output(project, policy.environ, "worktree", "prune")
