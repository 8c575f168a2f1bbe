"""A run over a backlog: planned from flags, and kept for `ralph resume` (B)."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.errors import ConfigError
from ralph.files.state_dir import project_dir, state_root
from ralph.git.status import CleanLook
from ralph.journal.ledger import spent_today
from ralph.kernel.limits import Limits, least
from ralph.kernel.rules import Patience
from ralph.kernel.value import replace, value
from ralph.loops.backlog.gates.scripts import Runners
from ralph.loops.backlog.hooks import Hooks
from ralph.loops.backlog.parallel.worktrees import Worktrees
from ralph.loops.backlog.policy import Bounds
from ralph.loops.backlog.refusals import refuse_dirt, refuse_unusable
from ralph.loops.backlog.rules import DayLimit
from ralph.loops.backlog.store.selection import TaskBacklog, test_command_of
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.runner.invocation import AGENT_FLAGS, PLACE_FLAGS, Invocation, flag_overrides
from ralph.runner.kept import work_of
from ralph.runner.plan import Past, Plan
from ralph.runner.planning import PlanTerms, planned, sandboxed, wary_patience, with_fallbacks
from ralph.settings.load import Loaded, load
from ralph.settings.schema import Settings

if TYPE_CHECKING:
    from ralph.fleet.place import Fleet
    from ralph.loops.backlog.parallel.seat import Seat

_FLAGS = {
    **AGENT_FLAGS,
    **PLACE_FLAGS,
    "--max-iterations": "loop.maxIterationsPerTask",
    "--max-tasks": "loop.maxTasksPerRun",
    "--parallel": "loop.parallelism",
    "--fleet": "fleet.address",
    "--max-time": "loop.maxTimePerRun",
    "--max-cost": "loop.maxCostPerRun",
    "--on-failure": "loop.onFailure",
}
LIMITS = {  # for `ralph resume`
    "-m": ("loop.maxIterationsPerTask",),
    "--max-tasks": ("loop.maxTasksPerRun",),
    "--max-time": ("loop.maxTimePerRun", "maxTime"),
    "--max-cost": ("loop.maxCostPerRun", "maxCost"),
}
MONEY = ("loop.maxCostPerRun", "loop.maxCostPerTask", "loop.maxCostPerDay", "maxCost")


@value
class TaskWork:
    """The tasks of a run, and the bounds of what it may use."""

    backlog: TaskBacklog
    bounds: Bounds
    patience: Patience
    hooks: tuple[Hooks, ...] = ()  # of a program that uses the library
    seat: "Seat | None" = None  # of one worker, where several work on a backlog
    clean: CleanLook | None = None  # at the project, right before the run
    fleet: "Fleet | None" = None  # where its turns are taken; None: here

    def kept(self) -> dict[str, Any]:
        """The rest is in the settings."""
        return {"task": self.backlog.task, "tags": self.backlog.tags}


def read(invocation: Invocation) -> Plan[TaskWork]:
    """Check everything that can be checked before a run begins; nothing is made."""
    flags = invocation.flags
    loaded = load(invocation.workspace, flag_overrides(flags, _FLAGS))
    plan = _planned(invocation, loaded, flags["task"], tuple(flags["tag"]))
    refuse_unusable(plan.work.backlog, plan)
    clean = refuse_dirt(plan, allowed=flags["allow_dirty"])
    plan = replace(plan, work=replace(plan.work, clean=clean))
    if by_crew(plan):
        worktrees_of(plan).check()
    return sandboxed(plan)


def by_crew(plan: Plan[TaskWork]) -> bool:
    """True if each task has a work tree of its own, and a worker."""
    return plan.workers > 1 or is_apart(plan) or plan.work.fleet is not None


def is_apart(plan: Plan[TaskWork]) -> bool:
    """True if each task has a pull request that holds nothing else."""
    return plan.settings.pr.mode == "per-task"


def again(
    invocation: Invocation, loaded: Loaded, kept: Mapping[str, Any], past: Past
) -> Plan[TaskWork]:
    """The plan of a run that was begun before, unless a later run has worked on the tasks."""
    runs, run = os.path.split(past.directory)
    names = (name for name in os.listdir(runs) if name > run)
    later = [name for name in names if work_of(os.path.join(runs, name), "backlog") is not None]
    if later:
        message = f"run {run} cannot go on: {max(later)} has worked on the tasks since"
        raise ConfigError(message, "Start a new one: ralph tasks run")
    return sandboxed(_planned(invocation, loaded, kept["task"], tuple(kept["tags"]), run))


def _planned(
    invocation: Invocation, loaded: Loaded, task: str | None, tags: tuple[str, ...], run: str = ""
) -> Plan[TaskWork]:
    """`run` is the one that goes on; "" for a new one."""
    settings, here, environ = loaded.settings, invocation.workspace, invocation.environ
    if settings.sandbox is None:  # a backlog is worked through in one by default (ADR 26)
        settings = msgspec.structs.replace(settings, sandbox="auto")
        loaded = msgspec.structs.replace(loaded, settings=settings)
    workers, mode = 1 if task is not None else settings.loop.parallelism, settings.pr.mode
    away = settings.fleet.address not in (None, "none")
    if (workers > 1 or away) and mode in ("stacked", "per-run"):
        message = f"--pr {mode} is one branch, on which one task follows the other"
        one = "Leave out --fleet" if away else "Take --parallel 1"
        raise ConfigError(message, f"{one}, or: --pr per-task")
    if mode is None and settings.ci.enabled:
        raise ConfigError("CI answers to commits that are pushed", "Add --pr per-task, or: --no-ci")
    fresh = workers > 1 or away or mode == "per-task" or settings.proof == "clean"
    # In a new worktree the user's own command may install what runs the checks of tasks.
    unknown = fresh and settings.loop.setup is not None
    runners = None if unknown else Runners(environ, here, fresh=fresh)
    backlog = TaskBacklog(TaskFile(here), task, tags, runners, test_command_of(loaded))
    spent = spent_today(project_dir(state_root(environ), here), run)
    hooks = invocation.flags.get("hooks", ())
    work = TaskWork(backlog, bounds_of(settings, spent), wary_patience(loaded), hooks)
    elsewhere = away and settings.fleet.address != "local"
    terms = PlanTerms("Fix it and run again.", MONEY, elsewhere=elsewhere)
    plan = planned("backlog", work, invocation, loaded, backlog, terms=terms)
    briefing = replace(plan.briefing, iterations=work.bounds.task.iterations, tasks=True)
    limits = replace(work.bounds.run, tasks=work.bounds.tasks)  # the day's are not its own
    plan = replace(plan, limits=limits, briefing=briefing, workers=workers)
    plan = with_fallbacks(plan, invocation, terms)
    return replace(plan, work=replace(plan.work, fleet=_fleet(plan)))


def _fleet(plan: Plan[TaskWork]) -> "Fleet | None":
    if plan.settings.fleet.address is None:
        return None  # most runs have no need of it
    from ralph.fleet.place import fleet_of

    return fleet_of(plan.loaded, plan.workspace, plan.environ, plan.command[0])


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


def worktrees_of(plan: Plan[TaskWork]) -> Worktrees:
    """The work trees of this project's workers."""
    return Worktrees(plan.home, plan.environ, os.path.join(plan.project, "worktrees"))
