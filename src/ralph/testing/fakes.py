"""Public fakes of the engine's ports: histories in, facts out, no process started."""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from ralph.errors import StateError
from ralph.kernel.case import Case
from ralph.kernel.facts import Fact, Proved
from ralph.kernel.findings import Finding
from ralph.kernel.ports import Agent, Ports, Trees, Watch
from ralph.kernel.tasks.task import Backlog, Task
from ralph.kernel.turn import Order, Pulse, Role, Turn, ended_by
from ralph.kernel.verdict import Cut
from ralph.kernel.world import Request, Signals, Snapshot, Stand

ONE_TASK = Backlog((Task("prompt", text="do it"),))


class KilledError(Exception):
    """The process was killed here, as far as a test is concerned."""


@dataclass
class FakeClock:
    """Time passes by a tick at each look, and only then; sleep jumps to its end. `during_rest` is
    what happens while it sleeps: someone presses a key, the world changes."""

    time: float = 1000.0
    tick: float = 0.0
    rests: list[float | None] = field(default_factory=list)
    during_rest: Callable[[], None] = lambda: None

    def now(self) -> float:
        self.time += self.tick
        return self.time

    def rest(self, until: float | None, stirred: Callable[[], bool]) -> None:
        self.rests.append(until)
        self.during_rest()
        if stirred():
            return
        assert until is not None, "this pause is never ended"
        self.time = max(self.time, until)


@dataclass
class FakeAgent:
    """Answers iteration n with `turns[n - 1]`, the last one for ever; remembers its orders. A tuple
    of turns is one iteration's attempts. `during` is what happens while it works."""

    turns: Sequence[Turn | tuple[Turn, ...]]
    message: Turn = Turn(text="Do the thing")
    during: Callable[[Order], None] = lambda _: None
    pulses: Sequence[Pulse] = ()
    orders: list[Order] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)

    def take_turn(self, order: Order, watch: Watch) -> Turn:
        self.orders.append(order)
        self.during(order)
        cut = next((cut for cut in map(watch, self.pulses) if cut is not None), None)
        if cut is None:
            return self._answer(order)
        self.cuts.append(cut)
        return ended_by(self._answer(order), None, cut)

    def prompts(self) -> list[str]:
        """The prompts of all turns that worked on a task."""
        return [order.prompt for order in self.orders if order.role is not Role.MESSAGE]

    def _answer(self, order: Order) -> Turn:
        if order.role is Role.MESSAGE:
            return self.message
        answer = self.turns[min(order.iteration, len(self.turns)) - 1]
        if isinstance(answer, Turn):
            return answer
        taken = sum(o.iteration == order.iteration and o.role is order.role for o in self.orders)
        return answer[min(taken, len(answer)) - 1]


@dataclass
class FakeWorld:
    """A world that is what a test says it is."""

    tasks: Backlog = ONE_TASK
    asked: Signals = Signals()
    tree: Callable[[], str] = lambda: "tree"

    def signals(self) -> Signals:
        return self.asked

    def backlog(self) -> Backlog:
        return self.tasks

    def snapshot(self) -> Snapshot:
        return Snapshot(self.tree())

    def checkpoint(self) -> str:
        return ""

    def take(self, request: Request) -> bool:
        return True

    def update(self, task_id: str, **changes: object) -> None:
        """Change one task of the backlog."""
        tasks = (
            replace(t, **changes) if t.id == task_id else t  # type: ignore[arg-type]
            for t in self.tasks.tasks
        )
        self.tasks = Backlog(tuple(tasks))


@dataclass
class MemoryJournal:
    """Keeps facts in a list; may be killed right after the n-th, or just before it is kept."""

    facts: list[Fact] = field(default_factory=list)
    killed_after: int | None = None
    killed_before: int | None = None

    def record(self, fact: Fact) -> None:
        if len(self.facts) + 1 == self.killed_before:
            raise KilledError
        self.facts.append(fact)
        if len(self.facts) == self.killed_after:
            raise KilledError


@dataclass(frozen=True)
class FakeGate:
    """A gate that finds what a test says, by iteration."""

    name: str = "make test"
    always: bool = False
    fails_in: AbstractSet[int] = frozenset()
    finding: Finding = Finding("make test", "the tests fail", code=1)
    during: Callable[[Case], None] = lambda _: None

    def check(self, case: Case) -> Iterable[Finding]:
        self.during(case)
        return (self.finding,) if case.state.iteration in self.fails_in else ()


@dataclass
class FakeTrees(Trees):
    """A work tree that is a dictionary; `made` are new files that only gates wrote."""

    files: dict[str, str] = field(default_factory=dict)
    head: str = "head"
    made: set[str] = field(default_factory=set)
    broken: str = ""  # what git says, if it fails
    back: list[tuple[str, ...]] = field(default_factory=list)  # what was put back
    seen: dict[str, dict[str, str]] = field(default_factory=dict)
    last: str = ""

    def look(self, after: str = "") -> Stand:
        if self.broken:
            raise StateError(self.broken)
        before = self.seen.get(self.last, {})
        new = {path for path in self.files if path not in before}
        self.made = self.made | new if after else {p for p in self.made if p in before}
        self.last = repr(sorted(self.files.items()))
        self.seen[self.last] = dict(self.files)
        return Stand(self.last, self.head)

    def changed(self, since: Stand, now: Stand) -> frozenset[str]:
        one, two = self.seen.get(since.tree, {}), self.seen[now.tree]
        paths = {p for p in {*one, *two} if one.get(p) != two.get(p)}
        return frozenset(paths - self.made) | since.moved(now)

    def put_back(self, to: Stand, paths: frozenset[str], kept_as: str) -> str:
        self.back.append(tuple(sorted(paths)))
        old = self.seen[to.tree]
        kept = {path: text for path, text in self.files.items() if path not in paths}
        self.files = {**kept, **{path: old[path] for path in paths if path in old}}
        self.look()
        return f".ralph/reverted/{kept_as}"

    def proved(self, now: float, stand: Stand, gates: tuple[str, ...]) -> Proved | None:
        return Proved(now, stand.tree, stand, gates=gates, left_out=tuple(sorted(self.made)))


def fake_ports(
    agent: Agent,
    world: FakeWorld | None = None,
    journal: MemoryJournal | None = None,
    clock: FakeClock | None = None,
    trees: Trees | None = None,
) -> Ports:
    """Ports made of fakes, each replaceable."""
    world, clock = world or FakeWorld(), clock or FakeClock()
    return Ports(agent, world, journal or MemoryJournal(), clock, trees or Trees())
