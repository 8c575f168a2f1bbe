"""Asks git about the changes of a project while a hook does other things (R §5b, check 3).

One git process, without Python's modules for processes: to import those takes longer.
"""

import os

from ralph.git.uncommitted_text import STATUS
from ralph.hosts.protocol import Environ

_ALL = ("status", "--porcelain=v2", "--branch", "--untracked-files=all", "-z")
_PATIENCE = 20_000  # milliseconds; a host waits longer than that
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")  # they lead git to another repository
_MOST_NAMED = 1 << 20  # bytes; more paths than that nobody reads
_MOST_COMPARED = 1 << 28
_MOST_FILES = 2000  # changed ones whose times are looked at


class GitStatus:
    """`git status` of a directory, which runs from now on. Ask once for `output`."""

    def __init__(
        self,
        project: str,
        environ: Environ,
        status: tuple[str, ...] = STATUS,
        most: int = _MOST_NAMED,
    ) -> None:
        self._output, theirs = os.pipe()
        self._process, self._why_not, self._most = 0, "", most
        argv = ("git", "-C", project or os.curdir, "-c", "core.fsmonitor=false", *status)
        actions = (
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, theirs, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        )
        env = {name: text for name, text in environ.items() if name not in _ELSEWHERE}
        # No lock is taken: a commit of somebody else's must not fail because we looked.
        env["GIT_OPTIONAL_LOCKS"] = "0"
        try:
            self._process = os.posix_spawnp("git", argv, env, file_actions=actions)
        except (OSError, ValueError) as error:
            self._why_not = f"git does not start: {getattr(error, 'strerror', None) or error}"
        finally:
            os.close(theirs)

    def output(self) -> tuple[bytes, str]:
        """The output of git, or why there is none."""
        import select

        if not self._process:
            os.close(self._output)
            return b"", self._why_not
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        output, piece, late = b"", b"-", False
        while piece and len(output) <= self._most and not late:
            late = not poll.poll(_PATIENCE)
            piece = b"" if late else os.read(self._output, 1 << 16)
            output += piece
        os.close(self._output)
        if late:
            os.kill(self._process, 9)
        code = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
        if late:
            return b"", "it takes too long"
        if code and len(output) <= self._most:
            return b"", f"it is no repository, or broken (exit {code})"
        return output, ""


def fingerprint(project: str, environ: Environ) -> str:
    """A text that stays the same while no commit is made and no file changes: evidence of work
    where no tool call is seen. Empty where git cannot say."""
    from _blake2 import blake2b

    output, why_not = GitStatus(project, environ, _ALL, _MOST_COMPARED).output()
    if why_not:
        return ""
    entries = sorted(filter(None, output.split(b"\0")))
    digest = blake2b(b"\0".join(entries), digest_size=16)
    for entry in entries[:_MOST_FILES]:
        digest.update(_moment(project, entry))
    return digest.hexdigest()


def _moment(project: str, entry: bytes) -> bytes:
    """The time of a changed file's change: its line in the status stays the same. Of a path with
    blanks only untracked files are looked at, which is enough for evidence."""
    path = entry[2:] if entry[:2] == b"? " else entry.rpartition(b" ")[2]
    try:
        found = os.lstat(os.path.join(os.fsencode(project), path))
    except (OSError, ValueError):
        return b"-"
    return b"%d %d" % (found.st_mtime_ns, found.st_size)
