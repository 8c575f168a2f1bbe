"""A worker's task from its acceptance to the project's HEAD (B §Concurrency): in which order, what
goes back to the agent, and what a killed run does again."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from kits.histories import COMPLETE, Played, play
from kits.loop_fakes import FakeWorkbench
from ralph.kernel.case import Case
from ralph.kernel.engine import run
from ralph.kernel.facts import Moved, Resumed, Settled, Step
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits
from ralph.kernel.ports import Committed, Gate, Merge, Policy
from ralph.kernel.rules import Patience
from ralph.kernel.state import NEW, RunState, replay
from ralph.kernel.tasks.task import Backlog, Status, Task
from ralph.kernel.verdict import Park, Verdict
from ralph.loops.backlog.parallel.budget import Budget
from ralph.loops.backlog.parallel.merging import settling
from ralph.loops.backlog.parallel.policy import WorkerContext, worker
from ralph.loops.backlog.parallel.ports import MergedSettlement
from ralph.loops.backlog.parallel.ride import AfterMerge, Load, Order
from ralph.loops.backlog.parallel.station import Car, Station
from ralph.loops.backlog.policy import Bounds, Publishing
from ralph.loops.backlog.prompt import Material
from ralph.loops.backlog.rules import TaskLimit
from ralph.testing.fakes import FakeAgent, FakeWorld, KilledError, MemoryJournal, fake_ports

BOUNDS = Bounds(Limits(iterations=9))
MOVED = "somebody has committed meanwhile"
ONTO = Merge("{}")  # others have merged something: the work stands on it now
CONFLICT = Merge("{}", "conflicts in code\nResolve them.", fresh=True)


@dataclass
class Bench(FakeWorkbench):
    """Merges and lands as a test says, then without trouble; `log` has all that was done."""

    merges: list[Merge] = field(default_factory=list)
    lands: list[str] = field(default_factory=list)
    currents: list[bool] = field(default_factory=list)  # else nobody commits meanwhile
    has_landed: bool = False
    log: list[str] = field(default_factory=list)
    during: Callable[[str], None] = lambda _: None

    def _did(self, what: str) -> None:
        self.log.append(what)
        self.during(what)

    def keep(self, state: RunState) -> None:
        self._did("keep")

    def merge(self, state: RunState) -> Merge:
        self._did("merge")
        return self.merges.pop(0) if self.merges else Merge()

    def is_current(self, state: RunState) -> bool:
        return self.currents.pop(0) if self.currents else True

    def record(self, state: RunState, verdict: Verdict, saved: str = "") -> None:
        self._did("record")
        super().record(state, verdict, saved)

    def commit(self, state: RunState) -> Committed:
        self._did("commit")
        return super().commit(state)

    def land(self, state: RunState) -> str:
        said = self.lands.pop(0) if self.lands else ""
        self.has_landed = not said
        self._did("land")
        return said

    def landed(self, state: RunState) -> Committed | None:
        return Committed() if self.has_landed else None

    def sync(self, state: RunState) -> tuple[bool, str]:
        self._did("sync")
        return True, ""


class Told(Station[Load, Order]):
    """Says who comes and goes."""

    def __init__(self, log: list[str]) -> None:
        super().__init__(8)
        self.log = log

    def board(self, car: Car[Load, Order]) -> tuple[Car[Load, Order], ...]:
        self.log.append("enter")
        return super().board(car)

    def leave(self, worker: str) -> None:
        self.log.append("leave")
        super().leave(worker)


class Check(Gate):
    """The completion check of a task, which passes."""

    name = "completion"
    always = False

    def check(self, case: Case) -> Iterable[Finding]:
        return ()


class Crew:
    """A worker with one task, whose agent always calls it complete."""

    def __init__(self, *, fails: frozenset[int] = frozenset(), **bench: Any) -> None:  # noqa: ANN401
        self.world = FakeWorld(Backlog((Task("a"),)))
        self.bench = Bench(self.world, **bench)
        self.agent = FakeAgent([COMPLETE])
        self.merged = MergedTree(fails)

    def policy(self) -> Policy:
        settle = settling(
            cast("MergedSettlement", self.bench),  # there are no trains in these histories
            (TaskLimit(BOUNDS.task), (), ()),
            Publishing(),
            AfterMerge((self.merged,), Check()),
            worker="run-001",
            station=Told(self.bench.log),
        )
        context = WorkerContext("run-001", Budget(None, 2))
        return worker(
            settle, BOUNDS, context, patience=Patience(), gates=(), about=lambda _: Material()
        )

    def played(self, state: RunState = NEW) -> Played:
        return play(self.policy(), self.agent, self.world, state=state)


@dataclass
class MergedTree(Gate):
    """Fails when it is asked for the n-th time."""

    fails: frozenset[int]
    asked: int = 0
    name = "make test"
    always = False

    def check(self, case: Case) -> Iterable[Finding]:
        self.asked += 1
        return (Finding(self.name, "the tests fail", code=1),) if self.asked in self.fails else ()


def park(result: Played) -> str:
    """Why the task was parked."""
    verdicts = [fact.verdict for fact in result.facts if isinstance(fact, Settled)]
    [why] = [verdict.why for verdict in verdicts if isinstance(verdict, Park)]
    return why


def test_a_task_lands_before_its_commit_is_told_and_others_wait_meanwhile() -> None:
    """A run that is killed in between finds that it has landed; nothing is merged twice."""
    crew = Crew()
    result = crew.played()
    order = ["keep", "enter", "merge", "record", "commit", "land", "leave", "sync"]
    assert crew.bench.log == order
    assert [key for key, _, _ in result.steps] == ["record", "commit", "sync"]
    assert (result.exit_code, crew.merged.asked) == (0, 0)


def test_the_gates_run_again_on_what_others_have_merged() -> None:
    crew = Crew(merges=[ONTO])
    result = crew.played()
    assert crew.merged.asked == 1
    assert any(isinstance(fact, Moved) for fact in result.facts)
    assert crew.bench.log.index("merge") < crew.bench.log.index("record")
    assert crew.world.tasks.tasks[0].status is Status.DONE


def test_what_does_not_pass_with_others_work_goes_back_once() -> None:
    crew = Crew(merges=[ONTO, ONTO], fails=frozenset({1}))
    assert crew.played().exit_code == 0
    assert "make test does not pass" in crew.agent.prompts()[1]
    crew = Crew(merges=[ONTO, ONTO, ONTO], fails=frozenset({1, 2, 3}))
    result = crew.played()
    assert len(crew.agent.prompts()) == 2
    assert park(result).startswith("it cannot be merged: with what others have merged, make test")
    assert crew.bench.log.count("enter") == crew.bench.log.count("leave")
    assert "land" not in crew.bench.log


@pytest.mark.parametrize(("conflicts", "parked"), [(1, False), (3, False), (4, True)])
def test_each_conflict_goes_back_but_not_for_ever(conflicts: int, *, parked: bool) -> None:
    """One with work that was merged since is another."""
    crew = Crew(merges=[CONFLICT] * conflicts)
    result = crew.played()
    assert len(crew.agent.prompts()) == (4 if parked else conflicts + 1)
    assert result.exit_code == (3 if parked else 0)
    assert "Resolve them." in crew.agent.prompts()[1]
    if parked:
        assert park(result) == "it cannot be merged: conflicts in code"


def test_what_nobody_can_resolve_parks_the_task_at_once() -> None:
    crew = Crew(merges=[Merge("{}", "in the way: code", hopeless=True)])
    result = crew.played()
    assert (len(crew.agent.prompts()), park(result)) == (1, "it cannot be merged: in the way: code")


def test_who_commits_meanwhile_has_the_merge_done_again() -> None:
    """Before the gates have ended, and while a hook looks at our commit."""
    crew = Crew(merges=[ONTO, ONTO], currents=[False, True])
    assert crew.played().exit_code == 0
    assert (crew.bench.log.count("merge"), crew.merged.asked) == (2, 2)
    crew = Crew(lands=[MOVED], currents=[True, False])
    assert crew.played().exit_code == 0
    assert [word for word in crew.bench.log if word in ("merge", "commit", "land")] == [
        *("merge", "commit", "land"),
        *("merge", "commit", "land"),
    ]


@pytest.mark.parametrize(
    ("bench", "why"),
    [
        ({"currents": [False] * 99}, "others commit here all the time"),
        ({"lands": [MOVED] * 99, "currents": [True, False] * 99}, MOVED),
    ],
    ids=["while it is merged", "while it is committed"],
)
def test_who_never_stops_committing_is_not_raced_for_ever(bench: dict[str, Any], why: str) -> None:
    crew = Crew(**bench)
    result = crew.played()
    assert crew.bench.log.count("merge") == 5
    assert park(result) == f"it cannot be merged: {why}"
    assert crew.bench.log[-1] == "leave"


def test_what_cannot_land_though_nobody_committed_is_said() -> None:
    crew = Crew(lands=["Your local changes would be overwritten: code"] * 2)
    result = crew.played()
    assert crew.bench.log.count("land") == 1
    assert park(result) == "it cannot be merged: Your local changes would be overwritten: code"
    assert crew.world.tasks.tasks[0].status is Status.BLOCKED


def test_a_commit_that_is_refused_lands_nothing() -> None:
    crew = Crew(refusals={1: "lint: 1 error"})
    result = crew.played()
    assert crew.bench.log.count("land") == 1
    assert "The commit was refused:\nlint: 1 error" in crew.agent.prompts()[1]
    assert result.exit_code == 0


@pytest.mark.parametrize("at", ["keep", "merge", "record", "commit", "land", "sync"])
def test_who_is_killed_anywhere_lands_once(at: str) -> None:
    """And lets the next one in: the lock is of this process alone."""
    crew, journal = Crew(merges=[ONTO]), MemoryJournal()

    def kill(what: str) -> None:
        if what == at:
            raise KilledError

    crew.bench.during = kill
    with pytest.raises(KilledError):
        run(crew.policy(), fake_ports(crew.agent, crew.world, journal))
    before, landed = [*crew.bench.log], crew.bench.has_landed
    assert before.count("enter") == before.count("leave")
    crew.bench.during = lambda _: None
    crew.bench.log.clear()
    result = crew.played(replay([*journal.facts, Resumed(950.0, 8)]))
    assert result.exit_code == 0
    assert crew.bench.log.count("land") == (0 if at in ("land", "sync") else 1)
    assert not (landed and "merge" in crew.bench.log), "what has landed is not merged again"
    steps = [fact.key for fact in (*journal.facts, *result.facts) if isinstance(fact, Step)]
    assert steps.count("commit") == 1
