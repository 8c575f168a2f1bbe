"""Many workers on a large backlog, in virtual time: the real coordinator, journal, task list and
merge train; agents, machines and gates are numbers from a seed.

    python -m bench --only fleet
    python -m bench.fleet_plot docs/pictures/scale.svg      # draws what it finds
"""

import heapq
import os
import random
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import count

from bench.place import BenchError
from bench.rows import Row
from ralph.journal.journal import FileJournal
from ralph.kernel.case import Case, decided_by
from ralph.kernel.facts import Assigned, Returned
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.ports import Crew
from ralph.kernel.state import NEW
from ralph.kernel.tasks.select import next_task
from ralph.kernel.tasks.task import Backlog
from ralph.kernel.verdict import Accept, Boundary
from ralph.kernel.world import Request, Signals, Snapshot
from ralph.loops.backlog.parallel.budget import Budget
from ralph.loops.backlog.parallel.coordinator import coordinate
from ralph.loops.backlog.parallel.policy import foreman
from ralph.loops.backlog.parallel.train import Train
from ralph.loops.backlog.policy import Bounds
from ralph.loops.backlog.store.selection import TaskBacklog
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.testing.fakes import FakeClock

WORKERS = (1, 2, 4, 8, 16, 32, 64)
TASKS = 1_000
TRAIN = 8  # tasks that are tried together
GATES = 10.0  # seconds
AGENT = (60.0, 600.0)
FAILS = 0.05  # of the tasks, at the gates after the merge; they go back to their agent once
LOST = 0.02  # of the attempts, together with their machine, at any moment
LEASE = 60.0
_OVER = LEASE * 1.02 + 1  # seconds after which a machine that is not heard is lost for certain


@dataclass(frozen=True)
class Found:
    """What came of one run."""

    workers: int
    train: int
    seconds: float  # until the last task had landed
    merges: float  # an hour, between the first and the last tenth of them
    trials: float  # runs of the gates after a merge, by task
    cpu: float  # milliseconds of the coordinator, by task


@dataclass
class _Task:
    """What is going to happen to one task, the same in every run of a seed."""

    name: str
    chance: random.Random
    fails: bool
    future: "Future[Returned | None]" = field(default_factory=Future)
    worker: str = ""
    base: int = 0  # how many had landed when its agent began


class Fleet:
    """A run over so many tasks by so many workers. Time passes only where the coordinator waits."""

    def __init__(self, place: str, tasks: int, workers: int, train: int, seed: int) -> None:
        self._place, self._tasks, self._workers, self._most = place, tasks, workers, train
        self._seed = seed
        self._file = TaskFile(place)
        self._backlog = TaskBacklog(self._file)
        self._clock = FakeClock(0.0)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._sent = 0
        self._landings: list[float] = []
        self._waiting: deque[_Task] = deque()  # for the train
        self._rides = False
        self._trials = 0
        self._apart = 0.0  # seconds of processor time that are ours, and not the coordinator's

    def run(self) -> Found:
        """Work through all of them."""
        journal = FileJournal(os.path.join(self._place, f"{self._workers}-{self._most}.jsonl"))
        crew = Crew(self._workers, self.send, lambda: None, "run-{:04d}".format)
        policy = foreman(Bounds(tasks=sys.maxsize, run=Limits()), Budget(None, self._workers))
        began = time.thread_time()
        state = coordinate(policy, crew, NEW, world=self, journal=journal, clock=self._clock)
        spent = time.thread_time() - began - self._apart
        journal.close()
        if len(state.done) != self._tasks:
            raise BenchError(f"{len(state.done)} of {self._tasks} tasks are done")
        tenth = self._tasks // 10
        middle = self._landings[-tenth] - self._landings[tenth]
        return Found(
            self._workers,
            self._most,
            self._landings[-1],
            3600 * (self._tasks - 2 * tenth) / middle,
            self._trials / self._tasks,
            1000 * spent / self._tasks,
        )

    # -------------------------------------------------------------- the coordinator's world

    def signals(self) -> Signals:
        """Asked once in each round: whoever is at work goes on until one is back."""
        with self._not_counted():
            under_way = self._sent - len(self._landings)
            landed = len(self._landings)
            if under_way == self._workers or self._sent == self._tasks:
                while under_way and len(self._landings) == landed:
                    self._clock.time, _, happens = heapq.heappop(self._events)
                    happens()
        return Signals()

    def backlog(self) -> Backlog:
        return self._backlog()

    def snapshot(self) -> Snapshot:
        return Snapshot("")

    def checkpoint(self) -> str:
        return ""

    def take(self, request: Request) -> bool:
        return True

    def send(self, assigned: Assigned) -> "Future[Returned | None]":
        """A worker begins."""
        with self._not_counted():
            self._sent += 1
            name = assigned.assignment.task
            chance = random.Random(f"{self._seed} {name}")  # noqa: S311  not a secret
            task = _Task(name, chance, chance.random() < FAILS, worker=assigned.worker)
            self._attempt(task)
            return task.future

    # -------------------------------------------------------------- what happens elsewhere

    def _attempt(self, task: _Task) -> None:
        task.base = len(self._landings)
        lasts, is_lost = task.chance.uniform(*AGENT), task.chance.random() < LOST
        if is_lost:
            lasts = lasts * task.chance.random() + _OVER
            self._later(lasts, lambda: self._attempt(task))
        else:
            self._later(lasts + GATES, lambda: self._claims(task))

    def _claims(self, task: _Task) -> None:
        self._waiting.append(task)
        self._depart()

    def _depart(self) -> None:
        """The next train leaves with whoever waits, unless one is under way."""
        if self._rides or not self._waiting:
            return
        self._rides = True
        number = min(self._most, len(self._waiting))
        tasks = {t.name: t for t in (self._waiting.popleft() for _ in range(number))}
        first = next(iter(tasks.values()))
        # Where nothing has landed since it began, its own gates have proven the first.
        good = int(first.base == len(self._landings))
        self._try(Train(tuple(tasks), good), tasks)

    def _try(self, train: Train, tasks: dict[str, _Task]) -> None:
        if not train.trial:
            self._arrive(train, tasks)
            return
        self._trials += 1
        passes = not any(tasks[name].fails for name in train.cars[: train.trial])
        after = train.passed() if passes else train.failed()
        self._later(GATES, lambda: self._try(after, tasks))

    def _arrive(self, train: Train, tasks: dict[str, _Task]) -> None:
        self._rides = False
        for name in train.lands:
            self._land(tasks[name])
        for name in train.guilty:
            tasks[name].fails = False
            self._attempt(tasks[name])
        self._waiting.extendleft(tasks[name] for name in reversed(train.again))
        self._depart()

    def _land(self, task: _Task) -> None:
        now = self._clock.time
        self._landings.append(now)
        with self._counted():
            self._file.update(task.name, lambda record: {**record, "status": "done"})
        verdict = Accept(("proven",))
        back = Returned(now, task.name, task.worker, verdict, Spent(iterations=1), title=task.name)
        task.future.set_result(back)

    def _later(self, seconds: float, happens: Callable[[], None]) -> None:
        event = (self._clock.time + seconds, next(self._numbers), happens)
        heapq.heappush(self._events, event)

    @contextmanager
    def _not_counted(self, sign: float = 1.0) -> Iterator[None]:
        began = time.thread_time()
        yield
        self._apart += sign * (time.thread_time() - began)

    def _counted(self) -> AbstractContextManager[None]:
        return self._not_counted(-1.0)


def simulated(place: str, tasks: int, workers: int, train: int, seed: int = 1) -> Found:
    """One run, in a directory of its own below `place`."""
    own = tempfile.mkdtemp(dir=place)
    _write(own, tasks)
    return Fleet(own, tasks, workers, train, seed).run()


def rows(place: str, tasks: int, workers: tuple[int, ...] = WORKERS) -> Iterator[Row]:
    """With the train, beside tasks that are merged one at a time."""
    alone, crewed = f"{tasks:,} tasks", f"{tasks:,} tasks, {{}} workers: merges an hour"
    one = {"floor": simulated(place, tasks, 1, 1), "ralph": simulated(place, tasks, 1, TRAIN)}
    yield Row(f"{alone}, one worker: hours", "h", {who: f.seconds / 3600 for who, f in one.items()})
    for number in workers:
        found = {
            "floor": simulated(place, tasks, number, 1),
            "ralph": simulated(place, tasks, number, TRAIN),
        }
        speed_up = {who: one[who].seconds / each.seconds for who, each in found.items()}
        yield Row(crewed.format(number), "", {who: f.merges for who, f in found.items()})
        yield Row("  speed-up", "x", speed_up)
        yield Row("  runs of the gates for a merge", "", {w: f.trials for w, f in found.items()})
        yield Row("  coordinator's CPU for a task", "ms", {w: f.cpu for w, f in found.items()})
    for many in (tasks, 10 * tasks):
        yield Row(f"a look at {many:,} open tasks, CPU", "ms", {"ralph": look(place, many)})


def look(place: str, tasks: int, times: int = 20) -> float:
    """Milliseconds of processor time of one look at so many open tasks, which the coordinator takes
    four times a second."""
    own = tempfile.mkdtemp(dir=place)
    _write(own, tasks)
    backlog, policy = (
        TaskBacklog(TaskFile(own)),
        foreman(Bounds(tasks=sys.maxsize, run=Limits()), Budget(None, 1)),
    )
    backlog()
    began = time.thread_time()
    for _ in range(times):
        case = Case(Boundary.OPENING, NEW, 0.0, backlog=backlog())
        decided_by(case, policy.opening)
        next_task(case)
    return 1000 * (time.thread_time() - began) / times


def _write(place: str, tasks: int) -> None:
    """A list of open tasks that wait for nothing."""
    os.makedirs(os.path.join(place, ".ralph"))
    with open(os.path.join(place, ".ralph", "tasks.jsonl"), "w", encoding="ascii") as file:
        for n in range(tasks):
            stamp = f'"createdAt": "2026-01-01T00:00:00.{n:06}Z"'
            file.write(
                f'{{"id": "T-{n}", "title": "Build part {n}", "status": "pending", {stamp}}}\n'
            )
