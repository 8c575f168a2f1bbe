"""A commit of some paths alone: what else is changed or staged stays exactly as it is."""

import os
import shlex
import tempfile
from collections.abc import Iterable, Mapping, Sequence

from ralph.errors import ConfigError
from ralph.files.state_dir import is_inside
from ralph.git.repository import GitResult, call, clean_environ, copy_index, nul_joined, nul_split
from ralph.git.under_way import under_way
from ralph.kernel.value import value

_WHERE = ("rev-parse", "--path-format=absolute")
_NO_WORK_TREE = ("not a git repository", "must be run in a work tree")
_COMMIT = ("-c", "gc.autoDetach=false", "commit", "--quiet", "--no-status", "-m")


@value
class PathCommit:
    """Commits in the repository that has its work tree around a directory."""

    top: str
    git_dir: str
    environ: Mapping[str, str]

    @staticmethod
    def around(directory: str, environ: Mapping[str, str]) -> "PathCommit | None":
        """None outside a work tree, or without git; a ConfigError where git refuses to say."""
        clean = clean_environ(environ)
        # One call each: a path may have any character in it, line ends too.
        asked = ("--show-toplevel", "--absolute-git-dir")
        done = [call((*_WHERE, what), directory, {**clean, "LC_ALL": "C"}) for what in asked]
        for refused in (one for one in done if one.code != 0):
            if refused.code == 127 or any(words in refused.said for words in _NO_WORK_TREE):
                return None
            raise ConfigError(f"git: {_words(refused, 'rev-parse')}", "Fix that and run again.")
        top, git_dir = (os.fsdecode(one.output).removesuffix("\n") for one in done)
        return PathCommit(top, git_dir, clean)

    def refuse_halves(self) -> None:
        """Raise a ConfigError in the middle of a merge, which wants no commit of ours, and while
        the index is locked, for it could not be told of one."""
        for operation in under_way(self.git_dir):
            message = f"git is in the middle of {operation.name}"
            raise ConfigError(message, f"Finish it, or: {operation.abort}")
        lock = os.path.join(self.git_dir, "index.lock")
        if os.path.lexists(lock):
            message = f"another git is at work here: {lock} is there"
            raise ConfigError(message, f"If there is none: rm {shlex.quote(lock)}")

    def __call__(self, paths: Iterable[str], subject: str) -> tuple[str, str]:
        """The commit and "", or "" and why there is none: git or a hook of the user's said so.
        Both are "" where there is nothing that git would keep; neither is where there is a commit
        that the user's index could not be told of. Paths are absolute."""
        kept = self._kept(paths)
        if not kept:
            return "", ""
        with tempfile.TemporaryDirectory(prefix="ralph-index-") as scratch:
            said = self._commit(kept, subject, os.path.join(scratch, "index"))
        if said:
            return "", said
        added = self._git(None, "add", "--all", "--", *kept)  # the user's index knew less
        against = _words(added, "add") if added.code != 0 else ""
        return self._git(None, "rev-parse", "HEAD").output.decode().strip(), against

    def pending(self, path: str) -> list[str]:
        """Uncommitted paths below a path, relative to the top."""
        words = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--")
        said = self._git(None, *words, f":(literal){path}").output
        return [entry[3:] for entry in nul_split(said)]

    def _kept(self, paths: Iterable[str]) -> list[str]:
        """Those in the repository that it does not ignore, as git reads them."""
        # In its real folder; a link itself is not followed, for it is what is committed.
        parts = ((os.path.realpath(os.path.dirname(p)), os.path.basename(p)) for p in paths)
        inside = [os.path.join(*pair) for pair in parts if is_inside(pair[0], self.top)]
        asked = ("check-ignore", "-z", "--stdin")
        ignored = nul_split(self._git(None, *asked, stdin=nul_joined(inside)).output)
        return [f":(literal){path}" for path in inside if path not in ignored]

    def _commit(self, kept: Sequence[str], subject: str, index: str) -> str:
        """Commit by an index of our own; what was said against it."""
        has_head = self._git(None, "rev-parse", "--verify", "--quiet", "HEAD").code == 0
        copy_index(os.path.join(self.git_dir, "index"), index)  # it knows what need not be read
        steps = [("read-tree", "--reset", "HEAD") if has_head else ("read-tree", "--empty")]
        for words in (*steps, ("add", "--all", "--", *kept)):
            done = self._git(index, *words)
            if done.code != 0:
                return _words(done, words[0])
        if has_head and self._git(index, "diff-index", "--cached", "--quiet", "HEAD").code == 0:
            return ""  # it is committed already
        done = self._git(index, *_COMMIT, subject)
        return "" if done.code == 0 else _words(done, "commit")

    def _git(self, index: str | None, *words: str, stdin: bytes = b"") -> GitResult:
        environ = {**self.environ, "GIT_INDEX_FILE": index} if index else self.environ
        return call(words, self.top, environ, stdin)


def _words(done: GitResult, what: str) -> str:
    said = done.said or done.output.decode("utf-8", "replace").strip()
    return said or f"git {what} exited with code {done.code}"
