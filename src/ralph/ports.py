"""Ports: what the engine asks of the world. A few methods each; the fakes are in testing."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

from ralph.core.case import Case, Ladder, decide
from ralph.core.facts import Assigned, Fact, Proved, Returned
from ralph.core.gates import Finding
from ralph.core.proof import Stand
from ralph.core.state import RunState
from ralph.core.task import Assignment, Backlog
from ralph.core.turn import Allowance, Order, Pulse, Turn
from ralph.core.value import replace, value
from ralph.core.verdict import Boundary, Cut, Stop, Verdict
from ralph.core.world import Signals, Snapshot

if TYPE_CHECKING:
    from concurrent.futures import Future

Watch = Callable[[Pulse], Cut | None]
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class Agent(Protocol):
    """Takes turns. `watch` is asked every 250 ms and may cut the turn."""

    def take_turn(self, order: Order, watch: Watch) -> Turn:
        """Run one turn to its end; every way it can end is a Turn, never an exception."""


class World(Protocol):
    """Surveys what lies outside the run."""

    def signals(self) -> Signals:
        """What people and agents ask for, now."""

    def backlog(self) -> Backlog:
        """The tasks as they stand now."""

    def snapshot(self) -> Snapshot:
        """The workspace as it is now."""

    def checkpoint(self) -> str:
        """A name for the work as it is now, by which it can be had back; "" where nobody can."""


class Trees(Protocol):
    """Knows what would be committed (ADR 33). Where git has nothing to say, nothing ever differs.
    A StateError where git fails."""

    def look(self, after: str = "") -> Stand:
        """The work now. New files since the last look are those of the gate that is named."""

    def changed(self, since: Stand, now: Stand) -> frozenset[str]:
        """The paths that differ, and what moved beside them; without what only gates made."""

    def put_back(self, to: Stand, paths: frozenset[str], kept_as: str) -> str:
        """Let these be as they were; where what stood there is kept, "" if nothing did."""

    def objections(self, stand: Stand) -> tuple[Finding, ...]:
        """What keeps the work from being proven, whatever the gates say."""

    def proved(self, now: float, stand: Stand, gates: tuple[str, ...]) -> Proved | None:
        """What a commit of the work would hold; None outside git."""


@value
class NoTrees:
    """No repository, or nothing to prove."""

    def look(self, after: str = "") -> Stand:
        """Nothing to see."""
        return Stand()

    def changed(self, since: Stand, now: Stand) -> frozenset[str]:
        """Nothing differs."""
        return frozenset()

    def put_back(self, to: Stand, paths: frozenset[str], kept_as: str) -> str:
        """Nothing was changed."""
        return ""

    def objections(self, stand: Stand) -> tuple[Finding, ...]:
        """None."""
        return ()

    def proved(self, now: float, stand: Stand, gates: tuple[str, ...]) -> Proved | None:
        """There is no tree."""
        return None


class Journal(Protocol):
    """Keeps facts, in order, for good."""

    def record(self, fact: Fact) -> None:
        """Keep one fact; it survives a kill from here on."""


class Clock(Protocol):
    """The time, and sleep."""

    def now(self) -> float:
        """Unix time."""

    def rest(self, until: float | None, stirred: Callable[[], bool]) -> None:
        """Sleep until then (None: for ever), or until stirred."""


class Executor(Protocol):
    """Where workers work: threads here, other machines perhaps. It is shaped like
    `concurrent.futures.Executor`, so that any of those can take its place."""

    def submit(
        self,
        fn: Callable[_Parameters, _Result],
        /,
        *args: _Parameters.args,
        **kwargs: _Parameters.kwargs,
    ) -> "Future[_Result]":
        """Begin, and promise what will come of it."""


class Gate(Protocol):
    """A check by the host. Law gates and `protect` run after every turn (`always`)."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def always(self) -> bool:
        """Whether it runs also after a turn that was cut or failed."""

    def check(self, case: Case) -> Iterable[Finding]:
        """What it objects to; nothing means passed."""


def executes(gate: Gate, case: Case) -> bool:
    """Whether a gate runs code, which may be the agent's. A gate can say so by `executes(case)`;
    those that run after every turn only look."""
    said: Callable[[Case], bool] | None = getattr(gate, "executes", None)
    return not gate.always if said is None else said(case)


@value
class Act:
    """Something that was done for a run, to be told as a step."""

    key: str
    detail: str = ""


@value
class Committed:
    """What came of a commit."""

    ok: bool = True
    said: str = ""  # its subject, or what git or a hook of the user's has against it
    commit: str = ""
    altered: tuple[str, ...] = ()  # what a hook made another than was proven; then there is none
    left: tuple[str, ...] = ()  # what came into the work tree since the proof, and is not in it


@value
class Merge:
    """A worker's task on top of what others have merged."""

    checkpoint: str = ""  # to which it can be undone now; "" where nobody merged anything
    refusal: str = ""  # why it cannot be merged as it is
    hopeless: bool = False  # and the agent can do nothing about that
    fresh: bool = False  # and the agent was not told of that before


@value
class Crew:
    """Workers, and how to send one. `work` returns what came of a task, or None where someone asked
    it to stop, and the next run goes on with it. `recall` asks all of them to stop. `end` keeps
    what became of them, before the run is over for good; who is killed in it calls it again."""

    size: int
    executor: Executor
    work: Callable[[Assigned], Returned | None]
    recall: Callable[[], None]
    name: Callable[[int], str]  # the run of the n-th worker that is sent
    end: Callable[[Stop], None] = lambda _: None


@value
class Ports:
    """The engine's whole world."""

    agent: Agent
    world: World
    journal: Journal
    clock: Clock
    trees: Trees = NoTrees()


def survey(ports: Ports, state: RunState, boundary: Boundary) -> Case:
    """The world as it is now, frozen."""
    return Case(
        boundary,
        state,
        ports.clock.now(),
        signals=ports.world.signals(),
        backlog=ports.world.backlog(),
    )


def watcher(ports: Ports, ladder: Ladder, case: Case) -> Watch:
    """The watch over one turn: the ladder's answer to the case as it is at each pulse."""

    def watch(pulse: Pulse) -> Cut | None:
        seen = replace(case, now=ports.clock.now(), signals=ports.world.signals(), pulse=pulse)
        answer = decide(seen, ladder)
        assert answer is None or isinstance(answer, Cut)
        return answer

    return watch


def _no_steps(ports: Ports, state: RunState, verdict: Verdict) -> Iterator[Fact]:
    return iter(())


def _nothing_to_do(ports: Ports, state: RunState) -> Iterator[Fact]:
    return iter(())


def _no_allowance(case: Case) -> Allowance:
    return Allowance()


@value
class Policy:
    """A profile: a value that holds everything in which one way of working differs."""

    name: str
    select: Callable[[Case], Assignment | None]
    compose: Callable[[Case], str]
    opening: Ladder
    watching: Ladder
    stopping: Ladder
    closing: Ladder
    retaking: Ladder = ()  # before a turn that a crash cut off is taken again; it may be silent
    gates: Mapping[Boundary, tuple[Gate, ...]] = field(default_factory=dict)
    law: tuple[Gate, ...] = ()  # asked before the gates, and after each that executes something
    allowance: Callable[[Case], Allowance] = _no_allowance
    prepare: Callable[[Ports, RunState], Iterator[Fact]] = _nothing_to_do  # before a turn
    land: Callable[[Ports, RunState], Iterator[Fact]] = _nothing_to_do  # after it, before the gates
    settle: Callable[[Ports, RunState, Verdict], Iterator[Fact]] = _no_steps
    notes: Callable[[Case], tuple[str, ...]] = lambda _: ()
