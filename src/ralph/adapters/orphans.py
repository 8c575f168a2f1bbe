"""What a run left behind whose Ralph and keeper were both killed: found by its environment."""

import os
import re
import signal
import time

from ralph.adapters.keeper_process import signal_all
from ralph.adapters.tree import Look, look

_PATIENCE = 5.0
_TICK = 0.02


def end_orphans(run: str) -> None:
    """Kill every process that says it belongs to this run, to an attempt of it (`<run>-001`), or
    to a job of such an attempt (ADR 10)."""
    mark = re.compile(rb"(?:^|\0)RALPH_(?:PARENT_)?RUN=%b(?:-\d+)?\0" % re.escape(run.encode()))
    end = time.monotonic() + _PATIENCE
    while (left := _marked(mark)) and time.monotonic() < end:
        signal_all(left, signal.SIGKILL)
        time.sleep(_TICK)


def _marked(mark: re.Pattern[bytes]) -> list[int]:
    seen = look()
    ours = _line_of(os.getpid(), seen)
    return [pid for pid in seen if pid not in ours and mark.search(_environment(pid))]


def _environment(pid: int) -> bytes:
    """Its environment as it was started; nothing for a zombie, or for another user's process."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read() + b"\0"
    except OSError:
        return b""


def _line_of(pid: int, seen: Look) -> set[int]:
    """A process and those above it: whoever goes on from within a run is not its orphan."""
    line: set[int] = set()
    while pid in seen and pid not in line:
        line.add(pid)
        pid = seen[pid].parent
    return line
