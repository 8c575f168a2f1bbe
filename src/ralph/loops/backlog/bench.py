"""The bench of a run over tasks, joined to its file, records, trackers and notifications."""

import time
from collections.abc import Callable
from functools import partial

from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.kernel.verdict import Cut
from ralph.loops.backlog.plan import TaskWork
from ralph.loops.backlog.settlement import TaskSettlement
from ralph.loops.backlog.store.records import Records
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.loops.backlog.store.watch import TaskWatch
from ralph.loops.backlog.tracker.github import runner
from ralph.loops.backlog.tracker.reporting import Telling
from ralph.loops.backlog.tracker.sync import Trackers
from ralph.notify.notifier import Notify
from ralph.runner.plan import Plan
from ralph.runner.wired import RunContext


def bench_of(
    plan: Plan[TaskWork],
    run: RunContext,
    work: WorkTree,
    records: Records,
    hurry: Callable[[], Cut | None],
) -> TaskSettlement:
    settings, file = plan.settings, plan.work.backlog.file
    told, where = settings.notify, (plan.home, plan.environ)
    notify = Notify(told.command, told.urls, *where, run.tell, start=run.start, hurry=hurry)
    trackers = partial(Trackers, run=runner(*where, starter=run.start))
    # The list that an agent sees in its turn: a worker's is in its work tree.
    seen = file if plan.work.seat is None else TaskFile(plan.workspace)
    return TaskSettlement(
        file,
        TaskWatch(seen, run.directory, plan.project),
        work,
        records,
        notify,
        run.directory,
        plan.kind,
        time.time,
        run.tell,
        Telling(file, trackers, run.tell),
        retries=1 if settings.loop.on_failure == "retry" else 0,
        layered=plan.sandbox is not None and plan.sandbox.can.rollback,
    )
