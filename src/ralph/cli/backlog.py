"""A run over a backlog: planned from flags, kept for `ralph resume`, and wired (B)."""

import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import IO, Any

import msgspec

from ralph.adapters.checkpoint import WorkTree
from ralph.adapters.completion_gate import CompletionCheck, Terms
from ralph.adapters.files import project_dir
from ralph.adapters.journal import FileJournal
from ralph.adapters.ledger import read_ledger
from ralph.adapters.notify import Notify, notify_problem
from ralph.adapters.process import Child, Command, Starter, start
from ralph.adapters.task_backlog import TaskBacklog
from ralph.adapters.task_commit import patient
from ralph.adapters.task_file import TaskFile
from ralph.adapters.task_hooks import HookReader, commands
from ralph.adapters.task_records import Records
from ralph.adapters.task_watch import TaskWatch
from ralph.adapters.workbench import Bench
from ralph.adapters.world import Workspace
from ralph.cli.planning import Invocation, Plan, flag_overrides, planned, sandboxed
from ralph.cli.wiring import HarnessWiring, SignalSource, patience_of
from ralph.core.case import Case
from ralph.core.completion import Kind
from ralph.core.facts import Fact, Settled
from ralph.core.ledger import total
from ralph.core.limits import Limits, least
from ralph.core.rules_tasks import DayLimit
from ralph.core.select import next_task
from ralph.core.state import NEW, RunState
from ralph.core.value import replace, value
from ralph.core.verdict import Accept, Boundary, Cut, Park
from ralph.core.world import Signals, hurried
from ralph.errors import ConfigError
from ralph.ports import Policy
from ralph.profiles.shared import Patience
from ralph.profiles.tasks import Bounds, Compose, task_allowance, tasks
from ralph.settings.load import Loaded, load
from ralph.settings.schema import Settings
from ralph.ui import Reader

_FLAGS = {  # flag -> the setting it overrides
    "--max-iterations": "loop.maxIterationsPerTask",
    "--max-tasks": "loop.maxTasksPerRun",
    "--max-time": "loop.maxTimePerRun",
    "--max-cost": "loop.maxCostPerRun",
    "--on-failure": "loop.onFailure",
    "--max-wait": "maxWait",
    "--stream-agent-output": "streamAgentOutput",
    "--agent": "agent.command",
    "--model": "agent.model",
    "--timeout": "timeout",
    "--idle-timeout": "idleTimeout",
    "--stop-grace": "stopGrace",
    "--sandbox": "sandbox",
    "--network": "network",
}
_MONEY = ("loop.maxCostPerRun", "loop.maxCostPerTask", "loop.maxCostPerDay", "maxCost")
_STALL_AFTER = 3  # iterations without progress, unless someone says otherwise
_NO_TASKS = 'Add one: ralph tasks add "Build the login page"'
_MOST_SHOWN = 10


@value
class TaskWork:
    """Which tasks a run is for, and how much it may use."""

    task: str | None
    tags: tuple[str, ...]
    bounds: Bounds
    patience: Patience

    def kept(self) -> dict[str, Any]:
        """As JSON, for a run that goes on after a crash; the rest is in the settings."""
        day = self.bounds.day
        return {"task": self.task, "tags": self.tags, "spent": day.before if day else 0.0}


# ------------------------------------------------------------------ planning


def plan_tasks(invocation: Invocation) -> Plan:
    """Check everything that can be checked before a run begins; nothing is made."""
    flags = invocation.flags
    loaded = load(invocation.workspace, flag_overrides(flags, _FLAGS))
    plan = _planned(invocation, loaded, flags["task"], tuple(flags["tag"]))
    _refuse_unusable(plan)
    spent = _spent_today(plan)
    plan = _with_work(plan, flags["task"], tuple(flags["tag"]), spent)
    _refuse_dirt(plan, allowed=flags["allow_dirty"])
    return sandboxed(plan)


def plan_again(invocation: Invocation, loaded: Loaded, kept: Mapping[str, Any]) -> Plan:
    """The plan of a run that was begun before."""
    task, tags = kept["task"], tuple(kept["tags"])
    plan = _planned(invocation, loaded, task, tags)
    return sandboxed(_with_work(plan, task, tags, float(kept["spent"])))


def _planned(
    invocation: Invocation, loaded: Loaded, task: str | None, tags: tuple[str, ...]
) -> Plan:
    backlog = TaskBacklog(TaskFile(invocation.workspace), task, tags)
    return planned(invocation, _defaults(loaded), backlog, "Mend it, then run again.", _MONEY)


def _defaults(loaded: Loaded) -> Loaded:
    """A backlog is worked through in a sandbox, unless someone says otherwise (ADR 26)."""
    if loaded.settings.sandbox is not None:
        return loaded
    settings = msgspec.structs.replace(loaded.settings, sandbox="auto")
    return msgspec.structs.replace(loaded, settings=settings)


def _with_work(plan: Plan, task: str | None, tags: tuple[str, ...], spent: float) -> Plan:
    patience = task_patience(plan.loaded)
    return replace(plan, tasks=TaskWork(task, tags, bounds_of(plan.settings, spent), patience))


def bounds_of(settings: Settings, spent: float = 0.0) -> Bounds:
    """How much one task, the run and the day may use, by the settings."""
    loop = settings.loop
    day = None if loop.max_cost_per_day is None else DayLimit(loop.max_cost_per_day, spent)
    return Bounds(
        Limits(loop.max_iterations_per_task, loop.max_time_per_task, loop.max_cost_per_task),
        Limits(
            None,
            least(loop.max_time_per_run, settings.max_time),
            least(loop.max_cost_per_run, settings.max_cost),
        ),
        loop.max_tasks_per_run,
        day,
        stop_on_failure=loop.on_failure == "stop",
    )


def task_patience(loaded: Loaded) -> Patience:
    """How long a run over a backlog bears with an agent; stalled tasks are parked."""
    patience = patience_of(loaded.settings)
    if loaded.origins.get("stallAfter") is not None:
        return patience
    return replace(patience, stall_after=_STALL_AFTER)


def _spent_today(plan: Plan) -> float:
    """What runs here have cost since midnight."""
    today = time.localtime()[:3]
    entries = read_ledger(project_dir(plan.state_root, plan.workspace))
    return total(e for e in entries if time.localtime(e.time)[:3] == today).cost_usd


def _refuse_unusable(plan: Plan) -> None:
    """What no turn could mend."""
    assert isinstance(plan.backlog, TaskBacklog)
    backlog = plan.backlog
    listing = backlog.file.read()
    if not listing.backlog.tasks:
        where = os.path.relpath(backlog.file.path, plan.workspace)
        if listing.problems:
            raise ConfigError(f"{where}: {listing.problems[0]}", "Mend it, then run again.")
        if not os.path.exists(backlog.file.path):
            raise ConfigError(f"there are no tasks here: {where} is not there", _NO_TASKS)
    if backlog.task is not None and listing.backlog.get(backlog.task) is None:
        raise backlog.file.refusal(backlog.task)
    notify = plan.settings.notify
    problem = notify_problem(notify.urls)
    if problem is not None:
        raise problem


def _refuse_dirt(plan: Plan, *, allowed: bool) -> None:
    """A person's work that is not committed could not be told from a task's."""
    work = WorkTree(plan.workspace, plan.environ, "")
    work.check()
    dirty = work.dirty()
    if dirty and not allowed:
        lines = "".join(f"\n  {path}" for path in dirty[:_MOST_SHOWN])
        more = f"\n  and {len(dirty) - _MOST_SHOWN} more" if len(dirty) > _MOST_SHOWN else ""
        raise ConfigError(
            f"the work tree has changes that are not committed:{lines}{more}",
            "Commit them, or put them aside (git stash -u), or work beside them: --allow-dirty\n"
            "If a run left them: ralph resume",
        )


def show_next(invocation: Invocation, plan: Plan) -> int:
    """`--dry-run`: the prompt and the command of the first turn, if there is one."""
    from ralph.cli.loop import show_order

    assert plan.tasks is not None
    assert isinstance(plan.backlog, TaskBacklog)
    now = time.time()
    opening = Case(Boundary.OPENING, NEW, now, backlog=plan.backlog())
    assignment = next_task(opening)
    if assignment is None:
        raise ConfigError("no task can be started", "Look at them: ralph tasks list")
    state = replace(NEW, iteration=1, task_iteration=1, assignment=assignment)
    about = partial(plan.backlog.material, Records(plan.workspace, ""))
    case = replace(opening, boundary=Boundary.WATCHING, state=state)
    bounds = plan.tasks.bounds
    allowed = task_allowance(bounds, plan.tasks.patience)(case)
    return show_order(invocation, plan, Compose(about, bounds.task)(case), allowed)


# ------------------------------------------------------------------ wiring


class TasksWiring(HarnessWiring):
    """A run over a backlog in its workspace."""

    def __init__(self, plan: Plan, run_dir: str, state: RunState) -> None:
        assert plan.tasks is not None
        assert isinstance(plan.backlog, TaskBacklog)
        self._tasks, self._backlog = plan.tasks, plan.backlog
        super().__init__(plan, run_dir)
        self._protector.protect_also(self._scripts())
        self._state = state
        self._work = WorkTree(
            plan.workspace,
            plan.environ,
            run_dir,
            starter=self._start,
            watch=lambda seconds: self._hurry() or patient(seconds),
        )
        self._records = Records(plan.workspace, os.path.basename(run_dir), self._tell)
        self._between = _Between()
        self._bench: Bench | None = None
        # These are known when the run begins, and nobody needs them before.
        self._told: Callable[[str], None] = lambda _: None
        self._starter: Starter = start
        self._attention: SignalSource = Signals

    def _hurry(self) -> Cut | None:
        """Whoever presses Ctrl+C twice waits for no hook."""
        return hurried(self._attention(), time.time(), self._plan.settings.stop_grace)

    def _tell(self, text: str) -> None:
        self._told(text)

    def _start(
        self,
        command: Command,
        on_output: Callable[[bytes], None] | None = None,
        on_error: Callable[[bytes], None] | None = None,
        log: IO[bytes] | None = None,
    ) -> Child:
        return self._starter(command, on_output, on_error, log)

    def readers(self, journal: FileJournal) -> tuple[Reader, ...]:
        """Who reads along: hooks, and whoever must know when a task ends."""
        plan = self._plan
        own = commands(
            msgspec.to_builtins(plan.settings.hooks),
            plan.workspace,
            plan.environ,
            self._tell,
            start=self._start,
            hurry=self._hurry,
        )
        hooks = HookReader(
            (own, *plan.hooks),
            lambda task: self._backlog.file.record(task) or {"id": task},
            self._records,
            self._tell,
            state=self._state,
            journal_intact=journal.intact,
        )
        return (*super().readers(journal), hooks, self._between)

    def prepare(self) -> list[str]:
        """Know what a person has not committed, before anything changes."""
        notes = super().prepare()
        self._work.begin()
        return notes

    def notes(self) -> list[str]:
        """What is to be done, where, and what is wrong with the list."""
        listing = self._backlog.file.read()
        problems = [f"tasks.jsonl: {problem}" for problem in listing.problems[:_MOST_SHOWN]]
        chosen = [t for t in self._backlog().tasks if not t.aside]
        ready = sum(task.open for task in chosen)
        if not chosen and self._tasks.tags:
            problems.append(f"No task has the tag {' or '.join(self._tasks.tags)}.")
        sandbox = [self._plan.sandbox.words()] if self._plan.sandbox else []
        return [f"Tasks: {ready} open of {len(chosen)}", *sandbox, *problems]

    def world(self, attention: SignalSource) -> Workspace:
        """What the engine surveys."""
        world = super().world(attention)
        if self._tasks.patience.stall_after and not self._plan.settings.stall_after:
            from ralph.adapters.git import TreeDigest

            digest = TreeDigest(self._plan.workspace, self._plan.environ)
            world = replace(world, progress=digest)
        return replace(world, keep=self._keep)

    def _keep(self) -> str:
        """A checkpoint. What proves tasks is looked for when one begins: a script that is not there
        by then may be the task's own product."""
        if self._between.tasks:
            self._protector.protect_also(self._scripts())
            self._between.tasks = False
        return self._work.checkpoint().text()

    def _scripts(self) -> tuple[str, ...]:
        """Scripts that prove tasks: no turn may change what judges it."""
        tasks = (task for task in self._backlog().tasks if task.open and task.check)
        rules = (self._backlog.rule_of(task.id) for task in tasks)
        scripts = dict.fromkeys(r.script for r in rules if r.kind is Kind.VALIDATE)
        there = (os.path.join(self._plan.workspace, script) for script in scripts)
        return tuple(s for s, path in zip(scripts, there, strict=True) if os.path.exists(path))

    def _profile(
        self, attention: SignalSource, start: Starter, tell: Callable[[str], None]
    ) -> Policy:
        self._told, self._starter, self._attention = tell, start, attention
        bench = self._bench = self._made_bench(tell)
        check = CompletionCheck(
            self._inside(self._place(attention, start)),
            self._backlog.rule_of,
            self._work.tree,
            self._run_dir,
            self._terms(),
        )
        return tasks(
            bench,
            self._tasks.bounds,
            patience=self._tasks.patience,
            gates=(*self._gates(attention, start), check),
            about=partial(self._backlog.material, self._records),
        )

    def _terms(self) -> Terms:
        loop = self._plan.settings.loop
        return Terms(self._tasks.bounds.task, loop.check_timeout, loop.test_command)

    def _made_bench(self, tell: Callable[[str], None]) -> Bench:
        plan, settings = self._plan, self._plan.settings
        file = self._backlog.file
        return Bench(
            file,
            TaskWatch(file, self._run_dir, plan.project),
            self._work,
            self._records,
            Notify(
                settings.notify.command,
                settings.notify.urls,
                plan.workspace,
                plan.environ,
                tell,
                start=self._start,
                hurry=self._hurry,
            ),
            self._run_dir,
            plan.kind,
            time.time,
            tell,
            retries=1 if settings.loop.on_failure == "retry" else 0,
            layered=self._layers is not None and self._rolls_back(),
        )

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
