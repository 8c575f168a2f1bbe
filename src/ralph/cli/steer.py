"""`ralph stop`, `ralph pause` and `ralph resume`: steer a run from any terminal.

They leave or remove files beside the run's journal; the run looks for them four times a second.
"""

import json
import os
import time
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ralph.adapters.files import state_root
from ralph.adapters.runs import Run, account_of, find_run, look_again
from ralph.adapters.signals import SignalFiles
from ralph.cli.params import completed_by, current_directory, in_directory
from ralph.core.life import Account, Life, life_of
from ralph.core.value import value
from ralph.core.verdict import Reason
from ralph.core.world import Signals
from ralph.errors import ConfigError, StateError
from ralph.ui.report import age

_LOOK_EVERY = 0.1
_PATIENCE = 3.0  # seconds for a run that has only just taken its lock
_EXIT_CODES = "Exit codes: 0, or 2 when there is no such run or it does not run."
_Function = TypeVar("_Function", bound=Callable[..., Any])


@value
class Target:
    """A live run, and what was typed to name it."""

    run: Run
    part: str | None

    @property
    def name(self) -> str:
        """What to type after a command to mean this run."""
        return f" {self.part}" if self.part else ""

    @property
    def files(self) -> SignalFiles:
        """Where requests to it are left."""
        return SignalFiles(self.run.directory)


def _steering(function: _Function) -> _Function:
    """What the three commands have in common."""
    for option in (
        in_directory,
        click.option("--json", "in_json", is_flag=True, help="Print one JSON object."),
        click.argument("run", required=False, shell_complete=completed_by("run_ids")),
    ):
        function = option(function)
    return function


@click.command(
    epilog=f"""\b
Examples:
  ralph stop                let the current operation finish, then end the run
  ralph stop --now          end it at once, and everything it started
  ralph stop --wait         and come back when it is gone
\b
{_EXIT_CODES}
"""
)
@click.option("--now", is_flag=True, help="Do not let the agent finish its turn.")
@click.option("--wait", is_flag=True, help="Wait until the run is gone.")
@_steering
def stop(run: str | None, *, now: bool, wait: bool, in_json: bool) -> int:
    """End a run: it finishes its current operation first, then exits with 130.

    Without RUN: the run that is going on in this directory.
    """
    target = _target(run, "stop")
    before = target.run.asked()
    _ask(target, SignalFiles.NOW if now else SignalFiles.STOP)
    account, life = _look(target, "stop")
    asked = "stop-now" if now else "stop"
    if not wait:
        words = _stop_words(target, life, before, now=now)
        _tell(words, target, asked, life, in_json=in_json)
        return 0
    try:
        account = _await_end(target.run)
    except KeyboardInterrupt:
        click.echo(f"[ralph] Run {target.run.id} is still there; the request stands.", err=True)
        return Reason.INTERRUPTED.exit_code
    gone = life_of(account, Signals(), time.time(), live=False)
    reason = account.state.stop.reason if account.state.stop else None
    how = f"{reason.value}, exit code {reason.exit_code}" if reason else gone.value
    more = {"reason": reason, "exit": reason.exit_code if reason else None}
    _tell(f"Run {target.run.id} has ended: {how}.", target, asked, gone, in_json=in_json, **more)
    return 0


@click.command(
    epilog=f"""\b
Examples:
  ralph pause               pause the run of this directory before its next turn
  ralph pause 3f2a          another run, by the last letters of its id
  ralph resume              go on
\b
{_EXIT_CODES}
"""
)
@_steering
def pause(run: str | None, *, in_json: bool) -> None:
    """Pause a run before its next turn; the turn that is under way goes on to its end.

    A pause counts neither as time spent nor as waiting. Without RUN: the run of this directory.
    """
    target = _target(run, "pause")
    before = target.run.asked()
    _ask(target, SignalFiles.PAUSE)
    _, life = _look(target, "pause")
    if life is Life.PAUSED and before.paused:
        words = f"Run {target.run.id} is paused already. Go on: ralph resume{target.name}"
    elif before.cancels:
        words = f"Run {target.run.id} was asked to stop before: it ends instead of pausing."
    else:
        words = (
            f"Run {target.run.id} pauses before its next turn.\n"
            f"See: ralph status{target.name}. Go on: ralph resume{target.name}"
        )
    _tell(words, target, "pause", life, in_json=in_json)


@click.command(
    epilog=f"""\b
Examples:
  ralph resume              go on with the paused run of this directory
  ralph resume 3f2a         another run, by the last letters of its id
\b
{_EXIT_CODES}
"""
)
@_steering
def resume(run: str | None, *, in_json: bool) -> None:
    """Go on with a paused run, or take back a request to pause.

    Without RUN: the run of this directory.
    """
    target = _target(run, "resume")
    _, life = _look(target, "resume")
    if not _take_back(target, SignalFiles.PAUSE):
        words = f"Run {target.run.id} is not paused."
    elif life is Life.PAUSED:
        words = f"Run {target.run.id} goes on."
    else:
        words = f"Run {target.run.id} had not paused yet; it goes on without a pause."
    life = Life.RUNNING if life is Life.PAUSED else life
    _tell(words, target, "resume", life, in_json=in_json)


# ------------------------------------------------------------------ whom to ask


def _target(part: str | None, command: str) -> Target:
    """The live run that is meant, or words about why there is none."""
    run = find_run(state_root(os.environ), current_directory(), part, command)
    if not run.live:
        raise _gone(run, account_of(run), command)
    return Target(run, part)


def _look(target: Target, command: str) -> tuple[Account, Life]:
    """How the run fares now; one that has said its last word cannot be steered any more."""
    account = account_of(target.run)
    if account.state.stop is not None:
        raise _gone(target.run, account, command)
    asked = target.run.asked()
    return account, life_of(account, asked, time.time(), live=target.run.live)


def _gone(run: Run, account: Account, command: str) -> ConfigError:
    stop = account.state.stop
    if stop is not None:
        ago = age(time.time() - account.state.time)
        message = f"run {run.id} does not run: it has ended ({stop.reason.value}, {ago} ago)"
        remedy = "Start a new one: ralph run. What it did: ralph logs"
    elif account.problem:
        message = f"run {run.id} does not run, and its journal cannot be read: {account.problem}"
        remedy = "Start a new one: ralph run"
    else:
        message = f"run {run.id} does not run: its process is gone without a last word"
        remedy = "What it did: ralph logs"
    if command == "resume" and stop is None:
        remedy = "Going on after a crash is not there yet; start it again: ralph run"
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


# ------------------------------------------------------------------ asking


def _ask(target: Target, request: str) -> None:
    """Leave a request; a run that has only just taken its lock is waited for."""
    give_up = time.monotonic() + _PATIENCE
    while True:
        try:
            target.files.ask(request)
        except FileNotFoundError as error:
            if time.monotonic() > give_up or not look_again(target.run).live:
                raise _unsteerable(target.run, error) from error
            time.sleep(_LOOK_EVERY)
        except OSError as error:
            raise _unsteerable(target.run, error) from error
        else:
            return


def _take_back(target: Target, request: str) -> bool:
    try:
        return target.files.take_back(request)
    except OSError as error:
        raise _unsteerable(target.run, error) from error


def _unsteerable(run: Run, error: OSError) -> StateError:
    pid = run.owner.pid if run.owner else 0
    return StateError(
        f"cannot write into {run.directory}/signals: {error.strerror}",
        f"Signals work too, once or twice: kill -INT {pid}",
    )


def _await_end(run: Run) -> Account:
    while look_again(run).live:
        time.sleep(_LOOK_EVERY)
    return account_of(run)


def _tell(
    words: str,
    target: Target,
    asked: str,
    life: Life,
    *,
    in_json: bool,
    **more: object,
) -> None:
    if in_json:
        words = json.dumps({"run": target.run.id, "asked": asked, "state": life.value, **more})
    click.echo(words)
