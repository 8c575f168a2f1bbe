"""Attempts on disk: `runs/<run>-NNN` in the task's folder, as S has them."""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count

from ralph.adapters.children import active_children
from ralph.adapters.run_info import RunInfo, read_run_info, timestamp, write_run_info
from ralph.adapters.runs import directories
from ralph.adapters.task_folder import TaskFolder
from ralph.adapters.turn_files import TurnFiles
from ralph.core.events import AgentEvent
from ralph.core.facts import Decided, Ended, Fact, Resumed, Started
from ralph.core.redact import redact
from ralph.core.rules import describe_failure
from ralph.core.turn import Order, Turn
from ralph.core.value import replace, value
from ralph.core.verdict import Boundary, Reason, Stop

PROMPT, OUTPUT, ERRORS = "prompt.md", "agent-stdout.txt", "agent-stderr.txt"
_GONE = "its process was gone without a word"
_SUMMARY = 300  # characters


@value
class Origin:
    """Which run the attempts are of, who started that run, and what they run."""

    run: str
    parent: str
    agent: str


class Attempts:
    """Gives each attempt its directory, and writes into its run-info what becomes of it.

    A full disk is not a reason to end an attempt: what cannot be written is left out.
    """

    def __init__(self, folder: TaskFolder, origin: Origin) -> None:
        self._folder = folder
        self._origin = origin
        self._info: RunInfo | None = None  # of the attempt under way

    def begin(self, order: Order) -> TurnFiles:
        """A directory for this attempt. One that a crash cut off leaves its output beside."""
        info = self._new_info(order.iteration)
        directory = self._folder.run_dir(info.run_id)
        os.makedirs(directory, exist_ok=True)
        for name in (OUTPUT, ERRORS):
            _put_aside(os.path.join(directory, name))
        with open(os.path.join(directory, PROMPT), "wb") as file:
            file.write(order.prompt.encode("utf-8", "surrogateescape"))
        write_run_info(directory, info)
        self._info = info
        return TurnFiles(
            stream=os.path.join(directory, OUTPUT),
            answer=os.path.join(directory, "answer.txt"),
            errors=os.path.join(directory, ERRORS),
            env={"RALPH_RUN": info.run_id},
        )

    def started(self, pid: int) -> None:
        """Its process runs."""
        if self._info is not None:
            self._write(replace(self._info, pid=pid))

    def on_fact(self, fact: Fact) -> None:
        """How the attempt ended, and what that was."""
        match fact:
            case Ended(time=moment, turn=turn):
                # After a crash the turn may have been recovered, and not begun by us.
                if (info := self._info or self._last()) is not None:
                    self._write(_ended(info, moment, turn))
            case Started() | Resumed():
                bury(self._folder, fact.time)
            case Decided(boundary=Boundary.CLOSING, verdict=Stop(reason=reason, why=why)):
                if self._info is not None and reason in (Reason.BLOCKED, Reason.INTERRUPTED):
                    self._write(replace(self._info, status="stopped", error_summary=why))
            case _:
                return

    def on_events(self, events: Sequence[AgentEvent]) -> None:
        """What the agent says is in its own file."""

    def _new_info(self, attempt: int) -> RunInfo:
        before = self._id(attempt - 1) if attempt > 1 else ""
        origin = self._origin
        begun = timestamp(time.time())
        return RunInfo(self._id(attempt), origin.parent, before, origin.agent, start_time=begun)

    def _id(self, attempt: int) -> str:
        return f"{self._origin.run}-{attempt:03d}"

    def _last(self) -> RunInfo | None:
        """The last attempt of this run."""
        last = None
        for attempt in count(1):
            info = read_run_info(self._folder.run_dir(self._id(attempt)))
            if info is None:
                return last
            last = info
        return last

    def _write(self, info: RunInfo) -> None:
        self._info = info
        with suppress(OSError):
            write_run_info(self._folder.run_dir(info.run_id), info)


def bury(folder: TaskFolder, now: float) -> None:
    """Write the end of runs whose process is gone without a word, killed or switched off."""
    alive = {child.info.run_id for child in active_children(folder)}
    for name in set(directories(folder.runs)) - alive:
        info = read_run_info(folder.run_dir(name))
        if info is not None and info.end_time is None:
            told = replace(info, status="failed", end_time=timestamp(now), error_summary=_GONE)
            with suppress(OSError):
                write_run_info(folder.run_dir(name), told)


def attempt_env(folder: TaskFolder, origin: Origin) -> Mapping[str, str]:
    """What an agent is told about its task; `RALPH_RUN` comes with each attempt."""
    return {
        "TASK_FOLDER": folder.path,
        "RALPH_TASK_DIR": folder.path,
        "RALPH_BUS": folder.bus,
        "RALPH_PARENT_RUN": origin.parent,
    }


def _ended(info: RunInfo, moment: float, turn: Turn) -> RunInfo:
    return replace(
        info,
        end_time=timestamp(moment),
        exit_code=turn.exit_code,
        status="failed" if turn.failed else "completed",
        error_summary=redact(describe_failure(turn))[:_SUMMARY] if turn.failed else "",
    )


def _put_aside(path: str) -> None:
    """`agent-stdout.txt` becomes `agent-stdout.cut-1.txt`."""
    if os.path.exists(path):
        stem, kind = os.path.splitext(path)
        names = (f"{stem}.cut-{number}{kind}" for number in count(1))
        os.rename(path, next(name for name in names if not os.path.exists(name)))
