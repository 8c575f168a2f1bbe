"""What a run left behind whose Ralph and keeper were both killed: found by its environment."""

import os
import signal
import time

_PATIENCE = 5.0
_TICK = 0.02


def end_orphans(run: str) -> int:
    """Kill every process that says it belongs to this run; how many there were (ADR 10)."""
    mark = f"RALPH_RUN={run}\0".encode()
    ended: set[int] = set()
    end = time.monotonic() + _PATIENCE
    while (left := _marked(mark)) and time.monotonic() < end:
        ended.update(left)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass  # it has ended by itself, or became someone else's
        time.sleep(_TICK)
    return len(ended)


def _marked(mark: bytes) -> list[int]:
    ours = _line_of(os.getpid())
    numbers = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid in numbers if pid not in ours and mark in _environment(pid)]


def _environment(pid: int) -> bytes:
    """Its environment as it was started; nothing for a zombie, or for another user's process."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read() + b"\0"
    except OSError:
        return b""


def _line_of(pid: int) -> set[int]:
    """A process and those above it: whoever goes on from within a run is not its orphan."""
    line: set[int] = set()
    while pid > 0 and pid not in line:
        line.add(pid)
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError):
            break
    return line
