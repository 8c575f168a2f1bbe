"""`ralph replay`: judges a stored run again, by today's parsers and rules (ADR 55)."""

import json
import os

import click

from ralph.cli.base import command
from ralph.cli.params import current_directory, in_directory, option, print_lines, the_run
from ralph.errors import ConfigError
from ralph.files.state_dir import state_root
from ralph.journal.runs import CopiedRun, Run, find_run
from ralph.runner.showing.again import judged_again
from ralph.runner.showing.again_words import Tally

_DIFFERS = 1


@command()
@the_run
@option("--json", "Print one JSON object.", "in_json")
@in_directory
def replay(run: str | None, *, in_json: bool) -> int:
    """Judge a run again."""
    found = _found(run)
    tally = Tally()
    for retold in judged_again(found):
        tally.add(retold)
    if in_json:
        click.echo(json.dumps(tally.as_dict(found.id), indent=2))
    else:
        print_lines(tally.lines())
    return _DIFFERS if tally.differing else 0


def _found(part: str | None) -> Run:
    """The run that is meant: by its name, or by the directory in which it is kept."""
    if part is None or os.sep not in part:
        return find_run(state_root(os.environ), current_directory(), part, "replay", workers=True)
    place = os.path.realpath(part)
    run = CopiedRun(os.path.basename(place), os.path.dirname(place), place=place)
    if not os.path.isfile(run.journal):
        raise ConfigError(f"there is no run in {part}", "It would hold a journal.jsonl.")
    return run
