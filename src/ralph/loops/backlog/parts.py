"""The parts of a run over tasks, for the run itself and for its workers."""

import time
from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from ralph.gates.artifacts import Artifacts
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.proven_commit import patient
from ralph.kernel.ports import Gate, Policy
from ralph.kernel.tasks.task import Task
from ralph.kernel.value import value
from ralph.kernel.verdict import Cut
from ralph.kernel.world import hurried
from ralph.loops.backlog.bench import bench_of
from ralph.loops.backlog.gates.completion import CheckTerms, CompletionCheck
from ralph.loops.backlog.gates.history import HistoryGate
from ralph.loops.backlog.hooks import HookReader, commands
from ralph.loops.backlog.plan import TaskWork
from ralph.loops.backlog.prompt import Material
from ralph.loops.backlog.scripts import Scripts
from ralph.loops.backlog.settlement import TaskSettlement
from ralph.loops.backlog.store.records import Records
from ralph.runner.plan import Plan
from ralph.runner.wired import RunContext, Wired
from ralph.runner.workplace import Workplace, workplace
from ralph.ui.reader import Reader


@value
class Parts:
    """The parts, whoever works on the tasks."""

    place: Workplace
    work: WorkTree
    bench: TaskSettlement
    looks: tuple[Gate, ...]  # gates that execute nothing
    executed: tuple[Gate, ...]  # the guardrails, and what proves the tasks that name a proof
    about: Callable[[Task], Material]
    readers: tuple[Reader, ...]
    keep: Callable[[], str]  # makes a checkpoint

    def wired(self, policy: Policy, notes: Iterable[str]) -> Wired:
        """The parts, joined by a policy."""
        place = self.place
        patience = place.plan.work.patience
        world = place.world(patience, self.keep)
        return Wired(place.sandboxed(policy), place.agent, world, self.readers, tuple(notes))


def parts_of(
    plan: Plan[TaskWork], run: RunContext, tell: Callable[[str], None] | None = None
) -> Parts:
    """`tell` hears of the sandboxes of a worker."""
    backlog, seat, settings = plan.work.backlog, plan.work.seat, plan.settings

    def hurry() -> Cut | None:
        """Cut hooks short after a second Ctrl+C."""
        return hurried(run.attention(), time.time(), settings.stop_grace)

    work = WorkTree(
        plan.workspace,
        plan.environ,
        run.directory,
        starter=run.start,
        watch=lambda seconds: hurry() or patient(seconds, plan.limits.seconds),
        shared=seat is not None,
    )
    records = Records(plan.home, run.name, run.tell)
    bench = bench_of(plan, run, work, records, hurry)
    run.cleanup.callback(bench.close)
    place = workplace(plan, run, work.trees, tell)
    scripts = Scripts(backlog, plan.workspace, place.protector)

    def keep() -> str:
        scripts.look()
        checkpoint = work.checkpoint().text()
        work.trees.hold()  # the engine looks next
        return checkpoint

    # The commits of a task become one: what counts is what that holds.
    secrets = place.checks.secrets(run.tell, history=False)
    terms = CheckTerms(
        plan.work.bounds.task, settings.loop.check_timeout, settings.loop.test_command
    )
    proof = CompletionCheck(place.checks.inside, backlog.rule_of, run.directory, terms)
    return Parts(
        place,
        work,
        bench,
        (*secrets, HistoryGate(work), Artifacts(plan.workspace)),
        (*place.checks.guardrails(), place.checks.in_room(proof)),
        partial(backlog.material, records),
        (_hook_reader(plan, run, records, hurry), scripts),
        keep,
    )


def _hook_reader(
    plan: Plan[TaskWork], run: RunContext, records: Records, hurry: Callable[[], Cut | None]
) -> HookReader:
    hooks, file = msgspec.to_builtins(plan.settings.hooks), plan.work.backlog.file
    own = commands(hooks, plan.home, plan.environ, run.tell, start=run.start, hurry=hurry)
    return HookReader(
        (own, *plan.work.hooks),
        lambda task: file.record(task) or {"id": task},
        records,
        run.tell,
        state=run.before,
        journal_intact=run.journal.intact,
    )
