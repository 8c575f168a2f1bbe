"""A run over a backlog: planned from flags, and kept for `ralph resume` (B)."""

import json
import os
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from ralph.adapters.checkpoint import WorkTree
from ralph.adapters.files import project_dir
from ralph.adapters.ledger import read_ledger
from ralph.adapters.notify import notify_problem
from ralph.adapters.run_trees import made_by_checks
from ralph.adapters.runners import Runners
from ralph.adapters.task_backlog import TaskBacklog
from ralph.adapters.task_file import TaskFile
from ralph.adapters.task_records import Records
from ralph.cli.planning import (
    AGENT_FLAGS,
    PLAN,
    Invocation,
    Plan,
    flag_overrides,
    planned,
    sandboxed,
)
from ralph.cli.wiring import wary_patience
from ralph.core.case import Case
from ralph.core.ledger import total
from ralph.core.limits import Limits, least
from ralph.core.rules_tasks import DayLimit
from ralph.core.select import next_task
from ralph.core.state import NEW
from ralph.core.value import replace, value
from ralph.core.verdict import Boundary, Reason
from ralph.core.words import listed
from ralph.errors import ConfigError
from ralph.profiles.shared import Patience
from ralph.profiles.tasks import Bounds, Compose, task_allowance
from ralph.settings.load import Loaded, load
from ralph.settings.schema import Settings
from ralph.ui.clean import one_line

_FLAGS = {
    **AGENT_FLAGS,
    "--max-iterations": "loop.maxIterationsPerTask",
    "--max-tasks": "loop.maxTasksPerRun",
    "--parallel": "loop.parallelism",
    "--max-time": "loop.maxTimePerRun",
    "--max-cost": "loop.maxCostPerRun",
    "--on-failure": "loop.onFailure",
    "--max-wait": "maxWait",
    "--sandbox": "sandbox",
    "--network": "network",
    "--sandbox-show": "sandboxShow",
    "--guard": "guard.enabled",
}
MONEY = ("loop.maxCostPerRun", "loop.maxCostPerTask", "loop.maxCostPerDay", "maxCost")
_NO_TASKS = 'Add one: ralph tasks add "Build the login page"'
_MOST_SHOWN = 10


@value
class TaskWork:
    """Which tasks a run is for, and how much it may use."""

    task: str | None
    tags: tuple[str, ...]
    bounds: Bounds
    patience: Patience
    workers: int = 1  # how many tasks are worked on at once

    def kept(self) -> dict[str, Any]:
        """As JSON, for a run that goes on after a crash; the rest is in the settings."""
        day = self.bounds.day
        return {"task": self.task, "tags": self.tags, "spent": day.before if day else 0.0}


def plan_tasks(invocation: Invocation) -> Plan:
    """Check everything that can be checked before a run begins; nothing is made."""
    flags = invocation.flags
    loaded = load(invocation.workspace, flag_overrides(flags, _FLAGS))
    plan = _planned(invocation, loaded, flags["task"], tuple(flags["tag"]))
    _refuse_unusable(plan)
    spent = _spent_today(plan)
    plan = _with_work(plan, flags["task"], tuple(flags["tag"]), spent)
    _refuse_dirt(plan, allowed=flags["allow_dirty"])
    if plan.tasks is not None and plan.tasks.workers > 1:
        from ralph.cli.crew import worktrees_of

        worktrees_of(plan).check()
    return sandboxed(plan)


def plan_again(
    invocation: Invocation, loaded: Loaded, kept: Mapping[str, Any], run_dir: str
) -> Plan:
    """The plan of a run that was begun before. What came after it has the last word: the task it
    was at may be done by now."""
    run, runs = os.path.basename(run_dir), os.path.dirname(run_dir)
    later = [name for name in os.listdir(runs) if name > run and is_of_tasks(runs, name)]
    if later:
        message = f"run {run} cannot go on: {max(later)} has worked on the tasks since"
        raise ConfigError(message, "Start a new one: ralph tasks run")
    task, tags = kept["task"], tuple(kept["tags"])
    plan = _planned(invocation, loaded, task, tags)
    return sandboxed(_with_work(plan, task, tags, float(kept["spent"])))


def _planned(
    invocation: Invocation, loaded: Loaded, task: str | None, tags: tuple[str, ...]
) -> Plan:
    runners = _runners(invocation, loaded.settings, one_by_one=task is not None)
    backlog = TaskBacklog(TaskFile(invocation.workspace), task, tags, runners)
    return planned(invocation, _defaults(loaded), backlog, "Mend it, then run again.", MONEY)


def _runners(invocation: Invocation, settings: Settings, *, one_by_one: bool) -> Runners | None:
    """What may run the checks of tasks. None where that is not known before a turn: what the user's
    own command installs in a new worktree."""
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


def _with_work(plan: Plan, task: str | None, tags: tuple[str, ...], spent: float) -> Plan:
    patience, bounds = wary_patience(plan.loaded), bounds_of(plan.settings, spent)
    workers = 1 if task is not None else plan.settings.loop.parallelism
    return replace(plan, tasks=TaskWork(task, tags, bounds, patience, workers))


def bounds_of(settings: Settings, spent: float = 0.0) -> Bounds:
    """How much one task, the run and the day may use, by the settings."""
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


def is_of_tasks(runs: str, name: str) -> bool:
    """Whether that run was over a backlog."""
    try:
        with open(os.path.join(runs, name, PLAN), encoding="utf-8") as file:
            return "tasks" in json.load(file)
    except (OSError, ValueError, TypeError):
        return False


def _spent_today(plan: Plan) -> float:
    """What runs here have cost since midnight."""
    today = time.localtime()[:3]
    entries = read_ledger(project_dir(plan.state_root, plan.workspace))
    return total(e for e in entries if time.localtime(e.time)[:3] == today).cost_usd


def _refuse_unusable(plan: Plan) -> None:
    """What no turn could mend."""
    assert isinstance(plan.backlog, TaskBacklog)
    backlog = plan.backlog
    listing = backlog.file.read()
    if not listing.backlog.tasks:
        where = os.path.relpath(backlog.file.path, plan.workspace)
        if listing.problems:
            raise ConfigError(f"{where}: {listing.problems[0]}", "Mend it, then run again.")
        if not os.path.exists(backlog.file.path):
            raise ConfigError(f"there are no tasks here: {where} is not there", _NO_TASKS)
    if backlog.task is not None and listing.backlog.get(backlog.task) is None:
        raise backlog.file.refusal(backlog.task)
    left = [task for task in backlog().tasks if task.open]
    if left and all(task.uncheckable for task in left):
        why = f"{left[0].id} could not be proven: {left[0].uncheckable}"
        raise ConfigError(why, "Install one of them, then run again.")
    problem = notify_problem(plan.settings.notify.urls)
    if problem is not None:
        raise problem


def _refuse_dirt(plan: Plan, *, allowed: bool) -> None:
    """A person's work that is not committed could not be told from a task's."""
    work = WorkTree(plan.workspace, plan.environ, os.path.join(plan.project, "runs", "none-yet"))
    work.check()
    dirty = _without_checks_own(work, plan)
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


def _without_checks_own(work: WorkTree, plan: Plan) -> tuple[str, ...]:
    """What is not committed, but for new files that only gates of earlier runs have made: they were
    left out of commits, and are no person's."""
    dirty = work.dirty()
    made = made_by_checks(os.path.join(plan.project, "runs")) if dirty else frozenset()
    prefix = os.path.relpath(work.workspace, work.repository.place.top)
    names = {path: os.path.normpath(os.path.join(prefix, path)) for path in dirty}
    ours = {p for p, name in names.items() if name in made}
    known = {p for p in ours if work.repository.resolve(f"HEAD:{names[p]}")}
    return tuple(path for path in dirty if path not in ours - known)


def _unfinished(plan: Plan) -> str:
    """The last run here, if it was over the backlog and could go on."""
    from ralph.adapters.runs import account_of, runs_of

    last = next(iter(runs_of(plan.project)), None)
    if last is None or last.owner is not None:
        return ""
    account = account_of(last)
    stop = account.state.stop
    over = stop is not None and stop.reason is not Reason.INTERRUPTED
    of_tasks = account.started is not None and account.started.profile == "tasks"
    return "" if over or not of_tasks else last.id


def show_next(invocation: Invocation, plan: Plan) -> int:
    """`--dry-run`: the prompt and the command of the first turn, if there is one."""
    from ralph.cli.loop import show_order

    assert plan.tasks is not None
    assert isinstance(plan.backlog, TaskBacklog)
    now = time.time()
    opening = Case(Boundary.OPENING, NEW, now, backlog=plan.backlog())
    assignment = next_task(opening)
    if assignment is None:
        raise ConfigError("no task can be started", "Look at them: ralph tasks list")
    state = replace(NEW, iteration=1, task_iteration=1, assignment=assignment)
    about = partial(plan.backlog.material, Records(plan.workspace, ""))
    case = replace(opening, boundary=Boundary.WATCHING, state=state)
    bounds = plan.tasks.bounds
    allowed = task_allowance(bounds, plan.tasks.patience)(case)
    return show_order(invocation, plan, Compose(about, bounds.task)(case), allowed)
