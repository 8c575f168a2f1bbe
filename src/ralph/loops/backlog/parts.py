"""The parts of a run over tasks, for the run itself and for its workers."""

import time
from collections.abc import Callable
from functools import partial

import msgspec

from ralph.gates.artifacts import Artifacts
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.proven_commit import patient
from ralph.kernel.ports import Agent, Gate, Policy
from ralph.kernel.tasks.task import Task
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Cut
from ralph.kernel.world import hurried
from ralph.loops.backlog.gates.completion import CompletionCheck
from ralph.loops.backlog.gates.history import HistoryGate
from ralph.loops.backlog.gates.scripts import ScriptGuard
from ralph.loops.backlog.hooks import HookReader, commands
from ralph.loops.backlog.plan import TaskWork
from ralph.loops.backlog.prompt import Material
from ralph.loops.backlog.settlement import TaskSettlement
from ralph.loops.backlog.store.records import Records
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.loops.backlog.store.watch import TaskWatch
from ralph.loops.backlog.tracker.github import opener
from ralph.loops.backlog.tracker.sync import Telling, Trackers
from ralph.runner.notices import about, notifier_of
from ralph.runner.plan import Plan
from ralph.runner.wired import RunContext, Wired
from ralph.runner.workplace import Workplace
from ralph.ui.lines import Reader


@value
class Parts:
    """The parts, whoever works on the tasks."""

    place: Workplace
    settlement: TaskSettlement
    looks: tuple[Gate, ...]  # gates that execute nothing
    rails: tuple[Gate, ...]  # the guardrails
    check: CompletionCheck  # of the tasks that name a proof
    about: Callable[[Task], Material]
    readers: tuple[Reader, ...]
    keep: Callable[[], str]  # makes a checkpoint

    @property
    def executed(self) -> tuple[Gate, ...]:
        """The gates that run something."""
        return (*self.rails, self.place.in_room(self.check))

    def host(self, check: Gate) -> Gate:
        """The check of a task, perhaps another worker's, in this place."""
        assert isinstance(check, CompletionCheck)
        is_own = check is self.check
        guest = check if is_own else replace(check, place=self.place.inside, guest=True)
        return self.place.in_room(guest)

    def wired(
        self,
        policy: Policy,
        notes: list[str],
        *readers: Reader,
        agent: Agent | None = None,
    ) -> Wired:
        """The parts, joined by a policy; these readers come first. An `agent` of another kind
        comes with a policy that lands its turns."""
        place = self.place
        world = place.world(place.plan.work.patience, self.keep)
        readers = (*readers, *self.readers)
        if agent is not None:
            return Wired(policy, agent, world, readers, tuple(notes))
        return Wired(place.sandboxed(policy), place.agent(), world, readers, tuple(notes))


def parts_of(
    plan: Plan[TaskWork], run: RunContext, tell: Callable[[str], None] | None = None
) -> Parts:
    """`tell` hears of the sandboxes of a worker."""
    backlog, settings = plan.work.backlog, plan.settings

    def hurry() -> Cut | None:
        """Cut hooks short after a second Ctrl+C."""
        return hurried(run.attention(), time.time(), settings.stop_grace)

    work = WorkTree(
        plan.workspace,
        plan.environ,
        run.directory,
        starter=run.start,
        watch=lambda seconds: hurry() or patient(seconds, plan.limits.seconds),
        shared=plan.work.seat is not None,
    )
    records = Records(plan.home, run.name, run.tell)
    settlement = _settlement(plan, run, work, records, hurry)
    run.cleanup.callback(settlement.close)
    place = Workplace(plan, run, work.trees, tell)
    guard = ScriptGuard(backlog.scripts, plan.workspace, place.protector)

    def keep() -> str:
        guard.look()
        checkpoint = work.checkpoint().text()
        work.trees.hold()  # the engine looks next
        return checkpoint

    loop = settings.loop
    terms = (plan.work.bounds.task, loop.check_timeout, loop.test_command)
    tests = (backlog.tests_of, settlement.changed)
    proof = CompletionCheck(place.inside, backlog.rule_of, run.directory, *terms, *tests)
    # The commits of a task become one: what counts is what that holds.
    secrets = place.secrets(history=False)
    return Parts(
        place,
        settlement,
        (*secrets, HistoryGate(work), Artifacts(plan.workspace)),
        place.guardrails(),
        proof,
        partial(backlog.material, records),
        (_hook_reader(plan, run, records, hurry), guard),
        keep,
    )


def _away(plan: Plan[TaskWork]) -> bool:
    """True if turns are taken elsewhere, and only land here."""
    return plan.work.seat is not None and plan.work.fleet is not None


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


def _settlement(
    plan: Plan[TaskWork],
    run: RunContext,
    work: WorkTree,
    records: Records,
    hurry: Callable[[], Cut | None],
) -> TaskSettlement:
    settings, file = plan.settings, plan.work.backlog.file
    where = (plan.home, plan.environ)
    # The list that an agent sees in its turn: a worker's is in its work tree.
    seen = file if plan.work.seat is None else TaskFile(plan.workspace)
    return TaskSettlement(
        file,
        TaskWatch(seen, run.directory, plan.project),
        work,
        records,
        notifier_of(plan, run.tell, start=run.start, hurry=hurry),
        about(plan, run.name),
        run.directory,
        tuple(one.kind for one in plan.agents),
        time.time,
        run.tell,
        Telling(file, partial(Trackers, open_issues=opener(*where, starter=run.start)), run.tell),
        retries=1 if settings.loop.on_failure == "retry" else 0,
        layered=_away(plan) or (plan.sandbox is not None and plan.sandbox.can.rollback),
        by_pull=plan.destination.forge.name if plan.destination else "",
        alone=not (plan.work.hooks or any(msgspec.to_builtins(settings.hooks).values())),
    )
