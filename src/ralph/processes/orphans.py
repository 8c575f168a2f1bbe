"""Ends what a run left behind whose Ralph and keeper were both killed: found by its environment."""

import os
import re
import signal
import time

from ralph.processes.keeper_main import signal_all
from ralph.processes.procfs import environment, line_of
from ralph.processes.usage import look

_PATIENCE = 5.0
_TICK = 0.02


def end_orphans(run: str) -> None:
    """Kill every process that says it belongs to this run, to an attempt of it (`<run>-001`), or
    to a job of such an attempt, or to a job of that, and so on (ADR 10)."""
    if not run:
        return  # a job that was started by hand is of no run: it would fit
    mark = re.compile(rb"RALPH_(?:PARENT_|ROOT_)?RUN=%b(?:-\d+)?" % re.escape(os.fsencode(run)))
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        # Whoever goes on from within a run is not its orphan, nor is anybody above.
        ours = line_of(os.getpid())
        others = [pid for pid in look() if pid not in ours]
        left = [pid for pid in others if any(map(mark.fullmatch, environment(pid)))]
        if not left:
            return
        signal_all(left, signal.SIGKILL)
        time.sleep(_TICK)
