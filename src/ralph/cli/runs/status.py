"""`ralph status`: what runs are doing, from any terminal."""

import json
import os
import time

import click

from ralph.cli.params import completed_by, current_directory, in_directory, print_lines
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import project_dir, state_root
from ralph.journal.life import Account, Life, life_of
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
from ralph.ui.status.lines import report_lines, table_lines
from ralph.ui.status.report import Report, report_dict
from ralph.ui.terminal import style_here

_TAIL = 256 * 1024
_EPILOG = """\b
Examples:
  ralph status                    this directory's run, or its last one
  ralph status 3f2a               a run by the last letters of its id
  ralph status 3f2a-003           one worker of a run on several tasks
  ralph status --all              every run of every directory
  ralph status --spending         what the runs here cost, by day and by run
  ralph status --json | jq .state
\b
RUN is a run's id or any part of it that only one run has.
Exit codes: 0, or 2 when there is no such run.
"""


@click.command(epilog=_EPILOG)
@click.argument("run", required=False, shell_complete=completed_by("run_ids"))
@click.option(
    "--all", "everything", is_flag=True, help="Every run of every directory, newest first."
)
@click.option("--json", "in_json", is_flag=True, help="Print one JSON object; with --all a list.")
@click.option("--spending", is_flag=True, help="What this directory's runs cost, by day and run.")
@in_directory
def status(run: str | None, *, everything: bool, spending: bool, in_json: bool) -> None:
    """Show what a run is doing, what it has spent, and how it ended.

    Without RUN: the run that is going on in this directory, else its last one.
    """
    if run is not None and (everything or spending):
        flag = "--all" if everything else "--spending"
        raise click.UsageError(f"{flag} is about every run: leave out the run's name, or {flag}.")
    root, now = state_root(os.environ), time.time()
    if spending:
        _show_spending(_projects(root, everything=everything), now, in_json=in_json)
        return
    if everything:
        _show_all(all_runs(root), now, in_json=in_json)
        return
    found = find_run(root, current_directory(), run, "status", workers=True)
    (report,) = reports_of([found], now)
    if in_json:
        click.echo(json.dumps(report_dict(report), indent=2))
    else:
        print_lines(report_lines(report, style_here()))


def _show_all(runs: list[Run], now: float, *, in_json: bool) -> None:
    if in_json:
        click.echo(json.dumps([report_dict(r) for r in reports_of(runs, now)], indent=2))
    elif not runs:
        click.echo("There are no runs yet. Start one: ralph run -p 'what to do'")
    else:
        reports = [report_of(run, now, actions=False) for run in runs]
        print_lines(table_lines(reports, style_here()))


def _projects(root: str, *, everything: bool) -> list[str]:
    return projects(root) if everything else [project_dir(root, current_directory())]


def _show_spending(directories: list[str], now: float, *, in_json: bool) -> None:
    from ralph.journal.ledger import read_ledger
    from ralph.ui.status.spending import spending_dict, spending_lines

    entries = [entry for directory in directories for entry in read_ledger(directory)]
    if in_json:
        click.echo(json.dumps(spending_dict(entries), indent=2))
    else:
        click.echo("\n".join(spending_lines(entries, now)))


def reports_of(runs: list[Run], now: float) -> list[Report]:
    """Everything about these runs; what their processes use is measured for all at once."""
    # What a worker's processes use is not known: they belong to the run that it works for.
    pids = [run.owner.pid if run.owner and run.lead is None else None for run in runs]
    trees = measure([pid for pid in pids if pid is not None], time.sleep)
    pairs = zip(runs, pids, strict=True)
    return [
        report_of(run, now, trees.get(pid) if pid else None, sent=_sent(run)) for run, pid in pairs
    ]


def _sent(worker: Run) -> Assignment | None:
    """What a worker was sent to do, as long as it is at it."""
    if worker.lead is None:
        return None
    at_work = workers_at(worker.lead, account_of(worker.lead).state)
    return next((sent.assignment for run, sent in at_work if run.id == worker.id), None)


def report_of(
    run: Run,
    now: float,
    tree: ProcessTree | None = None,
    *,
    actions: bool = True,
    sent: Assignment | None = None,
) -> Report:
    """What is known about a run. Whatever is wrong with it is part of the report."""
    account, asked = account_of(run), run.asked()
    workers = tuple(
        report_of(worker, now, actions=actions, sent=assigned.assignment)
        for worker, assigned in workers_at(run, account.state)
    )
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
        last_actions=_last_actions(account) if actions else (),
        tree=tree.as_dict() if tree else None,
        problem=account.problem,
        sent=sent,
        workers=workers,
    )
    return _as_a_crew(run, report) if report.is_crew and report.live else report


def _as_a_crew(run: Run, report: Report) -> Report:
    """It pauses by its workers, and how much is ahead of it stands in the list."""
    lives = {worker.life for worker in report.workers}
    paused = report.asked.paused and not lives & {Life.RUNNING, Life.WAITING}
    life = Life.PAUSED if paused else report.life
    return replace(report, life=life, ahead=_ahead(run, report))


def _ahead(run: Run, report: Report) -> frozenset[str] | None:
    """The tasks that the run is for and that are not done; None where nobody can tell."""
    from ralph.loops.backlog.store.selection import TaskBacklog
    from ralph.loops.backlog.store.task_file import TaskFile

    assert report.started is not None
    try:
        with open_regular(os.path.join(run.directory, "plan.json")) as file:
            kept = json.load(file)["work"]
        file_here = TaskFile(report.started.workspace)
        backlog = TaskBacklog(file_here, kept["task"], tuple(kept["tags"]))()
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return None if backlog.problem else frozenset(task.id for task in backlog.tasks if task.open)


def _last_actions(account: Account) -> tuple[str, ...]:
    launch = account.launch
    if launch is None:
        return ()
    return last_actions(launch.dialect, prompt_of(launch), read_tail(launch.stream, _TAIL))


def _heard_at(doing: object) -> float | None:
    """When the stream last grew; None while there is nothing in it."""
    if not isinstance(doing, Launching):
        return None
    try:
        found = os.stat(doing.stream)
    except OSError:
        return None
    return found.st_mtime if found.st_size else None
