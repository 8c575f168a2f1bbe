"""Reads what is known of runs: everything about one, and a line for each of many."""

import os
import time
from collections.abc import Callable, Mapping, Sequence

from ralph.files.state_dir import lstat
from ralph.journal.forecast import Forecast
from ralph.journal.life import Account, Life
from ralph.journal.outline import outline_of
from ralph.journal.runs import Run, account_of, prompt_of, read_tail, workers_at
from ralph.journal.spending import Sum
from ralph.kernel.facts import Launching, Started
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.value import replace
from ralph.processes.usage import ProcessTree, measure
from ralph.ui.replay import last_actions
from ralph.ui.status.listing import Entry, state_word
from ralph.ui.status.report import Report

_TAIL = 256 * 1024
# The tasks that a run in that directory is for and that are not done; None where nobody can tell.
Ahead = Callable[[Run, str], frozenset[str] | None]
# What is likely left of a run, by its state and those of its workers; None where nobody can tell.
Likely = Callable[[Run, Started | None, RunState, Sequence[RunState]], Forecast | None]
Accounts = Callable[[Run], Account]  # who looks again and again need not read all of it each time


def reports_of(
    runs: list[Run], now: float, ahead: Ahead, likely: Likely = lambda *_: None
) -> list[Report]:
    """Everything about these runs; what their processes use is measured for all at once."""
    # What a worker's processes use is not known: they belong to the run that it works for.
    pids = {run.id: run.owner.pid for run in runs if run.owner and run.lead is None}
    trees = measure(list(pids.values()), time.sleep)
    reports = []
    for run in runs:
        at_work = workers_at(run.lead, account_of(run.lead).state) if run.lead else ()
        sent = next((sent.assignment for worker, sent in at_work if worker.id == run.id), None)
        report = report_of(run, now, trees.get(pids.get(run.id, 0)), sent=sent, ahead=ahead)
        workers = [worker.state for worker in report.workers]
        forecast = likely(run, report.started, report.state, workers)
        reports.append(replace(report, forecast=forecast))
    return reports


def report_of(
    run: Run,
    now: float,
    tree: ProcessTree | None = None,
    *,
    actions: bool = True,
    sent: Assignment | None = None,
    ahead: Ahead = lambda *_: None,
    accounts: Accounts = account_of,
) -> Report:
    """The report of a run. Whatever is wrong with it is part of that."""
    account = accounts(run)
    workers = tuple(
        report_of(worker, now, actions=actions, sent=assigned.assignment, accounts=accounts)
        for worker, assigned in workers_at(run, account.state)
    )
    last: tuple[str, ...] = ()
    if actions and (launch := account.launch) is not None:
        last = last_actions(launch.dialect, prompt_of(launch), read_tail(launch.stream, _TAIL))
    report = Report(
        run=run.id,
        directory=run.directory,
        journal=run.journal,
        now=now,
        state=account.state,
        started=account.started,
        doing=account.doing,
        heard_at=heard_at(account.doing),
        pid=run.owner.pid if run.owner else None,
        asked=run.asked(),
        last_actions=last,
        tree=tree.as_dict() if tree else None,
        problem=account.problem,
        sent=sent,
        workers=workers,
        asks=account.asks,
    )
    if not (report.is_crew and report.live):
        return report
    # How much is ahead of it stands in the list.
    assert report.started is not None
    return replace(report, ahead=ahead(run, report.started.workspace))


def heard_at(doing: object) -> float | None:
    """The time when the stream last grew; None while there is nothing in it."""
    if not isinstance(doing, Launching):
        return None
    try:
        found = os.stat(doing.stream)
    except OSError:
        return None
    return found.st_mtime if found.st_size else None


def entry_of(
    run: Run,
    now: float,
    costs: Callable[[str], Mapping[str, Sum]],
    accounts: Accounts = account_of,
) -> Entry:
    """The line about a run. Of one that goes on, all of the journal is read."""
    if run.owner is not None:
        report = report_of(run, now, actions=False, accounts=accounts)
        asks = report.asks
        spent, started = report.spent, report.started
        return Entry(
            run.id,
            state_word(report, asks),
            run.directory,
            started,
            report.state.stop,
            report.iteration,
            report.limits.iterations,
            spent.dollars or None,
            spent.uncounted,
            report.state.time or run.owner.since,
            asks,
            run.owner.pid,
            report.problem,
        )
    outline, cost = outline_of(run), costs(run.project).get(run.id)
    gone = Life.UNKNOWN if outline.problem else Life.CRASHED
    seen = lstat(run.directory)
    return Entry(
        run.id,
        outline.stop.reason.value if outline.stop else gone.value,
        run.directory,
        outline.started,
        outline.stop,
        outline.iterations,
        outline.most,
        (cost.cost_usd or None) if cost else None,
        cost.unknown if cost else 0,
        outline.time or (seen.st_mtime if seen else 0.0),
        problem=outline.problem,
    )
