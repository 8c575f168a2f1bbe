"""`ralph job`: runs a command as a child run of a task that outlives its agent (S).

Most of the time its run is registered before this module is imported; see `ralph.__main__`.
"""

import json
import os
import select
import shlex
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache
from io import FileIO
from typing import TYPE_CHECKING

import click

from ralph.agents.turn_files import SavedStream
from ralph.cli.base import command
from ralph.cli.params import current_directory, in_directory, option, passed_on
from ralph.errors import ConfigError, RalphError, StateError, failing
from ralph.files.safe_open import create
from ralph.journal.lock import NAME as LOCK_NAME
from ralph.journal.lock import Lock
from ralph.kernel.value import value
from ralph.kernel.verdict import Reason
from ralph.kernel.world import hurried
from ralph.loops.supervise.folder import TaskFolder, folder_at
from ralph.loops.supervise.register_job import Registered, leave_group, register
from ralph.runner.arguments import warn
from ralph.text.plain import clean
from ralph.text.redact import redact, redacting
from ralph.ui.safe_stream import Channel

if TYPE_CHECKING:
    from ralph.processes.child import Exit, Starter
    from ralph.processes.keeper_main import Launched
    from ralph.processes.signals import SignalCounter

_LOOK_EVERY = 0.25
_END_GRACE = 5.0  # seconds for each child run that has to end with us
_PIECE = select.PIPE_BUF  # a pipe that can be written at all takes as much at once
_KEPT = 8192  # bytes of stderr among which its last line is looked for
_SUMMARY = 300  # characters
_PLACE = "the task's folder"
_REMEDY = "Make room, make it writable, or name another with --task-dir DIR."


@command(context_settings={"allow_interspersed_args": False})
@passed_on
@option("--task-dir DIR", "The task's folder.  [default: $TASK_FOLDER]")
@option("--json", "Print only JSON objects on stdout; the output goes to files.", "in_json")
@in_directory
def job(command: tuple[str, ...], task_dir: str | None, *, in_json: bool) -> int:
    """Run a command as a child run of a task.

    It goes on when the agent that started it ends, and the task is not over before it is. What it
    prints is shown, and kept with its exit code in runs/RUN of the task's folder, where the
    environment's keys and tokens are left out.

    Examples:
      ralph job -- make test                   within a task: $TASK_FOLDER says which
      ralph job --task-dir tasks/login -- ./agent.sh "Write the tests"
      ralph job -- npm run build > build.log 2>&1 &

    Exit codes: the command's own, 128 + n where signal n ended it;
    2 it could not be started, 130 interrupted.
    """
    from ralph.processes.signals import SignalCounter

    context = click.get_current_context()
    registered = context.meta.get("job") or _register(task_dir, command)
    with _told(registered), SignalCounter() as counter, ExitStack() as files:
        folder = folder_at(os.path.dirname(os.path.dirname(registered.directory)))
        here = current_directory()
        this = Job(registered, folder, command, here, dict(os.environ), counter)
        this.begin(files)
        channel = Channel(sys.stdout)

        def tell(kind: str, **fields: object) -> None:
            if in_json:
                first = {"type": kind, "time": time.time(), "run": registered.run_id}
                channel.write([json.dumps({**first, "directory": registered.directory, **fields})])

        tell("started", command=command, task_dir=this.folder.path, pid=os.getpid())
        saved = [
            files.enter_context(this.open(f"agent-{name}.txt")) for name in ("stdout", "stderr")
        ]
        output, errors = Output(saved[0], None if in_json else 1, this), Output(saved[1], 2, this)
        ended = this.carry_out(context.obj, output, errors)
        code, status = this.end(ended, errors)
        tell("ended", status=status, exit_code=ended.code)
        return code


def _register(task_dir: str | None, command: tuple[str, ...]) -> Registered:
    """Register the run if that could not be done, or be understood, before."""
    given = task_dir if task_dir is not None else os.environ.get("TASK_FOLDER", "")
    if not given:
        raise ConfigError(
            "there is no task" if task_dir is None else "--task-dir is empty",
            "Name its folder: ralph job --task-dir DIR -- COMMAND, or export TASK_FOLDER=DIR",
        )
    leave_group()
    try:
        return register(given, command, os.environ)
    except (FileNotFoundError, NotADirectoryError) as error:
        message = f"{given} is not the folder of a task: {error.strerror}"
        raise ConfigError(message, "Make it, or name another with --task-dir DIR.") from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise StateError(f"cannot write into {_PLACE} {given}: {why}", _REMEDY) from error


@contextmanager
def _told(registered: Registered) -> Iterator[None]:
    """Tell the end of the run, whatever becomes of it."""
    code, words = Reason.BUG.exit_code, ""
    try:
        yield
    except RalphError as error:
        code, words = Reason(error.reason).exit_code, redact(error.message)[:_SUMMARY]
        raise
    except KeyboardInterrupt:
        code = Reason.INTERRUPTED.exit_code
        raise
    finally:
        registered.end_anyhow(code, words)


@value
class Job:
    """A registered run, its command, and the place where that runs."""

    registered: Registered
    folder: TaskFolder
    command: tuple[str, ...]
    cwd: str
    environ: Mapping[str, str]
    counter: "SignalCounter"

    def begin(self, held: ExitStack) -> None:
        """Name us as the run's owner, by which others see that it lives (ADR 10), and save in
        `prompt.md` what is run, as one would type it."""
        lock = Lock(self._path(LOCK_NAME), _PLACE, _REMEDY)
        lock.acquire(self.registered.run_id, time.time())
        held.callback(lock.release)
        redactor = redacting()
        data = redactor.feed(os.fsencode(f"{shlex.join(self.command)}\n")) + redactor.end()
        with self._writing(), os.fdopen(create(self._path("prompt.md")), "wb") as file:
            file.write(data)

    def open(self, name: str) -> FileIO:
        """A new file for output, for this user only; each write goes to it at once."""
        with self._writing():
            return FileIO(create(self._path(name)), "wb")

    def carry_out(self, keeper: "Launched | None", output: "Output", errors: "Output") -> "Exit":
        """Run the command to its end, or as long as nobody asks us to stop."""
        from ralph.runner.keeping import keeping

        with keeping(keeper, jobs=self._jobs) as start:
            ended = self._run(start, output, errors)
            output.end()
            errors.end()
            self._stay(getattr(start, "pid", 0))
        if ended.stubborn:
            warn(f"these processes could not be ended: {', '.join(map(str, ended.stubborn))}")
        return ended

    def end(self, ended: "Exit", errors: "Output") -> tuple[int, str]:
        """Tell how it ended; our own exit code, and the status."""
        code, status, summary = ended.code, "completed", ""
        if self.is_asked():
            code, status = Reason.INTERRUPTED.exit_code, "stopped"
        elif ended.code:
            status, summary = "failed", errors.last_line() or f"exit code {ended.code}"
        try:
            self.registered.end(status, ended.code, summary)
        except OSError as error:
            warn(f"the end of run {self.registered.run_id} is not saved: {error.strerror}")
        return code, status

    def is_asked(self) -> bool:
        return self.counter.signals().cancels > 0

    def _path(self, name: str) -> str:
        return os.path.join(self.registered.directory, name)

    def _writing(self) -> AbstractContextManager[None]:
        return failing(f"cannot write into {_PLACE} {self.folder.path}", _REMEDY, StateError)

    def _run(self, start: "Starter", output: "Output", errors: "Output") -> "Exit":
        from ralph.processes.child import Command, Exit

        if self.is_asked():
            return Exit(Reason.INTERRUPTED.exit_code, 0.0)  # while we were getting ready
        if not self.command[0]:
            raise ConfigError("cannot run '': it has no name", "Name a command after the --.")
        this, root = self.registered, self.environ.get("RALPH_ROOT_RUN", "")
        environ = {**self.environ, **self.folder.environ(this.run_id, this.parent_run_id, root)}
        try:
            child = start(Command(self.command, self.cwd, environ), output, errors)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            what = (error.filename if isinstance(error, OSError) else "") or self.command[0]
            raise ConfigError(
                f"cannot run {what!r}: {why}", "Check its name, and that it may be executed."
            ) from error
        return child.wait(lambda: hurried(self.counter.signals(), time.time(), 0.0))

    def _jobs(self, keeper: int) -> tuple[int, ...]:
        """The jobs that our command started: they outlive it, as we outlive whoever started us."""
        from ralph.loops.supervise.child_runs import job_pids
        from ralph.processes.keeper_main import descendants

        but = (self.registered.run_id,)
        return job_pids(self.folder, lambda: descendants(keeper), but, keeper=keeper)

    def _stay(self, keeper: int) -> None:
        """Wait for such jobs: they are below our keeper, which would not end without them."""
        from ralph.loops.supervise.child_runs import active_children, end_children, is_below

        while True:
            children = active_children(self.folder, (self.registered.run_id,), keeper=keeper)
            ours = [child for child in children if is_below(child.pid, os.getpid())]
            if not ours:
                return
            if self.is_asked():
                end_children(ours, _END_GRACE, keeper=keeper)
                return
            time.sleep(_LOOK_EVERY)


_warn_once = cache(warn)  # both streams may be lost for the same reason


class Output:
    """One of the command's streams: saved, and shown where a descriptor is given. Neither a full
    disk nor a closed pipe is a reason to end the command."""

    def __init__(self, file: FileIO, descriptor: int | None, job: Job) -> None:
        self._saved = SavedStream(lambda: file)
        self._descriptor = descriptor
        self._job = job
        self._poller = select.poll()
        if descriptor is not None:
            self._poller.register(descriptor, select.POLLOUT)
        self._tail = b""

    def __call__(self, chunk: bytes) -> None:
        self._keep(self._saved.write(chunk))
        self._show(chunk)

    def end(self) -> None:
        """No more will come; what may have been the beginning of a secret is none."""
        self._keep(self._saved.end())

    def last_line(self) -> str:
        """The last line that says something, for people."""
        text = clean(self._tail.decode("utf-8", "replace"))
        return redact(text.strip().rpartition("\n")[2])[:_SUMMARY]

    def _keep(self, saved: bytes) -> None:
        self._tail = (self._tail + saved[-_KEPT:])[-_KEPT:]
        if self._saved.problem:
            _warn_once(f"{self._saved.problem}. The command goes on.")

    def _show(self, chunk: bytes) -> None:
        """Show it, and wait for whoever reads slowly, until someone asks us to stop."""
        rest = memoryview(chunk)
        try:
            while rest and self._descriptor is not None:
                if self._poller.poll(_LOOK_EVERY * 1000):
                    with suppress(BlockingIOError):  # someone made it so, for all who share it
                        rest = rest[os.write(self._descriptor, rest[:_PIECE]) :]
                elif self._job.is_asked():
                    return
        except OSError:
            self._descriptor = None  # nobody reads it any more
