"""A run that had ended goes on with new limits (ADR 35)."""

from dataclasses import replace

import pytest

from ralph.kernel.claims import find_claims
from ralph.kernel.engine import run
from ralph.kernel.events import Failure
from ralph.kernel.facts import Began, Ended, Fact, Resumed, Returned, Settled, Started
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits
from ralph.kernel.state import NEW, Phase, RunState, fold, replay
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import Accept, Feedback, Park, Reason, Stop
from ralph.loops.prompt.policy import harness
from ralph.testing.fakes import FakeAgent, FakeClock, FakeGate, MemoryJournal, fake_ports

STARTED = Started(1000.0, "run", "harness", "/work", 7, "1.0", limits=Limits(iterations=2))
LIMIT = Stop(Reason.LIMIT, "2 iterations used up")
WORK = Turn(text="working", tools=1, cost_usd=0.25)
DONE = Turn(text="done", claims=find_claims("<response>DONE</response>"), cost_usd=0.25)


def ended(stop: Stop = LIMIT, **fields: object) -> RunState:
    """The state of a run that has ended after two iterations, in the middle of a task."""
    state = replay([STARTED, Began(1001.0, 2, Assignment("a")), Ended(1010.0, WORK)])
    state = replace(state, **fields)  # type: ignore[arg-type]
    return fold(state, Settled(1011.0, stop))


def played(limits: Limits, facts: list[Fact], agent: FakeAgent) -> tuple[Stop, list[Fact]]:
    gates = (FakeGate(fails_in=frozenset({2})), FakeGate("protect", always=True))
    journal = MemoryJournal(facts)
    ports = fake_ports(agent, None, journal, FakeClock(replay(facts).time, tick=0.5))
    stop = run(harness(limits, gates=gates), ports, replay(facts)).stop
    assert stop is not None
    return stop, journal.facts


def test_with_a_higher_limit_it_ends_as_if_that_had_been_its_first() -> None:
    turns = [WORK, DONE, WORK, DONE]
    calm = FakeAgent(turns)
    whole, facts = played(Limits(iterations=9), [STARTED], calm)
    agent = FakeAgent(turns)
    stop, first = played(Limits(iterations=2), [STARTED], agent)
    assert stop.reason is Reason.LIMIT
    raised = Limits(iterations=9)
    again = [*first, Resumed(99_000.0, 8, raised, (("maximumIterations", 9),))]
    end, second = played(raised, again, agent)
    assert (end, whole.reason) == (whole, Reason.COMPLETED)
    assert agent.prompts() == calm.prompts(), "what the gates found last is told"
    state, undisturbed = replay(second), replay(facts)
    assert (state.spent.iterations, state.spent.dollars) == (4, undisturbed.spent.dollars)
    assert state.spent.seconds < 1000, "the time between does not count"
    assert (state.limits, state.raised) == (raised, (("maximumIterations", 9),))


def test_patience_begins_anew_and_what_was_spent_stays() -> None:
    lost = {"failures": 3, "stalls": 2, "waits": 4, "waited": 60.0, "barren": ("b",)}
    state = ended(Stop(Reason.STALLED, "x"), **lost, recalled=LIMIT, refusals=2)
    assert state.has_ended
    again = fold(state, Resumed(5000.0, 8))
    assert (again.phase, again.stop, again.verdict) == (Phase.OPENING, None, None)
    assert (again.failures, again.stalls, again.waits, again.waited) == (0, 0, 0, 0.0)
    assert (again.barren, again.recalled, again.refusals) == ((), None, 0)
    assert (again.spent, again.limits) == (state.spent, STARTED.limits)
    assert not again.has_ended


def test_an_interrupted_run_is_not_reopened() -> None:
    state = ended(Stop(Reason.INTERRUPTED), stalls=2)
    assert not state.has_ended
    assert fold(state, Resumed(5000.0, 8)).stalls == 2
    assert not NEW.has_ended


def test_new_limits_add_up() -> None:
    once = fold(ended(), Resumed(2000.0, 8, Limits(iterations=3), (("a", 3), ("b", 1.5))))
    twice = fold(fold(once, Settled(2001.0, LIMIT)), Resumed(3000.0, 9, None, (("a", 5),)))
    assert (twice.raised, twice.limits) == ((("a", 5), ("b", 1.5)), Limits(iterations=3))


@pytest.mark.parametrize(("task", "told"), [("a", (Feedback("the tests fail"),)), ("b", ())])
def test_what_was_found_in_a_task_is_told_to_no_other(task: str, told: object) -> None:
    state = ended(findings=(Finding("make test", "the tests fail"),))
    again = fold(state, Resumed(5000.0, 8))
    begun = fold(again, Began(5001.0, 3, Assignment(task), checkpoint="new"))
    assert begun.feedback == told
    assert (begun.task_iteration, begun.task_checkpoint) == (1, "new")
    assert begun.spent_before_task.dollars == 0.25


def test_an_iteration_that_was_the_providers_fault_is_taken_again() -> None:
    limited = Turn(exit_code=1, failure=Failure("limit", status=429))
    again = fold(ended(turn=limited), Resumed(5000.0, 8))
    assert (again.again, again.iteration) == (True, 2)


def test_a_worker_that_was_recalled_does_not_end_the_run_again() -> None:
    state = replay([STARTED, Returned(1001.0, "a", "w-1", LIMIT), Settled(1002.0, LIMIT)])
    assert fold(state, Resumed(5000.0, 8)).recalled is None


@pytest.mark.parametrize("end", [Accept(("ok",)), Park("why")])
def test_tasks_that_were_settled_stay_so(end: Accept | Park) -> None:
    state = fold(fold(ended(), Resumed(1.0, 8)), Began(5001.0, 3, Assignment("b")))
    state = fold(
        fold(fold(state, Ended(5002.0, WORK)), Settled(5003.0, end)), Settled(5004.0, LIMIT)
    )
    again = fold(state, Resumed(6000.0, 9))
    assert (again.done, again.parked) == (state.done, state.parked)
