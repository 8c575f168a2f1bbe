"""`ralph replay`: judges a stored run again, by today's parsers and rules (ADR 55)."""

import json
import os
import sys
import time

import click

from ralph.cli.base import command
from ralph.cli.params import current_directory, in_directory, looks, option, print_lines, the_run
from ralph.cli.runs.sessions import session_meant
from ralph.errors import ConfigError, StateError
from ralph.files.state_dir import state_root
from ralph.journal.runs import CopiedRun, Run, find_run
from ralph.kernel.value import replace
from ralph.kernel.verdict import Reason
from ralph.loops.session.judged import judged_again as stops_judged_again
from ralph.runner.again.judged import Retold, judged_again
from ralph.runner.again.words import Tally
from ralph.ui.live.activity import tag_of
from ralph.ui.replay import Days, PeopleTeller, Teller
from ralph.ui.style import Style, style_here

_DIFFERS = 1


def _speed(text: str) -> float:
    try:
        speed = 0.0 if text == "max" else float(text)
    except ValueError:
        speed = -1.0
    if not 0 <= speed < float("inf"):
        raise click.BadParameter(f"{text!r} is neither a number, such as 10 or 0.5, nor max")
    return speed


@command()
@the_run
@option("--speed X", "Watch it, X times as fast as it was; max: at once.", type=_speed)
@option("--json", "Print one JSON object.", "in_json")
@looks
@in_directory
def replay(
    run: str | None,
    *,
    speed: float | None,
    in_json: bool,
    emoji: bool | None,
    color: bool | None,
) -> int:
    """Judge a run again, and show where a verdict would be another today.

    Its streams are read by today's parsers, its facts judged by today's rules, with the settings
    that were in force. No agent is started, and nothing is changed.

    Without RUN: the run that is going on in this directory, else its last one; where none was
    started, the last loop in a session.

    Examples:
      ralph replay                    this directory's last run
      ralph replay 3f2a --speed 20    watch it, twenty times as fast as it was
      ralph replay ./kept/3f2a        a run that is kept in a directory
      ralph replay --json | jq '.differences[].now.rule'

    RUN is a run's id or any part of it that only one run has, the path of its
    directory, or the id of a session with a loop, or a part of that.
    Exit codes: 0 no difference, 1 a verdict differs or a stream is read
    otherwise, 2 no such run or its journal was changed, 130 after Ctrl+C.
    """
    if speed is not None and in_json:
        raise click.UsageError("--speed and --json exclude each other.")
    try:
        name, tally = _judged(run, speed, {"emoji": emoji, "color": color})
    except KeyboardInterrupt:
        return Reason.INTERRUPTED.exit_code
    if in_json:
        click.echo(json.dumps(tally.as_dict(name), indent=2))
    else:
        print_lines(tally.lines())
    return _DIFFERS if tally.differing else 0


def _judged(
    part: str | None, speed: float | None, looks: dict[str, bool | None]
) -> tuple[str, Tally]:
    """What came of it, and whose it is; with a speed it is told on the way."""
    tally, loop = Tally(), session_meant(part)
    if loop is not None:
        if speed is not None:
            raise ConfigError(
                "a loop in a session keeps no times of its stops", "Leave out --speed."
            )
        for rejudged in stops_judged_again(loop):
            tally.add(Retold(loop.session, rejudged=rejudged))
        return loop.session, tally
    run = _found(part)
    told = [each for each in judged_again(run) if tally.add(each) or speed is not None]
    if not tally.facts:
        message = f"run {run.id} left no journal: it ended before it began"
        raise StateError(message, "Others: ralph status --all")
    if speed is not None:
        _watch(run, told, speed, style_here(looks))
    return run.id, tally


def _watch(run: Run, retold: list[Retold], speed: float, style: Style) -> None:
    # Most who ask want to know what differs, and nothing else.
    from ralph.runner.again.told import Pace, told_again

    days = Days()

    def teller(run: Run, task: str) -> Teller[str]:
        return PeopleTeller(style, run.journal, tag=task and tag_of(task), days=days)

    for lines in told_again(run, retold, teller, Pace(speed, time.sleep)):
        if lines:
            print_lines(lines)
            sys.stdout.flush()


def _found(part: str | None) -> Run:
    """The run that is meant: by its name, or by the directory in which it is kept."""
    if part is None or os.sep not in part:
        return find_run(state_root(os.environ), current_directory(), part, "replay", workers=True)
    run = _copied(os.path.realpath(part))
    if not os.path.isfile(run.journal):
        raise ConfigError(f"there is no run in {part}", "It would hold a journal.jsonl.")
    lead = _copied(os.path.dirname(run.project))
    is_worker = os.path.basename(run.project) == "runs" and os.path.isfile(lead.journal)
    return replace(run, lead=lead) if is_worker else run


def _copied(place: str) -> CopiedRun:
    return CopiedRun(os.path.basename(place), os.path.dirname(place), place=place)
