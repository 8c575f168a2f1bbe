"""Several tasks at once: workers as threads, each with a run, a work tree and a keeper of its
own; the foreman sends them, and tidies up after them."""

import os
import threading
import time
from collections.abc import Callable
from functools import cached_property

from ralph.files.state_dir import unwritable_state, write_atomically
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.commit import commit_records
from ralph.git.checkpoint.expiry import sweep
from ralph.git.repository import Repository
from ralph.journal.journal import JOURNAL, read_journal
from ralph.journal.recovery import History, recover
from ralph.kernel.facts import Assigned, Returned
from ralph.kernel.limits import left
from ralph.kernel.state import RunState, replay
from ralph.kernel.value import replace
from ralph.kernel.verdict import Stop
from ralph.kernel.world import Signals, together
from ralph.loops.backlog.parallel.coordinator import is_over, outcome_of
from ralph.loops.backlog.parallel.kept import (
    keep_papers,
    keep_unmerged,
    reopen_barren,
    shared_purse,
)
from ralph.loops.backlog.parallel.one_at_a_time import OneAtATime
from ralph.loops.backlog.parallel.policy import WorkerContext
from ralph.loops.backlog.parallel.seat import Seat, noted_file
from ralph.loops.backlog.parallel.worktrees import Leftovers, TaskWorktree
from ralph.loops.backlog.plan import TaskWork, worktrees_of
from ralph.loops.backlog.store.selection import TaskBacklog
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.runner.invocation import Invocation
from ralph.runner.plan import Plan

Carry = Callable[[Invocation, Plan[TaskWork], str, History], object]


class Foreman:
    """Prepares what workers need, sends them, and tidies up after them."""

    def __init__(
        self,
        invocation: Callable[[str], Invocation],
        plan: Plan[TaskWork],
        run_dir: str,
        before: RunState,
        *,
        signals: Callable[[], Signals],
        carry_out: Carry,
    ) -> None:
        """`invocation` is for a task; `before` is where the run goes on."""
        self._invocation, self._plan, self._run_dir = invocation, plan, run_dir
        self._work, self._before = plan.work, before
        self._signals, self._carry_out = signals, carry_out
        self._recalled, self._told, self._onto = False, set[str](), ""
        self._began = time.time() - before.spent.seconds
        self._trees, self._turnstile = worktrees_of(plan), OneAtATime()
        self._file = TaskFile(plan.workspace)
        self._filing = threading.Lock()
        spent = before.spent.dollars + sum(self._spent(sent) for sent in before.crew)
        self.purse = shared_purse(plan, spent)

    def name(self, number: int) -> str:
        """The run of the n-th worker."""
        return f"{os.path.basename(self._run_dir)}-{number:03d}"

    def recall(self) -> None:
        """Ask all workers to stop after what they are doing."""
        self._recalled = True

    def prepare(self) -> list[str]:
        """Know where the work goes to, and put away what runs have left that nobody goes on with;
        what was done, in words."""
        self._onto = self._first_branch()
        sweep(self._repository, self._run_dir)
        left_behind = Leftovers(self._trees, self._file, self._plan.environ, self._run_dir)
        return list(left_behind.put_away(but=self._before.at_work))

    def work(self, sent: Assigned) -> Returned | None:
        """Have a task worked on to its end; None where someone asked for a stop."""
        run_dir, task = self._run_dir_of(sent), sent.assignment.task
        journal = os.path.join(run_dir, JOURNAL)
        history = recover(journal, self._plan.prices) if os.path.exists(journal) else History()
        before = replay(history.facts)
        if not is_over(before):
            self._make(run_dir)
            tree = self._trees.opened(task)
            plan = self._plan_of(sent, tree, run_dir, before)
            self._carry_out(self._asked_by(task), plan, run_dir, history)
        facts = read_journal(journal)[0]
        state = replay(facts)
        if not is_over(state):
            return None
        tree = self._trees.of(task)
        keep_papers(tree.workspace, run_dir)
        with self._filing:
            record = self._file.record(task) or {}
        keep = keep_unmerged(self._repository, run_dir, record, state)
        self._trees.closed(tree, keep=keep)
        branch = tree.branch.removeprefix("refs/heads/") if keep else ""
        return Returned(
            time.time(), task, sent.worker, outcome_of(facts, state), state.spent, branch
        )

    def end(self, stop: Stop, tell: Callable[[str], None]) -> None:
        """All workers are back for good: keep what became of their tasks."""
        reopen_barren(self._file, self._run_dir, stop)
        if self._repository.symbolic("HEAD") == self._onto:
            commit_records(self._plan.workspace, self._plan.environ, self._run_dir, tell)

    # -------------------------------------------------------------- parts

    @cached_property
    def _repository(self) -> Repository:
        return WorkTree(self._plan.workspace, self._plan.environ, self._run_dir).repository

    def _first_branch(self) -> str:
        """The branch that the project was on when the run began."""
        path = os.path.join(self._run_dir, "branch")
        try:
            with open(path, encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            branch = self._repository.symbolic("HEAD")
            write_atomically(path, branch, 0o600)
            return branch

    def _make(self, run_dir: str) -> None:
        try:
            os.makedirs(os.path.join(run_dir, "signals"), mode=0o700, exist_ok=True)
        except OSError as error:
            raise unwritable_state(run_dir, error) from error

    def _run_dir_of(self, sent: Assigned) -> str:
        return os.path.join(self._run_dir, "runs", sent.worker)

    def _spent(self, sent: Assigned) -> float:
        """The cost of a worker that was cut off."""
        journal = os.path.join(self._run_dir_of(sent), JOURNAL)
        if not os.path.exists(journal):
            return 0.0
        history = recover(journal, self._plan.prices)
        return replay((*history.facts, *history.recovered)).spent.dollars

    def _plan_of(
        self, sent: Assigned, tree: TaskWorktree, run_dir: str, before: RunState
    ) -> Plan[TaskWork]:
        plan, task, bounds = self._plan, sent.assignment.task, self._work.bounds
        place = WorkerContext(sent.worker, self.purse, self._turnstile)
        seat = Seat(
            tree=tree,
            repository=self._repository,
            onto=self._onto,
            purse=self.purse,
            place=place,
            told=self._told,
        )
        # The run's time is that of its foreman: it passes for all of them.
        rest = left(bounds.run.seconds, time.time() - self._began)
        seconds = None if rest is None else rest + before.spent.seconds
        bounds = replace(bounds, run=replace(bounds.run, seconds=seconds))
        backlog = TaskBacklog(noted_file(plan.workspace, plan.project), task)
        return replace(
            plan,
            workspace=tree.workspace,
            command=_seen_from(plan.workspace, plan.command),
            backlog=backlog,
            limits=bounds.within,
            work=replace(self._work, backlog=backlog, bounds=bounds, seat=seat),
            layer_root=run_dir,
            workers=1,
            lead=os.path.basename(self._run_dir),
            task=tree.task,
        )

    def _asked_by(self, task: str) -> Invocation:
        return replace(self._invocation(task), keeper=None, asked=self._heard)

    def _heard(self) -> Signals:
        return together(self._signals(), Signals(cancels=int(self._recalled)))


def _seen_from(workspace: str, command: tuple[str, ...]) -> tuple[str, ...]:
    """A program that was named by its way from the project is another from a work tree."""
    program, *words = command
    return (os.path.join(workspace, program) if "/" in program else program, *words)
