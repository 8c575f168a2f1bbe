"""`ralph tasks run` as a loop."""

import time
from functools import partial
from typing import cast

from ralph.errors import ConfigError
from ralph.journal.recovery import History
from ralph.kernel.case import Case
from ralph.kernel.ports import Policy
from ralph.kernel.state import NEW
from ralph.kernel.tasks.select import next_task
from ralph.kernel.turn import Order
from ralph.kernel.value import replace
from ralph.kernel.verdict import Boundary, Reason
from ralph.loops.backlog.plan import TaskWork, again, bounds_of, read
from ralph.loops.backlog.policy import Settlement, compose, task_allowance, tasks
from ralph.loops.backlog.store.records import Records
from ralph.loops.backlog.wiring import wire
from ralph.runner.carry_out import carry_out
from ralph.runner.invocation import Invocation
from ralph.runner.plan import Loop, Plan, wary_patience
from ralph.settings.load import Loaded


def policy(loaded: Loaded) -> Policy:
    """The policy by the settings alone; nothing is settled by it."""
    bench = cast("Settlement", None)
    return tasks(bench, bounds_of(loaded.settings), patience=wary_patience(loaded))


def first(plan: Plan[TaskWork]) -> tuple[Plan[TaskWork], Order]:
    """The first turn, if there is one."""
    opening = Case(Boundary.OPENING, NEW, time.time(), backlog=plan.backlog())
    assignment = next_task(opening)
    if assignment is None:
        raise ConfigError("no task can be started", "Look at them: ralph tasks list")
    state = replace(NEW, iteration=1, task_iteration=1, assignment=assignment)
    about = partial(plan.work.backlog.material, Records(plan.workspace, ""))
    case = replace(opening, boundary=Boundary.WATCHING, state=state)
    bounds = plan.work.bounds
    allowed = task_allowance(bounds, plan.work.patience)(case)
    return plan, Order(compose(about, bounds.task, case), 1, allowance=allowed)


def by_one_or_many(
    invocation: Invocation, plan: Plan[TaskWork], run_dir: str, history: History
) -> Reason:
    """One task at a time, or several, each by a worker of its own."""
    if plan.workers == 1:
        return carry_out(invocation, plan, run_dir, history)
    # Most runs have no need of it.
    from ralph.loops.backlog.parallel.run import carry_out_by_crew

    return carry_out_by_crew(invocation, plan, run_dir, history)


LOOP = Loop(read, again, wire, policy, first, carry_out=by_one_or_many)
