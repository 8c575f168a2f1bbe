"""Refusals and notes before a run over a backlog begins."""

import os
from typing import Any

from ralph.errors import ConfigError
from ralph.git import under_way
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.trees import made_by_checks
from ralph.git.status import CleanLook
from ralph.kernel.state import RunState
from ralph.kernel.verdict import Reason
from ralph.loops.backlog.store.selection import TaskBacklog
from ralph.runner.agent_setup import permission_notes
from ralph.runner.money import uncounted
from ralph.runner.plan import Plan
from ralph.runner.showing.forecasts import first_words
from ralph.text.plain import one_line
from ralph.text.words import listed

_NO_TASKS = 'Add one: ralph tasks add "Build the login page"'
_MOST_SHOWN = 10


def refuse_unusable(backlog: TaskBacklog, plan: Plan[Any]) -> None:
    """Refuse what no turn could fix."""
    listing = backlog.file.read()
    if not listing.backlog.tasks:
        where = os.path.relpath(backlog.file.path, plan.workspace)
        if listing.problems:
            raise ConfigError(f"{where}: {listing.problems[0]}", "Fix it and run again.")
        if not os.path.exists(backlog.file.path):
            raise ConfigError(f"there are no tasks here: {where} is not there", _NO_TASKS)
    if backlog.task is not None and listing.backlog.get(backlog.task) is None:
        raise backlog.file.refusal(backlog.task)
    left = [task for task in backlog().tasks if task.open]
    if left and all(task.uncheckable for task in left):
        why = f"{left[0].id} could not be proven: {left[0].uncheckable}"
        raise ConfigError(why, "Install one of them, then run again.")


def refuse_dirt(plan: Plan[Any], *, allowed: bool) -> CleanLook | None:
    """Refuse uncommitted work, which could not be told from a task's; else return the look."""
    work = WorkTree(plan.workspace, plan.environ, os.path.join(plan.project, "runs", "none-yet"))
    under_way.check(work.repository)
    dirty = _without_checks_own(work, plan)
    if work.clean is None:
        under_way.refuse_conflicts(work.repository)
    if dirty and (run := _unfinished(plan)):
        raise ConfigError(
            f"run {run} did not end, and may have left changes: {one_line(listed(dirty, 5))}",
            "Go on with it: ralph resume\nOr commit what is there, or put it aside (git stash -u).",
        )
    if dirty and not allowed:
        lines = "".join(f"\n  {one_line(path)}" for path in dirty[:_MOST_SHOWN])
        more = f"\n  and {len(dirty) - _MOST_SHOWN} more" if len(dirty) > _MOST_SHOWN else ""
        raise ConfigError(
            f"the work tree has changes that are not committed:{lines}{more}",
            "Commit them, or put them aside (git stash -u), or work beside them: --allow-dirty\n"
            "If a run left them: ralph resume",
        )
    return work.clean


def backlog_notes(plan: Plan[Any], before: RunState, run_dir: str) -> list[str]:
    """Notes on the open tasks and what they will likely take, the sandbox, the money, and what is
    wrong with the list. `before` is where the run goes on."""
    backlog, bounds = plan.work.backlog, plan.work.bounds
    chosen = [t for t in backlog().tasks if not t.aside]
    ready = sum(task.open for task in chosen)
    workers = f", {plan.workers} at a time" if plan.workers > 1 else ""
    notes = [f"Tasks: {ready} open of {len(chosen)}{workers}"]
    notes += first_words(plan, os.path.basename(run_dir), before)
    notes += [plan.sandbox.words()] if plan.sandbox else []
    notes += permission_notes(plan)
    # Limits of money that nobody has set, where nobody can keep to them (ADR 22).
    for one in plan.agents:
        name, priced = os.path.basename(one.command[0]), one.prices is not None
        why = uncounted(one.settings, one.cli, name, one.kind, priced=priced)
        if why is None:
            continue
        limits = f"${bounds.task.dollars:g} a task and ${bounds.run.dollars:g} a run"
        remedy = f" {why[1]}" if one.cli.reports else ""
        words = f"{why[0]}, so {limits} cannot be kept to; time and turns can.{remedy}"
        notes.append(f"Money is not limited: {words}")
        break
    problems = backlog.file.read().problems
    notes += [f"tasks.jsonl: {problem}" for problem in problems[:_MOST_SHOWN]]
    if len(problems) > _MOST_SHOWN:
        notes.append(f"and {len(problems) - _MOST_SHOWN} more: ralph tasks list")
    refused = [f"{t.id} is not begun: {t.uncheckable}." for t in chosen if t.uncheckable and t.open]
    notes += refused[:_MOST_SHOWN]
    if not chosen and backlog.tags:
        notes.append(f"No task has the tag {' or '.join(backlog.tags)}.")
    return notes


def _without_checks_own(work: WorkTree, plan: Plan[Any]) -> tuple[str, ...]:
    """Uncommitted paths, without new files that only gates of earlier runs have made."""
    dirty = work.dirty()
    made = made_by_checks(os.path.join(plan.project, "runs")) if dirty else frozenset()
    prefix = os.path.relpath(work.workspace, work.repository.place.top)
    names = {path: os.path.normpath(os.path.join(prefix, path)) for path in dirty}
    ours = {p for p, name in names.items() if name in made}
    known = {p for p in ours if work.repository.resolve(f"HEAD:{names[p]}")}
    return tuple(path for path in dirty if path not in ours - known)


def _unfinished(plan: Plan[Any]) -> str:
    """The last run here, if it was over the backlog and could go on."""
    from ralph.journal.runs import account_of, runs_of

    last = next(iter(runs_of(plan.project)), None)
    if last is None or last.owner is not None:
        return ""
    account = account_of(last)
    stop = account.state.stop
    over = stop is not None and stop.reason is not Reason.INTERRUPTED
    of_tasks = account.started is not None and account.started.profile == "tasks"
    return "" if over or not of_tasks else last.id
