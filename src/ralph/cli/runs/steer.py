"""`ralph stop`, `ralph pause` and `ralph resume`: steer a run from any terminal.

They leave or remove files beside the run's journal; the run looks for them four times a second.
"""

import json
import os
import sys
import time
from contextlib import suppress

import click

from ralph.cli.params import current_directory, in_directory, in_json, option, the_run, together
from ralph.errors import ConfigError, StateError
from ralph.files.state_dir import project_dir, state_root
from ralph.journal.life import Account, Life, life_of
from ralph.journal.runs import Run, account_of, find_run, look_again, runs_of
from ralph.journal.write_access import refuse_own_run, refuse_unseen
from ralph.kernel.value import value
from ralph.kernel.verdict import Reason
from ralph.kernel.world import Signals
from ralph.processes.signals import SignalFiles
from ralph.ui.status.report import age

_LOOK_EVERY = 0.1
_PATIENCE = 3.0  # seconds for a run that has only just taken its lock
_COMMANDS = {  # by profile
    "harness": "run",
    "supervise": "supervise",
    "tasks": "tasks run",
    "reviewed": "prd run",
}
_EXIT_CODES = "Exit codes: 0, or 2 when there is no such run or it does not run."
_steering = together(the_run, in_json, in_directory)  # what the three commands have in common


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
@option("--now", "Do not let the agent finish its turn.")
@option("--wait", "Wait until the run is gone.")
@_steering
def stop(run: str | None, *, now: bool, wait: bool, in_json: bool) -> int:
    """End a run: it finishes its current operation first, then exits with 130.

    Without RUN: the run that is going on in this directory.
    """
    target = _target(run, "stop")
    before = target.run.asked()
    life = _look(target)  # one that has ended cannot be asked
    _ask(target, SignalFiles.NOW if now else SignalFiles.STOP)
    with suppress(ConfigError):  # one that waits may have ended by now, because we asked
        life = _look(target)
    asked = "stop-now" if now else "stop"
    if not wait:
        words = _stop_words(target, life, before, now=now)
        _tell(words, target, asked, life, in_json=in_json)
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
    life = _look(target)
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
  ralph resume              go on with the paused or interrupted run of this directory
  ralph resume 3f2a         another run, by the last letters of its id
\b
{_EXIT_CODES}
A run that goes on here ends with its own exit code.
"""
)
@option("-V, --verbose", "Say more about what happens.")
@_steering
def resume(run: str | None, *, verbose: bool, in_json: bool) -> int:
    """Continue a run that was paused, asked to stop, or killed.

    A run that is gone goes on in this terminal, with its own settings, prompt and counters; the
    iteration that was cut off is taken again. Without RUN: the newest of this directory.
    """
    root, here = state_root(os.environ), current_directory()
    found = _found(run, "resume")
    if found.owner is None:
        here_first = [found] if run else runs_of(project_dir(root, here))
        chosen, account = _interrupted(here_first)
        refuse_own_run(os.environ, chosen, "resume")
        return _go_on(chosen, account, verbose=verbose, in_json=in_json)
    target = Target(found, run)
    life = _look(target)
    try:
        taken_back = target.files.take_back(SignalFiles.PAUSE)
    except OSError as error:
        raise _unsteerable(found, error) from error
    if not taken_back:
        message = f"run {found.id} is going on (pid {found.owner.pid}) and is not paused"
        raise ConfigError(message, "See: ralph status")
    words = f"Run {found.id} had not paused yet; it goes on without a pause."
    if life is Life.PAUSED:
        life, words = Life.RUNNING, f"Run {found.id} goes on."
    _tell(words, target, "resume", life, in_json=in_json)
    return 0


def _interrupted(runs: list[Run]) -> tuple[Run, Account]:
    """The first of them that can go on."""
    for run in runs:
        account = account_of(run)
        stop = account.state.stop
        if account.problem or stop is None or stop.reason is Reason.INTERRUPTED:
            return run, account
    raise _gone(runs[0], account_of(runs[0]))


def _go_on(run: Run, account: Account, *, verbose: bool, in_json: bool) -> int:
    """Go on in the run's own workspace, whatever the directory that it is called from."""
    from ralph.runner.carry_out import go_on
    from ralph.runner.invocation import Invocation

    started = account.started
    if account.problem:
        raise StateError(f"run {run.id} cannot go on: {account.problem}", _new_one(account))
    if started is None:
        message = f"run {run.id} left nothing to go on with: {run.journal} is empty or missing"
        raise StateError(message, _new_one(account))
    try:
        os.chdir(started.workspace)
    except OSError as error:
        message = f"the workspace of run {run.id} is gone: {started.workspace}: {error.strerror}"
        raise StateError(message, _new_one(account)) from error
    flags = dict.fromkeys(("emoji", "color", "timestamps"))
    own = {"verbose": verbose, "in_json": in_json}
    streams = (sys.stdin, sys.stdout, sys.stderr)
    here = Invocation(current_directory(), dict(os.environ), {**flags, **own}, *streams)
    return go_on(here, run.directory)


def _new_one(account: Account) -> str:
    """The remedy where a run is over for good."""
    command = _COMMANDS.get(account.started.profile if account.started else "")
    return f"Start a new one: ralph {command}" if command else "Start a new one."


# ------------------------------------------------------------------ whom to ask


def _target(part: str | None, command: str) -> Target:
    """The live run that is meant, or an error that says why there is none."""
    run = _found(part, command)
    if not run.live:
        raise _gone(run, account_of(run))
    return Target(run, part)


def _found(part: str | None, command: str) -> Run:
    """The run that is meant, unless it is the caller's own (ADR 10)."""
    try:
        run = find_run(state_root(os.environ), current_directory(), part, command)
    except ConfigError:
        refuse_unseen(os.environ, command)
        raise
    refuse_own_run(os.environ, run, command)
    return run


def _look(target: Target) -> Life:
    """The state of the run now; one that has said its last word cannot be steered any more."""
    account = account_of(target.run)
    if account.state.stop is not None:
        raise _gone(target.run, account)
    return life_of(account, target.run.asked(), time.time(), live=target.run.live)


def _gone(run: Run, account: Account) -> ConfigError:
    stop = account.state.stop
    if stop is not None:
        ago = age(time.time() - account.state.time)
        message = f"run {run.id} does not run: it has ended ({stop.reason.value}, {ago} ago)"
        remedy = f"{_new_one(account).removesuffix('.')}. What it did: ralph logs"
    elif account.problem:
        message = f"run {run.id} does not run, and its journal cannot be read: {account.problem}"
        remedy = _new_one(account)
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


def _unsteerable(run: Run, error: OSError) -> StateError:
    pid = run.owner.pid if run.owner else 0
    return StateError(
        f"cannot write into {run.directory}/signals: {error.strerror}",
        f"Signals work too, once or twice: kill -INT {pid}",
    )


def _tell(
    words: str, target: Target, asked: str, life: Life, *, in_json: bool, **more: object
) -> None:
    if in_json:
        words = json.dumps({"run": target.run.id, "asked": asked, "state": life.value, **more})
    click.echo(words)
