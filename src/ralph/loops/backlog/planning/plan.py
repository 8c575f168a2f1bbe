"""A plan of a run that proposes tasks: read from flags, and kept for `ralph resume`."""

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from ralph.errors import ConfigError
from ralph.files.state_dir import project_dir, state_root
from ralph.git import under_way
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.repository import is_repository
from ralph.journal.ledger import spent_today
from ralph.kernel.limits import Limits
from ralph.kernel.tasks.task import Backlog, Task
from ralph.kernel.value import replace, value
from ralph.loops.backlog.plan import bounds_of
from ralph.loops.backlog.planning.prompt import Wish, plan_prompt
from ralph.loops.backlog.planning.proposal import GOAL
from ralph.loops.backlog.rules import DayLimit
from ralph.loops.backlog.store.selection import test_command_of
from ralph.loops.backlog.store.task_file import TaskFile, next_id
from ralph.runner.invocation import AGENT_FLAGS, SANDBOX_FLAGS, Invocation, flag_overrides
from ralph.runner.plan import Past, Plan
from ralph.runner.planning import PlanTerms, planned, sandboxed, with_fallbacks
from ralph.settings.load import Loaded, load
from ralph.settings.schema import Settings

_FLAGS = {
    **AGENT_FLAGS,
    **SANDBOX_FLAGS,
    "--max-time": "maxTime",
    "--max-cost": "maxCost",
}
LIMITS = {"--max-time": ("maxTime",), "--max-cost": ("maxCost",)}  # for `ralph resume`
_MONEY = ("maxCost", "loop.maxCostPerDay")
_TITLE = 80  # characters


@value
class Planning:
    """What is to be planned, beside the tasks there are."""

    wish: Wish
    file: TaskFile
    test_command: str
    day: DayLimit | None = None

    def kept(self) -> dict[str, Any]:
        """The rest is in the settings."""
        return {"goal": self.wish.goal, "spec": self.wish.spec, "name": self.wish.name}

    def __call__(self) -> Backlog:
        """The goal as the one task, and the others as they are now, put aside."""
        listing = self.file.read().backlog
        if listing.problem:
            return listing
        first = next_id(listing.known)
        prompt = plan_prompt(
            self.wish, listing.tasks, (first, next_id((first,))), self.test_command
        )
        goal = Task(GOAL, self.wish.goal.strip().splitlines()[0][:_TITLE], prompt)
        aside = (replace(task, aside=True) for task in listing.tasks)
        return Backlog((goal, *aside))


def read(invocation: Invocation) -> Plan[Planning]:
    """Check everything that can be checked before the agent is asked; nothing is made."""
    flags = invocation.flags
    loaded = load(invocation.workspace, flag_overrides(flags, _FLAGS))
    return _plan(invocation, loaded, flags["wish"])


def again(
    invocation: Invocation, loaded: Loaded, kept: Mapping[str, Any], past: Past
) -> Plan[Planning]:
    """The plan of a run that was begun before, beside the tasks there are now."""
    wish = Wish(kept["goal"], kept["spec"], kept["name"])
    return _plan(invocation, loaded, wish, os.path.basename(past.directory))


def _plan(invocation: Invocation, loaded: Loaded, wish: Wish, run: str = "") -> Plan[Planning]:
    settings = loaded.settings
    # As for the tasks themselves (ADR 26). No check is run.
    settings = msgspec.structs.replace(
        settings, sandbox=settings.sandbox or "auto", guardrails=(), proof="tree"
    )
    loaded = msgspec.structs.replace(loaded, settings=settings)
    here = invocation.workspace
    project = project_dir(state_root(invocation.environ), here)
    day = bounds_of(settings, spent_today(project, run)).day
    work = Planning(wish, TaskFile(here), test_command_of(loaded), day)
    terms = PlanTerms("Fix it and plan again.", _MONEY)
    plan = planned("plan", work, invocation, loaded, work, terms=terms)
    briefing = replace(plan.briefing, iterations=None, planning=True)
    plan = replace(plan, limits=limits_of(settings), briefing=briefing)
    plan = sandboxed(with_fallbacks(plan, invocation, terms))
    if not throws_away(plan):
        _refuse_no_way_back(plan)
    return plan


def limits_of(settings: Settings) -> Limits:
    """Those that are given, else those of a task; its turns are counted apart."""
    loop = settings.loop
    return Limits(
        None,
        loop.max_time_per_task if settings.max_time is None else settings.max_time,
        loop.max_cost_per_task if settings.max_cost is None else settings.max_cost,
    )


def throws_away(plan: Plan[Planning]) -> bool:
    """True if the sandbox keeps what a turn changes from the project."""
    return plan.sandbox is not None and plan.sandbox.can.rollback


def _refuse_no_way_back(plan: Plan[Planning]) -> None:
    """Refuse to plan where nobody could undo what the agent changes."""
    if not is_repository(plan.workspace):
        raise ConfigError(
            f"a plan changes nothing, and outside git ({plan.workspace}) nobody can undo what the "
            "agent changes",
            'Plan in a sandbox: --sandbox, or try: git init && git add -A && git commit -m "Begin"',
        )
    work = WorkTree(plan.workspace, plan.environ, os.path.join(plan.project, "runs", "none-yet"))
    under_way.check(work.repository)
    under_way.refuse_conflicts(work.repository)
