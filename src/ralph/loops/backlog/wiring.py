"""A run over a backlog, wired to its workspace (B)."""

import os

from ralph.loops.backlog.gates.task_list import TaskListGate
from ralph.loops.backlog.parallel.wiring import wire_worker
from ralph.loops.backlog.parallel.worktrees import Leftovers
from ralph.loops.backlog.parts import parts_of
from ralph.loops.backlog.plan import TaskWork, worktrees_of
from ralph.loops.backlog.policy import tasks
from ralph.runner.money import uncounted
from ralph.runner.permissions import permission_notes
from ralph.runner.plan import Plan
from ralph.runner.wired import RunContext, Wired

_MOST_SHOWN = 10


def backlog_notes(plan: Plan[TaskWork]) -> list[str]:
    """Notes on the open tasks, the sandbox, the money, and what is wrong with the list."""
    listing = plan.work.backlog.file.read()
    problems = [f"tasks.jsonl: {problem}" for problem in listing.problems[:_MOST_SHOWN]]
    if len(listing.problems) > _MOST_SHOWN:
        problems.append(f"and {len(listing.problems) - _MOST_SHOWN} more: ralph tasks list")
    chosen = [t for t in plan.backlog().tasks if not t.aside]
    ready = sum(task.open for task in chosen)
    refused = [f"{t.id} is not begun: {t.uncheckable}." for t in chosen if t.uncheckable and t.open]
    problems += refused[:_MOST_SHOWN]
    tags = plan.work.backlog.tags
    if not chosen and tags:
        problems.append(f"No task has the tag {' or '.join(tags)}.")
    sandbox = [plan.sandbox.words()] if plan.sandbox else []
    sandbox += permission_notes(plan)
    workers = f", {plan.workers} at a time" if plan.workers > 1 else ""
    tasks = f"Tasks: {ready} open of {len(chosen)}{workers}"
    return [tasks, *sandbox, *_money_notes(plan), *problems]


def _money_notes(plan: Plan[TaskWork]) -> list[str]:
    """The limits of money that nobody has set, where nobody can keep to them (ADR 22)."""
    name, priced = os.path.basename(plan.command[0]), plan.prices is not None
    why = uncounted(plan.settings, plan.module, name, plan.kind, priced=priced)
    if why is None:
        return []
    bounds = plan.work.bounds
    limits = f"${bounds.task.dollars:g} a task and ${bounds.run.dollars:g} a run"
    words = f"Money is not limited: {why[0]}, so {limits} cannot be kept to; time and turns can"
    return [f"{words}. {why[1]}" if plan.module.REPORTS else f"{words}."]


def wire(plan: Plan[TaskWork], run: RunContext) -> Wired:
    """A run over a backlog in its workspace, or a worker's over its one task."""
    if plan.work.seat is not None:
        return wire_worker(plan, run, plan.work.seat)
    parts = parts_of(plan, run)
    bench = parts.bench
    policy = tasks(
        bench,
        plan.work.bounds,
        patience=plan.work.patience,
        gates=(*parts.looks, *parts.executed),
        law=(*parts.place.law(always=True), TaskListGate(bench.watch)),
        about=parts.about,
    )
    notes = [*backlog_notes(plan), *parts.place.finish_landing(), *_leftovers(plan, run)]
    parts.work.begin()
    return parts.wired(policy, notes)


def _leftovers(plan: Plan[TaskWork], run: RunContext) -> list[str]:
    """Put away what workers of a killed run had not merged; what was done, in words."""
    above = os.path.join(plan.project, "worktrees")
    if not os.path.isdir(above) or not os.listdir(above):
        return []
    trees, file = worktrees_of(plan), plan.work.backlog.file
    return list(Leftovers(trees, file, plan.environ, run.directory).put_away())
