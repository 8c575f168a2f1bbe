"""`ralph status`: shows what runs are doing, from any terminal."""

import json
import os
import time

import click

from ralph.cli.base import command
from ralph.cli.params import current_directory, in_directory, option, print_lines, the_run
from ralph.files.state_dir import project_dir, state_root
from ralph.journal.life import life_of
from ralph.journal.runs import (
    Run,
    account_of,
    all_runs,
    find_run,
    projects,
    prompt_of,
    read_tail,
    workers_at,
)
from ralph.kernel.facts import Launching
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.value import replace
from ralph.processes.usage import ProcessTree, measure
from ralph.ui.replay import last_actions
from ralph.ui.status.report import (
    Report,
    life_with_workers,
    report_dict,
    report_lines,
    table_lines,
)
from ralph.ui.style import style_here

_TAIL = 256 * 1024


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
        told = [report_dict(each) for each in reports_of(runs, now)] if in_json else None
        lines = ["There are no runs yet. Start one: ralph run -p 'what to do'"]
        if runs and not in_json:
            reports = [report_of(each, now, actions=False) for each in runs]
            lines = table_lines(reports, style_here())
    else:
        found = find_run(root, current_directory(), run, "status", workers=True)
        (report,) = reports_of([found], now)
        told = report_dict(report)
        lines = [] if in_json else report_lines(report, style_here())
    if in_json:
        click.echo(json.dumps(told, indent=2))
    else:
        print_lines(lines)


def reports_of(runs: list[Run], now: float) -> list[Report]:
    """Everything about these runs; what their processes use is measured for all at once."""
    # What a worker's processes use is not known: they belong to the run that it works for.
    pids = {run.id: run.owner.pid for run in runs if run.owner and run.lead is None}
    trees = measure(list(pids.values()), time.sleep)
    reports = []
    for run in runs:
        at_work = workers_at(run.lead, account_of(run.lead).state) if run.lead else ()
        sent = next((sent.assignment for worker, sent in at_work if worker.id == run.id), None)
        reports.append(report_of(run, now, trees.get(pids.get(run.id, 0)), sent=sent))
    return reports


def report_of(
    run: Run,
    now: float,
    tree: ProcessTree | None = None,
    *,
    actions: bool = True,
    sent: Assignment | None = None,
) -> Report:
    """All that is known about a run. Whatever is wrong with it is part of the report."""
    account, asked = account_of(run), run.asked()
    workers = tuple(
        report_of(worker, now, actions=actions, sent=assigned.assignment)
        for worker, assigned in workers_at(run, account.state)
    )
    last: tuple[str, ...] = ()
    if actions and (launch := account.launch) is not None:
        last = last_actions(launch.dialect, prompt_of(launch), read_tail(launch.stream, _TAIL))
    report = Report(
        run=run.id,
        life=life_of(account, asked, now, live=run.live),
        directory=run.directory,
        journal=run.journal,
        now=now,
        state=account.state,
        started=account.started,
        doing=account.doing,
        heard_at=_heard_at(account.doing),
        pid=run.owner.pid if run.owner else None,
        asked=asked,
        last_actions=last,
        tree=tree.as_dict() if tree else None,
        problem=account.problem,
        sent=sent,
        workers=workers,
    )
    if not (report.is_crew and report.live):
        return report
    # How much is ahead of it stands in the list.
    return replace(report, life=life_with_workers(report), ahead=_ahead(run, report))


def _ahead(run: Run, report: Report) -> frozenset[str] | None:
    """The tasks that the run is for and that are not done; None where nobody can tell."""
    from ralph.loops.backlog.store.selection import TaskBacklog
    from ralph.loops.backlog.store.task_file import TaskFile
    from ralph.runner.kept import work_of

    assert report.started is not None
    work, file = work_of(run.directory, "backlog") or {}, TaskFile(report.started.workspace)
    try:
        backlog = TaskBacklog(file, work["task"], tuple(work["tags"]))()
    except (OSError, KeyError, TypeError):
        return None
    return None if backlog.problem else frozenset(task.id for task in backlog.tasks if task.open)


def _heard_at(doing: object) -> float | None:
    """The time when the stream last grew; None while there is nothing in it."""
    if not isinstance(doing, Launching):
        return None
    try:
        found = os.stat(doing.stream)
    except OSError:
        return None
    return found.st_mtime if found.st_size else None
