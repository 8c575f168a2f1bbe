"""What git has not committed, asked while a hook does other things (R §5b, check 3).

One git process, and none of Python's modules for processes, which take longer to import than
git needs.
"""

import os

from ralph.git.uncommitted_text import STATUS, foreign
from ralph.hosts.protocol import tell

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Mapping

_PATIENCE = 20_000  # milliseconds; a host waits longer than that
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")  # they lead git to another repository
_MOST_OUTPUT = 1 << 20  # bytes; more paths than that nobody reads


class GitStatus:
    """`git status` of a directory, which runs from now on. Ask once for `paths`."""

    def __init__(self, project: str, environ: "Mapping[str, str]") -> None:
        self._output, theirs = os.pipe()
        self._process = 0
        try:
            self._process = _started(project, environ, theirs)
        except OSError as error:
            self._why_not = f"git does not start: {error.strerror}"
        finally:
            os.close(theirs)

    def paths(self) -> list[str]:
        """What is changed, new or gone, Ralph's own files aside; nothing where git cannot say."""
        if not self._process:
            os.close(self._output)
            return _skipped(self._why_not)
        output, late = self._read()
        if late:
            os.kill(self._process, 9)
        code = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
        if late or (code and len(output) <= _MOST_OUTPUT):
            why = "it takes too long" if late else f"it is no repository, or broken (exit {code})"
            return _skipped(why)
        return foreign(output)

    def _read(self) -> tuple[bytes, bool]:
        """What git says, and whether it kept us waiting."""
        import select

        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        output = b""
        try:
            while poll.poll(_PATIENCE):
                piece = os.read(self._output, 1 << 16)
                output += piece
                if not piece or len(output) > _MOST_OUTPUT:
                    return output, False
            return output, True
        finally:
            os.close(self._output)


def _started(project: str, environ: "Mapping[str, str]", output: int) -> int:
    """No lock is taken: a commit of somebody else's must not fail because we looked."""
    argv = ("git", "-C", project, "-c", "core.fsmonitor=false", *STATUS)
    actions = (
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    )
    env = {name: text for name, text in environ.items() if name not in _ELSEWHERE}
    env["GIT_OPTIONAL_LOCKS"] = "0"
    return os.posix_spawnp("git", argv, env, file_actions=actions)


def _skipped(why: str) -> list[str]:
    tell(f"uncommitted changes are not looked for: {why}")
    return []
