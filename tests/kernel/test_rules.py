"""Rules at opening and closing: each answers its own question, and nothing else."""

from dataclasses import replace

import pytest

from kits.cases import (
    CRASHED,
    CUT,
    FINDING,
    MISSING,
    NOW,
    ONE,
    UNDER_WORK,
    closing,
    failed,
    opening,
    said,
)
from ralph.kernel.case import Case, decide, rule_name
from ralph.kernel.contracts import PromiseTag, ResponseTag
from ralph.kernel.events import Usage
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.rules import (
    Asks,
    Believed,
    Failing,
    Objections,
    RunLimit,
    Stalled,
    Stuck,
    Uncounted,
    cancelled,
    carry_on,
    describe_failure,
    nothing_left,
    paused,
    refused,
    release,
    unreadable,
    unstartable,
)
from ralph.kernel.state import RunState
from ralph.kernel.tasks.select import next_task
from ralph.kernel.tasks.task import Backlog, Task
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import (
    Accept,
    Answer,
    Cause,
    Continue,
    Cut,
    Feedback,
    Park,
    Placement,
    Reason,
    Release,
    Stop,
    Wait,
)
from ralph.kernel.world import Signals, Snapshot
from ralph.loops.supervise.policy import CarryOn
from ralph.text.words import counted

ASKED = Signals(cancels=1, cancelled_at=NOW)


# ------------------------------------------------------------------ decide


def silent(case: Case) -> Answer | None:
    return None


def cuts(case: Case) -> Answer | None:
    return Cut("never mind")


def test_the_first_rule_that_answers_wins() -> None:
    """ADR 1: "A ladder is an ordered tuple of small rules; the first answer wins"."""
    assert decide(opening(), (silent, carry_on, cancelled)) == Continue()
    assert decide(opening(), (silent, silent)) is None


def test_an_answer_that_is_not_legal_is_a_bug_that_names_its_rule() -> None:
    with pytest.raises(AssertionError, match=r"cuts.*Cut\(why='never mind'.*not legal at open"):
        decide(opening(), (silent, cuts))


def test_rules_explain_themselves() -> None:
    """ADR 1: rules "print, compare and explain themselves"."""
    assert rule_name(carry_on) == "carry_on"
    assert rule_name(Failing(3)) == "Failing(after=3, park=False)"
    assert rule_name(RunLimit(Limits(iterations=3))) == "RunLimit(limits=Limits(iterations=3))"
    assert rule_name(Stuck(next_task)) == "Stuck()"
    assert RunLimit(Limits(iterations=3)) == RunLimit(Limits(iterations=3))


# ------------------------------------------------------------------ opening


def test_people_may_end_or_pause_a_run() -> None:
    assert cancelled(opening(signals=ASKED)) == Stop(Reason.INTERRUPTED, "asked to stop")
    assert paused(opening(signals=Signals(paused=True))) == Wait(None, "paused")
    assert cancelled(opening()) is None
    assert paused(opening()) is None


def test_what_cannot_be_read_ends_the_run() -> None:
    case = opening(ONE)
    gone = replace(case, backlog=Backlog(problem="PROMPT.md: no such file"))
    assert unreadable(gone) == Stop(Reason.CONFIG, "PROMPT.md: no such file")
    odd = opening(ONE, signals=Signals(problem="DONE is a directory"))
    assert unreadable(odd) == Stop(Reason.CONFIG, "DONE is a directory")
    assert unreadable(case) is None


def test_stuck_names_the_tasks_that_cannot_be_started() -> None:
    """ADR 1: "tasks are open and none can be selected → blocked, naming them"."""
    circle = (Task("a", blocked_by=("b",)), Task("b", blocked_by=("a",)))
    why = "no open task can be started: a, b"
    assert Stuck(next_task)(opening(*circle)) == Stop(Reason.BLOCKED, why)
    why = "no open task can be started: the list is empty"
    assert Stuck(next_task)(opening()) == Stop(Reason.BLOCKED, why)
    assert Stuck(next_task)(opening(ONE)) is None


def test_nothing_left_is_complete() -> None:
    done = RunState(done=frozenset({"prompt"}), evidence=("claimed: x",))
    complete = Stop(Reason.COMPLETED, "nothing is left to do", ("claimed: x",))
    assert nothing_left(opening(ONE, state=done)) == complete
    assert nothing_left(opening(ONE)) is None


def test_the_run_limit_counts_an_iteration_that_is_taken_again_only_once() -> None:
    """ADR 1: "`Wait` never counts an iteration"."""
    rule, state = RunLimit(Limits(iterations=1)), RunState(spent=Spent(iterations=1))
    assert rule(opening(state=state)) == Stop(Reason.LIMIT, "1 iteration used up")
    assert rule(opening(state=replace(state, again=True))) is None


def test_the_last_rungs() -> None:
    assert carry_on(opening()) == Continue()
    assert CarryOn(2.0)(closing()) == Continue(after=2.0)
    assert release(closing()) == Release()


# ------------------------------------------------------------------ closing


def test_after_a_signal_the_answer_is_130_whatever_was_claimed() -> None:
    """ADR 2."""
    done = said("<response>DONE</response>")
    answer = cancelled(closing(done, signals=ASKED))
    assert isinstance(answer, Stop)
    assert answer.reason.exit_code == 130
    assert cancelled(closing(done)) is None


def test_an_agent_that_cannot_be_started_ends_the_run() -> None:
    """ADR 5: "Not found / not executable ends the run (2)"."""
    assert unstartable(closing(MISSING)) == Stop(Reason.CONFIG, MISSING.why)
    assert unstartable(closing(CRASHED)) is None


@pytest.mark.parametrize(
    ("status", "ends"), [(401, True), (403, True), (429, False), (None, False)]
)
def test_a_refused_credential_ends_the_run(status: int | None, ends: bool) -> None:
    """ADR 1: "a structured 401/403 ends the run (2)"."""
    answer = refused(closing(failed("invalid key", status)))
    told = Stop(Reason.CONFIG, "the agent's credential was refused: invalid key")
    assert answer == (told if ends else None)
    assert refused(closing()) is None


@pytest.mark.parametrize(
    ("after", "before", "turn", "stops"),
    [
        (3, 2, CRASHED, True),
        (3, 1, CRASHED, False),
        (3, 2, Turn(), False),
        (1, 0, CUT, True),
        (0, 99, CRASHED, False),
    ],
)
def test_failures_in_a_row_end_the_run(after: int, before: int, turn: Turn, stops: bool) -> None:
    answer = Failing(after)(closing(turn, state=replace(UNDER_WORK, failures=before)))
    assert isinstance(answer, Stop) is stops
    assert not stops or answer == Stop(
        Reason.FAILING,
        f"{counted(after, 'agent failure')} in a row; the last: {describe_failure(turn)}",
    )


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        (CUT, "timed out after 1m"),
        (failed("overloaded", 500), "overloaded"),
        (CRASHED, "exit code 1: segmentation fault"),
        (Turn(exit_code=-9), "exit code -9"),
    ],
)
def test_why_a_turn_failed_in_one_line(turn: Turn, why: str) -> None:
    assert describe_failure(turn) == why


def test_who_asks_is_parked_or_blocks_the_run() -> None:
    """ADR 1: "`asks`: BLOCKED/DECIDE/question → Park in tasks, else blocked"."""
    case = closing(said("<promise>DECIDE: red or blue?</promise>"))
    assert Asks()(case) == Stop(Reason.BLOCKED, "red or blue?")
    assert Asks(park=True)(case) == Park("red or blue?", Cause.QUESTION)
    assert Asks()(closing()) is None
    assert Asks()(closing(replace(case.turn, exit_code=1))) is None


CLAIM = said("<response>DONE</response>", tools=1)


def test_a_claim_is_believed_with_its_evidence() -> None:
    rule = Believed(ResponseTag())
    claimed = "claimed: <response>DONE</response>"
    assert rule(closing(CLAIM)) == Accept((claimed, "no gate is configured"))
    passed = closing(CLAIM, passed=("lint", "test"))
    assert rule(passed) == Accept((claimed, "passed: lint", "passed: test"))


@pytest.mark.parametrize(
    "case",
    [
        closing(said("working")),
        closing(replace(CLAIM, exit_code=1)),
        closing(replace(CLAIM, failure=failed().failure)),
        closing(replace(CLAIM, ending=CUT.ending)),
        closing(CLAIM, checked=False),
        closing(CLAIM, findings=(FINDING,)),
        closing(said("<response>DONE</response>")),
    ],
    ids=["no claim", "exit code", "is_error", "cut", "gates did not run", "finding", "no work"],
)
def test_a_claim_without_evidence_is_not_believed(case: Case) -> None:
    """ADR 4: "A failed turn is not believed"; H believes after all guardrails pass."""
    assert Believed(ResponseTag(), min_tools=1)(case) is None
    assert Believed(PromiseTag())(case) is None


@pytest.mark.parametrize(
    ("after", "stalls", "tree", "answer"),
    [
        (3, 2, "same", Stop(Reason.STALLED, "3 iterations without any progress")),
        (3, 1, "same", None),
        (3, 2, "changed", None),
        (0, 99, "same", None),
    ],
)
def test_turns_without_progress_end_the_run(
    after: int, stalls: int, tree: str, answer: Answer | None
) -> None:
    """ADR 1: "Progress = a commit, a changed tree or a changed set of findings"."""
    state = replace(UNDER_WORK, stalls=stalls, snapshot=Snapshot("same"))
    case = replace(closing(state=state), snapshot=Snapshot(tree))
    assert Stalled(after)(case) == answer
    assert not answer or Stalled(after, park=True)(case) == Park(answer.why, Cause.STALLED)  # type: ignore[union-attr]


def test_another_set_of_findings_is_progress_and_another_log_is_not() -> None:
    state = replace(UNDER_WORK, findings=(FINDING,))
    same = replace(FINDING, log="guardrail_002.log")
    assert not closing(state=state, findings=(same,)).progressed
    assert closing(state=state, findings=(replace(FINDING, code=2),)).progressed
    assert closing(state=state).progressed
    assert replace(FINDING, gist="g", text="a").identity == replace(FINDING, gist="g").identity


def test_objections_go_back_to_the_agent_commands_first() -> None:
    """H: a REPLACE wipes what stood before it; it shall not wipe the host's own objections, nor
    that the turn failed."""
    finding, ours = replace(FINDING, placement=Placement.PREPEND), Finding("protect", "leave it")
    case = closing(replace(said("DONE"), exit_code=2), findings=(ours, finding))
    assert Objections(ResponseTag())(case) == Continue(
        (
            Feedback("the tests fail", Placement.PREPEND),
            Feedback("leave it"),
            Feedback("The previous iteration failed: exit code 2"),
            Feedback(
                "Not complete yet: The bare word DONE does not count; "
                "the tag <response>DONE</response> does."
            ),
        )
    )


def test_without_objections_there_is_nothing_to_say() -> None:
    assert Objections(ResponseTag())(closing(said("working"))) is None
    assert Objections()(closing(said("DONE"))) is None


@pytest.mark.parametrize(
    ("limit", "turn", "stops"),
    [
        (5.0, Turn(usage=Usage(10)), True),
        (5.0, Turn(usage=Usage(10), cost_usd=0.1), False),
        (5.0, Turn(), False),
        (None, Turn(usage=Usage(10)), False),
    ],
)
def test_tokens_without_a_price_end_a_run_that_has_a_limit_of_money(
    limit: float | None, turn: Turn, stops: bool
) -> None:
    """ADR 22: a limit that counts too little is worse than none."""
    answer = Uncounted(Limits(dollars=limit))(closing(turn))
    assert (answer is not None) is stops
    if answer is not None:
        assert isinstance(answer, Stop)
        assert (answer.reason, "agent.prices" in answer.why) == (Reason.CONFIG, True)
