"""A worker's run, wired: it merges what it has proven, and its turns may be taken elsewhere."""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ralph.agents.turn_files import NumberedFiles
from ralph.gates.tree_setup import prepare_tree
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.kernel.world import hurried
from ralph.loops.backlog.parallel.merging import settling
from ralph.loops.backlog.parallel.policy import worker
from ralph.loops.backlog.parallel.ride import AfterMerge
from ralph.loops.backlog.parallel.seat import Seat
from ralph.loops.backlog.parallel.settlement import Joining, WorkerSettlement
from ralph.loops.backlog.parts import parts_of
from ralph.loops.backlog.plan import TaskWork
from ralph.loops.backlog.published import publishing_of
from ralph.loops.backlog.rules import TaskLimit
from ralph.loops.backlog.store.watch import TaskListGate, TaskWatch
from ralph.processes.child import Command
from ralph.runner.plan import Plan
from ralph.runner.wired import RunContext, Wired
from ralph.sandbox.profile import sandboxed

if TYPE_CHECKING:
    from ralph.fleet.coordinator.turns import FleetTurns


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
    prepare = partial(_prepare, plan, run)
    if plan.work.fleet is not None:
        turns = _away(plan, run, seat, parts.settlement.work, prepare)
        return parts.wired(sandboxed(policy, turns), notes, context, agent=turns)
    prepare()
    return parts.wired(policy, notes, context)


def _prepare(plan: Plan[TaskWork], run: RunContext) -> None:
    """Run the user's command for new work trees."""
    words, grace = plan.settings.loop.setup, plan.settings.stop_grace
    if words is not None:
        command = Command(("sh", "-c", words), plan.workspace, plan.environ)
        prepare_tree(
            command, run.directory, run.start, lambda: hurried(run.attention(), time.time(), grace)
        )


def _away(
    plan: Plan[TaskWork],
    run: RunContext,
    seat: Seat,
    work: WorkTree,
    prepare: Callable[[], None],
) -> "FleetTurns":
    """Turns that are taken on other machines."""
    from ralph.fleet.coordinator.attempts import Errand
    from ralph.fleet.coordinator.turns import FleetTurns

    fleet = plan.work.fleet
    assert fleet is not None
    return FleetTurns(
        fleet,
        work,
        Errand(plan.lead, plan.task, seat.tree.branch, fleet.settings, fleet.lease),
        NumberedFiles(run.directory),
        run.readers,
        number=run.before.attempts,
        sent=run.before.trying,
        tell=run.tell,
        prepare=prepare,
    )
