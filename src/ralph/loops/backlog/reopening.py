"""Tasks that were blocked at their limit of iterations, and go on with a higher one (ADR 35)."""

import os
from collections.abc import Iterable
from typing import Any

from ralph.journal.journal import JOURNAL, read_journal
from ralph.kernel.facts import Assigned, Began, Fact, Returned, Settled
from ralph.kernel.limits import Limits, Spent, exceeded
from ralph.kernel.state import NEW, RunState, fold
from ralph.kernel.tasks.task import Status
from ralph.kernel.value import replace
from ralph.kernel.verdict import Park
from ralph.loops.backlog.plan import TaskWork
from ralph.runner.plan import Plan
from ralph.text.redact import redact
from ralph.text.words import listed

_LIMIT = "loop.maxIterationsPerTask"


def reopened(plan: Plan[TaskWork], run_dir: str, before: RunState) -> list[str]:
    """Reopen what this run has blocked at the limit that is raised now, with what was used of it,
    before the run goes on. Returns notes. Whoever is killed in it calls it again."""
    if not before.has_ended or _LIMIT not in dict(plan.raised):
        return []
    file = plan.work.backlog.file
    parked = parked_at_limit(read_journal(os.path.join(run_dir, JOURNAL))[0])
    run, again = os.path.basename(run_dir), list[str]()
    for task, (park, used) in parked.items():
        own = {"iterations": used.iterations, "seconds": used.seconds, "cost": used.dollars}
        why = redact(park.why)

        def change(
            record: dict[str, Any], why: str = why, own: dict[str, Any] = own
        ) -> dict[str, Any] | None:
            blocked = record.get("status") == Status.BLOCKED and record.get("reason") == why
            going = {"status": Status.IN_PROGRESS.value, "reason": None, "spent": {run: own}}
            return going if blocked else None

        known = file.read().backlog.get(task)
        if (
            known is not None
            and known.limits.iterations is None
            and file.update(task, change).get("spent")
        ):
            again.append(task)
    return [f"Open again, since their limit is raised: {listed(again)}"] if again else []


def parked_at_limit(facts: Iterable[Fact]) -> dict[str, tuple[Park, Spent]]:
    """The tasks that were parked at their limit of iterations, and not taken up since, each with
    what it had used."""
    state, parked, limited = NEW, dict[str, tuple[Park, Spent]](), dict[str, int]()
    for fact in facts:
        match fact:
            case Began() | Assigned():
                parked.pop(fact.assignment.task, None)
                limited[fact.assignment.task] = fact.assignment.before
            case Settled(verdict=Park() as park):
                spent, since = state.spent_at(fact.time), state.spent_before_task
                own = Spent(
                    state.task_iteration,
                    round(spent.seconds - since.seconds, 3),
                    round(spent.dollars - since.dollars, 6),
                )
                parked[state.task] = park, own
            case Returned(verdict=Park() as park):
                parked[fact.task] = park, fact.spent
        state = fold(state, fact)
    total = {
        task: (park, replace(used, iterations=used.iterations + limited.get(task, 0)))
        for task, (park, used) in parked.items()
    }
    return {task: each for task, each in total.items() if _is_at_limit(*each)}


def _is_at_limit(park: Park, used: Spent) -> bool:
    """True if iterations were what the task lacked."""
    why = exceeded(Limits(iterations=used.iterations), used)
    return park.why.startswith(f"task limit: {why}")
