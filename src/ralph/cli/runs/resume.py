"""`ralph resume`: goes on with a run that was paused, killed or has ended, from any terminal."""

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import click

from ralph.cli.base import command
from ralph.cli.params import at_least, current_directory, dollars, duration, option
from ralph.cli.runs.steer import found, steered, tell
from ralph.errors import ConfigError, StateError, failing
from ralph.files.state_dir import project_dir, state_root
from ralph.journal.life import Account, Life
from ralph.journal.runs import Run, account_of, runs_of
from ralph.journal.way_on import way_on
from ralph.journal.write_access import refuse_own_run
from ralph.kernel.world import Origin
from ralph.runner import steering
from ralph.runner.arguments import warn
from ralph.runner.invocation import Invocation, Raise
from ralph.runner.kept import FLEET_NOW, kept_plan
from ralph.runner.loops import LOOPS
from ralph.text.words import counted
from ralph.text.words import duration as time_words
from ralph.ui.closing import cost_words
from ralph.ui.status.report import age

_MOST_SHOWN = 9  # candidates
Candidate = tuple[Run, Account]


def _raised(flag: str, read: Callable[[str], float]) -> Callable[[str], Raise]:
    """What follows a flag: a new total, or with + how much more."""

    def understood(text: str) -> Raise:
        amount = read(text.removeprefix("+"))
        if amount <= 0:
            raise click.BadParameter(f"{text!r} is nothing.")
        return Raise(flag, amount, text.startswith("+"))

    return understood


@command()
@option(
    "-m, --max-iterations N",
    "New total of iterations (of tasks run: of each task); +N: so many more.  [default: as it is]",
    type=_raised("-m", at_least(1)),
)
@option(
    "--max-time DURATION",
    "New total of time; +2h: so much more.  [default: as it is]",
    type=_raised("--max-time", duration),
)
@option(
    "--max-cost USD",
    "New total of dollars; +5: so many more.  [default: as it is]",
    type=_raised("--max-cost", dollars),
)
@option(
    "--max-tasks N",
    "New total of tasks, of tasks run; +N: so many more.  [default: as it is]",
    type=_raised("--max-tasks", at_least(1)),
)
@option("--fleet ADDRESS", "Where its fleet is now.  [default: as it was]")
@option("--detach", "Let it go on in the background, also after you log out.")
@option("-V, --verbose", "Say more about what happens.")
@steered
def resume(
    run: str | None,
    *,
    fleet: str | None,
    detach: bool,
    verbose: bool,
    in_json: bool,
    **limits: Raise | None,
) -> int:
    """Continue a run: one that is paused, was stopped or killed, or has ended before it was done.

    A run that is gone goes on in this terminal, with its own prompt and counters: what it has spent
    stays counted. An iteration that was cut off is taken again. A run at a limit needs a higher
    one. A run that asked something, stalled or kept failing goes on as it is, and its failures are
    counted anew; the settings files are read again. A completed run is over: start a new one.

    Without RUN: the run of this directory that can go on; if there are several, you are asked.

    Examples:
      ralph resume              go on with the run of this directory
      ralph resume -m +10       ten more iterations than before
      ralph resume -m 30        thirty in total, with those that it has taken
      ralph resume 3f2a --max-cost +5 --max-time +2h
                                another run, by the last letters of its id
      ralph resume --detach     in the background, as ralph run --detach

    Exit codes: 0 a paused run goes on; 2 there is no such run, it is complete, it
    is not paused, or at a limit that was not raised. A run that goes on here ends
    with its own exit code.
    """
    raises = [each for each in limits.values() if each is not None]
    there = found(run, "resume")
    if there.owner is None:
        chosen, account = (there, account_of(there)) if run else _chosen(in_json=in_json)
        refuse_own_run(os.environ, chosen, "resume")
        own: dict[str, Any] = {"verbose": verbose, "in_json": in_json, FLEET_NOW: fleet}
        return _go_on(chosen, account, raises, own, detach=detach)
    if raises or fleet is not None:
        name = f" {run}" if run else ""
        what = "its limits stay" if raises else "its fleet stays"
        message = f"run {there.id} is going on (pid {there.owner.pid}): {what}"
        raise ConfigError(message, f"First: ralph stop --wait{name}")
    words = steering.resume(there, Origin.CLI)
    tell(there, words, "resume", Life.RUNNING, in_json=in_json)
    return 0


# ------------------------------------------------------------------ which run


def _chosen(*, in_json: bool) -> Candidate:
    """The run of this directory that is to go on; of several, the one that a person names."""
    runs = runs_of(project_dir(state_root(os.environ), current_directory()))
    could = _candidates(runs)
    if not could:
        raise steering.gone_error(runs[0], account_of(runs[0]))
    if len(could) == 1:
        return could[0]
    shown, more = could[:_MOST_SHOWN], len(could) - _MOST_SHOWN
    rows = [f"{_command(each)}  {_line(*each)}" for each in shown]
    rows += [f"and {more} more: ralph status --all"] if more > 0 else []
    if in_json or not (sys.stdin and sys.stdin.isatty()):
        raise ConfigError("several runs here could go on: name one", "\n".join(rows))
    warn("Several runs here could go on:", *(f"  {n}  {row}" for n, row in enumerate(rows, 1)))
    return shown[_asked(len(shown))]


def _candidates(runs: list[Run]) -> list[Candidate]:
    """The runs that could go on, newest first, each for work of its own. Those from before the last
    completed run count only where there are no others; so do those that never began."""
    recent, older, empty = list[Candidate](), list[Candidate](), list[Candidate]()
    known, completed = set[tuple[str, str]](), False
    for run in runs:
        account = account_of(run)
        if account.started is None and not account.problem:
            empty.append((run, account))
            continue
        work = _work(run)
        if work in known:  # a later run has taken it up
            continue
        known.add(work)
        if not account.problem and not way_on(account.state).possible:
            completed = True
            continue
        (older if completed else recent).append((run, account))
    return recent or older or empty[:1]


def _work(run: Run) -> tuple[str, str]:
    """What tells the work of one run from that of another."""
    from ralph.runner.plan import loop_named

    kept = kept_plan(run.directory)
    if kept is None or kept["loop"] not in LOOPS:
        return "", run.id
    loop = loop_named(kept["loop"])
    return kept["loop"], "" if loop.supersedes else loop.about(kept["work"])


def _command(candidate: Candidate) -> str:
    run, account = candidate
    return f"ralph resume {run.id} {way_on(account.state).flags}".rstrip()


def _asked(most: int) -> int:
    from ralph.cli.asking import ask, dialogue

    def understood(answer: str) -> int:
        number = (
            int(answer or "1") if (answer or "1").isascii() and (answer or "1").isdigit() else 0
        )
        if not 1 <= number <= most:
            raise ValueError(f"Answer with a number from 1 to {most}.")
        return number - 1

    with dialogue("nothing was started."):
        return ask("Which one? [1] ", understood)


# ------------------------------------------------------------------ going on


def _line(run: Run, account: Account) -> str:
    """`"Make the tests pass": limit, 8h ago: 10 iterations used up`."""
    kept = kept_plan(run.directory)
    what = _about(kept["loop"], kept["work"]) if kept else ""
    state = account.state
    how = "its process is gone" if state.stop is None else state.stop.reason.value
    why = account.problem or (state.stop.why if state.stop is not None else "")
    ago = f", {age(time.time() - state.time)} ago" if state.time else ""
    return f"{what}: {how}{ago}" + (f" ({why})" if why else "")


def _about(loop: str, work: object) -> str:
    from ralph.runner.plan import loop_named

    if loop not in LOOPS or not isinstance(work, dict):
        return ""
    about = loop_named(loop).about(work)
    return f"ralph {LOOPS[loop][1]}" + (f", {about}" if about else "")


def _go_on(
    run: Run, account: Account, raises: list[Raise], own: dict[str, Any], *, detach: bool
) -> int:
    """Go on in the run's own workspace, whatever the directory that it is called from."""
    from ralph.runner.plan import Past
    from ralph.runner.resuming import go_on, planned_on

    started, anew = account.started, steering.new_one(account)
    if account.problem:
        raise StateError(f"run {run.id} cannot go on: {account.problem}", anew)
    if started is None:
        message = f"run {run.id} left nothing to go on with: {run.journal} is empty or missing"
        raise StateError(message, anew)
    if not way_on(account.state).possible:
        raise steering.gone_error(run, account)
    gone = f"the workspace of run {run.id} is gone: {started.workspace}"
    with failing(gone, anew, StateError):
        os.chdir(started.workspace)
    flags = dict.fromkeys(("emoji", "color", "timestamps"))
    streams = (sys.stdin, sys.stdout, sys.stderr)
    here = Invocation(current_directory(), dict(os.environ), {**flags, **own}, *streams)
    going = planned_on(here, Past(run.directory, account.state), raises)
    warn(f"Run {run.id}, {_line(run, account)}", *_coming(account, going.words))
    if detach:
        from ralph.cli.runs.background import in_background

        return in_background(here, lambda invocation: go_on(invocation, going))
    return go_on(here, going)


def _coming(account: Account, changes: tuple[str, ...]) -> list[str]:
    """What was spent, and what comes now."""
    state = account.state
    profile = account.started.profile if account.started else ""
    turn = "attempt" if profile == "supervise" else "iteration"
    spent = [counted(state.spent.iterations, turn), time_words(state.spent.seconds)]
    spent += filter(None, [cost_words(state.spent)])
    coming = way_on(state, profile).words.partition(",")[0].partition(";")[0]
    limits = f" New limits: {', '.join(changes)}." if changes else ""
    return [f"Spent so far: {', '.join(spent)}. It {coming}.{limits}"]
