"""Workers whose tasks are proven at the same time: real threads and a real station, on a project
that is a chain of commits in memory. Its trees are sets of tasks."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from kits.histories import COMPLETE
from ralph.kernel.case import Case
from ralph.kernel.engine import run
from ralph.kernel.facts import Fact, Proved, Resumed, Step
from ralph.kernel.findings import Finding
from ralph.kernel.ports import Committed, Gate, Merge, Policy, Ports, Trees
from ralph.kernel.rules import Patience
from ralph.kernel.state import NEW, RunState, replay
from ralph.kernel.tasks.task import Backlog, Status, Task
from ralph.kernel.verdict import Accept, Park, Verdict
from ralph.kernel.world import Stand
from ralph.loops.backlog.parallel.budget import Budget
from ralph.loops.backlog.parallel.merging import settling
from ralph.loops.backlog.parallel.policy import WorkerContext, worker
from ralph.loops.backlog.parallel.ports import Coupled
from ralph.loops.backlog.parallel.ride import AfterMerge, Load, Order
from ralph.loops.backlog.parallel.station import Car, Station
from ralph.loops.backlog.policy import Bounds, Publishing
from ralph.loops.backlog.prompt import Material
from ralph.loops.backlog.rules import TaskLimit
from ralph.testing.fakes import FakeAgent, FakeClock, FakeWorld, KilledError, fake_ports

Files = frozenset[str]
BEGIN = "c0"


@dataclass
class Project:
    """The project, what is wrong with which trees, and everything that is done."""

    bad: tuple[Files, ...] = ()  # the guardrail fails with all of one of these
    conflicts: tuple[Files, ...] = ()  # pairs that git cannot join
    needs: dict[str, str] = field(default_factory=dict)  # a task's check fails with this other
    dies_at: int = 0  # at the n-th effect of a train, and nothing happens after it
    head: str = BEGIN
    commits: dict[str, tuple[str, Files]] = field(default_factory=lambda: {BEGIN: ("", Files())})
    proven: set[Files] = field(default_factory=set)
    heads: list[str] = field(default_factory=lambda: [BEGIN])
    log: list[tuple[str, str]] = field(default_factory=list)
    tried: list[Files] = field(default_factory=list)
    during: Callable[[str, str], None] = lambda _who, _what: None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def did(self, who: str, what: str) -> None:
        with self._lock:
            under_way = next((n for n, (_, did) in enumerate(self.log) if did == "couple"), None)
            if under_way is not None and 0 < self.dies_at <= len(self.log) - under_way:
                raise KilledError
            self.log.append((who, what))
        self.during(who, what)

    def commit(self, below: str, files: Files) -> str:
        with self._lock:
            name = f"c{len(self.commits)}"
            self.commits[name] = below, files
        return name

    def files(self, commit: str) -> Files:
        return self.commits[commit][1]

    def follows(self, commit: str) -> bool:
        at = self.head
        while at and at != commit:
            at = self.commits[at][0]
        return at == commit

    def go_on(self, commit: str) -> None:
        self.head = commit
        self.heads.append(commit)

    @property
    def landed(self) -> list[str]:
        """The tasks of the commits up to HEAD, the first first."""
        found, at = list[str](), self.head
        while self.commits[at][0]:
            below, files = self.commits[at]
            found += sorted(files - self.files(below))
            at = below
        return found[::-1]


@dataclass
class Tree(Trees):
    """A worker's work tree: what is in it, and the commit that it stands on."""

    project: Project
    files: Files
    base: str = BEGIN

    def look(self, after: str = "") -> Stand:
        return Stand(" ".join(sorted(self.files)) or "-", self.base)

    def proved(self, now: float, stand: Stand, gates: tuple[str, ...]) -> Proved | None:
        self.project.proven.add(self.files)
        return Proved(now, stand.tree, stand, gates=gates)


@dataclass
class Bench:
    """Settles the task of one worker."""

    task: str
    project: Project
    world: FakeWorld
    tree: Tree
    refuses: int = 0  # so many commits are refused by a hook
    alters: bool = False  # a hook changes each commit that is not alone
    begun: str = BEGIN
    base: str = BEGIN  # what the journal says
    mixed: bool = False
    made: str = ""
    told: list[Verdict] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    workspace: str = ""

    def _did(self, what: str) -> None:
        self.project.did(self.task, what)

    def _own(self) -> Files:
        return Files({self.task})

    def keep(self, state: RunState) -> None:
        self._did("keep")

    def take_up(self, state: RunState) -> str:
        return ""

    def undo_edits(self, state: RunState) -> str:
        return ""

    def record(self, state: RunState, verdict: Verdict, saved: str = "") -> None:
        self._did("record")
        self.told.append(verdict)
        status = {Accept: Status.DONE, Park: Status.BLOCKED}.get(type(verdict), Status.IN_PROGRESS)
        self.world.update(self.task, status=status)

    def restore(self, state: RunState, *, whole_task: bool) -> str:
        return ""

    def reopen(self, tasks: tuple[str, ...]) -> None: ...

    def end(self) -> None: ...

    def sync(self, state: RunState) -> tuple[bool, str]:
        self._did("sync")
        return True, ""

    def merge(self, state: RunState) -> Merge:
        self._did("merge")
        head = self.project.head
        if head == self.begun and not self.mixed:
            return Merge()
        self.mixed = False
        self._put(head, self.project.files(head) | self._own())
        if any(pair <= self.tree.files for pair in self.project.conflicts):
            return Merge(head, f"conflicts with {sorted(self.tree.files)}", fresh=True)
        return Merge(head)

    def _put(self, base: str, files: Files) -> None:
        self.tree.base = self.base = self.made = base
        self.tree.files = files

    def is_current(self, state: RunState) -> bool:
        return self.project.head == self.base

    def commit(self, state: RunState) -> Committed:
        self._did("commit")
        alone = not state.proof or len(state.proof.train) < 2
        if self.refuses > 0:
            self.refuses -= 1
            return Committed(ok=False, said="lint: 1 error")
        if self.alters and not alone:
            return Committed(altered=("code",))
        below = self.project.commits.get(self.made, ("", Files()))
        if self.made == self.base or below[0] != self.base:
            self.made = self.project.commit(self.base, self.tree.files)
        return Committed(said=f"{self.task}: It", commit=self.made)

    def land(self, state: RunState) -> str:
        return self.arrive(self.made, self.base)

    def landed(self, state: RunState) -> Committed | None:
        if self.made in ("", self.base) or not self.project.follows(self.made):
            return None
        return Committed(said=f"{self.task}: It", commit=self.made)

    def couple(self, state: RunState, before: Coupled | None) -> Coupled | None:
        self._did("couple")
        onto = before.commit if before else self.project.head
        files = self.project.files(onto) | self._own()
        if any(pair <= files for pair in self.project.conflicts):
            return None
        return Coupled(self.project.commit(onto, files), onto)

    def try_on(self, state: RunState, last: Coupled, head: str) -> None:
        self._did("try on")
        self.mixed = True
        self._put(head, self.project.files(last.commit))

    def as_proven(self, last: Coupled, proof: Proved) -> Coupled:
        return last

    def follow(self, state: RunState, coupled: Coupled, onto: str) -> Merge:
        self._did("follow")
        self.mixed = True
        self._put(onto, self.project.files(coupled.commit))
        return Merge(onto)

    def is_predicted(self, commit: str, coupled: Coupled) -> bool:
        return self.project.files(commit) == self.project.files(coupled.commit)

    def arrive(self, commit: str, head: str) -> str:
        self._did("land")
        if self.project.head != head:
            return "" if self.project.follows(commit) else "somebody has committed meanwhile"
        self.project.go_on(commit)
        return ""

    def take_logs(self, findings: Sequence[Finding], workspace: str) -> None:
        self.logs += [finding.text for finding in findings]


@dataclass
class Rail(Gate):
    """The guardrail, where one worker runs it."""

    tree: Tree
    name = "make test"
    always = False

    def check(self, case: Case) -> Iterable[Finding]:
        project = self.tree.project
        project.did("", "gate")
        project.tried.append(self.tree.files)
        wrong = [sorted(bad) for bad in project.bad if bad <= self.tree.files]
        return [Finding(self.name, f"not with {wrong[0]}", code=1)] if wrong else []


@dataclass
class Check(Gate):
    """A task's own check; it looks at the work tree that it is `at`."""

    task: str
    project: Project
    at: Tree
    name = "completion"
    always = False

    def check(self, case: Case) -> Iterable[Finding]:
        assert case.task.id == self.task, "each is asked about its own task"
        self.project.did(self.task, "check")
        other = self.project.needs.get(self.task)
        return [Finding(self.name, "the feature is gone")] if other in self.at.files else []


class Gathers(Station[Load, Order]):
    """No train leaves before so many workers have come; they board by their names."""

    def __init__(self, most: int, expected: int) -> None:
        super().__init__(most)
        self._expected = expected

    def _is_next(self, car: Car[Load, Order]) -> bool:
        if len(self._waiting) < self._expected:
            return False
        self._expected = 0
        self._waiting.sort(key=lambda each: each.worker)
        self._changed.notify_all()
        return super()._is_next(car)


@dataclass
class Journal:
    """Facts in a list, until everything dies."""

    task: str
    project: Project
    facts: list[Fact] = field(default_factory=list)

    def record(self, fact: Fact) -> None:
        if self.project.dies_at:
            self.project.did(self.task, f"fact {type(fact).__name__}")
        self.facts.append(fact)


class Crew:
    """A worker for each task of a project, all of them proven at the same time."""

    def __init__(self, names: str, project: Project | None = None, *, most: int = 8) -> None:
        self.project, self.most = project or Project(), most
        self.benches, self.agents = dict[str, Bench](), dict[str, FakeAgent]()
        self.journals = {name: Journal(name, self.project) for name in names}
        for name in names:
            world = FakeWorld(Backlog((Task(name),)))
            tree = Tree(self.project, Files({name}))
            self.benches[name] = Bench(name, self.project, world, tree)
            self.agents[name] = FakeAgent([COMPLETE])
        self.ends: dict[str, RunState] = {}
        self.station: Station[Load, Order] | None = None  # of the last ride

    def ride(self, station: Station[Load, Order] | None = None) -> None:
        """Have all of them work to their ends, or until they are killed."""
        waiting = [n for n in self.benches if not replay(self.journals[n].facts).has_ended]
        station = self.station = station or Gathers(self.most, len(waiting))
        threads = [threading.Thread(target=self._work, args=(n, station)) for n in waiting]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive(), (self.project.log, "somebody waits for ever")

    def resume(self) -> None:
        """Go on after a kill."""
        self.project.dies_at = 0
        self.project.log.clear()
        self.ride(Station(self.most))

    def _work(self, name: str, station: Station[Load, Order]) -> None:
        journal, policy = self.journals[name], self._policy(name, station)
        state = replay([*journal.facts, Resumed(950.0, 8)]) if journal.facts else NEW
        bench = self.benches[name]
        clock = FakeClock(time=1000.0 + len(journal.facts), tick=0.01)
        ports = fake_ports(self.agents[name], bench.world, None, clock, bench.tree)
        ports = Ports(ports.agent, ports.world, journal, clock, bench.tree)
        try:
            self.ends[name] = run(policy, ports, state)
        except KilledError:
            station.leave(name)

    def _policy(self, name: str, station: Station[Load, Order]) -> Policy:
        bench = self.benches[name]

        def host(check: Gate) -> Gate:
            assert isinstance(check, Check)
            return Check(check.task, self.project, bench.tree)

        settle = settling(
            bench,
            (TaskLimit(Bounds().task), (), ()),
            Publishing(),
            AfterMerge((Rail(bench.tree),), Check(name, self.project, bench.tree), host),
            worker=name,
            station=station,
        )
        context = WorkerContext(name, Budget(None, 2))
        return worker(
            settle, Bounds(), context, patience=Patience(), gates=(), about=lambda _: Material()
        )

    # ---------------------------------------------------------------- what came of it

    def steps(self, name: str) -> list[str]:
        return [fact.key for fact in self.journals[name].facts if isinstance(fact, Step)]

    def proofs(self, name: str) -> list[Proved]:
        return [fact for fact in self.journals[name].facts if isinstance(fact, Proved)]

    def prompts(self, name: str) -> list[str]:
        return self.agents[name].prompts()
