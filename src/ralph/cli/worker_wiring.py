"""A worker's run over its one task, wired to its work tree and to the project it works for."""

import time
from collections.abc import Callable
from functools import partial

from ralph.adapters.joining import Joining
from ralph.adapters.journal import FileJournal
from ralph.adapters.list_gates import TaskListGate
from ralph.adapters.process import Command, Starter
from ralph.adapters.purse import Purse
from ralph.adapters.task_file import TaskFile
from ralph.adapters.task_watch import TaskWatch
from ralph.adapters.tree_setup import prepare_tree
from ralph.adapters.workbench import Bench
from ralph.adapters.worker_bench import WorkerBench
from ralph.cli.planning import Plan
from ralph.cli.tasks_wiring import TasksWiring
from ralph.cli.wiring import SignalSource
from ralph.core.facts import Ended, Fact, Step
from ralph.core.state import RunState
from ralph.core.value import value
from ralph.core.verdict import Cut
from ralph.core.world import hurried
from ralph.ports import Policy
from ralph.profiles.parallel import worker
from ralph.ui import Reader


class WorkerWiring(TasksWiring):
    """A run over one task, beside others."""

    def __init__(self, plan: Plan, run_dir: str, state: RunState) -> None:
        super().__init__(plan, run_dir, state)
        assert plan.seat is not None
        self._seat = plan.seat

    def readers(self, journal: FileJournal) -> tuple[Reader, ...]:
        """The purse hears what a turn has cost."""
        payer = _Payer(self._seat.purse, self._seat.place.worker)
        return (payer, *super().readers(journal))

    def prepare(self) -> list[str]:
        """Also what a new worktree lacks, since git does not keep it."""
        notes = super().prepare()
        plan, words = self._plan, self._plan.settings.loop.setup
        if words is not None:
            command = Command(("sh", "-c", words), plan.workspace, plan.environ)
            prepare_tree(command, self._run_dir, self._start, self._hurry)
        return notes

    def _hurry(self) -> Cut | None:
        return hurried(self._attention(), time.time(), self._plan.settings.stop_grace)

    def notes(self) -> list[str]:
        """The foreman has told it all."""
        return []

    def policy(
        self, attention: SignalSource, start: Starter, tell: Callable[[str], None]
    ) -> Policy:
        """What is true of every worker's sandbox is told by one."""
        self._start, self._attention = start, attention
        policy = super().policy(attention, start, tell)
        if self._layers is not None:
            self._layers.tell = partial(self._tell_once, tell)
        return policy

    def _tell_once(self, tell: Callable[[str], None], text: str) -> None:
        if text not in self._seat.told:
            self._seat.told.add(text)
            tell(text)

    def close(self) -> None:
        """Whatever became of it, nobody waits for it to merge, or for its money."""
        self._seat.place.turnstile.leave(self._seat.place.worker)
        self._seat.purse.give_back(self._seat.place.worker)
        super().close()

    def _policy_of(self, bench: Bench, attention: SignalSource, start: Starter) -> Policy:
        checks = self._checked_by(attention, start)
        executed = self._executed(checks)
        joiner = self._joiner(bench)
        return worker(
            joiner,
            self._tasks.bounds,
            self._seat.place,
            patience=self._tasks.patience,
            gates=(*self._looks(checks), *executed),
            law=(*self._law(), TaskListGate(bench.watch, joiner.project_list)),
            about=partial(self._backlog.material, self._records),
            after_merge=executed,
        )

    def _joiner(self, bench: Bench) -> WorkerBench:
        seat, plan = self._seat, self._plan
        joining = Joining(self._work, seat.repository, seat.tree.branch, seat.onto)
        watch = TaskWatch(self._backlog.file, self._run_dir, plan.project, "project.before")
        contained = plan.sandbox is not None and plan.sandbox.can.contain
        return WorkerBench(bench, joining, watch, contained)

    def _seen_list(self) -> TaskFile:
        return TaskFile(self._plan.workspace)


@value
class _Payer:
    """Pays for turns."""

    purse: Purse
    worker: str

    def on_fact(self, fact: Fact) -> None:
        """A turn is over, or a step has cost something."""
        if isinstance(fact, Ended):
            self.purse.paid(self.worker, fact.turn.cost_usd or 0.0)
        elif isinstance(fact, Step) and fact.cost_usd:
            self.purse.paid(self.worker, fact.cost_usd)

    def on_events(self, events: object) -> None:
        """What an agent says is nothing to us."""
