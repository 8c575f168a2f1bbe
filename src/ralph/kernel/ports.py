"""Ports: the engine's interfaces to the world. A few methods each; the fakes are in testing."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from ralph.errors import StateError
from ralph.kernel.case import Case, Ladder, decide, rule_name
from ralph.kernel.facts import Assigned, Fact, Ladders, Proved, Returned
from ralph.kernel.findings import Finding
from ralph.kernel.sight import Lookout
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Assignment, Backlog
from ralph.kernel.turn import Order, Pulse, Turn
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Boundary, Cut, Stop, Verdict
from ralph.kernel.world import Request, Signals, Snapshot, Stand

if TYPE_CHECKING:
    from concurrent.futures import Future

Watch = Callable[[Pulse], Cut | None]


class Agent(Protocol):
    """Takes turns. `watch` is asked every 250 ms and may cut the turn."""

    def take_turn(self, order: Order, watch: Watch) -> Turn:
        """Run one turn to its end; every way it can end is a Turn, never an exception."""


class World(Protocol):
    """Everything outside the run, as it is now."""

    def signals(self) -> Signals: ...
    def backlog(self) -> Backlog: ...
    def snapshot(self) -> Snapshot: ...

    def checkpoint(self) -> str:
        """A name for the work as it is now, by which it can be had back; "" where nobody can."""

    def take(self, request: Request) -> bool:
        """Take a note for the turn that is about to begin; False if another worker was faster."""


class Trees:
    """Knows what git would commit (ADR 33), or that nothing ever differs: outside git, or where
    there is nothing to prove. Raises StateError where git fails."""

    def look(self, after: str = "") -> Stand:
        """The work now. New files since the last look belong to the gate `after`."""
        return Stand()

    def hold(self) -> None:
        """Nothing is run before the next look: if it comes soon, files need not be read again."""

    def changed(self, since: Stand, now: Stand) -> frozenset[str]:
        """The paths, refs and settings that differ, except for what only gates made."""
        return frozenset()

    def put_back(self, to: Stand, paths: frozenset[str], kept_as: str) -> str:
        """Restore these paths; returns where the replaced content is kept, "" if nowhere."""
        return ""

    def objections(self, stand: Stand) -> tuple[Finding, ...]:
        """The reasons why the work cannot be proven, whatever the gates say."""
        return ()

    def proved(self, now: float, stand: Stand, gates: tuple[str, ...]) -> Proved | None:
        """The proof of what a commit would hold; None outside git."""
        return None


@value
class Workspace:
    """The world of a run, by asking whoever knows. `progress` is left out where nobody watches for
    stalls; it is asked where there is no tree."""

    signals: Callable[[], Signals]
    backlog: Callable[[], Backlog]
    checkpoint: Callable[[], str] = lambda: ""
    progress: Callable[[], str] | None = None
    protected: Callable[[], tuple[tuple[str, str], ...]] = tuple  # (path, digest)
    trees: Trees = Trees()
    take: Callable[[Request], bool] = lambda _: True  # a note, before another worker does

    def snapshot(self) -> Snapshot:
        try:
            stand = self.trees.look()
        except StateError:
            stand = Stand()  # whoever has to prove something says so
        work = ""  # else it changes with every commit and every changed file
        if self.progress is not None:
            work = f"{stand.tree} {stand.head}" if stand.tree else self.progress()
        return Snapshot(work, self.protected(), stand)


class Journal(Protocol):
    """Keeps facts in order. A recorded fact survives a kill."""

    def record(self, fact: Fact) -> None: ...


class Clock(Protocol):
    """The time, and sleep."""

    def now(self) -> float:
        """Unix time."""

    def rest(self, until: float | None, stirred: Callable[[], bool]) -> None:
        """Sleep until then (None: for ever), or until stirred."""


class Gate(Protocol):
    """A check by the host. Law gates and `protect` run after every turn (`always`)."""

    @property
    def name(self) -> str: ...

    @property
    def always(self) -> bool:
        """True to run also after a turn that was cut or failed."""

    def check(self, case: Case) -> Iterable[Finding]:
        """The gate's objections; none means that it passed."""


Gates = tuple[Gate, ...]


def executes(gate: Gate, case: Case) -> bool:
    """True if a gate runs code, which may be the agent's. A gate can tell by `executes(case)`;
    otherwise those that run after every turn only look."""
    said: Callable[[Case], bool] | None = getattr(gate, "executes", None)
    return not gate.always if said is None else said(case)


def passed_as(gate: Gate, case: Case) -> str:
    """What has passed, in words, by default the gate's name. A gate that found nothing to look at
    can say so by `passed_as(case)`: "" is no evidence."""
    said: Callable[[Case], str] | None = getattr(gate, "passed_as", None)
    return gate.name if said is None else said(case)


@value
class Committed:
    """The result of a commit."""

    ok: bool = True
    said: str = ""  # its subject, or why git or one of the user's hooks refused it
    commit: str = ""
    altered: tuple[str, ...] = ()  # paths that a hook changed after the proof: nothing is committed
    left: tuple[str, ...] = ()  # paths that changed since the proof, and are not in the commit


@value
class Merge:
    """A worker's task on top of what others have merged."""

    checkpoint: str = ""  # to which it can be undone now; "" if nobody merged anything
    refusal: str = ""  # why it cannot be merged as it is
    hopeless: bool = False  # and the agent cannot change that
    fresh: bool = False  # and the agent has not been told before


@value
class Crew:
    """Workers, and how to send one: the result is that of the task, or None if the worker was asked
    to stop and the next run continues. `recall` asks all workers to stop. `end` saves what they
    left before the run is over for good, and may be called again."""

    size: int
    send: "Callable[[Assigned], Future[Returned | None]]"
    recall: Callable[[], None]
    name: Callable[[int], str]  # the run of the n-th worker that is sent
    end: Callable[[Stop], None] = lambda _: None
    resting: Callable[[], int] = lambda: 0  # how many of them only wait, and leave room for others


@value
class Ports:
    agent: Agent
    world: World
    journal: Journal
    clock: Clock
    trees: Trees = Trees()
    lookout: Lookout = field(default_factory=Lookout)  # what the journal knows of the backlog


class Publish(Protocol):
    """Sends accepted work where people review it, and waits for what they have set up there."""

    def __call__(
        self, ports: Ports, state: RunState, *, finished: bool = True
    ) -> Generator[Fact, None, Verdict | None]:
        """Another verdict on the work, or None if Accept stands. With more to come in the same
        place it is not `finished`, and nobody is waited for."""


def survey(ports: Ports, state: RunState, boundary: Boundary) -> Case:
    """The world as it is now, frozen."""
    world = ports.world
    return Case(boundary, state, ports.clock.now(), world.signals(), world.backlog())


def watcher(ports: Ports, ladder: Ladder, case: Case) -> Watch:
    """The watch over one turn: the ladder's answer to the case as it is at each pulse."""

    def watch(pulse: Pulse) -> Cut | None:
        seen = replace(case, now=ports.clock.now(), signals=ports.world.signals(), pulse=pulse)
        answer = decide(seen, ladder)
        assert answer is None or isinstance(answer, Cut)
        return answer

    return watch


@value
class Policy:
    """A profile: everything in which one way of working differs from another."""

    name: str
    select: Callable[[Case], Assignment | None]
    compose: Callable[[Case], str]
    opening: Ladder
    watching: Ladder
    stopping: Ladder
    closing: Ladder
    retaking: Ladder = ()  # before a turn that a crash cut off is taken again; it may be silent
    gates: Mapping[Boundary, Gates] = field(default_factory=dict)
    law: Gates = ()  # asked before the gates, and after each that executes something
    allowance: Callable[[Case], float | None] = lambda _: None  # dollars for a turn
    choose: Callable[[Case], int] = lambda _: 0  # the place of the agent that takes it
    look: Callable[[Ports, RunState], Iterator[Fact]] = lambda *_: iter(())  # before an opening
    prepare: Callable[[Ports, RunState], Iterator[Fact]] = lambda *_: iter(())  # before a turn
    land: Callable[[Ports, RunState], Iterator[Fact]] = lambda *_: iter(())  # before the gates
    settle: Callable[[Ports, RunState, Verdict], Iterator[Fact]] = lambda *_: iter(())
    notes: Callable[[Case], tuple[str, ...]] = lambda _: ()


def ladders_of(policy: Policy) -> Ladders:
    """The ladders of a policy, to be recorded; while an agent is watched nothing is."""
    return Ladders(
        *(
            tuple(map(rule_name, ladder))
            for ladder in (policy.opening, policy.retaking, policy.stopping, policy.closing)
        )
    )


@value
class TodaysRules:
    """The rules that judge a run again (ADR 55). Those in `beyond` looked at more than facts tell:
    at what is said beside them."""

    policy: Policy
    beyond: Mapping[str, str] = field(default_factory=dict)
