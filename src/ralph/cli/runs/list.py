"""`ralph list`: the runs of this machine, from any directory."""

import json
import os
import time

import click

from ralph.cli.base import command
from ralph.cli.params import at_least, in_directory, option, print_lines
from ralph.files.state_dir import state_root
from ralph.journal.outline import Costs
from ralph.journal.runs import all_runs
from ralph.ui.status.listing import listing
from ralph.ui.status.reading import entry_of
from ralph.ui.style import style_here

_USUAL = 20


@command("list")
@option("-a, --all", "All of them.", "everything")
@option(
    "-n, --lines N", f"The newest N, and all that go on.  [default: {_USUAL}]", type=at_least(1)
)
@option("--json", "Print a list of JSON objects, of all runs.", "in_json")
@in_directory
def list_runs(*, everything: bool, lines: int | None, in_json: bool) -> None:
    """List the runs of this machine, newest first, whatever directory they work in.

    The state of a run is running, waiting, paused, asking (a task waits for your answer), crashed,
    or how it ended: completed, limit, blocked, stalled, failing, interrupted.

    Examples:
      ralph list                what goes on, and the last runs
      ralph list -a             every run there is
      ralph list --json | jq '.[] | select(.state == "asking")'
      ralph status 3f2a         everything about one of them
      ralph clean --dry-run     what could go
    """
    if everything and lines is not None:
        raise click.UsageError("-a and -n exclude each other.")
    now, runs = time.time(), all_runs(state_root(os.environ))
    most = None if everything or (in_json and lines is None) else lines or _USUAL
    shown = [run for number, run in enumerate(runs) if most is None or number < most or run.live]
    costs = Costs()
    entries = [entry_of(run, now, costs) for run in shown]
    if in_json:
        click.echo(json.dumps([entry.as_dict() for entry in entries], indent=2))
        return
    if not entries:
        print_lines(["There are no runs yet. Start one: ralph run -p 'what to do'"])
        return
    left = len(runs) - len(entries)
    print_lines(
        [*listing(entries, now, style_here()), *([f"{left} more: ralph list -a"] * (left > 0))]
    )


list = list_runs  # noqa: A001  as the command is called
