"""`ralph stop` and `ralph pause`: steer a run from any terminal.

They leave or remove files beside the run's journal; the run looks for them four times a second.
"""

import json
import os
import time
from contextlib import AbstractContextManager, suppress

import click

from ralph.cli.base import command
from ralph.cli.params import current_directory, option, the_run, the_usual, together
from ralph.errors import ConfigError, StateError, failing
from ralph.files.state_dir import state_root
from ralph.journal.life import Account, Life, life_of
from ralph.journal.runs import Run, account_of, find_run, look_again
from ralph.journal.way_on import way_on
from ralph.journal.write_access import refuse_own_run, refuse_unseen
from ralph.kernel.value import value
from ralph.kernel.verdict import Reason
from ralph.kernel.world import Signals
from ralph.processes.signals import SignalFiles
from ralph.ui.status.listing import COMMANDS
from ralph.ui.status.report import age

_LOOK_EVERY = 0.1
_PATIENCE = 3.0  # seconds for a run that has only just taken its lock
steering = together(the_run, the_usual)  # what these commands have in common


@value
class Target:
    """A live run, and what was typed to name it."""

    run: Run
    part: str | None

    @property
    def name(self) -> str:
        """The word to type after a command to mean this run."""
        return f" {self.part}" if self.part else ""

    @property
    def files(self) -> SignalFiles:
        """The folder where requests to it are left."""
        return SignalFiles(self.run.directory)

    def look(self) -> Life:
        """The state of the run now; one that has said its last word cannot be steered any more."""
        account = account_of(self.run)
        if account.state.stop is not None:
            raise gone_error(self.run, account)
        return life_of(account, self.run.asked(), time.time(), live=self.run.live)

    def ask(self, request: str) -> None:
        """Leave a request; a run that has only just taken its lock is waited for."""
        give_up = time.monotonic() + _PATIENCE
        with self.writing():
            while True:
                try:
                    return self.files.ask(request)
                except FileNotFoundError:
                    if time.monotonic() > give_up or not look_again(self.run).live:
                        raise
                    time.sleep(_LOOK_EVERY)

    def writing(self) -> AbstractContextManager[None]:
        """Say what else can be done where requests cannot be left."""
        pid = self.run.owner.pid if self.run.owner else 0
        remedy = f"Signals work too, once or twice: kill -INT {pid}"
        return failing(f"cannot write into {self.run.directory}/signals", remedy, StateError)

    def tell(self, words: str, asked: str, life: Life, *, in_json: bool, **more: object) -> None:
        """Say what was asked for, and what comes of it."""
        told = {"run": self.run.id, "asked": asked, "state": life.value, **more}
        click.echo(json.dumps(told) if in_json else words)


@command()
@option("--now", "Do not let the agent finish its turn.")
@option("--wait", "Wait until the run is gone.")
@steering
def stop(run: str | None, *, now: bool, wait: bool, in_json: bool) -> int:
    """End a run: it finishes its current operation first, then exits with 130.

    Without RUN: the run that is going on in this directory.

    Examples:
      ralph stop                let the current operation finish, then end the run
      ralph stop --now          end it at once, and everything it started
      ralph stop --wait         and come back when it is gone

    Exit codes: 0, or 2 when there is no such run or it does not run.
    """
    target = _target(run, "stop")
    before = target.run.asked()
    life = target.look()  # one that has ended cannot be asked
    asked = SignalFiles.NOW if now else SignalFiles.STOP
    target.ask(asked)
    with suppress(ConfigError):  # one that waits may have ended by now, because we asked
        life = target.look()
    if not wait:
        target.tell(_stop_words(target, life, before, now=now), asked, life, in_json=in_json)
        return 0
    try:
        while look_again(target.run).live:
            time.sleep(_LOOK_EVERY)
        account = account_of(target.run)
    except KeyboardInterrupt:
        click.echo(f"[ralph] Run {target.run.id} is still there; the request stands.", err=True)
        return Reason.INTERRUPTED.exit_code
    gone = life_of(account, Signals(), time.time(), live=False)
    reason = account.state.stop.reason if account.state.stop else None
    how = f"{reason.value}, exit code {reason.exit_code}" if reason else gone.value
    more = {"reason": reason, "exit": reason.exit_code if reason else None}
    target.tell(f"Run {target.run.id} has ended: {how}.", asked, gone, in_json=in_json, **more)
    return 0


@command()
@steering
def pause(run: str | None, *, in_json: bool) -> None:
    """Pause a run before its next turn; the turn that is under way goes on to its end.

    A pause counts neither as time spent nor as waiting. Without RUN: the run of this directory.

    Examples:
      ralph pause               pause the run of this directory before its next turn
      ralph pause 3f2a          another run, by the last letters of its id
      ralph resume              go on

    Exit codes: 0, or 2 when there is no such run or it does not run.
    """
    target = _target(run, "pause")
    before = target.run.asked()
    target.ask(SignalFiles.PAUSE)
    life = target.look()
    if life is Life.PAUSED and before.paused:
        words = f"Run {target.run.id} is paused already. Go on: ralph resume{target.name}"
    elif before.cancels:
        words = f"Run {target.run.id} was asked to stop before: it ends instead of pausing."
    else:
        words = (
            f"Run {target.run.id} pauses before its next turn.\n"
            f"See: ralph status{target.name}. Go on: ralph resume{target.name}"
        )
    target.tell(words, "pause", life, in_json=in_json)


def new_one(account: Account) -> str:
    """The remedy where a run is over for good."""
    command = COMMANDS.get(account.started.profile if account.started else "")
    return f"Start a new one: ralph {command}" if command else "Start a new one."


def _target(part: str | None, command: str) -> Target:
    """The live run that is meant, or an error that says why there is none."""
    run = found(part, command)
    if not run.live:
        raise gone_error(run, account_of(run))
    return Target(run, part)


def found(part: str | None, command: str) -> Run:
    """The run that is meant, unless it is the caller's own (ADR 10)."""
    try:
        run = find_run(state_root(os.environ), current_directory(), part, command)
    except ConfigError:
        refuse_unseen(os.environ, command)
        raise
    refuse_own_run(os.environ, run, command)
    return run


def gone_error(run: Run, account: Account) -> ConfigError:
    stop, way = account.state.stop, way_on(account.state)
    if stop is not None:
        ago = age(time.time() - account.state.time)
        message = f"run {run.id} does not run: it has ended ({stop.reason.value}, {ago} ago)"
        words = " ".join(filter(None, (f"Go on: ralph resume {run.id}", way.flags)))
        first = words if way.possible else new_one(account).removesuffix(".")
        remedy = f"{first}. What it did: ralph logs"
    elif account.problem:
        message = f"run {run.id} does not run, and its journal cannot be read: {account.problem}"
        remedy = new_one(account)
    else:
        message = f"run {run.id} does not run: its process is gone without a last word"
        remedy = "What it did: ralph logs"
    return ConfigError(message, remedy)


def _stop_words(target: Target, life: Life, before: Signals, *, now: bool) -> str:
    run = target.run.id
    if now or before.cancels > 1:
        return f"Run {run} ends at once, with everything it started."
    if life in (Life.PAUSED, Life.WAITING):
        return f"Run {run} is {life.value} and ends at once."
    already = " (it was asked before)" if before.cancels else ""
    return (
        f"Run {run} stops after its current operation{already}.\n"
        f"See: ralph status{target.name}. At once: ralph stop --now{target.name}"
    )
