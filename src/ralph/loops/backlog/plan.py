"""A run over a backlog: planned from flags, and kept for `ralph resume` (B)."""

import os
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from ralph.errors import ConfigError
from ralph.files.state_dir import project_dir, state_root
from ralph.journal.ledger import read_ledger
from ralph.journal.spending import total
from ralph.kernel.limits import Limits, least
from ralph.kernel.patience import Patience
from ralph.kernel.value import replace, value
from ralph.loops.backlog.gates.script_runners import Runners
from ralph.loops.backlog.hooks import Hooks
from ralph.loops.backlog.parallel.seat import Seat
from ralph.loops.backlog.parallel.worktrees import Worktrees
from ralph.loops.backlog.policy import Bounds
from ralph.loops.backlog.refusals import refuse_dirt, refuse_unusable
from ralph.loops.backlog.rules import DayLimit
from ralph.loops.backlog.store.selection import TaskBacklog
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.runner.invocation import AGENT_FLAGS, PLACE_FLAGS, Invocation, flag_overrides
from ralph.runner.kept import kept_work
from ralph.runner.plan import Plan, PlanTerms, planned, wary_patience
from ralph.runner.sandboxing import sandboxed
from ralph.settings.load import Loaded, load
from ralph.settings.schema import Settings

_FLAGS = {
    **AGENT_FLAGS,
    **PLACE_FLAGS,
    "--max-iterations": "loop.maxIterationsPerTask",
    "--max-tasks": "loop.maxTasksPerRun",
    "--parallel": "loop.parallelism",
    "--max-time": "loop.maxTimePerRun",
    "--max-cost": "loop.maxCostPerRun",
    "--on-failure": "loop.onFailure",
}
MONEY = ("loop.maxCostPerRun", "loop.maxCostPerTask", "loop.maxCostPerDay", "maxCost")


@value
class TaskWork:
    """The tasks of a run, and the bounds of what it may use."""

    backlog: TaskBacklog
    bounds: Bounds
    patience: Patience
    hooks: tuple[Hooks, ...] = ()  # of a program that uses the library
    seat: Seat | None = None  # of one worker, where several work on a backlog

    def kept(self) -> dict[str, Any]:
        """The rest is in the settings."""
        day, chosen = self.bounds.day, self.backlog
        return {"task": chosen.task, "tags": chosen.tags, "spent": day.before if day else 0.0}


def read(invocation: Invocation) -> Plan[TaskWork]:
    """Check everything that can be checked before a run begins; nothing is made."""
    flags = invocation.flags
    loaded = load(invocation.workspace, flag_overrides(flags, _FLAGS))
    plan = _planned(invocation, loaded, flags["task"], tuple(flags["tag"]), None)
    refuse_unusable(plan.work.backlog, plan)
    refuse_dirt(plan, allowed=flags["allow_dirty"])
    if plan.workers > 1:
        worktrees_of(plan).check()
    return sandboxed(plan)


def again(
    invocation: Invocation, loaded: Loaded, kept: Mapping[str, Any], run_dir: str
) -> Plan[TaskWork]:
    """The plan of a run that was begun before. What came after it has the last word: the task it
    was at may be done by now."""
    run, runs = os.path.basename(run_dir), os.path.dirname(run_dir)
    names = (name for name in os.listdir(runs) if name > run)
    later = [name for name in names if kept_work(os.path.join(runs, name), "backlog") is not None]
    if later:
        message = f"run {run} cannot go on: {max(later)} has worked on the tasks since"
        raise ConfigError(message, "Start a new one: ralph tasks run")
    chosen = kept["task"], tuple(kept["tags"])
    return sandboxed(_planned(invocation, loaded, *chosen, float(kept["spent"])))


def _planned(
    invocation: Invocation,
    loaded: Loaded,
    task: str | None,
    tags: tuple[str, ...],
    spent: float | None,
) -> Plan[TaskWork]:
    """`spent` is what the day had cost when the run began; None for one that begins now."""
    loaded, parallel = _defaults(loaded), loaded.settings.loop.parallelism
    runners = _runners(invocation, loaded.settings, one_by_one=task is not None)
    backlog = TaskBacklog(TaskFile(invocation.workspace), task, tags, runners)
    if spent is None:
        spent = _spent_today(invocation)
    hooks = invocation.flags.get("hooks", ())
    work = TaskWork(backlog, bounds_of(loaded.settings, spent), wary_patience(loaded), hooks)
    terms = PlanTerms("Mend it, then run again.", MONEY)
    plan = planned("backlog", work, invocation, loaded, backlog, terms=terms)
    most = work.bounds.task.iterations
    return replace(
        plan,
        limits=work.bounds.within,
        briefing=replace(plan.briefing, iterations=most, tasks=True),
        workers=1 if task is not None else parallel,
    )


def _runners(invocation: Invocation, settings: Settings, *, one_by_one: bool) -> Runners | None:
    """Runners for the checks of tasks. None where they are not known before a turn: the user's own
    command may install them in a new worktree."""
    beside = settings.loop.parallelism > 1 and not one_by_one
    fresh = beside or settings.proof == "clean"
    if fresh and settings.loop.setup is not None:
        return None
    return Runners(invocation.environ, invocation.workspace, fresh=fresh)


def _defaults(loaded: Loaded) -> Loaded:
    """A backlog is worked through in a sandbox, unless someone says otherwise (ADR 26)."""
    if loaded.settings.sandbox is not None:
        return loaded
    settings = msgspec.structs.replace(loaded.settings, sandbox="auto")
    return msgspec.structs.replace(loaded, settings=settings)


def bounds_of(settings: Settings, spent: float = 0.0) -> Bounds:
    """The bounds of one task, the run and the day, by the settings."""
    loop = settings.loop
    day = None if loop.max_cost_per_day is None else DayLimit(loop.max_cost_per_day, spent)
    return Bounds(
        Limits(loop.max_iterations_per_task, loop.max_time_per_task, loop.max_cost_per_task),
        Limits(
            None,
            least(loop.max_time_per_run, settings.max_time),
            least(loop.max_cost_per_run, settings.max_cost),
        ),
        loop.max_tasks_per_run,
        day,
        stop_on_failure=loop.on_failure == "stop",
    )


def _spent_today(invocation: Invocation) -> float:
    """The cost of runs here since midnight."""
    today = time.localtime()[:3]
    entries = read_ledger(project_dir(state_root(invocation.environ), invocation.workspace))
    return total(e for e in entries if time.localtime(e.time)[:3] == today).cost_usd


def worktrees_of(plan: Plan[TaskWork]) -> Worktrees:
    """The work trees of this project's workers."""
    return Worktrees(plan.home, plan.environ, os.path.join(plan.project, "worktrees"))
