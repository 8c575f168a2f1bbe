"""The branch that a run makes for its work (ADR 36). Only the standard library stands behind it."""

import hashlib
import os
import re
import shlex
from collections.abc import Mapping

from ralph.errors import ConfigError
from ralph.git.path_commit import PathCommit
from ralph.git.repository import GitResult, call, clean_environ
from ralph.git.uncommitted import uncommitted
from ralph.kernel.value import value
from ralph.text.words import counted

# Nothing in the work tree changes, so the user's hooks have nothing to do.
_QUIET = ("-c", f"core.hooksPath={os.devnull}", "-c", "branch.autoSetupMerge=false")
_BRANCHES = "refs/heads/"
_SHORT_ID = 12  # characters
_LONGEST_SLUG = 60
_NO_GIT = 127  # the code of a git that cannot be run


@value
class WorkBranch:
    """A new branch, and what it was made from."""

    name: str
    base: str  # the branch that was checked out; "" for none
    commit: str  # that was

    def words(self) -> str:
        """For people, before the first turn."""
        return f"Branch: {self.name}, made from {self.before}; it stays checked out"

    def make(self, workspace: str, environ: Mapping[str, str]) -> None:
        """Make it at HEAD and check it out. No file changes: what is uncommitted stays as it is."""
        done = _git(workspace, environ, *_QUIET, "checkout", "--quiet", "-b", self.name)
        if done.code != 0:
            said = done.said.removeprefix("fatal: ")
            message = f"git cannot make the branch {self.name}: {said}"
            raise ConfigError(message, "Take another name, or look: git branch --list")

    def closing(self, workspace: str, environ: Mapping[str, str]) -> dict[str, str]:
        """How to look at the work and merge it, by what is on the branch now."""
        back = f"git switch {shlex.quote(self.base or 'BRANCH')}"
        merge = f"{back} && git merge {shlex.quote(self.name)}"
        new = f"{self.commit}..{_BRANCHES}{self.name}"
        count = _git(workspace, environ, "rev-list", "--count", new, "--")
        if count.code != 0:
            return {"Branch": f"{self.name} is gone. Look for its commits: git reflog"}
        here, number = current_branch(workspace, environ), int(count.output)
        now = "" if here == self.name else f" Checked out now is {here or 'no branch'}."
        if number:
            look = f"git log -p {shlex.quote(f'{self.before}..{self.name}')}"
            commits = f"{counted(number, 'commit')} on {self.name}."
            return {"Branch": f"{commits}{now} Look: {look}", "Merge": merge}
        if uncommitted(workspace, environ):
            look = f"nothing is committed on {self.name}.{now} Look: git status"
            return {"Branch": look, "Merge": f"git add -A && git commit && {merge}"}
        forget = f"git branch -d {shlex.quote(self.name)}"
        return {"Branch": f"nothing was done on {self.name}.{now} Go back: {back} && {forget}"}

    @property
    def before(self) -> str:
        """The branch or the commit that was checked out."""
        return self.base or self.commit[:_SHORT_ID]

    def refuse_another(self, run: str, workspace: str, environ: Mapping[str, str]) -> None:
        """Raise a ConfigError if another branch is checked out by now: work goes to this one."""
        here = current_branch(workspace, environ)
        if here == self.name:
            return
        if not is_branch(self.name, workspace, environ):
            message = f"the branch {self.name} of run {run} is gone"
            raise ConfigError(message, "Look for its commits: git reflog. Or start a new run.")
        raise ConfigError(
            f"run {run} works on the branch {self.name}, and checked out now is "
            f"{here or 'no branch'}",
            f"Go back to it: git switch {shlex.quote(self.name)}, then: ralph resume",
        )


def planned_branch(name: str, workspace: str, environ: Mapping[str, str]) -> WorkBranch:
    """The new branch of that name, which is not made yet; ConfigError where there can be none."""
    repository = PathCommit.around(workspace, environ)
    if repository is None:
        message = f"{workspace} is in no git repository, so there is no branch to make"
        raise ConfigError(message, 'Try: git init && git add -A && git commit -m "Begin"')
    repository.refuse_halves()
    if not is_branch_name(name, workspace, environ):
        message = f"{name!r} is no name for a git branch"
        rules = "The rules: git help check-ref-format"
        raise ConfigError(message, f"For example: --branch login-page. {rules}")
    if is_branch(name, workspace, environ):
        raise ConfigError(
            f"there is a branch {name} already",
            f"Work on it: git switch {shlex.quote(name)}, and leave out --branch. "
            f"Or take another name: --branch {shlex.quote(f'{name}-2')}",
        )
    head = _git(workspace, environ, "rev-parse", "--verify", "--quiet", "HEAD")
    if head.code != 0:
        message = "a branch needs a commit to start from, and there is none yet"
        raise ConfigError(message, 'Try: git add -A && git commit -m "Begin"')
    base = current_branch(workspace, environ)
    return WorkBranch(name, base, head.output.decode().strip())


def slug(task: str) -> str:
    """A task's id as the name of a directory and of a branch; no two ids have the same."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", task)[:_LONGEST_SLUG].strip(".-")
    plain = re.sub(r"\.{2,}|\.lock$", "-", plain)
    if plain == task:
        return plain
    return f"{plain or 'task'}-{hashlib.sha256(task.encode()).hexdigest()[:8]}"


def branch_of(task: str) -> str:
    """The branch of a task, here and where its pull request is."""
    return f"ralph/{slug(task)}"


def is_branch_name(name: str, workspace: str, environ: Mapping[str, str]) -> bool:
    """True if git takes it as it is, and where there is no git to ask; `@{-1}`, which it would
    read as another name, is none."""
    if not name or "\0" in name:
        return False
    done = _git(workspace, environ, "check-ref-format", "--branch", name)
    return done.code == _NO_GIT or os.fsdecode(done.output) == f"{name}\n"


def is_branch(name: str, workspace: str, environ: Mapping[str, str]) -> bool:
    """True if there is one of this name."""
    words = ("show-ref", "--verify", "--quiet", f"{_BRANCHES}{name}")
    return _git(workspace, environ, *words).code == 0


def current_branch(workspace: str, environ: Mapping[str, str]) -> str:
    """The branch that is checked out; "" for none."""
    said = _git(workspace, environ, "symbolic-ref", "--quiet", "HEAD").output
    return os.fsdecode(said).strip("\n").removeprefix(_BRANCHES)


def _git(workspace: str, environ: Mapping[str, str], *words: str) -> GitResult:
    return call(words, workspace, {**clean_environ(environ), "LC_ALL": "C"})
