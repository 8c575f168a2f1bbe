"""Git's own state in a commit: its index, its branches and what is under way fit together, so they
are applied together or not at all."""

import os
import re
from contextlib import suppress

from ralph.git.digest import git_output
from ralph.sandbox.changes.commit import Commit

INDEX, PACKED = ".git/index", ".git/packed-refs"
APART = "it belongs to what somebody changed in git meanwhile"
# Matches git's state; objects are not, they are in nobody's way.
is_state = re.compile(
    r"\.git/(?:index|[A-Z_]*HEAD|MERGE_[A-Z]+|packed-refs|(?:refs|logs|sequencer|rebase-[a-z]+)/.+)",
    re.DOTALL,
).fullmatch
# Matches what git takes for a lock: whoever made it is gone, or works elsewhere.
is_lock = re.compile(
    r"(?:.*/)?\.git/(?:.*/)?[^/]+\.lock(?:/.*)?", re.DOTALL | re.IGNORECASE
).fullmatch
_DECIDES = re.compile(r"\.git/(?:index|HEAD|packed-refs|refs/heads/.+)", re.DOTALL)
_ENVIRON = {"PATH": "/usr/local/bin:/usr/bin:/bin"}  # whoever finishes a commit has another


def decides(path: str) -> bool:
    """True if the rest of git's state must not be applied without this."""
    return _DECIDES.fullmatch(path) is not None and not is_lock(path)


class FirstIndex:
    """The index of the beginning, as an open file, since git puts another in its place."""

    def __init__(self, project: str, moment: int) -> None:
        self._file = -1
        with suppress(OSError):
            self._file = os.open(os.path.join(project, INDEX), os.O_RDONLY | os.O_NOFOLLOW)
            if os.fstat(self._file).st_ctime_ns >= moment:
                self.close()  # it has changed since

    def keep(self, into: str) -> None:
        if self._file >= 0:
            with suppress(OSError), open(into, "xb", buffering=0) as to:
                while os.sendfile(to.fileno(), self._file, None, 1 << 30):
                    pass
            self.close()

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        self.close()


def is_refreshed(commit: Commit) -> bool:
    """True if somebody's index has only new times, as `git status` writes, or is as ours."""
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
