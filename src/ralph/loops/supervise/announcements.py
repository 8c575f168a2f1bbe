"""Waits for a task's child runs and posts its result to the bus."""

import time
from collections.abc import Callable

from ralph.kernel.facts import Decided, Fact, Resumed
from ralph.kernel.rules import NO_CHILDREN
from ralph.kernel.state import NEW, RunState, fold
from ralph.kernel.turn import Turn
from ralph.kernel.value import value
from ralph.kernel.verdict import Boundary, Reason, Stop, Verdict
from ralph.loops.supervise.bus import Bus, new_message
from ralph.loops.supervise.child_runs import ChildRun, active_children, end_children
from ralph.loops.supervise.folder import TaskFolder
from ralph.loops.supervise.policy import ChildRuns
from ralph.processes.clock import SystemClock
from ralph.text.redact import redact
from ralph.text.words import counted, duration
from ralph.ui.attempt_words import outcome

_LEAST_PAUSE = 0.01  # seconds between two looks
_HURRY = 0.2  # seconds for children that have to end at once
_INTERRUPTED = 2.0  # seconds for children at most, where nobody wants to wait
_BUS_PATIENCE = 1.0  # seconds for whoever else writes to the bus; the run must go on


@value
class TaskChildRuns(ChildRuns):
    """The child runs and the buses of a task folder, seen from one of its runs."""

    folder: TaskFolder
    run: str
    poll_interval: float = 1.0
    end_grace: float = 5.0
    keeper: Callable[[], int] = lambda: 0  # its pid: whatever is below it is ours
    tell: Callable[[str], None] = lambda _: None  # of what takes long
    resumed: bool = False

    def wait_for_children(self, seconds: float, stirred: Callable[[], bool]) -> str:
        children = self._children()
        if not children:
            return NO_CHILDREN
        self.tell(
            f"DONE: waiting for {counted(len(children), 'child run')} to end, "
            f"{duration(seconds)} at most: {_names(children)}"
        )
        give_up = time.monotonic() + seconds
        while children and time.monotonic() < give_up:
            pause = min(max(_LEAST_PAUSE, self.poll_interval), give_up - time.monotonic())
            SystemClock().rest(time.time() + pause, stirred)
            if stirred():
                return ""
            children = self._children()
        if not children:
            return NO_CHILDREN
        return self._end(children, self.end_grace, f" after {duration(seconds)}")

    def end_children(self, *, at_once: bool) -> str:
        children = self._children()
        grace = _HURRY if at_once else min(_INTERRUPTED, self.end_grace)
        return self._end(children, grace) if children else ""

    def announce(self, stop: Stop, children: str) -> str:
        """Post to the task's bus, and for a completed task to its project's too."""
        if stop.reason is Reason.INTERRUPTED:
            return ""
        kind, body = "ERROR", f"task failed: {stop.why}"
        if stop.reason is Reason.COMPLETED:
            kind, body = "INFO", f"task completed (DONE marker present, {children})"
        elif stop.reason is Reason.BLOCKED:
            kind, body = "INFO", f"task stopped: {stop.why}"
        told = {self.folder.bus: (kind, body)}
        if stop.reason is Reason.COMPLETED:
            fact = f"task {self.folder.task} {body.removeprefix('task ')}"
            told[self.folder.project_bus] = ("FACT", fact)
        problems = (
            _post(path, self.folder, *message, run=self.run, unless_told=self.resumed)
            for path, message in told.items()
        )
        return "; ".join(filter(None, problems))

    def _children(self) -> list[ChildRun]:
        """The active child runs, without our own attempts, which are runs too."""
        mine = f"{self.run}-"
        children = active_children(self.folder, keeper=self.keeper())
        return [child for child in children if not child.info.run_id.startswith(mine)]

    def _end(self, children: list[ChildRun], grace: float, when: str = "") -> str:
        left = end_children(children, grace, keeper=self.keeper())
        ended = [child for child in children if child not in left]
        words = []
        if ended:
            words.append(f"{counted(len(ended), 'child run')} ended{when}: {_names(ended)}")
        if left:
            words.append(f"not ended, for it cannot be told whose they are: {_names(left)}")
        return "; ".join(words)


class BusReader:
    """Posts how each attempt ended to the task's bus. It may fail; the task goes on."""

    def __init__(self, folder: TaskFolder, run: str, runs: int, state: RunState = NEW) -> None:
        self._folder = folder
        self._run = run
        self._runs = runs
        self._state = state

    def on_fact(self, fact: Fact) -> None:
        before, self._state = self._state, fold(self._state, fact)
        match fact:
            case Decided(boundary=Boundary.CLOSING, verdict=verdict) if before.turn is not None:
                self._tell(before.iteration, before.turn, verdict)
            case Resumed() if before.has_ended:
                return
            case Resumed() if before.turn is not None and before.verdict is not None:
                self._tell(before.iteration, before.turn, before.verdict, unless_told=True)

    def on_events(self, events: object) -> None: ...

    def _tell(
        self, attempt: int, turn: Turn, verdict: Verdict, *, unless_told: bool = False
    ) -> None:
        if isinstance(verdict, Stop) and verdict.reason is Reason.INTERRUPTED:
            return  # nobody is to wait for this
        kind = "WARNING" if turn.failed else "INFO"
        body = outcome(attempt, turn, verdict, self._runs)
        run = f"{self._run}-{attempt:03d}"
        # Settling tells it if the bus cannot be written.
        _post(self._folder.bus, self._folder, kind, body, run=run, unless_told=unless_told)


def _post(
    path: str, folder: TaskFolder, kind: str, body: str, *, run: str, unless_told: bool
) -> str:
    """Post a message, `unless_told` already: a run that was resumed after a crash looks first.
    Returns why that failed, or ""."""
    bus, told = Bus(path), (run, kind, redact(body))
    ids = {"project": folder.project, "task": folder.task, "run": run}
    try:
        if not (unless_told and bus.has(lambda m: (m.run_id, m.type, m.body) == told)):
            bus.post(new_message(kind, redact(body), **ids, now=time.time()), _BUS_PATIENCE)
    except OSError as error:
        return f"cannot write {path}: {error.strerror}"
    return ""


def _names(children: list[ChildRun]) -> str:
    return ", ".join(child.info.run_id for child in children)
