"""The coordinator: whom it sends, what it waits for, and how a run by several workers ends."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from kits.histories import assert_same_again
from ralph.kernel.facts import Asked, Assigned, Decided, Fact, Returned, Settled
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.ports import Crew
from ralph.kernel.state import NEW, fold, replay
from ralph.kernel.tasks.task import Assignment, Backlog, Status, Task
from ralph.kernel.value import replace
from ralph.kernel.verdict import Accept, Cause, Park, Reason, Stop, Verdict
from ralph.kernel.world import ANSWER, NOTE, PAUSE, RESUME, Origin, Request, Signals
from ralph.loops.backlog.parallel.budget import Budget
from ralph.loops.backlog.parallel.coordinator import coordinate
from ralph.loops.backlog.parallel.policy import foreman
from ralph.loops.backlog.policy import Bounds
from ralph.testing.fakes import FakeClock, FakeWorld, MemoryJournal

DONE, FAILS = Accept(("proof",)), Park("it cannot be")
A, B, C = Task("a"), Task("b"), Task("c")


@dataclass
class Office:
    """A backlog, and what comes of each task; everything that happens is in the journal."""

    world: FakeWorld
    outcomes: dict[str, Verdict | Exception | None] = field(default_factory=dict)
    bounds: Bounds = Bounds(run=Limits())
    size: int = 2
    cost: float = 0.0
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    clock: FakeClock = field(default_factory=FakeClock)
    worked: list[str] = field(default_factory=list)
    recalled: int = 0
    ended: list[tuple[Stop, Fact]] = field(default_factory=list)

    def work(self, sent: Assigned) -> Returned | None:
        task = sent.assignment.task
        self.worked.append(task)
        outcome = self.outcomes.get(task, DONE)
        if outcome is None:  # someone presses Ctrl+C
            self.world.asked = Signals(cancels=1)
            return None
        if isinstance(outcome, Exception):
            raise outcome
        status = {Accept: Status.DONE, Park: Status.BLOCKED}.get(type(outcome))
        if status is not None:
            self.world.update(task, status=status)
        spent = Spent(iterations=2, seconds=5.0, dollars=self.cost)
        return Returned(self.clock.now(), task, sent.worker, outcome, spent)

    def send(self, assigned: Assigned) -> "Future[Returned | None]":
        """Whoever is sent is back before the next."""
        future: Future[Returned | None] = Future()
        try:
            future.set_result(self.work(assigned))
        except Exception as error:  # noqa: BLE001  as executors do
            future.set_exception(error)
        return future

    def recall(self) -> None:
        self.recalled += 1

    def end(self, stop: Stop) -> None:
        self.ended.append((stop, self.journal.facts[-1]))

    def run(self, facts: tuple[Fact, ...] = ()) -> Stop:
        crew = Crew(self.size, self.send, self.recall, "run-{:03d}".format, self.end)
        purse = Budget(self.bounds.run.dollars, self.size, self.cost * len(self.worked))
        stop = coordinate(
            foreman(self.bounds, purse),
            crew,
            replay(facts, NEW),
            world=self.world,
            journal=self.journal,
            clock=self.clock,
        ).stop
        assert stop is not None
        todays, new = foreman(self.bounds, Budget(None, 1)), self.journal.facts
        assert_same_again(todays, new, replay(facts, NEW), "SharedLimit")
        return stop


def office(*tasks: Task, **more: object) -> Office:
    return Office(FakeWorld(Backlog(tasks)), **more)  # type: ignore[arg-type]


def test_everybody_is_sent_once_and_all_of_it_is_counted() -> None:
    """The run's iterations and money are the sum; its time is its own."""
    here = office(A, B, C, cost=0.5)
    assert here.run().reason is Reason.COMPLETED
    assert here.worked == ["a", "b", "c"]
    state = replay(tuple(here.journal.facts))
    assert state.done == {"a", "b", "c"}
    assert (state.spent.iterations, state.spent.dollars, state.spent.seconds) == (6, 1.5, 0.0)
    assert [f.worker for f in here.journal.facts if isinstance(f, Assigned)] == [
        "run-001",
        "run-002",
        "run-003",
    ]
    assert (state.crew, state.sent) == ((), 3)


def test_time_in_which_all_only_wait_is_not_spent() -> None:
    """A night of CI uses up none of the run's time, and what comes after it still begins."""
    here = office(A, replace(B, blocked_by=("a",)), bounds=Bounds(run=Limits(seconds=300.0)))
    waits: list[Assigned] = []
    first: Future[Returned | None] = Future()

    def send(assigned: Assigned) -> "Future[Returned | None]":
        if assigned.assignment.task == "b":
            return here.send(assigned)
        waits.append(assigned)
        return first

    def resting() -> int:
        here.clock.time += 100.0 * len(waits)
        if waits and here.clock.time > 1500.0:
            first.set_result(here.work(waits.pop()))
        return 0 if first.done() else len(waits)

    crew = Crew(1, send, here.recall, "run-{:03d}".format, here.end, resting)
    policy = foreman(here.bounds, Budget(None, 1, 0.0))
    clock, journal = here.clock, here.journal
    state = coordinate(policy, crew, NEW, world=here.world, journal=journal, clock=clock)
    assert state.stop is not None
    assert (here.worked, state.stop.reason) == (["a", "b"], Reason.COMPLETED)
    assert state.waited > state.spent.seconds


def sent(task: str, worker: str = "run-001") -> Assigned:
    return Assigned(1.0, Assignment(task), worker)


def test_who_was_sent_and_is_not_back_is_sent_again() -> None:
    """Resume: a fold over the journal, and nothing else."""
    here = office(A, B)
    back = Returned(2.0, "a", "run-001", DONE, Spent(1, 3.0, 0.25))
    assert here.run((sent("a"), sent("b", "run-002"), back)).reason is Reason.COMPLETED
    assert here.worked[0] == "b"


def test_a_blocker_that_is_at_work_blocks_whatever_the_list_says() -> None:
    """It may be called done by now, and is merged only when its worker is back."""
    here = office(replace(A, status=Status.DONE), replace(B, blocked_by=("a",)))
    here.outcomes["a"] = None
    assert here.run((sent("a"),)).reason is Reason.INTERRUPTED
    assert here.worked == ["a"]


def test_a_worker_that_was_asked_to_stop_is_not_back() -> None:
    """The next run goes on with it: it stays in the crew."""
    here = office(A)
    here.outcomes["a"] = None
    assert here.run().reason is Reason.INTERRUPTED
    assert replay(tuple(here.journal.facts)).at_work == {"a"}


@pytest.mark.parametrize(
    ("outcomes", "bounds", "reason", "worked"),
    [
        ({"a": FAILS}, Bounds(run=Limits()), Reason.BLOCKED, "abc"),
        ({"a": FAILS}, Bounds(run=Limits(), stop_on_failure=True), Reason.BLOCKED, "a"),
        (
            {"a": Park("which?", Cause.QUESTION)},
            Bounds(run=Limits(), stop_on_failure=True),
            Reason.BLOCKED,
            "abc",
        ),
        ({"a": Stop(Reason.FAILING, "3 in a row")}, Bounds(run=Limits()), Reason.FAILING, "a"),
        ({}, Bounds(run=Limits(), tasks=2), Reason.LIMIT, "ab"),
        ({}, Bounds(run=Limits(seconds=4.0)), Reason.LIMIT, ""),
    ],
)
def test_what_ends_a_run_by_several_workers(
    outcomes: dict[str, Verdict], bounds: Bounds, reason: Reason, worked: str
) -> None:
    """What ends a worker in the middle of its task sends nobody else."""
    here = office(A, B, C, outcomes=outcomes, bounds=bounds, size=1)
    facts = () if worked else (sent("x"), Returned(6.0, "x", "run-001", DONE))
    assert here.run(facts).reason is reason
    assert "".join(here.worked) == worked


def test_the_first_failure_is_remembered() -> None:
    """`onFailure: stop`, whatever comes back after it."""
    facts = (
        sent("a"),
        sent("b", "run-002"),
        Returned(2.0, "a", "run-001", FAILS),
        Returned(3.0, "b", "run-002", DONE),
    )
    state = replay(facts)
    assert state.verdict == FAILS
    assert state.assignment == Assignment("a")
    assert (set(state.done), state.parked) == ({"b"}, (("a", "it cannot be"),))


def test_a_paused_run_sends_nobody() -> None:
    """Until it is asked to go on."""
    here = office(A)
    here.world.asked = Signals(paused=True)

    def go_on() -> None:
        here.world.asked = Signals()

    here.clock.during_rest = go_on
    assert here.run().reason is Reason.COMPLETED
    assert len(here.clock.rests) == 1


def test_a_worker_that_fails_badly_recalls_the_others() -> None:
    """What it raised is raised once all are back."""
    here = office(A, B, outcomes=dict.fromkeys("ab", RuntimeError("no disk")))
    with pytest.raises(RuntimeError, match="no disk"):
        here.run()
    assert here.recalled == 2
    assert replay(tuple(here.journal.facts)).at_work == {"a", "b"}


def test_what_became_of_them_is_kept_before_the_run_is_over() -> None:
    """Killed in between, the run can be resumed, and does it again."""
    here = office(A)
    stop = here.run()
    ((told, last),) = here.ended
    assert told == stop
    assert isinstance(last, Decided)
    assert isinstance(here.journal.facts[-1], Settled)
    interrupted = office(A, outcomes={"a": None})
    assert interrupted.run().reason is Reason.INTERRUPTED
    assert interrupted.ended == [], "it goes on later"


def test_workers_may_be_threads() -> None:
    """Or whatever else gives a future."""
    here = office(A, B, C)
    with ThreadPoolExecutor(2) as threads:
        crew = Crew(2, lambda each: threads.submit(here.work, each), here.recall, str)
        stop = coordinate(
            foreman(here.bounds, Budget(None, 2)),
            crew,
            NEW,
            world=here.world,
            journal=here.journal,
            clock=here.clock,
        ).stop
    assert stop is not None
    assert stop.reason is Reason.COMPLETED
    assert sorted(here.worked) == ["a", "b", "c"]


def test_what_people_ask_is_journaled_once_and_notes_are_for_workers() -> None:
    """ADR 38: the lead journals all requests but notes, whoever hears them too."""
    note, answer = (Request(name, name, Origin.WEB, text="Tabs.") for name in (NOTE, ANSWER))
    here = office(A, B, C)
    here.world.asked = Signals(requests=(note, answer))
    assert here.run().reason is Reason.COMPLETED
    asked = [fact.request for fact in here.journal.facts if isinstance(fact, Asked)]
    assert asked == [answer]


def test_who_goes_on_after_a_pause_comes_back_to_be_wired_anew() -> None:
    """Workers are called back first; nobody is sent by the old settings."""
    here = office(A, B, C)
    crew = Crew(2, here.send, here.recall, str, here.end)
    here.world.asked = Signals(paused=True, requests=(Request("1", PAUSE),))

    def resume() -> None:
        here.world.asked = Signals(requests=(Request("2", RESUME),))

    here.clock.during_rest = resume
    policy = foreman(here.bounds, Budget(None, 2))
    world, journal = here.world, here.journal
    state = coordinate(policy, crew, NEW, world=world, journal=journal, clock=here.clock)
    assert (state.stop, state.rewire, here.recalled > 0) == (None, True, True)
    assert here.worked == []
    at_work = replace(NEW, crew=(Assigned(1.0, Assignment("a"), "run-001"),))
    assert fold(at_work, Asked(2.0, Request("2", RESUME))).rewire, "its workers may have paused"
