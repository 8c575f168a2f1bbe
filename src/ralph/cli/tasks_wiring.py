"""A run over a backlog, wired to its workspace (B)."""

import os
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ralph.adapters.artifacts_gate import Artifacts
from ralph.adapters.checkpoint import WorkTree
from ralph.adapters.completion_gate import CompletionCheck, Terms
from ralph.adapters.github_cli import runner
from ralph.adapters.history_gate import HistoryGate
from ralph.adapters.journal import FileJournal
from ralph.adapters.list_gates import TaskListGate
from ralph.adapters.notify import Notify
from ralph.adapters.process import Starter
from ralph.adapters.proven_commit import patient
from ralph.adapters.task_backlog import TaskBacklog
from ralph.adapters.task_file import TaskFile
from ralph.adapters.task_hooks import HookReader, commands
from ralph.adapters.task_records import Records
from ralph.adapters.task_sync import Trackers
from ralph.adapters.task_telling import Telling
from ralph.adapters.task_watch import TaskWatch
from ralph.adapters.workbench import Bench
from ralph.adapters.world import Workspace
from ralph.cli.checks import Checks
from ralph.cli.money import uncounted
from ralph.cli.permissions import permission_notes
from ralph.cli.planning import Plan
from ralph.cli.wiring import HarnessWiring, SignalSource
from ralph.core.facts import Fact, Settled
from ralph.core.state import RunState
from ralph.core.value import replace
from ralph.core.verdict import Accept, Cut, Park
from ralph.core.world import hurried
from ralph.ports import Gate, Policy
from ralph.profiles.shared import Patience
from ralph.profiles.tasks import tasks
from ralph.ui import Reader

if TYPE_CHECKING:
    from ralph.adapters.git_trees import GitTrees

_MOST_SHOWN = 10


def backlog_notes(plan: Plan) -> list[str]:
    """What is to be done, where, by how many, and what is wrong with the list."""
    assert plan.tasks is not None
    assert isinstance(plan.backlog, TaskBacklog)
    listing = plan.backlog.file.read()
    problems = [f"tasks.jsonl: {problem}" for problem in listing.problems[:_MOST_SHOWN]]
    if len(listing.problems) > _MOST_SHOWN:
        problems.append(f"and {len(listing.problems) - _MOST_SHOWN} more: ralph tasks list")
    chosen = [t for t in plan.backlog().tasks if not t.aside]
    ready = sum(task.open for task in chosen)
    refused = [f"{t.id} is not begun: {t.uncheckable}." for t in chosen if t.uncheckable and t.open]
    problems += refused[:_MOST_SHOWN]
    if not chosen and plan.tasks.tags:
        problems.append(f"No task has the tag {' or '.join(plan.tasks.tags)}.")
    sandbox = [plan.sandbox.words()] if plan.sandbox else []
    sandbox += permission_notes(plan)
    workers = f", {plan.tasks.workers} at a time" if plan.tasks.workers > 1 else ""
    tasks = f"Tasks: {ready} open of {len(chosen)}{workers}"
    return [tasks, *sandbox, *_money_notes(plan), *problems]


def _money_notes(plan: Plan) -> list[str]:
    """The limits of money that nobody has set, where nobody can keep to them (ADR 22)."""
    name, priced = os.path.basename(plan.command[0]), plan.prices is not None
    why = uncounted(plan.settings, plan.module, name, plan.kind, priced=priced)
    if why is None or plan.tasks is None:
        return []
    bounds = plan.tasks.bounds
    limits = f"${bounds.task.dollars:g} a task and ${bounds.run.dollars:g} a run"
    words = f"Money is not limited: {why[0]}, so {limits} cannot be kept to; time and turns can"
    return [f"{words}. {why[1]}" if plan.module.REPORTS else f"{words}."]


class TasksWiring(HarnessWiring):
    """A run over a backlog in its workspace."""

    def __init__(self, plan: Plan, run_dir: str, state: RunState) -> None:
        assert plan.tasks is not None
        assert isinstance(plan.backlog, TaskBacklog)
        self._tasks, self._backlog = plan.tasks, plan.backlog
        super().__init__(plan, run_dir)
        self._protector.protect_also(self._scripts())
        self._artifacts = Artifacts(plan.workspace)
        self._state = state
        self._between = _Between()
        self._bench: Bench | None = None

    def readers(self, journal: FileJournal) -> tuple[Reader, ...]:
        """Who reads along: hooks, and whoever must know when a task ends."""
        hooks = HookReader(
            (self._own, *self._plan.hooks),
            lambda task: self._backlog.file.record(task) or {"id": task},
            self._records,
            self._tell,
            state=self._state,
            journal_intact=journal.intact,
        )
        return (*super().readers(journal), hooks, self._between)

    def prepare(self) -> list[str]:
        """Know what a person has not committed, before anything changes."""
        notes = [*self._finished(), *self._leftovers()]
        self._work.begin()
        return notes

    def _leftovers(self) -> list[str]:
        """What workers of a killed run had not merged is put away; a worker leaves that alone."""
        plan = self._plan
        above = os.path.join(plan.project, "worktrees")
        if plan.seat is not None or not os.path.isdir(above) or not os.listdir(above):
            return []
        from ralph.adapters.leftovers import Leftovers
        from ralph.adapters.worktrees import Worktrees

        trees = Worktrees(plan.workspace, plan.environ, above)
        return list(Leftovers(trees, self._backlog.file, plan.environ, self._run_dir).put_away())

    def notes(self) -> list[str]:
        """What is to be done, where, and what is wrong with the list."""
        return backlog_notes(self._plan)

    def world(self, attention: SignalSource) -> Workspace:
        """What the engine surveys."""
        return replace(super().world(attention), keep=self._keep)

    def _patience(self) -> Patience:
        return self._tasks.patience

    def _own_trees(self) -> "GitTrees | None":
        return None  # the work tree has them

    def _keep(self) -> str:
        """A checkpoint. What proves tasks is looked for when one begins: a script that is not there
        by then may be the task's own product."""
        if self._between.tasks:
            self._protector.protect_also(self._scripts())
            self._between.tasks = False
        checkpoint = self._work.checkpoint().text()
        self._work.trees.hold()  # the engine looks next
        return checkpoint

    def _scripts(self) -> tuple[str, ...]:
        """Scripts that prove tasks: no turn may change what judges it."""
        scripts, here = self._backlog.scripts(), self._plan.workspace
        return tuple(s for s in scripts if os.path.exists(os.path.join(here, s)))

    def _profile(
        self, attention: SignalSource, start: Starter, tell: Callable[[str], None]
    ) -> Policy:
        plan, grace = self._plan, self._plan.settings.stop_grace

        def hurry() -> Cut | None:
            """Whoever presses Ctrl+C twice waits for no hook."""
            return hurried(attention(), time.time(), grace)

        self._tell = tell
        self._records = Records(plan.home, os.path.basename(self._run_dir), tell)
        self._work = WorkTree(
            plan.workspace,
            plan.environ,
            self._run_dir,
            starter=start,
            watch=lambda seconds: hurry() or patient(seconds, plan.limits.seconds),
            shared=plan.seat is not None,
        )
        hooks, where = msgspec.to_builtins(plan.settings.hooks), (plan.home, plan.environ)
        self._own = commands(hooks, *where, tell, start=start, hurry=hurry)
        told = plan.settings.notify
        notify = Notify(told.command, told.urls, *where, tell, start=start, hurry=hurry)
        trackers = partial(Trackers, run=runner(*where, starter=start))
        self._trees = self._work.trees
        self._bench = self._made_bench(notify, Telling(self._backlog.file, trackers, tell))
        return self._policy_of(self._bench, attention, start)

    def _policy_of(self, bench: Bench, attention: SignalSource, start: Starter) -> Policy:
        checks = self._checked_by(attention, start)
        return tasks(
            bench,
            self._tasks.bounds,
            patience=self._tasks.patience,
            gates=(*self._looks(checks), *self._executed(checks)),
            law=(*self._law(), TaskListGate(bench.watch)),
            about=partial(self._backlog.material, self._records),
        )

    def _looks(self, checks: Checks) -> tuple[Gate, ...]:
        """Gates that execute nothing."""
        # The commits of a task become one: what counts is what that holds.
        secrets = checks.secrets(self._tell, history=False)
        return (*secrets, HistoryGate(self._work), self._artifacts)

    def _executed(self, checks: Checks) -> tuple[Gate, ...]:
        """The guardrails, and what proves the tasks that name a proof."""
        where = (checks.inside, self._backlog.rule_of, self._run_dir)
        completion = CompletionCheck(*where, self._terms())
        return (*checks.guardrails(), checks.in_room(completion))

    def _terms(self) -> Terms:
        loop = self._plan.settings.loop
        return Terms(self._tasks.bounds.task, loop.check_timeout, loop.test_command)

    def _made_bench(self, notify: Notify, telling: Telling) -> Bench:
        plan, file = self._plan, self._backlog.file
        return Bench(
            file,
            TaskWatch(self._seen_list(), self._run_dir, plan.project),
            self._work,
            self._records,
            notify,
            self._run_dir,
            plan.kind,
            time.time,
            self._tell,
            telling,
            retries=1 if plan.settings.loop.on_failure == "retry" else 0,
            layered=self._layers is not None and self._rolls_back(),
        )

    def _seen_list(self) -> TaskFile:
        """The list that an agent sees in its turn."""
        return self._backlog.file

    def _rolls_back(self) -> bool:
        return self._plan.sandbox is not None and self._plan.sandbox.can.rollback

    def close(self) -> None:
        """Leave no sandbox open, and one line for each task."""
        super().close()
        if self._bench is not None:
            self._bench.close()


class _Between:
    """Hears whether a task is over."""

    tasks = True

    def on_fact(self, fact: Fact) -> None:
        """Done or parked: the next one begins anew."""
        if isinstance(fact, Settled) and isinstance(fact.verdict, Accept | Park):
            self.tasks = True

    def on_events(self, events: object) -> None:
        """What an agent says is nothing to us."""
