"""Who else has to do with a task: its child runs, and those who read its message bus."""

import time
from collections.abc import Callable, Sequence

from ralph.adapters.bus import Bus, new_message
from ralph.adapters.children import ChildRun, active_children, end_children
from ralph.adapters.task_folder import TaskFolder
from ralph.core.attempts import NO_CHILDREN, outcome
from ralph.core.events import AgentEvent
from ralph.core.facts import Decided, Fact
from ralph.core.state import NEW, RunState, fold
from ralph.core.verdict import Boundary, Reason, Stop
from ralph.core.words import counted, duration

_STIR = 0.25  # seconds after which a signal is heard
_LEAST_PAUSE = 0.01  # seconds between two looks


class TaskCompany:
    """The child runs and the buses of a task folder."""

    def __init__(
        self,
        folder: TaskFolder,
        run: str,
        *,
        poll_interval: float = 1.0,
        end_grace: float = 5.0,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._folder = folder
        self._run = run
        self._poll_interval = poll_interval
        self._end_grace = end_grace
        self._tell = tell

    def wait_for_children(self, seconds: float, stirred: Callable[[], bool]) -> str:
        """Wait for every child run to end, so long at most; then end those that are left."""
        children = self._children()
        if not children:
            return NO_CHILDREN
        self._tell(
            f"DONE: waiting for {counted(len(children), 'child run')} to end, "
            f"{duration(seconds)} at most: {_names(children)}"
        )
        give_up = time.monotonic() + seconds
        while children and time.monotonic() < give_up:
            pause = max(_LEAST_PAUSE, self._poll_interval)
            if _rest(min(pause, give_up - time.monotonic()), stirred):
                return ""
            children = self._children()
        if not children:
            return NO_CHILDREN
        end_children(children, self._end_grace)
        ended = counted(len(children), "child run")
        return f"{ended} ended after {duration(seconds)}: {_names(children)}"

    def announce(self, stop: Stop, children: str) -> str:
        """Tell the task's bus, and of a completed task its project's too. Told once: a run that
        goes on after a crash looks first."""
        if stop.reason is Reason.INTERRUPTED:
            return ""
        kind, body = _last_words(stop, children)
        problems = [self._post(self._folder.bus, kind, body)]
        if stop.reason is Reason.COMPLETED:
            fact = f"task {self._folder.task} {body.removeprefix('task ')}"
            problems.append(self._post(self._folder.project_bus, "FACT", fact))
        return "; ".join(filter(None, problems))

    def _children(self) -> list[ChildRun]:
        """Attempts are runs too; none of ours is under way here, and those of others count."""
        mine = f"{self._run}-"
        return [c for c in active_children(self._folder) if not c.info.run_id.startswith(mine)]

    def _post(self, path: str, kind: str, body: str) -> str:
        bus, folder = Bus(path), self._folder
        try:
            if any(m.run_id == self._run and m.body == body for m in bus.read()):
                return ""
            bus.post(
                new_message(
                    kind,
                    body,
                    project=folder.project,
                    task=folder.task,
                    run=self._run,
                    now=time.time(),
                )
            )
        except OSError as error:
            return f"cannot write {path}: {error.strerror}"
        return ""


class BusReader:
    """Posts how each attempt ended to the task's bus. It may fail; the task goes on."""

    def __init__(self, folder: TaskFolder, run: str, runs: int, state: RunState = NEW) -> None:
        self._folder = folder
        self._run = run
        self._runs = runs
        self._state = state

    def on_fact(self, fact: Fact) -> None:
        """Tell of an attempt that was judged."""
        self._state = fold(self._state, fact)
        turn = self._state.turn
        if not isinstance(fact, Decided) or fact.boundary is not Boundary.CLOSING or turn is None:
            return
        attempt = self._state.iteration
        message = new_message(
            "WARNING" if turn.failed else "INFO",
            outcome(attempt, turn, fact.verdict, self._runs),
            project=self._folder.project,
            task=self._folder.task,
            run=f"{self._run}-{attempt:03d}",
            now=fact.time,
        )
        try:
            Bus(self._folder.bus).post(message)
        except OSError:
            pass  # settling will tell that the bus cannot be written

    def on_events(self, events: Sequence[AgentEvent]) -> None:
        """The agent speaks for itself."""


def _rest(seconds: float, stirred: Callable[[], bool]) -> bool:
    """Sleep; whether a signal came."""
    end = time.monotonic() + seconds
    while not stirred():
        left = end - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(_STIR, left))
    return True


def _names(children: list[ChildRun]) -> str:
    return ", ".join(child.info.run_id for child in children)


def _last_words(stop: Stop, children: str) -> tuple[str, str]:
    if stop.reason is Reason.COMPLETED:
        return "INFO", f"task completed (DONE marker present, {children})"
    if stop.reason is Reason.BLOCKED:
        return "INFO", f"task stopped: {stop.why}"
    return "ERROR", f"task failed: {stop.why}"
