"""`--detach`: the run goes on in a process of its own, which no terminal can end.

It writes into memory until it has its lock and its journal. From then on that, and all it prints,
goes to a file in the run's directory; what a run prints that never began is its caller's.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import cache

from ralph.errors import StateError, failing
from ralph.files.state_dir import writing_state
from ralph.kernel.events import AgentEvent
from ralph.kernel.facts import Fact
from ralph.kernel.value import value
from ralph.processes.child import memory_file, shell_code
from ralph.ui.lines import Reader

OUTPUT = "output.log"  # in the run's directory
_BLOCK = 1 << 16
_STREAMS = (1, 2)


@value
class Detached:
    """A run that goes on without us."""

    directory: str
    pid: int

    @property
    def run(self) -> str:
        return os.path.basename(self.directory)

    @property
    def output(self) -> str:
        """All that it prints."""
        return os.path.join(self.directory, OUTPUT)


def detach(begin: Callable[[Callable[[str], Reader]], int], *, stdin: bool) -> Detached | int:
    """Begin a run in another process; the exit code, where it ended before it had begun. `begin`
    gets who reads along from the journal's directory; `stdin` if the run reads that."""
    said = [memory_file(b"") for _ in _STREAMS]
    hears, tells = os.pipe()
    with failing("the machine cannot start a process now", "Try again later.", StateError):
        pid = os.fork()
    if not pid:
        os.close(hears)
        _leave_terminal(said, stdin=stdin)
        # A run that is wired anew asks again, and has begun long since.
        return begin(cache(lambda directory: _Beginning(directory, said, tells)))
    os.close(tells)
    try:
        directory = _heard(hears)
    except KeyboardInterrupt:
        os.kill(pid, signal.SIGTERM)
        raise
    finally:
        os.close(hears)
    if directory:
        return Detached(directory, pid)
    code = shell_code(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    for number, memory in zip(_STREAMS, said, strict=True):
        _copy(memory, number)
    return code


def _leave_terminal(said: Sequence[int], *, stdin: bool) -> None:
    """Have neither a terminal nor anything that a caller may wait for."""
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if not stdin:
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
    for number, memory in zip(_STREAMS, said, strict=True):
        os.dup2(memory, number)


class _Beginning:
    """A reader of facts that tells our caller, at the first of them, that the run has begun."""

    def __init__(self, directory: str, said: Sequence[int], tells: int) -> None:
        self._directory, self._said, self._tells = directory, said, tells
        self._begun = False

    def on_fact(self, fact: Fact) -> None:
        if self._begun:
            return
        self._begun = True
        path = os.path.join(self._directory, OUTPUT)
        with writing_state(self._directory):
            output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for number, memory in zip(_STREAMS, self._said, strict=True):
            _copy(memory, output)
            os.dup2(output, number)
            os.close(memory)
        os.close(output)
        os.write(self._tells, os.fsencode(self._directory))
        os.close(self._tells)

    def on_events(self, events: Sequence[AgentEvent]) -> None:
        """Nothing: it began before its agent did."""


def _heard(descriptor: int) -> str:
    """All that is written there, until nobody can."""
    data = b""
    while block := os.read(descriptor, _BLOCK):
        data += block
    return os.fsdecode(data)


def _copy(source: int, target: int) -> None:
    os.lseek(source, 0, os.SEEK_SET)
    while block := os.read(source, _BLOCK):
        while block:
            block = block[os.write(target, block) :]
