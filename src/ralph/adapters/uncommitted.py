"""What a project has not committed, and the host's own commits of what it put right (R)."""

import os
from collections.abc import Iterable, Mapping, Sequence

from ralph.adapters.git_work import Done, call, clean_environ
from ralph.core.uncommitted import STATUS, foreign
from ralph.core.value import value

_OURS = {
    f"GIT_{who}_{what}": text
    for who in ("AUTHOR", "COMMITTER")
    for what, text in (("NAME", "ralph"), ("EMAIL", "ralph@localhost"))
}
_PLAIN = ("-c", "core.fsmonitor=false", "--literal-pathspecs")
# Neither a hook nor a signature has a say in what the host puts right.
_COMMIT = (
    *("-c", f"core.hooksPath={os.devnull}", "-c", "commit.gpgSign=false", "-c", "gc.auto=0"),
    *("-c", "core.fsmonitor=false", "commit", "--quiet", "--no-status", "--only"),
)


def uncommitted(workspace: str, environ: Mapping[str, str]) -> list[str] | None:
    """Paths that git would still commit, Ralph's own left out; None where there is no git."""
    quiet = {**clean_environ(environ), "GIT_OPTIONAL_LOCKS": "0"}
    done = call((*_PLAIN, *STATUS), workspace, quiet)
    return foreign(done.output) if done.code == 0 else None


@value
class Corrections:
    """Commits of files that the host has put right."""

    workspace: str
    environ: Mapping[str, str]

    def commit(self, paths: Sequence[str], subject: str, run: str) -> str:
        """Commit what differs of these, and nothing else; what went wrong, in words. What git does
        not know yet is left to whoever brought it."""
        changed = self._changed(paths)
        if not changed:
            return ""
        message = ("-m", subject, "-m", f"Ralph-Run: {run}")
        done = self._git((*_COMMIT, *message, "--", *changed), _OURS)
        return done.said or f"git exited with code {done.code}" if done.code else ""

    def _changed(self, paths: Iterable[str]) -> list[str]:
        self._git((*_PLAIN, "add", "--update", "--", *paths), {})  # a forgery may be staged
        back = [path for path in paths if self._is_back(path)]
        if back:
            self._git(("add", "--force", "--", *back), {})
        words = ("diff", "--name-only", "-z", "--no-renames", "--relative", "HEAD", "--", *paths)
        done = self._git((*_PLAIN, *words), {})
        return [os.fsdecode(path) for path in done.output.split(b"\0") if path]

    def _is_back(self, path: str) -> bool:
        """Whether it was removed by a commit, and is there again."""
        if not os.path.lexists(os.path.join(self.workspace, path)):
            return False
        known = self._git((*_PLAIN, "ls-files", "--error-unmatch", "--", path), {})
        once = ("log", "-1", "--format=%H", "--", path)
        return known.code == 1 and bool(self._git((*_PLAIN, *once), {}).output)

    def _git(self, words: Iterable[str], more: Mapping[str, str]) -> Done:
        environ = {**clean_environ(self.environ), **more}
        return call(words, self.workspace, environ)
