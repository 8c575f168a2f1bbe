"""`ralph tasks plan` as a loop: an agent is asked for tasks, and changes nothing (ADR 28)."""

import os
from collections.abc import Callable, Mapping
from typing import Any, cast

from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.journal.recovery import History
from ralph.kernel.case import Case
from ralph.kernel.ports import Policy, TodaysRules
from ralph.kernel.value import replace
from ralph.kernel.verdict import Reason
from ralph.loops.backlog.plan import bounds_of
from ralph.loops.backlog.planning.keeping import InPlace, InSandbox, proposed
from ralph.loops.backlog.planning.plan import LIMITS, Planning, again, limits_of, read, throws_away
from ralph.loops.backlog.planning.policy import (
    LastTurn,
    OnceMore,
    Planned,
    Settlement,
    planner,
)
from ralph.loops.backlog.planning.proposal import Proposal
from ralph.loops.backlog.rules import DayLimit
from ralph.loops.backlog.store.watch import TaskWatch
from ralph.runner.agent_setup import permission_notes
from ralph.runner.carry_out import carry_out
from ralph.runner.invocation import Invocation
from ralph.runner.plan import InForce, Loop, Plan
from ralph.runner.planning import patience_of
from ralph.runner.wired import RunContext, Wired
from ralph.runner.workplace import Workplace
from ralph.settings.load import Loaded
from ralph.text.words import quoted

_NOBODY = cast("Settlement", None)  # settles what is only looked at


def wire(plan: Plan[Planning], run: RunContext) -> Wired:
    patience = replace(patience_of(plan.settings), stall_after=0)
    if throws_away(plan):
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


def rejudges(terms: InForce) -> TodaysRules:
    """The rules that judge a run again. Its proposals are read against the list of their moment."""
    settings = terms.loaded.settings
    money, patience = settings.max_cost, patience_of(settings)
    beyond = dict.fromkeys(
        (Planned.__name__, LastTurn.__name__, OnceMore.__name__),
        "it looked at the proposed tasks beside the list as it was",
    )
    beyond[DayLimit.__name__] = "it looked at what other runs had spent on that day"
    return TodaysRules(planner(_NOBODY, _nothing, terms.limits, patience, money=money), beyond)


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
    limits=LIMITS,
    commits=True,
    carry_out=reported,
    rejudges=rejudges,
)
