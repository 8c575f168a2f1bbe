"""`ralph status`: shows what runs are doing, from any terminal."""

import json
import os
import time

import click

from ralph.cli.base import command
from ralph.cli.params import current_directory, in_directory, option, print_lines, the_run
from ralph.files.state_dir import project_dir, state_root
from ralph.journal.runs import all_runs, find_run, projects
from ralph.loops.backlog.ahead import ahead_of
from ralph.runner.showing.forecasts import Forecasts, LiveForecasts
from ralph.ui.status.reading import report_of, reports_of
from ralph.ui.status.report import report_dict, report_lines, table_lines
from ralph.ui.style import style_here


@command()
@the_run
@option("--all", "Every run of every directory, newest first.", "everything")
@option("--json", "Print one JSON object; with --all a list.", "in_json")
@option("--spending", "What this directory's runs cost, by day and run.")
@in_directory
def status(run: str | None, *, everything: bool, spending: bool, in_json: bool) -> None:
    """Show what a run is doing, what it has spent, and how it ended.

    Without RUN: the run that is going on in this directory, else its last one.

    Examples:
      ralph status                    this directory's run, or its last one
      ralph status 3f2a               a run by the last letters of its id
      ralph status 3f2a-003           one worker of a run on several tasks
      ralph status --all              every run of every directory
      ralph status --spending         what the runs here cost, by day and by run
      ralph status --json | jq .state

    RUN is a run's id or any part of it that only one run has.
    Exit codes: 0, or 2 when there is no such run.
    """
    if run is not None and (everything or spending):
        flag = "--all" if everything else "--spending"
        raise click.UsageError(f"{flag} is about every run: leave out the run's name, or {flag}.")
    root, now = state_root(os.environ), time.time()
    if spending:
        from ralph.journal.ledger import read_ledger
        from ralph.ui.status.spending import spending_dict, spending_lines

        places = projects(root) if everything else [project_dir(root, current_directory())]
        entries = [entry for place in places for entry in read_ledger(place)]
        told: object = spending_dict(entries) if in_json else None
        lines = spending_lines(entries, now)
    elif everything:
        runs = all_runs(root)
        found = reports_of(runs, now, ahead_of, LiveForecasts()) if in_json else []
        told = [report_dict(each) for each in found]
        lines = ["There are no runs yet. Start one: ralph run -p 'what to do'"]
        if runs and not in_json:
            reports = [report_of(each, now, actions=False, ahead=ahead_of) for each in runs]
            lines = table_lines(reports, style_here())
    else:
        (report,) = reports_of(
            [find_run(root, current_directory(), run, "status", workers=True)],
            now,
            ahead_of,
            Forecasts(),
        )
        told = report_dict(report)
        lines = [] if in_json else report_lines(report, style_here())
    if in_json:
        click.echo(json.dumps(told, indent=2))
    else:
        print_lines(lines)
