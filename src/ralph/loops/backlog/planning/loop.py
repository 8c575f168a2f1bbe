"""`ralph tasks plan` as a loop: an agent is asked for tasks, and changes nothing (ADR 43)."""

import os
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from ralph.errors import ConfigError
from ralph.git import under_way
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.repository import is_repository
from ralph.journal.recovery import History
from ralph.kernel.case import Case
from ralph.kernel.limits import Limits
from ralph.kernel.ports import Policy
from ralph.kernel.tasks.task import Backlog, Task
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Reason
from ralph.loops.backlog.plan import bounds_of, spent_today
from ralph.loops.backlog.planning.keeping import InPlace, InSandbox, proposed
from ralph.loops.backlog.planning.policy import Settlement, planner
from ralph.loops.backlog.planning.prompt import Wish, plan_prompt
from ralph.loops.backlog.planning.proposal import GOAL, Proposal
from ralph.loops.backlog.rules import DayLimit
from ralph.loops.backlog.store.selection import test_command_of
from ralph.loops.backlog.store.task_file import TaskFile, next_id
from ralph.loops.backlog.store.watch import TaskWatch
from ralph.runner.agent_setup import permission_notes
from ralph.runner.carry_out import carry_out
from ralph.runner.invocation import AGENT_FLAGS, PLACE_FLAGS, Invocation, flag_overrides
from ralph.runner.plan import Loop, Past, Plan
from ralph.runner.planning import PlanTerms, patience_of, planned, sandboxed
from ralph.runner.wired import RunContext, Wired
from ralph.runner.workplace import Workplace
from ralph.settings.load import Loaded, load
from ralph.settings.schema import Settings
from ralph.text.words import quoted

_FLAGS = {
    **AGENT_FLAGS,
    **PLACE_FLAGS,
    "--max-time": "maxTime",
    "--max-cost": "maxCost",
}
_LIMITS = {"--max-time": ("maxTime",), "--max-cost": ("maxCost",)}  # for `ralph resume`
_MONEY = ("maxCost", "loop.maxCostPerDay")
_NOBODY = cast("Settlement", None)  # settles what is only looked at
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
    day = bounds_of(settings, spent_today(invocation.environ, here, run)).day
    work = Planning(wish, TaskFile(here), test_command_of(loaded), day)
    terms = PlanTerms("Fix it and plan again.", _MONEY)
    plan = sandboxed(planned("plan", work, invocation, loaded, work, terms=terms))
    plan = replace(
        plan, limits=limits_of(settings), briefing=replace(plan.briefing, iterations=None)
    )
    if not _throws_away(plan):
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


def _throws_away(plan: Plan[Planning]) -> bool:
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


def wire(plan: Plan[Planning], run: RunContext) -> Wired:
    patience = replace(patience_of(plan.settings), stall_after=0)
    if _throws_away(plan):
        place = Workplace(plan, run, None)
        policy = _policy(plan, InSandbox(plan.work.file, run.directory))
        notes = place.finish_landing()
        policy, world = place.sandboxed(policy, lands=False), place.world(patience)
    else:
        work = WorkTree(plan.workspace, plan.environ, run.directory, starter=run.start)
        place = Workplace(plan, run, work.trees)
        notes = place.finish_landing()
        work.begin(anew=run.before.has_ended)
        watch = TaskWatch(plan.work.file, run.directory, plan.project)
        settlement = InPlace(plan.work.file, run.directory, work, watch, plan.project)
        policy = replace(_policy(plan, settlement), law=place.law())
        policy = place.sandboxed(policy, lands=False)

        def keep() -> str:
            checkpoint = work.checkpoint().text()
            work.trees.hold()  # the engine looks next
            return checkpoint

        world = place.world(patience, keep)
    where = [plan.sandbox.words()] if plan.sandbox else []
    notes = [*where, *permission_notes(plan), *notes]
    return Wired(policy, place.agent(), world, notes=tuple(notes))


def _policy(plan: Plan[Planning], settlement: Settlement) -> Policy:
    def propose(case: Case) -> Proposal:
        return proposed(plan.work.file, case.turn.text)

    settings = plan.settings
    return planner(
        settlement,
        propose,
        plan.limits,
        replace(patience_of(settings), stall_after=0),
        day=plan.work.day,
        money=settings.max_cost,
    )


def policy(loaded: Loaded) -> Policy:
    """The policy by the settings alone; nothing is settled by it."""
    settings = loaded.settings
    limits, patience = limits_of(settings), patience_of(settings)
    day = bounds_of(settings).day
    return planner(_NOBODY, _nothing, limits, patience, day=day, money=settings.max_cost)


def _nothing(_: Case) -> Proposal:
    return Proposal()


def about(kept: Mapping[str, Any]) -> str:
    """The goal."""
    return f"a plan for {quoted(kept['goal'])}"


def reported(
    invocation: Invocation, plan: Plan[Planning], run_dir: str, history: History
) -> Reason:
    """Carry out the run, and tell the command where it is kept; one that goes on by `ralph resume`
    tells people what to type."""
    reason = carry_out(invocation, plan, run_dir, history)
    tell: Callable[[str], None] | None = invocation.flags.get("planned")
    if tell is not None:
        tell(run_dir)
    elif reason is Reason.COMPLETED and invocation.err is not None:
        run = os.path.basename(run_dir)
        print(
            f"[ralph] To see and add its tasks: ralph tasks plan --add={run}", file=invocation.err
        )
    return reason


LOOP = Loop(
    read,
    again,
    wire,
    policy,
    lambda plan: _policy(plan, _NOBODY),
    about=about,
    limits=_LIMITS,
    commits=True,
    carry_out=reported,
)
