"""The restart supervisor as a library (S): `from ralph import Supervisor`.

    SupervisorError             run() ended, and the task is neither done nor waiting
    ├── MaxRestartsExceeded     so many attempts were made
    ├── DoneIsDirectory         DONE is there, but is no file
    └── Cancelled               cancel() was called

It is the supervise profile with a function in the agent's place. The state is in memory. It writes
to the buses, and into the run-info of child runs that it has to end; it prints nothing, takes no
lock, handles no signal and starts no process.
"""

import errno
import math
import os
import threading
import time
from collections.abc import Callable
from typing import Literal

from ralph.journal.run_id import new_run_id
from ralph.kernel.engine import run
from ralph.kernel.events import Failure
from ralph.kernel.facts import Fact
from ralph.kernel.ports import Clock, Ports, Watch, Workspace
from ralph.kernel.tasks.task import Backlog, Task
from ralph.kernel.turn import Ending, Order, Pulse, Turn, ended_by
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Cut, Reason, Stop
from ralph.kernel.world import Signals
from ralph.loops.supervise.announcements import BusReader, TaskChildRuns
from ralph.loops.supervise.folder import TaskFolder, folder_at
from ralph.loops.supervise.marks import TaskSignals, seen_in
from ralph.loops.supervise.policy import supervise
from ralph.processes.clock import SystemClock
from ralph.text.redact import know, redact
from ralph.text.secrets import secrets_of

Runner = Callable[[int, threading.Event], int | None]

_LOOK_EVERY = 0.25  # seconds
_FATAL = (FileNotFoundError, PermissionError)
_AT_ONCE = 2  # cancels: who calls cancel() need not ask twice
_ONE_TASK = Backlog((Task("task"),))  # what is to be done is the runner's business
_SUMMARY = 300  # characters of an exception


class SupervisorError(Exception):
    """The task is neither done nor waiting; raised itself where DONE cannot be looked at."""


class MaxRestartsExceeded(SupervisorError):  # noqa: N818  the specification's name
    """So many attempts were made. Its cause is the last one's exception, if it raised one."""


class DoneIsDirectory(SupervisorError):  # noqa: N818
    """DONE is a directory: only a file says that the task is done."""


class Cancelled(SupervisorError):  # noqa: N818
    """cancel() was called."""


class Supervisor:
    """Calls a runner again and again until there is a file DONE in the task's folder.

    `runner(attempt, cancelled)` makes one attempt, counted from 0, and returns its exit code, an
    int; None is 0. Whatever the code, another attempt follows after `restart_delay` seconds, but
    for 42, which asks to wait without restart. So do a file WAIT_WITHOUT_RESTART and a bus message
    of the type `wait_without_restart`, unless they were there before run(). FileNotFoundError
    and PermissionError are fatal: run() raises that very exception. So is a result that is no exit
    code: TypeError. Any other Exception is a failed attempt; KeyboardInterrupt, SystemExit and
    their like go through.

    The runner works in a thread of its own, which nobody can kill. `cancelled` is set when it
    shall end: after cancel(), when run() is interrupted, and `wait_timeout` seconds after DONE
    appeared. A runner that does not look at it keeps run() waiting until it returns.

    When DONE is there, run() waits for the task's child runs (`ralph job`), looking every
    `poll_interval` seconds, `wait_timeout` seconds at most. Then, and however else the task ends,
    those that are left are ended. How attempts and
    the task ended is told on the task's bus under the names `project` and `task`, which are the
    directories' names unless given. A bus that cannot be written fails no task.

    `max_restarts` is the number of attempts. FileNotFoundError or NotADirectoryError where
    `task_dir` is no directory; TypeError or ValueError where another value makes no sense.
    """

    def __init__(
        self,
        task_dir: str | os.PathLike[str],
        *,
        max_restarts: int = 100,
        wait_timeout: float = 300,
        poll_interval: float = 1,
        restart_delay: float = 1,
        project: str | None = None,
        task: str | None = None,
        runner: Runner,
        _clock: Clock = SystemClock(),
    ) -> None:
        self._folder = _folder(task_dir, project, task)
        self._max_restarts = _count("max_restarts", max_restarts)
        self._wait_timeout = _seconds("wait_timeout", wait_timeout)
        self._poll_interval = _seconds("poll_interval", poll_interval)
        self._restart_delay = _seconds("restart_delay", restart_delay)
        if not callable(runner):
            raise TypeError(f"runner must be callable: runner(attempt, cancelled), not {runner!r}")
        self._agent = _RunnerAgent(runner)
        self._clock = _clock
        self._cancelled = False
        self._under_way = threading.Lock()

    def run(self) -> Literal["completed", "stopped"]:
        """Supervise the task to its end: completed by DONE, or stopped to wait without restart.

        Raises MaxRestartsExceeded, DoneIsDirectory, Cancelled, and what is fatal. It may be called
        again when it has ended, and starts anew; while it, or a runner that it was interrupted
        in, is still at work: RuntimeError.
        """
        if not self._under_way.acquire(blocking=False):
            raise RuntimeError("this Supervisor is running already")
        know(secrets_of(os.environ))
        try:
            self._agent.prepare()
            return self._result(self._supervise())
        finally:
            self._under_way.release()

    def cancel(self) -> None:
        """Make run() raise Cancelled, for good: as soon as the runner returns; while it waits, at
        once; before it begins, when it does. From any thread, and from a signal handler."""
        # Only this: to set an Event may need a lock which the interrupted thread holds.
        self._cancelled = True

    def _supervise(self) -> Stop:
        folder, name = self._folder, new_run_id(time.time())
        child_runs = TaskChildRuns(folder, name, self._poll_interval)
        policy = supervise(
            self._max_restarts, self._restart_delay, self._wait_timeout, child_runs=child_runs
        )
        marks = TaskSignals(folder, seen_in(folder))

        def signals() -> Signals:
            return replace(marks(), cancels=_AT_ONCE) if self._cancelled else marks()

        world = Workspace(signals, lambda: _ONE_TASK)
        journal = _Journal(BusReader(folder, name, self._max_restarts).on_fact)
        stop = run(policy, Ports(self._agent, world, journal, self._clock)).stop
        assert stop is not None, "nobody can pause it"
        return stop

    def _result(self, stop: Stop) -> Literal["completed", "stopped"]:
        match stop.reason:
            case Reason.COMPLETED:
                return "completed"
            case Reason.BLOCKED:
                return "stopped"
            case Reason.INTERRUPTED:
                raise Cancelled("cancelled")
            case Reason.LIMIT:
                raise MaxRestartsExceeded(stop.why) from self._agent.error
        if self._agent.fatal is not None:
            raise self._agent.fatal
        is_directory = os.path.isdir(self._folder.done)
        raise (DoneIsDirectory if is_directory else SupervisorError)(stop.why)


class _RunnerAgent:
    """An agent whose turns are calls of a function, each in a thread of its own."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._attempt: _Attempt | None = None
        self.error: Exception | None = None  # of the last attempt
        self.fatal: Exception | None = None

    def prepare(self) -> None:
        """Forget the last run; RuntimeError while its runner is still at work."""
        if self._attempt is not None and self._attempt.is_alive():
            raise RuntimeError("the runner of an interrupted run() has not returned yet")
        self._attempt = self.error = self.fatal = None

    def take_turn(self, order: Order, watch: Watch) -> Turn:
        """Make one attempt. However the runner ends after it was asked to, that is no failure."""
        attempt = self._attempt = _Attempt(self._runner, order.iteration - 1)
        cut = attempt.watched(watch)
        self.error = attempt.error
        if cut is not None:
            return ended_by(Turn(), 0, cut)
        if self.error is None:
            return Turn(exit_code=attempt.exit_code)
        why = _in_words(self.error)
        if attempt.is_fatal:
            self.fatal = self.error
            return Turn(Ending.UNSTARTABLE, exit_code=None, why=why)
        return Turn(exit_code=None, failure=Failure(why))


class _Attempt(threading.Thread):
    """One call of the runner, which ends with an exit code or an error. A program may end while it
    goes on."""

    def __init__(self, runner: Runner, number: int) -> None:
        super().__init__(name=f"ralph-attempt-{number}", daemon=True)
        self._runner = runner
        self._number = number
        self._cancelled = threading.Event()
        self._raised: BaseException | None = None  # what is not for us to judge
        self.exit_code: int | None = None
        self.error: Exception | None = None
        self.is_fatal = False  # no restart will help

    def run(self) -> None:
        try:
            code: object = self._runner(self._number, self._cancelled)
        except Exception as error:  # noqa: BLE001  a failed attempt
            self.error, self.is_fatal = error, isinstance(error, _FATAL)
        except BaseException as error:  # noqa: BLE001  told to whoever called run()
            self._raised = error
        else:
            # True and False are none: which of them would be a success?
            if code is None or (isinstance(code, int) and not isinstance(code, bool)):
                self.exit_code = code or 0
                return
            got = f"not {type(code).__name__}"
            words = f"the runner must return an exit code, an int or None, {got}"
            self.error, self.is_fatal = TypeError(words), True

    def watched(self, watch: Watch) -> Cut | None:
        """Start it and wait for its end; why it was asked to end, if it was. Raises what is no
        Exception, such as KeyboardInterrupt, the runner's or our own."""
        cut = None
        begun = time.monotonic()
        try:
            self.start()
            self.join(_LOOK_EVERY)
            while self.is_alive():
                cut = cut or watch(Pulse(time.monotonic() - begun, idle=0.0))
                if cut is not None:
                    self._cancelled.set()
                self.join(_LOOK_EVERY)
        except BaseException:
            self._cancelled.set()
            raise
        if self._raised is not None:
            raise self._raised
        return cut


@value
class _Journal:
    """Keeps nothing: a run in memory does not survive its process."""

    record: Callable[[Fact], None]


def _in_words(error: Exception) -> str:
    """`ValueError: no such thing`, on one line."""
    said = str(error).strip().partition("\n")[0][:_SUMMARY]
    return redact(": ".join(filter(None, (type(error).__name__, said))))


def _folder(path: str | os.PathLike[str], project: str | None, task: str | None) -> TaskFolder:
    name = os.fsdecode(path)
    if not os.path.isdir(name):
        number = errno.ENOTDIR if os.path.exists(name) else errno.ENOENT
        raise OSError(number, "task_dir is no directory", name)  # Python finds its subclass
    return folder_at(name, project, task)


def _count(name: str, given: int) -> int:
    if not isinstance(given, int) or isinstance(given, bool):
        raise TypeError(f"{name} must be an int, not {given!r}")
    if given < 0:
        raise ValueError(f"{name} must be 0 or more, not {given}")
    return given


def _seconds(name: str, given: float) -> float:
    if not isinstance(given, int | float) or isinstance(given, bool):
        raise TypeError(f"{name} must be a number of seconds, not {given!r}")
    if not math.isfinite(given) or given < 0:
        raise ValueError(f"{name} must be 0 seconds or more, and finite, not {given}")
    return float(given)
