"""Finds what a project has not committed, and makes the host's own commits: of what it put right
(R), and of its records."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from ralph.errors import ConfigError
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
Subject = str | Callable[[Sequence[str]], str]  # by the paths that it commits


def uncommitted(workspace: str, environ: Mapping[str, str]) -> list[str] | None:
    """Paths that git would still commit, Ralph's own left out; None where git cannot say."""
    quiet = {**clean_environ(environ), "GIT_OPTIONAL_LOCKS": "0"}
    done = call((*_DEAF, *STATUS), workspace, quiet)
    return foreign(done.output) if done.code == 0 else None


def identity(workspace: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Environment that names a committer where git knows none (R §3: `Ralph Loop`)."""
    if call(("var", "GIT_COMMITTER_IDENT"), workspace, clean_environ(environ)).code == 0:
        return {}
    return committer("Ralph Loop")


@value
class Corrections:
    """Commits of files that the host has put right."""

    workspace: str
    environ: Mapping[str, str]

    def commit(self, paths: Sequence[str], subject: Subject, run: str, *, new: bool = False) -> str:
        """Commit what differs of these, and nothing else; what went wrong, in words. What git does
        not know yet is left to whoever brought it, unless `new` says that it is ours."""
        changed = self._changed(paths, new=new)
        if not changed:
            return ""
        first = subject if isinstance(subject, str) else subject(changed)
        message = ("-m", first, "-m", f"Ralph-Run: {run}")
        done = self._git(*_COMMIT, "--only", *message, "--", *changed)
        return done.said or f"git exited with code {done.code}" if done.code else ""

    def are_at_head(self, paths: Sequence[str]) -> bool:
        """True if the last commit has these files as they are, by their content."""
        there = [path for path in paths if os.path.lexists(os.path.join(self.workspace, path))]
        blobs = self._git("hash-object", "--", *there).output.decode().split() if there else []
        rows = nul_split(self._git("ls-tree", "-z", "HEAD", "--", *paths).output)
        held = {
            path: fields.split(" ")[-1] for fields, _, path in (r.partition("\t") for r in rows)
        }
        return len(blobs) == len(there) and held == dict(zip(there, blobs, strict=True))

    def are_committed(self, paths: Sequence[str]) -> bool:
        """True if git has these as they are, or ignores them; its index knows their times then."""
        words = ("status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--")
        done = self._git(*words, *paths)
        return done.code == 0 and not done.output

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

    def _changed(self, paths: Sequence[str], *, new: bool) -> list[str]:
        there = [path for path in paths if os.path.lexists(os.path.join(self.workspace, path))]
        known = self._known(paths)
        # A forgery may be staged; what git does not know is an error of its own. An ignored one is
        # left out, and told.
        if staged := [p for p in paths if p in known or (new and p in there)]:
            self._git("add", "--all" if new else "--update", "--", *staged)
        apart = [path for path in there if path not in known]
        known = self._known(apart) if apart else known
        once = ("log", "-1", "--format=%H", "--")  # removed by a commit, and there again
        back = [p for p in apart if p not in known and self._git(*once, p).output]
        if back:
            self._git("add", "--force", "--", *back)
        # Of the index, which has them now: with the work tree git takes seconds for 100,000 files.
        words = ("diff", "--cached", "--name-only", "-z", "--no-renames", "--relative", "HEAD")
        return nul_split(self._git(*words, "--", *paths).output)

    def _known(self, paths: Sequence[str]) -> frozenset[str]:
        return frozenset(nul_split(self._git("ls-files", "-z", "--", *paths).output))

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
        try:
            repository, seen = PathCommit.around(*self._where), uncommitted(*self._where)
        except ConfigError as error:
            self.refusal = error.message
            return False
        if repository is None or seen is None:
            return False  # the gate says what is wrong
        paths = [os.path.join(repository.top, p) for p in seen if p not in self._left_alone]
        commit, self.refusal = repository(paths, f"{redact(subject)}\n\nRalph-Run: {run}")
        return bool(commit)
