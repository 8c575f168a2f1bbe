"""Finds what a project has not committed, and makes the host's own commits: of what it put right
(R), and of its records."""

import os
from collections.abc import Iterable, Mapping, Sequence

from ralph.git.path_commit import PathCommit
from ralph.git.repository import RALPH, GitResult, call, clean_environ, committer, nul_split
from ralph.git.uncommitted_text import STATUS, foreign
from ralph.kernel.value import value
from ralph.text.redact import redact

# The agent may have written the repository's settings: nothing of it is run here.
_DEAF = (
    *("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"),
    *("-c", "commit.gpgSign=false", "-c", "gc.auto=0"),
)
_COMMIT = ("commit", "--quiet", "--no-status")


def is_repository(workspace: str) -> bool:
    """True if there is one around it, also a broken one; git passes by an empty `.git`."""
    here = os.path.realpath(workspace)
    while True:
        git = os.path.join(here, ".git")
        try:
            found = bool(os.listdir(git))
        except OSError:
            found = os.path.lexists(git)
        here, below = os.path.dirname(here), here
        if found or here == below:
            return found


def uncommitted(workspace: str, environ: Mapping[str, str]) -> list[str] | None:
    """Paths that git would still commit, Ralph's own left out; None where git cannot say."""
    quiet = {**clean_environ(environ), "GIT_OPTIONAL_LOCKS": "0"}
    done = call((*_DEAF, *STATUS), workspace, quiet)
    return foreign(done.output) if done.code == 0 else None


def identity(workspace: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Environment that names a committer, where git knows none; nothing where it does (R §3: `Ralph
    Loop`)."""
    if call(("var", "GIT_COMMITTER_IDENT"), workspace, clean_environ(environ)).code == 0:
        return {}
    return committer("Ralph Loop")


@value
class Corrections:
    """Commits of files that the host has put right."""

    workspace: str
    environ: Mapping[str, str]

    def commit(self, paths: Sequence[str], subject: str, run: str, *, new: bool = False) -> str:
        """Commit what differs of these, and nothing else; what went wrong, in words. What git does
        not know yet is left to whoever brought it, unless `new` says that it is ours."""
        if new:
            for path in paths:  # one by one: each may be ignored, or not there
                self._git("add", "--", path)
        changed = self._changed(paths)
        if not changed:
            return ""
        message = ("-m", subject, "-m", f"Ralph-Run: {run}")
        done = self._git(*_COMMIT, "--only", *message, "--", *changed)
        return done.said or f"git exited with code {done.code}" if done.code else ""

    def unhide(self, paths: Sequence[str]) -> None:
        """Let git look at these again, if somebody has told it not to."""
        said = nul_split(self._git("ls-files", "-v", "-z", "--", *paths).output)
        hidden = [entry[2:] for entry in said if entry[:1].islower() or entry[:1] == "S"]
        for flag in ("--no-skip-worktree", "--no-assume-unchanged") if hidden else ():
            self._git("update-index", flag, "--", *hidden)

    def at_head(self, path: str) -> bytes | None:
        """A file as it was committed last; None if it was not."""
        done = self._git("show", f"HEAD:./{path}")
        return done.output if done.code == 0 else None

    def _changed(self, paths: Iterable[str]) -> list[str]:
        for path in paths:  # a forgery may be staged; what git does not know is an error of its own
            self._git("add", "--update", "--", path)
        back = [path for path in paths if self._is_back(path)]
        if back:
            self._git("add", "--force", "--", *back)
        words = ("diff", "--name-only", "-z", "--no-renames", "--relative", "HEAD", "--", *paths)
        return nul_split(self._git(*words).output)

    def _is_back(self, path: str) -> bool:
        """True if it was removed by a commit, and is there again."""
        if not os.path.lexists(os.path.join(self.workspace, path)):
            return False
        known = self._git("ls-files", "--error-unmatch", "--", path)
        once = ("log", "-1", "--format=%H", "--", path)
        return known.code == 1 and bool(self._git(*once).output)

    def _git(self, *words: str) -> GitResult:
        environ = {**clean_environ(self.environ), **RALPH}
        return call((*_DEAF, "--literal-pathspecs", *words), self.workspace, environ)


class HostCommit:
    """Commits a turn's work where the agent cannot: in a sandbox that keeps no commits."""

    def __init__(
        self, workspace: str, environ: Mapping[str, str], left_alone: Iterable[str] = ()
    ) -> None:
        self._where = (workspace, environ)
        self._left_alone = frozenset(left_alone)  # what a person had not committed before
        self.refusal = ""  # what was said against the last one

    def __call__(self, subject: str, run: str) -> bool:
        """Commit everything but a person's own, as the person who runs us; true if there was
        anything. The user's own hooks run, and may refuse it."""
        repository, seen = PathCommit.around(*self._where), uncommitted(*self._where)
        if repository is None or seen is None:
            return False  # the gate says what is wrong
        paths = [os.path.join(repository.top, p) for p in seen if p not in self._left_alone]
        commit, self.refusal = repository(paths, f"{redact(subject)}\n\nRalph-Run: {run}")
        return bool(commit)
