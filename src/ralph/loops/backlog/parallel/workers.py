"""The foreman of several workers: threads, each with a run, a work tree and a keeper of its own."""

import os
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial

from ralph.files.state_dir import write_atomically, writing_state
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.commit import commit_records
from ralph.git.checkpoint.start_ref import sweep
from ralph.git.repository import Repository
from ralph.journal.journal import JOURNAL, read_journal
from ralph.journal.recovery import History, recover
from ralph.kernel.facts import Assigned, Fact, Returned
from ralph.kernel.limits import left
from ralph.kernel.state import RunState, fold, replay
from ralph.kernel.value import replace
from ralph.kernel.verdict import Cause, Park, Reason, Stop
from ralph.kernel.world import Signals, of_worker
from ralph.loops.backlog.parallel.coordinator import outcome_of
from ralph.loops.backlog.parallel.seat import Seat
from ralph.loops.backlog.parallel.shares import context_of, shared
from ralph.loops.backlog.parallel.starts import start_of
from ralph.loops.backlog.parallel.worktrees import TaskWorktree, keep_unmerged
from ralph.loops.backlog.plan import TaskWork, is_apart, worktrees_of
from ralph.loops.backlog.store.selection import TaskBacklog
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.loops.backlog.store.watch import note
from ralph.runner.carry_out import carry_out
from ralph.runner.invocation import Invocation
from ralph.runner.plan import Plan

_LOOK = 0.25  # seconds


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
        tell: Callable[[str], None],
    ) -> None:
        """`invocation` is for a task; `before` is where the run goes on."""
        self._invocation, self._plan, self._run_dir = invocation, plan, run_dir
        self._before, self._signals, self._tell = before, signals, tell
        self._recalled, self._told, self._onto = False, set[str](), ""
        self._state = before
        self._is_free: Callable[[str], bool] = lambda _: True
        self._trees = worktrees_of(plan)
        self._file = TaskFile(plan.workspace)
        self._filing = threading.Lock()
        spent = before.spent.dollars
        for sent in before.crew:  # what those have cost that were cut off
            history = self._history(sent)
            spent += replay((*history.facts, *history.recovered)).spent.dollars
        self.budget, self.places, self._station = shared(plan, spent)

    def on_fact(self, fact: Fact) -> None:
        """Know how much time is spent."""
        self._state = fold(self._state, fact)

    def on_events(self, events: object) -> None: ...

    @property
    def run(self) -> str:
        return os.path.basename(self._run_dir)

    def name(self, number: int) -> str:
        """The run of the n-th worker."""
        return f"{self.run}-{number:03d}"

    def recall(self) -> None:
        """Ask all workers to stop after what they are doing."""
        self._recalled = True

    def prepare(self) -> list[str]:
        """Find the branch for the work, and put away what killed runs have left. Returns notes."""
        path = os.path.join(self._run_dir, "branch")  # that the project was on at first
        try:
            with open(path, encoding="utf-8") as file:
                self._onto = file.read()
        except FileNotFoundError:
            self._onto = self._repository.symbolic("HEAD")
            write_atomically(path, self._onto, 0o600)
        sweep(self._repository, self._run_dir)
        notes = list(self._trees.put_away(self._file, self._run_dir, but=self._before.at_work))
        if self._plan.work.fleet is not None:
            earlier = [run for run in os.listdir(os.path.dirname(self._run_dir)) if run < self.run]
            before = self._plan.work.fleet.earlier(self._repository, earlier)
            self._is_free = before.is_over
            notes += before.words()
        return notes

    def work(self, sent: Assigned) -> Returned | None:
        """Have a task worked on to its end, once no agent of an earlier run can be at it; None
        where someone asked for a stop."""
        while not self._is_free(sent.assignment.task):
            if self._recalled or self._signals().cancels:
                return None
            time.sleep(_LOOK)
        return self._worked(sent)

    def _worked(self, sent: Assigned) -> Returned | None:
        run_dir, task = self._run_dir_of(sent), sent.assignment.task
        history = self._history(sent)
        before = replay(history.facts)
        with self._filing:
            record = self._file.record(task) or {}
        start = start_of(self._plan, record, self._signals)
        if start.problem:
            return self._put_aside(sent, start.problem)
        if not before.has_ended:
            with writing_state(run_dir):
                os.makedirs(os.path.join(run_dir, "signals"), mode=0o700, exist_ok=True)
            tree = self._trees.opened(task, start.commit)
            plan = self._plan_of(sent, tree, run_dir, before, start.below)

            def heard() -> Signals:
                return of_worker(self._signals(), task, recalled=self._recalled)

            asked = replace(self._invocation(task), keeper=None, asked=heard)
            carry_out(asked, plan, run_dir, history)
        facts = read_journal(os.path.join(run_dir, JOURNAL))[0]
        state = replay(facts)
        if not state.has_ended:
            return None
        tree = self._trees.of(task)
        with suppress(OSError):  # logs of gates, and what was reverted: people may want them
            ours = shutil.ignore_patterns("*.jsonl", ".gitignore", "settings*.json")
            kept = os.path.join(run_dir, "papers")
            shutil.copytree(
                os.path.join(tree.workspace, ".ralph"), kept, ignore=ours, symlinks=True
            )
        with self._filing:
            record = self._file.record(task) or {}
        published = state.pulls[-1].commit if state.pulls else ""
        keep = published or keep_unmerged(self._repository, run_dir, record, state)
        self._trees.closed(tree, keep=keep)
        branch = tree.branch.removeprefix("refs/heads/") if keep and not published else ""
        return Returned(
            time.time(),
            task,
            sent.worker,
            outcome_of(facts, state),
            state.spent,
            branch,
            sent.assignment.title,
            state.delivered[-1].commit if state.delivered else "",
            state.pulls,
        )

    def _put_aside(self, sent: Assigned, why: str) -> Returned:
        """A task that cannot begin waits for a person."""
        task = sent.assignment.task
        with self._filing:
            self._file.put_aside(task, why)
        park = Park(why, Cause.REVIEW)
        return Returned(time.time(), task, sent.worker, park, title=sent.assignment.title)

    def end(self, stop: Stop) -> None:
        """Commit the records of all tasks. Those that only failed by a broken agent reopen."""
        if stop.reason is Reason.FAILING:
            facts = read_journal(os.path.join(self._run_dir, JOURNAL))[0]
            self._file.reopen(replay(facts).barren)
        if self._repository.symbolic("HEAD") == self._onto and not is_apart(self._plan):
            commit_records(self._plan.workspace, self._plan.environ, self._run_dir, self._tell)
        if self._plan.work.fleet is not None:
            runs = os.listdir(os.path.dirname(self._run_dir))  # no earlier one can go on now
            self._plan.work.fleet.forget(self._repository, [n for n in runs if n <= self.run])
        self._repository.pack()

    @cached_property
    def _repository(self) -> Repository:
        return WorkTree(self._plan.workspace, self._plan.environ, self._run_dir).repository

    def _run_dir_of(self, sent: Assigned) -> str:
        return os.path.join(self._run_dir, "runs", sent.worker)

    def _history(self, sent: Assigned) -> History:
        journal = os.path.join(self._run_dir_of(sent), JOURNAL)
        return recover(journal, self._plan.prices_of_all) if os.path.exists(journal) else History()

    def _plan_of(
        self, sent: Assigned, tree: TaskWorktree, run_dir: str, before: RunState, below: str
    ) -> Plan[TaskWork]:
        plan, work, bounds = self._plan, self._plan.work, self._plan.work.bounds
        name = sent.worker
        context = context_of(name, self.budget, self.places)
        seat = Seat(tree, self._repository, self._onto, context, self._station, self._told, below)
        # The run's time is that of its foreman: it passes for all of them.
        more = left(bounds.run.seconds, self._state.spent_at(time.time()).seconds)
        seconds = None if more is None else more + before.spent.seconds
        bounds = replace(bounds, run=replace(bounds.run, seconds=seconds))
        # What one worker writes is remembered, lest another takes it for its agent's.
        file = TaskFile(plan.workspace, witness=partial(note, plan.project))
        backlog = TaskBacklog(file, tree.task, test_command=work.backlog.test_command)
        first, *others = (_moved(one, tree.workspace) for one in plan.agents)
        return replace(
            first,
            others=tuple(others),
            paid=lambda: self.budget.spent,
            backlog=backlog,
            limits=bounds.within,
            work=replace(work, backlog=backlog, bounds=bounds, seat=seat),
            layer_root=run_dir,
            workers=1,
            lead=self.run,
            task=tree.task,
        )


def _moved(plan: Plan[TaskWork], workspace: str) -> Plan[TaskWork]:
    """The plan in a work tree, where a program that was named by its way from the project would be
    another."""
    program, *words = plan.command
    program = os.path.join(plan.workspace, program) if "/" in program else program
    return replace(plan, workspace=workspace, command=(program, *words))
