"""What several tests of adapters need: commands to start, cases to judge, patience for events."""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ralph.kernel.case import Case
from ralph.kernel.state import NEW
from ralph.kernel.verdict import Boundary, Cut
from ralph.kernel.world import Signals, Snapshot
from ralph.processes.child import Command


def shell(script: str, cwd: Path | str = ".", stdin: bytes | None = None) -> Command:
    """A command that runs a shell script."""
    return Command(("sh", "-c", script), str(cwd), os.environ, stdin)


def let_it_be() -> Cut | None:
    """A watch that never cuts."""
    return None


def nobody_asks() -> Signals:
    """Nobody pressed a key."""
    return Signals()


def closing(
    iteration: int = 1, before: Snapshot = Snapshot(), after: Snapshot = Snapshot()
) -> Case:
    """A case for a gate: after a turn of this iteration."""
    state = replace(NEW, iteration=iteration, snapshot=before)
    return Case(Boundary.CLOSING, state, time.time(), snapshot=after)


def await_that(happened: Callable[[], bool]) -> None:
    """Wait for an event that must come; the deadline is generous, since machines are slow."""
    deadline = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and is not reaped yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def has_ended(pid: int) -> bool:
    """Whether a process is gone within a generous time."""
    try:
        await_that(lambda: not is_alive(pid))
    except AssertionError:
        return False
    return True
