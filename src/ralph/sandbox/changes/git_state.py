"""Git's own state in a commit: its index, its branches and what is under way fit together, so they
are applied together or not at all."""

import os
import re
from contextlib import suppress

from ralph.git.digest import git_output
from ralph.sandbox.changes.commit import Commit

INDEX, PACKED = ".git/index", ".git/packed-refs"
APART = "it belongs to what somebody changed in git meanwhile"
_STATE = re.compile(
    r"\.git/(?:index|[A-Z_]*HEAD|MERGE_[A-Z]+|packed-refs|(?:refs|logs|sequencer|rebase-[a-z]+)/.+)",
    re.DOTALL,
)
_DECIDES = re.compile(r"\.git/(?:index|HEAD|packed-refs|refs/heads/.+)", re.DOTALL)
_LOCK = re.compile(r"(?:.*/)?\.git/(?:.*/)?[^/]+\.lock(?:/.*)?", re.DOTALL | re.IGNORECASE)
_REPLACED = b" refs/replace/"
_MOST = 1 << 30
_ENVIRON = {"PATH": "/usr/local/bin:/usr/bin:/bin"}  # whoever finishes a commit has another


def decides(path: str) -> bool:
    """True if the rest of git's state must not be applied without this."""
    return _DECIDES.fullmatch(path) is not None and not is_lock(path)


def is_state(path: str) -> bool:
    """True for git's state; objects are not, they are in nobody's way."""
    return _STATE.fullmatch(path) is not None


def is_lock(path: str) -> bool:
    """True if git takes it for a lock: whoever made it is gone, or works elsewhere."""
    return _LOCK.fullmatch(path) is not None


def replacements(packed_refs: bytes) -> frozenset[bytes]:
    """Lines of packed references that put something in the place of other objects."""
    return frozenset(line for line in packed_refs.splitlines() if _REPLACED in line)


class FirstIndex:
    """The index of the beginning. Git never writes into one, but puts another in its place: so an
    open file is enough, however large the project is."""

    def __init__(self, project: str, moment: int) -> None:
        self._file = -1
        with suppress(OSError):
            self._file = os.open(os.path.join(project, INDEX), os.O_RDONLY | os.O_NOFOLLOW)
            if os.fstat(self._file).st_ctime_ns >= moment:
                self.close()  # it has changed since

    def keep(self, into: str) -> None:
        if self._file >= 0:
            with suppress(OSError), open(into, "xb", buffering=0) as to:
                while os.sendfile(to.fileno(), self._file, None, _MOST):
                    pass
            self.close()

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        self.close()


def is_refreshed(commit: Commit) -> bool:
    """True if somebody's index says what it said at the beginning, or what ours says: `git status`
    writes it anew for the times of the files alone."""
    now = _entries(commit.project, os.path.join(commit.project, INDEX))
    others = (commit.index, os.path.join(commit.source, INDEX))
    return now is not None and any(now == _entries(commit.project, other) for other in others)


def _entries(project: str, index: str) -> bytes | None:
    """The list of an index, without the times; None if it cannot be read."""
    if not os.path.isfile(index):  # git would take it for an empty one
        return None
    environ = {**_ENVIRON, "GIT_INDEX_FILE": index}
    words = ("-c", "core.fsmonitor=false", "ls-files", "--stage", "-v", "-z")
    return git_output(project, environ, *words)
