"""`ralph tasks run` as a loop."""

from typing import cast

from ralph.adapters.recovery import History
from ralph.core.verdict import Reason
from ralph.loops.backlog.plan import TaskWork, again, bounds_of, first, read
from ralph.loops.backlog.wiring import wire
from ralph.ports import Policy
from ralph.profiles.tasks import Workbench, tasks
from ralph.runner.carry_out import carry_out
from ralph.runner.invocation import Invocation
from ralph.runner.plan import Loop, Plan, wary_patience
from ralph.settings.load import Loaded


def policy(loaded: Loaded) -> Policy:
    """The policy by the settings alone; nothing is settled by it."""
    bench = cast("Workbench", None)
    return tasks(bench, bounds_of(loaded.settings), patience=wary_patience(loaded))


def by_one_or_many(
    invocation: Invocation, plan: Plan[TaskWork], run_dir: str, history: History
) -> Reason:
    """One task at a time, or several, each by a worker of its own."""
    if plan.workers == 1:
        return carry_out(invocation, plan, run_dir, history)
    from ralph.loops.backlog.parallel.run import carry_out_by_crew

    return carry_out_by_crew(invocation, plan, run_dir, history)


LOOP = Loop(read, again, wire, policy, first, carry_out=by_one_or_many)
