"""Fakes of the ports that single loops have of their own."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ralph.kernel.facts import Proved
from ralph.kernel.ports import Committed
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Status
from ralph.kernel.verdict import Accept, Park, Stop, Verdict
from ralph.loops.supervise.policy import ChildRuns
from ralph.testing.fakes import FakeWorld


@dataclass
class FakeScm:
    """Source control that only remembers; `commit` makes the tree clean."""

    task_list: tuple[str, ...] = ("commit",)
    dirty: bool = True
    problem: str = ""
    fails: frozenset[str] = frozenset()
    hooks: list[str] = field(default_factory=list)  # what each of the next commits' hooks changes
    during: Callable[[str], None] = lambda _: None  # what happens while a task runs
    ran: list[tuple[str, str]] = field(default_factory=list)

    def has_changes(self, proof: Proved | None) -> tuple[bool, str]:
        return self.dirty, self.problem

    def changes(self, proof: Proved | None) -> str:
        return ""

    def tasks(self) -> tuple[str, ...]:
        return self.task_list

    def commit(self, task: str, message: str, proof: Proved | None) -> Committed:
        self.during(task)
        if task in self.fails:
            return Committed(ok=False, said=f"{task} failed")
        if self.hooks:
            return Committed(altered=(self.hooks.pop(0),))
        if self.dirty:
            self.ran.append((task, message))
        self.dirty = False
        return Committed(said=message, commit="c0ffee")

    def run(self, task: str, state: RunState) -> Committed | None:
        self.during(task)
        if task in self.fails:
            return Committed(ok=False, said=f"{task} failed")
        self.ran.append((task, ""))
        return Committed()


@dataclass
class FakeWorkbench:
    """Settles tasks of a fake world; `done` holds each effect once, whoever asks twice."""

    world: FakeWorld
    refusals: dict[int, str] = field(default_factory=dict)  # by iteration
    edits: dict[int, str] = field(default_factory=dict)  # by iteration
    hooks: list[str] = field(default_factory=list)  # what each of the next commits' hooks changes
    leftover: str = ""  # where what a turn that was cut off had done is saved
    done: dict[tuple[int, str, str], str] = field(default_factory=dict)
    ended: bool = False

    def record(self, state: RunState, verdict: Verdict, saved: str = "") -> None:
        status = Status.IN_PROGRESS
        if isinstance(verdict, Accept):
            status = Status.DONE
        elif isinstance(verdict, Park):
            status = Status.BLOCKED
        task = self._keep(state, "record", status)
        self.world.update(task, status=status)

    def take_up(self, state: RunState) -> str:
        return self.leftover if state.cut_off else ""

    def undo_edits(self, state: RunState) -> str:
        return self.edits.get(state.iteration, "")

    def commit(self, state: RunState) -> Committed:
        if self.hooks:
            return Committed(altered=(self.hooks.pop(0),))
        refusal = self.refusals.get(state.iteration)
        self._keep(state, "commit" if refusal is None else "refusal", refusal or "")
        return Committed(refusal is None, refusal or "")

    def sync(self, state: RunState) -> tuple[bool, str]:
        self._keep(state, "sync", "")
        return True, ""

    def restore(self, state: RunState, *, whole_task: bool) -> str:
        self._keep(state, "restore", "whole task" if whole_task else "turn")
        return ""

    def reopen(self, tasks: tuple[str, ...]) -> None:
        for task in tasks:
            self.world.update(task, status=Status.PENDING)

    def end(self) -> None:
        self.ended = True

    def _keep(self, state: RunState, what: str, detail: str) -> str:
        assert state.assignment is not None
        task = state.assignment.task
        self.done[state.iteration, task, what] = detail
        return task


@dataclass
class FakeChildRuns(ChildRuns):
    """Children that end when they are waited for, and a bus that remembers."""

    children: str = "no active children"
    problem: str = ""
    during_wait: Callable[[], None] = lambda: None
    waits: list[float] = field(default_factory=list)
    ended: list[bool] = field(default_factory=list)
    told: list[tuple[str, str]] = field(default_factory=list)

    def wait_for_children(self, seconds: float, stirred: Callable[[], bool]) -> str:
        self.waits.append(seconds)
        self.during_wait()
        return self.children

    def end_children(self, *, at_once: bool) -> str:
        self.ended.append(at_once)
        return ""

    def announce(self, stop: Stop, children: str) -> str:
        if (stop.why, children) not in self.told:  # as a real one looks first
            self.told.append((stop.why, children))
        return self.problem
