"""A run over a backlog, wired to its workspace (B)."""

import os
import time
from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from ralph.adapters.artifacts_gate import Artifacts
from ralph.adapters.checkpoint import WorkTree
from ralph.adapters.completion_gate import CompletionCheck, Terms
from ralph.adapters.github_cli import runner
from ralph.adapters.history_gate import HistoryGate
from ralph.adapters.list_gates import TaskListGate
from ralph.adapters.notify import Notify
from ralph.adapters.protect import Protector
from ralph.adapters.proven_commit import patient
from ralph.adapters.task_backlog import TaskBacklog
from ralph.adapters.task_file import TaskFile
from ralph.adapters.task_hooks import HookReader, commands
from ralph.adapters.task_records import Records
from ralph.adapters.task_sync import Trackers
from ralph.adapters.task_telling import Telling
from ralph.adapters.task_watch import TaskWatch
from ralph.adapters.workbench import Bench
from ralph.core.backlog_prompt import Material
from ralph.core.facts import Fact, Settled
from ralph.core.task import Task
from ralph.core.value import value
from ralph.core.verdict import Accept, Cut, Park
from ralph.core.world import hurried
from ralph.loops.backlog.plan import TaskWork, worktrees_of
from ralph.ports import Gate, Policy
from ralph.profiles.tasks import tasks
from ralph.runner.money import uncounted
from ralph.runner.permissions import permission_notes
from ralph.runner.plan import Plan
from ralph.runner.wired import RunContext, Wired
from ralph.runner.workplace import Workplace, workplace
from ralph.ui import Reader

_Tell = Callable[[str], None]
_MOST_SHOWN = 10


def backlog_notes(plan: Plan[TaskWork]) -> list[str]:
    """What is to be done, where, by how many, and what is wrong with the list."""
    listing = plan.work.backlog.file.read()
    problems = [f"tasks.jsonl: {problem}" for problem in listing.problems[:_MOST_SHOWN]]
    if len(listing.problems) > _MOST_SHOWN:
        problems.append(f"and {len(listing.problems) - _MOST_SHOWN} more: ralph tasks list")
    chosen = [t for t in plan.backlog().tasks if not t.aside]
    ready = sum(task.open for task in chosen)
    refused = [f"{t.id} is not begun: {t.uncheckable}." for t in chosen if t.uncheckable and t.open]
    problems += refused[:_MOST_SHOWN]
    tags = plan.work.backlog.tags
    if not chosen and tags:
        problems.append(f"No task has the tag {' or '.join(tags)}.")
    sandbox = [plan.sandbox.words()] if plan.sandbox else []
    sandbox += permission_notes(plan)
    workers = f", {plan.workers} at a time" if plan.workers > 1 else ""
    tasks = f"Tasks: {ready} open of {len(chosen)}{workers}"
    return [tasks, *sandbox, *_money_notes(plan), *problems]


def _money_notes(plan: Plan[TaskWork]) -> list[str]:
    """The limits of money that nobody has set, where nobody can keep to them (ADR 22)."""
    name, priced = os.path.basename(plan.command[0]), plan.prices is not None
    why = uncounted(plan.settings, plan.module, name, plan.kind, priced=priced)
    if why is None:
        return []
    bounds = plan.work.bounds
    limits = f"${bounds.task.dollars:g} a task and ${bounds.run.dollars:g} a run"
    words = f"Money is not limited: {why[0]}, so {limits} cannot be kept to; time and turns can"
    return [f"{words}. {why[1]}" if plan.module.REPORTS else f"{words}."]


def wire(plan: Plan[TaskWork], run: RunContext) -> Wired:
    """A run over a backlog in its workspace, or a worker's over its one task."""
    if plan.work.seat is not None:
        from ralph.loops.backlog.parallel.wiring import wire_worker

        return wire_worker(plan, run, plan.work.seat)
    parts = parts_of(plan, run)
    bench = parts.bench
    policy = tasks(
        bench,
        plan.work.bounds,
        patience=plan.work.patience,
        gates=(*parts.looks, *parts.executed),
        law=(*parts.place.law(always=True), TaskListGate(bench.watch)),
        about=parts.about,
    )
    notes = [*backlog_notes(plan), *parts.place.finish_landing(), *_leftovers(plan, run)]
    parts.work.begin()
    return parts.wired(policy, notes)


def _leftovers(plan: Plan[TaskWork], run: RunContext) -> list[str]:
    """Put away what workers of a killed run had not merged; what was done, in words."""
    above = os.path.join(plan.project, "worktrees")
    if not os.path.isdir(above) or not os.listdir(above):
        return []
    from ralph.adapters.leftovers import Leftovers

    trees, file = worktrees_of(plan), plan.work.backlog.file
    return list(Leftovers(trees, file, plan.environ, run.directory).put_away())


@value
class Parts:
    """What a run over tasks is made of, whoever works on them."""

    place: Workplace
    work: WorkTree
    bench: Bench
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


def parts_of(plan: Plan[TaskWork], run: RunContext, tell: _Tell | None = None) -> Parts:
    """`tell` hears of the sandboxes of a worker."""
    backlog, seat, settings = plan.work.backlog, plan.work.seat, plan.settings

    def hurry() -> Cut | None:
        """Whoever presses Ctrl+C twice waits for no hook."""
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
    bench = _bench(plan, run, work, records, hurry)
    run.cleanup.callback(bench.close)
    place = workplace(plan, run, work.trees, tell)
    scripts = _Scripts(backlog, plan.workspace, place.protector)

    def keep() -> str:
        scripts.look()
        checkpoint = work.checkpoint().text()
        work.trees.hold()  # the engine looks next
        return checkpoint

    # The commits of a task become one: what counts is what that holds.
    secrets = place.checks.secrets(run.tell, history=False)
    terms = Terms(plan.work.bounds.task, settings.loop.check_timeout, settings.loop.test_command)
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


def _bench(
    plan: Plan[TaskWork],
    run: RunContext,
    work: WorkTree,
    records: Records,
    hurry: Callable[[], Cut | None],
) -> Bench:
    settings, file = plan.settings, plan.work.backlog.file
    told, where = settings.notify, (plan.home, plan.environ)
    notify = Notify(told.command, told.urls, *where, run.tell, start=run.start, hurry=hurry)
    trackers = partial(Trackers, run=runner(*where, starter=run.start))
    # The list that an agent sees in its turn: a worker's is in its work tree.
    seen = file if plan.work.seat is None else TaskFile(plan.workspace)
    return Bench(
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


class _Scripts:
    """Protects the scripts that prove tasks: no turn may change what judges it. They are looked for
    when a task begins: one that is not there by then may be the task's own product."""

    def __init__(self, backlog: TaskBacklog, workspace: str, protector: Protector) -> None:
        self._backlog, self._workspace, self._protector = backlog, workspace, protector
        self._protect()
        self._task_is_over = True

    def look(self) -> None:
        """Protect those that are there now, if another task begins."""
        if self._task_is_over:
            self._protect()
            self._task_is_over = False

    def _protect(self) -> None:
        here, scripts = self._workspace, self._backlog.scripts()
        there = tuple(s for s in scripts if os.path.exists(os.path.join(here, s)))
        self._protector.protect_also(there)

    def on_fact(self, fact: Fact) -> None:
        """Done or parked: the next one begins anew."""
        if isinstance(fact, Settled) and isinstance(fact.verdict, Accept | Park):
            self._task_is_over = True

    def on_events(self, events: object) -> None:
        """What an agent says is nothing to us."""
