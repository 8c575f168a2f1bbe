"""The state of a run is a fold over its facts (ADR 1)."""

from dataclasses import replace

import pytest

from ralph.kernel.claims import find_claims
from ralph.kernel.events import Usage
from ralph.kernel.facts import (
    Began,
    Checked,
    Checking,
    Decided,
    Ended,
    Fact,
    Fared,
    Landed,
    Launching,
    Resumed,
    Sent,
    Settled,
    Started,
    Step,
)
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Spent
from ralph.kernel.state import NEW, Phase, RunState, fold, replay
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Role, Turn
from ralph.kernel.verdict import (
    Accept,
    Boundary,
    Continue,
    Feedback,
    Park,
    Reason,
    Release,
    Stop,
    Verdict,
    Wait,
)
from ralph.kernel.world import Snapshot

OPENING, CLOSING, STOPPING = Boundary.OPENING, Boundary.CLOSING, Boundary.STOPPING
FINDING = Finding("make test", "the tests fail", code=1)
FAILED = Turn(exit_code=1)


def began(time: float = 10.0, iteration: int = 1, task: str = "a") -> Began:
    return Began(time, iteration, Assignment(task), Snapshot(f"tree {iteration}"))


def history(*verdicts: Verdict, turn: Turn = Turn()) -> list[Fact]:
    """One iteration a verdict, ten seconds each; a Wait is followed by the same iteration."""
    facts: list[Fact] = [Started(0.5, "r", "harness", "/w", 7, "1.0")]
    iteration = 1
    for number, verdict in enumerate(verdicts):
        now = 10.0 * (number + 1)
        facts += [began(now, iteration), Ended(now + 10, turn)]
        facts += [Decided(now + 10, CLOSING, verdict), Settled(now + 10, verdict)]
        iteration += not isinstance(verdict, Wait)
    return facts


def test_facts_lead_from_phase_to_phase() -> None:
    steps: list[tuple[Fact, Phase]] = [
        (Started(1.0, "r", "harness", "/w", 7, "1.0"), Phase.OPENING),
        (Decided(2.0, OPENING, Continue()), Phase.OPENING),
        (began(), Phase.TURN),
        (Ended(20.0, Turn()), Phase.CLOSING),
        (Landed(20.5, kept=True), Phase.CLOSING),
        (Checking(21.0, "make test"), Phase.CLOSING),
        (Checked(22.0, "make test", 1.0), Phase.CLOSING),
        (Decided(23.0, CLOSING, Accept(("claimed",))), Phase.SETTLING),
        (Step(24.0, "scm:commit"), Phase.SETTLING),
        (Settled(25.0, Accept(("claimed",))), Phase.OPENING),
        (Decided(26.0, OPENING, Stop(Reason.COMPLETED)), Phase.SETTLING),
    ]
    state = NEW
    for fact, phase in steps:
        state = fold(state, fact)
        assert state.phase is phase, fact
    assert state.stop is None, "a Stop settles first"
    assert fold(state, Settled(27.0, Stop(Reason.COMPLETED))).stop == Stop(Reason.COMPLETED)
    assert (state.done, state.evidence) == (frozenset({"a"}), ("claimed",))


def test_a_gate_on_its_way_changes_nothing() -> None:
    """Gates run again after a crash; only the Decided that follows them counts."""
    state = replay([began(), Ended(20.0, Turn())])
    assert replay([Checking(30.0, "g"), Checked(40.0, "g", 10.0, (FINDING,))], state) == state


def test_what_landed_is_known_until_the_next_turn_ends() -> None:
    """The next prompt tells of it; a turn that ends again has something else to land."""
    landed = Landed(21.0, kept=False, count=3)
    state = replay([began(), Ended(20.0, FAILED), landed])
    assert fold(state, began(30.0, 2)).landed == landed
    assert replay([began(30.0, 2), Ended(40.0, Turn())], state).landed is None


def test_what_is_spent() -> None:
    turn = Turn(cost_usd=0.5, usage=Usage(10, 1))
    state = replay([*history(Continue(), Continue(), turn=turn), Step(35.0, "x", cost_usd=0.25)])
    assert state.spent == Spent(2, 34.5, 1.25, Usage(20, 2))
    assert state.spent_at(45.0).seconds == 44.5
    assert state.spent_at(30.0).seconds == 34.5, "a clock that is set back spends nothing"
    assert NEW.spent_at(99.0) == Spent()


def test_waiting_spends_money_and_patience_but_no_time_and_no_iteration() -> None:
    """ADR 1: "`Wait` never counts an iteration or time asleep, always money"."""
    facts = history(Wait(500.0, "limit"), turn=Turn(cost_usd=0.5))
    asleep = replay(facts)
    assert (asleep.again, asleep.waits, asleep.wake) == (True, 1, 500.0)
    assert asleep.spent_at(400.0).seconds == asleep.spent.seconds == 19.5
    state = replay([Decided(500.0, OPENING, Continue()), began(500.0)], asleep)
    assert (state.spent, state.waited) == (Spent(1, 19.5, 0.5), 480.0)
    assert (state.again, state.wake, state.waits) == (False, None, 1)
    judged = replay([Ended(510.0, Turn()), Decided(510.0, CLOSING, Continue())], state)
    assert judged.waits == 0


def test_a_pause_spends_nothing_at_all_and_forgets_no_wake_time() -> None:
    facts = [*history(Wait(500.0, "limit")), Decided(100.0, OPENING, Wait(None, "paused"))]
    state = replay(facts)
    assert state.asleep == Wait(None, "paused")
    assert (state.phase, state.wake, state.waited) == (Phase.OPENING, 500.0, 80.0)
    later = fold(state, Decided(9000.0, OPENING, Continue()))
    assert (later.waited, later.spent) == (80.0, state.spent)


def test_an_opening_may_wait_until_a_time_too() -> None:
    state = replay([*history(Continue()), Decided(20.0, OPENING, Wait(60.0, "not before noon"))])
    assert (state.phase, state.wake, state.again) == (Phase.OPENING, 60.0, False)


def test_a_turn_that_waits_is_not_judged() -> None:
    before = replay(history(Continue(), turn=FAILED))
    wait = Decided(30.0, CLOSING, Wait(60.0, "limit"))
    state = replay([began(20.0, 2), Ended(30.0, FAILED), wait], before)
    assert (state.failures, state.stalls) == (before.failures, before.stalls) == (1, 0)


def test_what_gates_found_before_a_wait_is_settled_and_told() -> None:
    """ADR 20: illegal changes are reverted and fed back "under every verdict"."""
    told = Feedback("lint fails")
    facts: list[Fact] = [*history(Continue((told,))), began(30.0, 2), Ended(40.0, FAILED)]
    wait = Decided(40.0, CLOSING, Wait(60.0, "limit"), findings=(FINDING,))
    state = replay([*facts, wait])
    assert state.phase is Phase.SETTLING
    assert state.findings == (FINDING,)
    assert state.feedback == (told, FINDING.feedback())
    twice = replay([Settled(40.0, wait.verdict), began(60.0, 2), Ended(70.0, FAILED), wait], state)
    assert twice.feedback == state.feedback
    quiet = replace(wait, findings=())
    assert fold(replace(state, phase=Phase.CLOSING), quiet).findings == (FINDING,)


def test_what_is_counted_in_a_row() -> None:
    stalled = Decided(40.0, CLOSING, Continue(), progressed=False)
    facts: list[Fact] = [
        *history(Continue(), Continue(), turn=FAILED),
        Ended(40.0, FAILED),
        stalled,
    ]
    state = replay(facts)
    assert (state.failures, state.stalls) == (3, 1)
    state = replay([Ended(50.0, Turn()), stalled], state)
    assert (state.failures, state.stalls) == (0, 2)
    state = replay([Ended(60.0, Turn()), Decided(60.0, CLOSING, Continue())], state)
    assert (state.failures, state.stalls) == (0, 0)


def test_refused_commits_are_counted_in_a_row_whatever_tasks_they_are_of() -> None:
    """A hook that refuses everything would use up one task after the other."""
    refused = Step(1.0, "commit", ok=False, detail="lint")
    steps = (refused, Step(1.0, "sync", ok=False), refused, Step(1.0, "commit"), refused)
    counts = [replay(steps[: number + 1]).refusals for number in range(len(steps))]
    assert counts == [1, 1, 2, 0, 1]


@pytest.mark.parametrize("verdict", [Accept(("claimed",)), Park("no key")])
def test_the_next_task_starts_without_the_last_ones_objections(verdict: Verdict) -> None:
    """A task must not be parked because the one before it made no progress."""
    decided = Decided(40.0, CLOSING, verdict, findings=(FINDING,), checked=True, progressed=False)
    facts = history(Continue((Feedback("x"),)), turn=FAILED)
    state = replay([*facts, Ended(40.0, FAILED), decided, Settled(41.0, verdict)])
    assert (state.feedback, state.findings, state.stalls, state.checked) == ((), (), 0, False)
    assert state.failures == 0
    assert state.barren == (("a",) if isinstance(verdict, Park) else ()), "no turn did not fail"
    assert state.done == frozenset("a" if isinstance(verdict, Accept) else ())
    assert state.parked == ((("a", "no key"),) if isinstance(verdict, Park) else ())


def test_feedback_and_delay_reach_the_next_turn() -> None:
    verdict = Continue((Feedback("lint fails"),), after=5.0)
    state = replay(history(verdict))
    assert (state.feedback, state.wake) == (verdict.feedback, 25.0)


def test_the_verdict_that_stands_is_the_settled_one() -> None:
    """ADR 1: "a commit refused by the user's own git hook is a Continue with that output"."""
    refused = Continue((Feedback("the commit was refused"),))
    facts = [*history(Accept(("claimed",)))[:-1], Settled(20.0, refused)]
    state = replay(facts)
    assert (state.done, state.feedback) == (frozenset(), refused.feedback)
    assert state.verdict == refused


def test_what_a_task_spends_counts_from_its_first_turn() -> None:
    facts = history(Continue(), Accept(()))
    state = replay([*facts, began(40.0, 3, "b"), Ended(50.0, Turn()), began(50.0, 4, "b")])
    assert (state.spent_before_task.iterations, state.spent_before_task.seconds) == (2, 39.5)


def test_the_wait_for_a_machine_is_not_the_tasks_time() -> None:
    queued = Ended(50.0, Turn(queued=8.0))
    state = replay([*history(Accept(())), began(40.0, 2, "b"), queued])
    assert state.spent.seconds - state.spent_before_task.seconds == 2.0


def test_only_the_attempt_under_way_fares_and_one_that_is_given_up_is_not_taken_up_again() -> None:
    """ADR 47; what its agent cost is not known."""
    sent, second = Sent(11.0, 1, "refs/1", "c1"), Sent(15.0, 2, "refs/2", "c2")
    facts: list[Fact] = [began(), sent, Fared(12.0, 1, "placed", "host1")]
    facts.append(Launching(13.0, Role.WORK, "text", "001.stream"))
    state = replay(facts)
    assert (state.trying, state.host) == (sent, "host1")
    state = fold(state, Fared(14.0, 1, "lost", "host1", "its lease is over"))
    assert (state.trying, state.host, state.spent.uncounted) == (None, "", 1)
    state = replay([second, Fared(16.0, 2, "placed", "host2")], state)
    back = fold(state, Fared(17.0, 1, "ignored", "host1"))
    assert (back.trying, back.host, back.spent.uncounted) == (second, "host2", 1)
    assert fold(back, Fared(18.0, 2, "done")).trying == second, "it has not landed"


def test_the_time_between_a_crash_and_its_resume_does_not_count() -> None:
    state = replay([Started(1.0, "r", "harness", "/w", 7, "1.0"), began(10.0), Resumed(999.0, 8)])
    assert (state.spent.seconds, state.time, state.cut_off) == (9.0, 999.0, True)
    assert not fold(state, began(1000.0, 2)).cut_off


def test_only_a_turn_is_cut_off_by_a_crash() -> None:
    state = replay([began(10.0), Ended(20.0, Turn()), Resumed(30.0, 8)])
    assert (state.phase, state.cut_off) == (Phase.CLOSING, False)


def test_a_blocked_exit_is_an_iteration_and_a_hold() -> None:
    """ADR 2: "In P the iteration counts blocked exits"."""
    begun = replay([began(10.0, 0)])
    state = fold(begun, Decided(20.0, STOPPING, Continue(), findings=(FINDING,)))
    assert (state.phase, state.iteration, state.holds) == (Phase.TURN, 1, 1)
    assert (state.spent.iterations, state.findings) == (1, (FINDING,))
    released = fold(state, Decided(30.0, STOPPING, Release()))
    assert (released.phase, released.iteration) == (Phase.TURN, 1)
    assert fold(state, Decided(30.0, STOPPING, Accept(()))).phase is Phase.SETTLING


def test_whether_a_response_tag_was_ever_written() -> None:
    """Issue 2, §4: the hint at the limit depends on it."""
    assert not replay(history(Continue())).claimed
    tag = Turn(claims=find_claims("<response>not yet</response>"))
    state = replay(history(Continue(), turn=tag))
    assert state.claimed
    assert replay([began(90.0, 2), Ended(99.0, Turn())], state).claimed


def test_a_new_turn_forgets_the_steps_and_holds_of_the_last() -> None:
    step = Step(20.0, "scm:commit", ok=False, detail="refused")
    state = RunState(phase=Phase.SETTLING, steps=(step,), holds=3)
    assert (state.step("scm:commit"), state.step("scm:push")) == (step, None)
    fresh = fold(state, began(30.0, 2))
    assert (fresh.steps, fresh.holds, fresh.snapshot) == ((), 0, Snapshot("tree 2"))


def test_every_reason_has_its_exit_code() -> None:
    """README §Exit codes: the one exit-code table."""
    codes = {reason.value: reason.exit_code for reason in Reason}
    assert codes == {
        "completed": 0,
        "limit": 1,
        "config": 2,
        "blocked": 3,
        "stalled": 4,
        "failing": 5,
        "bug": 70,
        "interrupted": 130,
    }
