"""A worker's run, wired: turns in a work tree of its own, records and commits in the project."""

import time

from ralph.gates.tree_setup import prepare_tree
from ralph.kernel.world import hurried
from ralph.loops.backlog.parallel.merging import settling
from ralph.loops.backlog.parallel.policy import worker
from ralph.loops.backlog.parallel.ride import AfterMerge
from ralph.loops.backlog.parallel.settlement import Joining, WorkerSettlement
from ralph.loops.backlog.parts import parts_of
from ralph.loops.backlog.plan import Seat, TaskWork
from ralph.loops.backlog.published import publishing_of
from ralph.loops.backlog.rules import TaskLimit
from ralph.loops.backlog.store.watch import TaskListGate, TaskWatch
from ralph.processes.child import Command
from ralph.runner.plan import Plan
from ralph.runner.wired import RunContext, Wired


def wire_worker(plan: Plan[TaskWork], run: RunContext, seat: Seat) -> Wired:
    """A worker's run over its one task."""
    context, name = seat.context, seat.context.worker

    def tell_once(text: str) -> None:
        """Tell once what is true of every worker's sandbox."""
        if text not in seat.told:
            seat.told.add(text)
            run.tell(text)

    def leave() -> None:
        """Leave the station and release the lease, whatever became of the task."""
        seat.station.leave(name)
        context.budget.give_back(name)

    parts = parts_of(plan, run, tell_once)
    run.cleanup.callback(leave)
    project_list = TaskWatch(plan.work.backlog.file, run.directory, plan.project, "project.before")
    joining = Joining(parts.settlement.work, seat.repository, seat.tree.branch, seat.onto)
    contained = plan.is_contained
    settlement = WorkerSettlement(parts.settlement, joining, project_list, contained=contained)
    gates = (*parts.looks, *parts.executed)
    law = (*parts.place.law(always=True), TaskListGate(parts.settlement.watch, project_list))
    settle = settling(
        settlement,
        (TaskLimit(plan.work.bounds.task), gates, law),
        publishing_of(plan, run, parts.place.law(always=True)),
        AfterMerge(parts.rails, parts.check, parts.host),
        worker=name,
        station=seat.station,
    )
    policy = worker(
        settle,
        plan.work.bounds,
        context,
        patience=plan.work.patience,
        gates=gates,
        law=law,
        about=parts.about,
    )
    notes = parts.place.finish_landing()  # its lead has told the rest
    parts.settlement.work.begin()
    words, grace = plan.settings.loop.setup, plan.settings.stop_grace
    if words is not None:
        command = Command(("sh", "-c", words), plan.workspace, plan.environ)
        prepare_tree(
            command, run.directory, run.start, lambda: hurried(run.attention(), time.time(), grace)
        )
    return parts.wired(policy, notes, context)
