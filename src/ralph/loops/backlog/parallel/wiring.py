"""A worker's run over its one task, wired to its work tree and to the project it works for."""

import time

from ralph.gates.tree_setup import prepare_tree
from ralph.kernel.facts import Ended, Fact, Step
from ralph.kernel.value import replace, value
from ralph.kernel.world import hurried
from ralph.loops.backlog.gates.task_list import TaskListGate
from ralph.loops.backlog.parallel.budget import Budget
from ralph.loops.backlog.parallel.merging import Joining
from ralph.loops.backlog.parallel.policy import worker
from ralph.loops.backlog.parallel.seat import Seat
from ralph.loops.backlog.parallel.settlement import WorkerSettlement
from ralph.loops.backlog.parts import Parts, parts_of
from ralph.loops.backlog.plan import TaskWork
from ralph.loops.backlog.store.watch import TaskWatch
from ralph.processes.child import Command
from ralph.runner.plan import Plan
from ralph.runner.wired import RunContext, Wired


def wire_worker(plan: Plan[TaskWork], run: RunContext, seat: Seat) -> Wired:
    """A run over one task, beside others."""

    def tell_once(text: str) -> None:
        """Tell once what is true of every worker's sandbox."""
        if text not in seat.told:
            seat.told.add(text)
            run.tell(text)

    def leave() -> None:
        """Whatever became of it, nobody waits for it to merge, or for its money."""
        seat.place.merge_lock.leave(seat.place.worker)
        seat.purse.give_back(seat.place.worker)

    parts = parts_of(plan, run, tell_once)
    run.cleanup.callback(leave)
    joiner = _joiner(plan, run, seat, parts)
    policy = worker(
        joiner,
        plan.work.bounds,
        seat.place,
        patience=plan.work.patience,
        gates=(*parts.looks, *parts.executed),
        law=(
            *parts.place.law(always=True),
            TaskListGate(parts.bench.watch, joiner.project_list),
        ),
        about=parts.about,
        after_merge=parts.executed,
    )
    notes = parts.place.finish_landing()  # its lead has told the rest
    parts.work.begin()
    _set_up(plan, run)
    payer = _Payer(seat.purse, seat.place.worker)
    return replace(parts, readers=(payer, *parts.readers)).wired(policy, notes)


def _joiner(plan: Plan[TaskWork], run: RunContext, seat: Seat, parts: Parts) -> WorkerSettlement:
    joining = Joining(parts.work, seat.repository, seat.tree.branch, seat.onto)
    watch = TaskWatch(plan.work.backlog.file, run.directory, plan.project, "project.before")
    contained = plan.sandbox is not None and plan.sandbox.can.contain
    return WorkerSettlement(parts.bench, joining, watch, contained)


def _set_up(plan: Plan[TaskWork], run: RunContext) -> None:
    """Prepare what a new worktree lacks, since git does not keep it."""
    words, grace = plan.settings.loop.setup, plan.settings.stop_grace
    if words is not None:
        command = Command(("sh", "-c", words), plan.workspace, plan.environ)
        prepare_tree(
            command, run.directory, run.start, lambda: hurried(run.attention(), time.time(), grace)
        )


@value
class _Payer:
    """Pays for turns."""

    purse: Budget
    worker: str

    def on_fact(self, fact: Fact) -> None:
        """A turn is over, or a step has cost something."""
        if isinstance(fact, Ended):
            self.purse.paid(self.worker, fact.turn.cost_usd or 0.0)
        elif isinstance(fact, Step) and fact.cost_usd:
            self.purse.paid(self.worker, fact.cost_usd)

    def on_events(self, events: object) -> None: ...
