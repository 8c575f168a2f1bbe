"""`ralph stop`, `ralph pause` and `ralph note`: steer a run from any terminal."""

import json
import os
import sys
import time
from contextlib import suppress

import click

from ralph.cli.base import command
from ralph.cli.params import current_directory, option, the_run, the_usual, together
from ralph.cli.tasks.common import read_text, task_option
from ralph.errors import ConfigError
from ralph.files.state_dir import state_root
from ralph.journal.life import Life, life_of
from ralph.journal.runs import Run, account_of, find_run, look_again
from ralph.journal.write_access import refuse_beside_unseen, refuse_own_run, refuse_unseen
from ralph.kernel.verdict import Reason
from ralph.kernel.world import PAUSE, STOP, STOP_NOW, Origin, Signals
from ralph.runner import steering
from ralph.runner.arguments import refuse_agents
from ralph.ui.style import is_terminal

_LOOK_EVERY = 0.1
steered = together(the_run, the_usual)  # what these commands have in common


@command()
@option("--now", "Do not let the agent finish its turn.")
@option("--wait", "Wait until the run is gone.")
@steered
def stop(run: str | None, *, now: bool, wait: bool, in_json: bool) -> int:
    """End a run: it finishes its current operation first, then exits with 130.

    Without RUN: the run that is going on in this directory.

    Examples:
      ralph stop                let the current operation finish, then end the run
      ralph stop --now          end it at once, and everything it started
      ralph stop --wait         and come back when it is gone

    Exit codes: 0, or 2 when there is no such run or it does not run.
    """
    target, name = live(run, "stop"), f" {run}" if run else ""
    before, asked = target.asked(), STOP_NOW if now else STOP
    life = steering.life_now(target)  # one that has ended cannot be asked
    words = steering.stop(target, Origin.CLI, now=now)
    with suppress(ConfigError):  # it may have ended by now, because we asked
        life = steering.life_now(target)
    if not wait:
        if not now and before.cancels < 2 and life is Life.RUNNING:
            words += f"\nSee: ralph status{name}. At once: ralph stop --now{name}"
        tell(target, words, asked, life, in_json=in_json)
        return 0
    try:
        while look_again(target).live:
            time.sleep(_LOOK_EVERY)
        account = account_of(target)
    except KeyboardInterrupt:
        click.echo(f"[ralph] Run {target.id} is still there; the request stands.", err=True)
        return Reason.INTERRUPTED.exit_code
    gone = life_of(account, Signals(), time.time(), live=False)
    reason = account.state.stop.reason if account.state.stop else None
    how = f"{reason.value}, exit code {reason.exit_code}" if reason else gone.value
    more = {"reason": reason, "exit": reason.exit_code if reason else None}
    tell(target, f"Run {target.id} has ended: {how}.", asked, gone, in_json=in_json, **more)
    return 0


@command()
@steered
def pause(run: str | None, *, in_json: bool) -> None:
    """Pause a run before its next turn; the turn that is under way goes on to its end.

    A pause counts neither as time spent nor as waiting. Without RUN: the run of this directory.

    Examples:
      ralph pause               pause the run of this directory before its next turn
      ralph pause 3f2a          another run, by the last letters of its id
      ralph resume              go on

    Exit codes: 0, or 2 when there is no such run or it does not run.
    """
    target, name = live(run, "pause"), f" {run}" if run else ""
    before = target.asked()
    words = steering.pause(target, Origin.CLI)
    life, on = steering.life_now(target), f"Go on: ralph resume{name}"
    if before.paused and life is Life.PAUSED:
        words += f" {on}"
    elif not before.cancels:
        words += f"\nSee: ralph status{name}. {on}"
    tell(target, words, PAUSE, life, in_json=in_json)


@command()
@click.argument("words", nargs=-1, metavar="[RUN] TEXT")
@option("-f FILE", "The text from a file; - is standard input.", "file")
@task_option("--task", "For the next prompt of this task.")
@the_usual
def note(words: tuple[str, ...], *, file: str | None, task: str | None, in_json: bool) -> None:
    """Tell a run something: its next prompt holds the text, once.

    The turn that is under way is not disturbed. Without RUN: the run of this directory, the one
    that is going on or its last; one that was stopped is told when it goes on. TEXT - is read from
    standard input.

    Examples:
      ralph note "Leave the public names as they are."
      ralph note 3f2a "The staging database is up again."
      ralph note --task T-003 "Use the parser that is there."
      ralph note - < hints.md

    Exit codes: 0, or 2 when there is no such run or task, or the run is complete.
    """
    refuse_agents(os.environ, "leave a note for a run", "")
    part, text = _parted(words, file)
    run = _noted(part, text, words)
    refuse_beside_unseen((run.project,), "leave a note for a run")
    told = steering.note(run, text, Origin.CLI, task or "")
    asked = {"run": run.id, "asked": "note", "task": task, "live": run.live, "words": told}
    click.echo(json.dumps(asked) if in_json else told)


def _parted(words: tuple[str, ...], file: str | None) -> tuple[str | None, str]:
    """The run that is meant, if one is named, and the text."""
    given = file if file is not None else "-" if not words and not is_terminal(sys.stdin) else None
    if given is not None:
        words = (*words, "-")
    if not words:
        raise ConfigError("what is the note?", 'Say it: ralph note "Use tabs."')
    if len(words) > 2:
        raise ConfigError("a note is one text", f'Put it in quotes: ralph note "{" ".join(words)}"')
    part, text = (words[0] if len(words) == 2 else None), words[-1]
    return part, read_text(given or "-", "the note", sys.stdin) if text == "-" else text


def _noted(part: str | None, text: str, words: tuple[str, ...]) -> Run:
    """The run that is meant. Two words without quotes, or a run without a text, are mistakes."""
    root, here = state_root(os.environ), current_directory()
    try:
        run = find_run(root, here, part, "note", workers=True)
    except ConfigError as error:
        refuse_unseen(os.environ, "leave a note for")
        if words == (part, text) and error.message.startswith("there is no run"):
            both = f'ralph note "{part} {text}"'
            raise ConfigError(error.message, f"{error.remedy}. Or, in quotes: {both}") from error
        raise
    if part is None and text.isalnum() and text in run.id:
        raise ConfigError(f"{text} names a run", f'Say what to note: ralph note {text} "..."')
    return run


def live(part: str | None, command: str) -> Run:
    """The live run that is meant, or an error that says why there is none."""
    run = found(part, command)
    if not run.live:
        raise steering.gone_error(run, account_of(run))
    return run


def found(part: str | None, command: str) -> Run:
    """The run that is meant, unless it is the caller's own (ADR 10)."""
    try:
        run = find_run(state_root(os.environ), current_directory(), part, command)
    except ConfigError:
        refuse_unseen(os.environ, command)
        raise
    refuse_own_run(os.environ, run, command)
    return run


def tell(run: Run, words: str, asked: str, life: Life, *, in_json: bool, **more: object) -> None:
    """Say what was asked for, and what comes of it."""
    told = {"run": run.id, "asked": asked, "state": life.value, **more}
    click.echo(json.dumps(told) if in_json else words)
