"""`ralph tasks run` as a loop: a run over a backlog, or a worker's over its one task (B)."""

import os
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

from ralph.journal.recovery import History
from ralph.kernel.facts import Assigned, Began
from ralph.kernel.ports import Policy, TodaysRules
from ralph.kernel.rules import UsedUp
from ralph.kernel.value import replace
from ralph.kernel.verdict import Reason
from ralph.loops.backlog.ahead import answered, listed
from ralph.loops.backlog.parts import parts_of
from ralph.loops.backlog.plan import (
    LIMITS,
    TaskWork,
    again,
    bounds_of,
    by_crew,
    read,
    worktrees_of,
)
from ralph.loops.backlog.policy import Settlement, tasks
from ralph.loops.backlog.published import publishing_of
from ralph.loops.backlog.refusals import backlog_notes
from ralph.loops.backlog.reopening import reopened
from ralph.loops.backlog.rules import DayLimit
from ralph.loops.backlog.store.records import Records, efforts_at
from ralph.loops.backlog.store.watch import TaskListGate
from ralph.runner.carry_out import carry_out
from ralph.runner.invocation import Invocation
from ralph.runner.plan import InForce, Loop, Plan
from ralph.runner.planning import wary_patience
from ralph.runner.wired import RunContext, Wired
from ralph.settings.load import Loaded

OF_DAY = "it looked at what other runs had spent on that day"
_NOBODY = cast("Settlement", None)  # settles what is only looked at


def wire(plan: Plan[TaskWork], run: RunContext) -> Wired:
    """A run over a backlog in its workspace, or a worker's over its one task."""
    if plan.work.seat is not None:
        # Most runs have no need of it.
        from ralph.loops.backlog.parallel.wiring import wire_worker

        return wire_worker(plan, run, plan.work.seat)
    parts = parts_of(plan, run)
    policy = tasks(
        parts.settlement,
        plan.work.bounds,
        patience=plan.work.patience,
        gates=(*parts.looks, *parts.executed),
        law=(*parts.place.law(always=True), TaskListGate(parts.settlement.watch)),
        about=parts.about,
        publishing=publishing_of(plan, run, parts.place.law(always=True)),
    )
    notes = reopened(plan, run.directory, run.before)
    notes += [*backlog_notes(plan, run.before, run.directory), *parts.place.finish_landing()]
    above = os.path.join(plan.project, "worktrees")
    if os.path.isdir(above) and os.listdir(above):  # of workers of a killed run
        notes += worktrees_of(plan).put_away(plan.work.backlog.file, run.directory)
    parts.settlement.work.begin(plan.work.clean, anew=run.before.has_ended)
    parts.settlement.work.trees.hold()
    return parts.wired(policy, notes)


def policy(loaded: Loaded) -> Policy:
    """The policy by the settings alone; nothing is settled by it."""
    return tasks(_NOBODY, bounds_of(loaded.settings), patience=wary_patience(loaded))


def rejudges(terms: InForce) -> TodaysRules:
    """The rules that judge a run again: alone, as the lead of workers, or as one of them. What
    others had spent, or were doing at that moment, no fact of its own tells."""
    bounds = bounds_of(terms.loaded.settings)
    most = bounds.tasks if terms.limits.tasks is None else terms.limits.tasks
    bounds = replace(bounds, run=replace(terms.limits, tasks=None), tasks=most)
    patience = wary_patience(terms.loaded)
    if terms.leads or terms.lead:
        # Most runs have no need of it.
        from ralph.loops.backlog.parallel.policy import todays_rules

        return todays_rules(_NOBODY, bounds, patience, is_worker=bool(terms.lead))
    beyond = dict.fromkeys((DayLimit.__name__, UsedUp.__name__), OF_DAY) if bounds.day else {}
    bounds = replace(bounds, day=None)
    return TodaysRules(tasks(_NOBODY, bounds, patience=patience), beyond)


def first(plan: Plan[TaskWork]) -> Policy:
    """The policy of a first turn that is only shown."""
    about = partial(plan.work.backlog.material, Records(plan.workspace, ""))
    return tasks(_NOBODY, plan.work.bounds, patience=plan.work.patience, about=about)


def by_one_or_many(
    invocation: Invocation, plan: Plan[TaskWork], run_dir: str, history: History
) -> Reason:
    """One task at a time, or several, each by a worker of its own. A run in the middle of its tasks
    goes on as it began, whatever its settings say now."""
    first = next((fact for fact in history.facts if isinstance(fact, Assigned | Began)), None)
    if first is None or history.state.has_ended:
        is_crew = by_crew(plan)
    else:
        is_crew = isinstance(first, Assigned)
    if not is_crew:
        return carry_out(invocation, plan, run_dir, history)
    # Most runs have no need of it.
    from ralph.loops.backlog.parallel.run import carry_out_by_crew

    return carry_out_by_crew(invocation, plan, run_dir, history)


def about(kept: Mapping[str, Any]) -> str:
    """The tasks that were chosen."""
    if kept["task"]:
        return f"the task {kept['task']}"
    tags = " or ".join(kept["tags"])
    return "the tasks in .ralph/tasks.jsonl" + (f" with the tag {tags}" if tags else "")


LOOP = Loop(
    read,
    again,
    wire,
    policy,
    first,
    none_first=("no task can be started", "Look at them: ralph tasks list"),
    about=about,
    tasks=lambda kept, workspace: listed(kept, workspace) or (),
    efforts=efforts_at,
    answer=answered,
    limits=LIMITS,
    supersedes=True,
    commits=True,
    carry_out=by_one_or_many,
    rejudges=rejudges,
)
