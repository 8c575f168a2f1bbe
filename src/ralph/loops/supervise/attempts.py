"""Writes attempts to disk: `runs/<run>-NNN` in the task's folder, as S has them."""

import os
import time
from contextlib import suppress
from itertools import count

from ralph.agents.kinds import as_bytes
from ralph.agents.turn_files import TurnFiles
from ralph.files.safe_open import create
from ralph.journal.run_id import timestamp
from ralph.kernel.facts import Decided, Ended, Fact, Resumed, Settled, Started
from ralph.kernel.rules import describe_failure
from ralph.kernel.state import NEW, RunState, fold
from ralph.kernel.turn import Order
from ralph.kernel.value import replace
from ralph.kernel.verdict import Boundary, Reason, Stop, is_interrupted
from ralph.loops.supervise.child_runs import dead_runs
from ralph.loops.supervise.folder import TaskFolder
from ralph.loops.supervise.register_job import FILE
from ralph.loops.supervise.run_info import RunInfo, read_run_info, write_run_info
from ralph.text.redact import redact
from ralph.ui.attempt_words import was_ended

PROMPT, OUTPUT, ERRORS = "prompt.md", "agent-stdout.txt", "agent-stderr.txt"
_GONE = "its process was gone without a word"
_SUMMARY = 300  # characters


class Attempts:
    """Gives each attempt its directory, and writes into its run-info what becomes of it.

    What cannot be written is left out: neither a full disk ends an attempt, nor something that the
    agent put in a file's place.
    """

    def __init__(
        self, folder: TaskFolder, run: str, parent: str, agent: str, state: RunState = NEW
    ) -> None:
        self._folder, self._run, self._parent, self._agent = folder, run, parent, agent
        self._state = state
        self._info: RunInfo | None = None  # of the attempt under way

    def begin(self, order: Order) -> TurnFiles:
        """Make a directory for this attempt. The output of one that was cut off stays beside."""
        info = self._new_info(order.iteration)
        directory = self._folder.run_dir(info.run_id)
        if os.path.islink(directory) or not os.path.isdir(directory):
            _put_aside(directory)
        os.makedirs(directory, exist_ok=True)
        for name in (PROMPT, OUTPUT, ERRORS):
            _put_aside(os.path.join(directory, name))
        if os.path.isdir(info_file := os.path.join(directory, FILE)):
            _put_aside(info_file)
        with os.fdopen(create(os.path.join(directory, PROMPT)), "wb") as file:
            file.write(as_bytes(redact(order.prompt)))
        os.close(create(os.path.join(directory, ERRORS)))
        write_run_info(directory, info)
        self._info = info
        return TurnFiles(
            stream=os.path.join(directory, OUTPUT),
            answer=os.path.join(directory, "answer.txt"),
            errors=os.path.join(directory, ERRORS),
            env=self._folder.environ(info.run_id, self._parent, self._run),
        )

    def started(self, pid: int) -> None:
        if self._info is not None:
            self._write(replace(self._info, pid=pid))

    def on_fact(self, fact: Fact) -> None:
        before, self._state = self._state, fold(self._state, fact)
        match fact:
            case Ended() | Decided(boundary=Boundary.CLOSING):
                self._tell_end(self._state)
            case Settled() if self._info is not None:
                self._write(self._info)  # there may be room again
            case Resumed():  # the crash may have come before that was told
                self._tell_end(before)
                end_dead_runs(self._folder, fact.time)
            case Started():
                end_dead_runs(self._folder, fact.time)

    def on_events(self, events: object) -> None: ...

    def _tell_end(self, state: RunState) -> None:
        """Write how the last attempt ended, as far as it has."""
        turn = state.turn
        if turn is None:
            return
        attempt = state.iteration  # perhaps of an earlier process
        info = self._info or read_run_info(self._folder.run_dir(self._id(attempt)))
        info = info or self._new_info(attempt)
        judged = not is_interrupted(state.verdict) or state.unjudged
        verdict = state.verdict if judged else None  # else it was asked to stop later
        summary = redact(describe_failure(turn))[:_SUMMARY] if turn.failed else ""
        status = "failed" if turn.failed else "completed"
        if isinstance(verdict, Stop) and verdict.reason in (Reason.BLOCKED, Reason.INTERRUPTED):
            status, summary = "stopped", redact(verdict.why)
        elif was_ended(turn, verdict):
            status = "stopped"
        end = info.end_time or timestamp(state.time)
        ended = replace(info, end_time=end, exit_code=turn.exit_code, status=status)
        self._write(replace(ended, error_summary=summary))

    def _new_info(self, attempt: int) -> RunInfo:
        before = self._id(attempt - 1) if attempt > 1 else ""
        begun = timestamp(time.time())
        return RunInfo(self._id(attempt), self._parent, before, self._agent, start_time=begun)

    def _id(self, attempt: int) -> str:
        return f"{self._run}-{attempt:03d}"

    def _write(self, info: RunInfo) -> None:
        self._info = info
        with suppress(OSError):
            write_run_info(self._folder.run_dir(info.run_id), info)


def end_dead_runs(folder: TaskFolder, now: float) -> None:
    """Write the end of runs whose process is gone: killed, or by a reboot."""
    for run in dead_runs(folder):
        told = replace(run.info, status="failed", end_time=timestamp(now), error_summary=_GONE)
        with suppress(OSError):
            write_run_info(run.directory, told)


def _put_aside(path: str) -> None:
    """`agent-stdout.txt` becomes `agent-stdout.cut-1.txt`."""
    if os.path.lexists(path):
        stem, kind = os.path.splitext(path)
        names = (f"{stem}.cut-{number}{kind}" for number in count(1))
        os.rename(path, next(name for name in names if not os.path.lexists(name)))
