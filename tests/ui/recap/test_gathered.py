"""Facts in, a recap out: by histories of whole runs on fakes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kits.histories import (
    BLOCKED,
    CRASH,
    CUT,
    DONE,
    MISSING,
    WORK,
    erred,
    limited,
    play,
    said,
)
from ralph.journal.forecast import Bound, Forecast, Range
from ralph.kernel.events import Usage
from ralph.kernel.facts import (
    Asked,
    Assigned,
    Began,
    Checked,
    Checking,
    Decided,
    Ended,
    Fact,
    Launching,
    Proved,
    Resumed,
    Returned,
    Settled,
    Started,
    Step,
)
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.tasks.task import Assignment, Mode, ReviewStatus, Status, Task
from ralph.kernel.turn import Role, Turn
from ralph.kernel.verdict import (
    Accept,
    Boundary,
    Cause,
    Continue,
    Feedback,
    Park,
    Placement,
    Reason,
    Release,
    Stop,
    Verdict,
    Wait,
)
from ralph.kernel.world import NOTE, PAUSE, Origin, Request, Signals, Snapshot, Stand
from ralph.loops.prompt.policy import harness
from ralph.review.stats import Review
from ralph.testing.fakes import FakeGate
from ralph.ui.forecast_words import forecast_words
from ralph.ui.recap.beside import Beside
from ralph.ui.recap.gathered import Gathered, Seen
from ralph.ui.recap.values import Diff, FileChange, Iteration, Outlook, Recap, TaskRow, TaskState
from ralph.ui.recap.words import judgement_of, shown

RUN = "20260101-000000-aaaa"
STARTED = Started(1000.0, RUN, "harness", "/p", 7, "0.2", limits=Limits(5, None, 20.0))
A, B, C = "1" * 40, "2" * 40, "3" * 40  # trees
KEY = "sk-ant-" + "a1b2c3d4e5f6g7h8"


def gathered(*facts: Fact) -> Gathered:
    found = Gathered(RUN)
    for fact in facts:
        found.take(fact)
    return found


def recap(*facts: Fact, now: float = 5000.0, live: bool = False, **more: object) -> Recap:
    seen = Seen(now, pid=7 if live else None, **more)  # type: ignore[arg-type]
    return gathered(*facts).recap(seen)


def began(number: int, time: float, task: str = "prompt", tree: str = A) -> Began:
    return Began(time, number, Assignment(task, f"Do {task}"), Snapshot("", (), Stand(tree, C)))


def turn(number: int, time: float, *, task: str = "prompt", said: Turn = WORK) -> tuple[Fact, ...]:
    """A turn of ten seconds."""
    return (
        began(number, time, task),
        Launching(time, Role.WORK, "claude", f"/s/{number:03d}.stream"),
        Ended(time + 10, replace(said, seconds=10.0, cost_usd=0.5, usage=Usage(100, 20))),
    )


def closed(time: float, verdict: Continue | Accept | Park | Wait | Stop) -> tuple[Fact, ...]:
    decided = Decided(time, Boundary.CLOSING, verdict, rule="Objections", tree=B)
    return (decided, Settled(time + 1, verdict))


def only(found: Recap) -> Iteration:
    (iteration,) = found.iterations
    return iteration


# ------------------------------------------------------------------ what is likely left


AHEAD = Forecast(
    34,
    "run",
    Range(4, 6, 9),
    None,
    Range(1, 2, 3),
    after=Spent(2, 20.0, 1.0),
    bounds=(Bound("$20", holds=True),),
)


def test_what_is_likely_left_of_a_run_that_goes_on() -> None:
    """ADR 46: numbers for a bar, and the words that `ralph status` has."""
    found, beside = gathered(STARTED, *turn(1, 1000)), Beside(likely=lambda *_: AHEAD)
    told = found.recap(Seen(1020.0, pid=7), beside).forecast
    assert told == Outlook(
        forecast_words(AHEAD),
        34,
        iterations=(4, 6, 9),
        cost_usd=(1, 2, 3),
        limit_holds=True,
        after=(2, 20.0, 1.0),
    )
    gone, unknown = found.recap(Seen(1020.0), beside), found.recap(Seen(1020.0, pid=7))
    starting = gathered().recap(Seen(1020.0, pid=7), beside)
    assert [each.forecast for each in (gone, unknown, starting)] == [None] * 3


# ------------------------------------------------------------------ whole runs on fakes


@dataclass(frozen=True)
class History:
    """What the agent does, and what each iteration must come to: `continue:why`."""

    name: str
    turns: Sequence[Turn | tuple[Turn, ...]]
    verdicts: str
    state: str
    fails_in: frozenset[int] = frozenset()
    tries: tuple[int, ...] = ()


HISTORIES = [
    History("believed", [DONE], "accept", "completed"),
    History("not believed", [DONE, DONE], "continue! accept", "completed", frozenset({1})),
    History("fails", [CRASH, CUT, erred(400)], "continue continue stop", "failing"),
    History("blocked", [WORK, BLOCKED], "continue stop", "blocked"),
    History("rate limited", [(limited(), erred(529), DONE)], "accept", "completed"),
    History("unstartable", [MISSING], "stop", "config"),
    History("limit", [WORK], "continue continue continue continue stop", "limit"),
]


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.name)
def test_each_iteration_has_its_verdict(history: History) -> None:
    """`!` stands behind one at which a claim was made."""
    gate = FakeGate(fails_in=set(history.fails_in))
    facts = play(harness(Limits(iterations=5), gates=(gate,)), list(history.turns)).facts
    found = recap(STARTED, *facts)
    judged = [each.judgement for each in found.iterations]
    assert [
        judgement.verdict + "!" * (judgement.verdict != "accept" and bool(judgement.claims))
        for judgement in judged
        if judgement
    ] == history.verdicts.split()
    assert found.state == found.reason == history.state
    assert all(judgement and judgement.rule for judgement in judged)


TURNS = st.sampled_from(
    [WORK, DONE, CRASH, CUT, said("x", cost=0.25), (limited(), DONE), (erred(503), WORK)]
)


@given(
    turns=st.lists(TURNS, min_size=1, max_size=5),
    fails_in=st.sets(st.integers(1, 5)),
    looks=st.lists(st.integers(0, 80), max_size=4),
)
def test_looking_changes_nothing(
    turns: list[Turn | tuple[Turn, ...]], fails_in: set[int], looks: list[int]
) -> None:
    """Whoever looks often sees in the end what somebody sees who reads all of it at once."""
    gate = FakeGate(fails_in=fails_in)
    played = play(harness(Limits(iterations=5), gates=(gate,)), turns)
    facts: list[Fact] = [STARTED, *played.facts]
    seen, often = Seen(1e10), Gathered(RUN)
    for number, fact in enumerate(facts):
        often.take(fact)
        if number in looks:
            msgspec.json.encode(often.recap(replace(seen, now=fact.time, pid=7)))
    found = often.recap(seen)
    assert found == gathered(*facts).recap(seen)
    numbers = [each.number for each in found.iterations]
    assert numbers == sorted(set(numbers)) == list(range(1, found.spent.iterations + 1))
    costs = sum(each.cost_usd or 0.0 for each in found.iterations)
    assert costs == pytest.approx(found.points[-1].dollars)
    assert costs == pytest.approx(found.spent.dollars or 0.0)
    waited = sum(each.wait_seconds for each in found.iterations)
    assert waited >= found.spent.waited - 0.001  # and delays after failures


# ------------------------------------------------------------------ one thing each


def test_a_turn_that_goes_on_counts_up_to_now() -> None:
    facts = (STARTED, *turn(1, 1000.0)[:2])
    live, gone = recap(*facts, live=True), recap(*facts)
    assert (only(live).agent_seconds, only(live).ended, only(live).ending) == (4000.0, None, "")
    assert (live.state, live.outcome.split(",")[0]) == ("running", "the agent has worked for 1h6m")
    assert (gone.state, only(gone).ended, only(gone).ending) == ("crashed", 1000.0, "cut")
    checking = recap(STARTED, *turn(1, 1000.0), Checking(4990.0, "make test"), live=True)
    assert (only(checking).agent_seconds, only(checking).gate_seconds) == (10.0, 10.0)


def test_a_rate_limit_is_one_iteration_and_its_sleep_is_waiting() -> None:
    wait = Wait(1500.0, "rate limit")
    facts = (STARTED, *turn(1, 1000.0, said=limited()), *closed(1011.0, wait))
    later = (began(1, 1501.0, tree=C), *turn(1, 1501.0, said=DONE)[1:])
    again = (Decided(1500.0, Boundary.OPENING, Continue()), *later)
    assert recap(*facts, now=1200.0, live=True).state == "waiting"
    assert recap(*facts, now=1200.0, live=True).wake_at == 1500.0
    facts = (*facts, *again, *closed(1512.0, Accept(("claimed",))))
    assert [draft.changed for _, draft in gathered(*facts).drafts()] == [f"{A} {B}"]  # by both
    one = only(recap(*facts))
    assert (one.tries, one.agent_seconds, one.cost_usd) == (2, 20.0, 1.0)
    assert one.wait_seconds == pytest.approx(489.0)
    assert (one.began, one.ended) == (1000.0, 1513.0)
    assert one.judgement is not None
    assert one.judgement.verdict == "accept"


def test_a_turn_that_was_cut_off_is_taken_again() -> None:
    facts = (STARTED, *turn(1, 1000.0)[:2], Resumed(9000.0, 8), *turn(1, 9001.0)[1:])
    found = recap(*facts, *closed(9020.0, Continue()))
    assert (only(found).tries, only(found).ending, only(found).agent_seconds) == (2, "exited", 10.0)
    assert found.spent.uncounted == 1


def test_a_turn_that_was_interrupted_is_judged_when_the_run_goes_on() -> None:
    """Also for whoever has looked in between."""
    stop = Stop(Reason.INTERRUPTED, "asked to stop")
    found = gathered(STARTED, *turn(1, 1000.0), *closed(1011.0, stop))
    before = found.recap(Seen(1020.0))
    assert (before.state, only(before).ended) == ("interrupted", 1012.0)
    for fact in (Resumed(2000.0, 8), *closed(2001.0, Accept(("claimed",)))):
        found.take(fact)
    judged = only(found.recap(Seen(5000.0))).judgement
    assert judged is not None
    assert (judged.verdict, judged.evidence) == ("accept", ("claimed",))


def test_what_ends_a_run_between_turns_is_no_iterations_verdict() -> None:
    stop = Stop(Reason.LIMIT, "5 iterations used up")
    ended = (Decided(1020.0, Boundary.OPENING, stop, rule="RunLimit"), Settled(1021.0, stop))
    facts = (STARTED, *turn(1, 1000.0), *closed(1011.0, Continue()), *ended)
    found = gathered(*facts).recap(Seen(5000.0), Beside(rules={"RunLimit": "A limit is used up."}))
    assert (found.state, found.exit, found.why) == ("limit", 1, "5 iterations used up")
    assert found.judgement is not None
    assert (found.judgement.rule, found.judgement.rule_words) == ("RunLimit", "A limit is used up.")
    judged = only(found).judgement
    assert judged is not None
    assert (judged.verdict, only(found).ended) == ("continue", 1012.0)
    assert found.next[0].startswith("ralph resume ")


def test_a_prompt_is_told_what_was_found_and_what_people_say() -> None:
    told = Continue(
        (Feedback("first"), Feedback("only this", Placement.REPLACE), Feedback("and this"))
    )
    note = Request("1", NOTE, Origin.WEB, 1012.0, "use tabs")
    other = Request("2", NOTE, Origin.CLI, 1013.0, "not here", "another task")
    waiting = Request("3", "pause", Origin.WATCH, 1014.0)
    facts = (*turn(1, 1000.0), *closed(1011.0, told), Asked(1020.0, note), Asked(1020.0, other))
    asked = Signals(paused=True, requests=(note, waiting))
    found = recap(STARTED, *facts, *turn(2, 1021.0), asked=asked, live=True)
    first, second = found.iterations
    assert first.judgement is not None
    assert first.judgement.feedback == second.fed_back == ("only this", "and this")
    assert second.person_notes == ("use tabs",)
    assert [(each.origin, each.heard) for each in found.steered] == [
        ("web", True),
        ("cli", True),
        ("watch", False),
    ]
    assert found.pending == "pause"


def test_a_run_that_has_paused_says_why_it_could_not_go_on() -> None:
    pause = Decided(1013.0, Boundary.OPENING, Wait(None, "asked to"), rule="Signals")
    facts = (STARTED, *turn(1, 1000.0), *closed(1011.0, Continue()), pause)
    paused = recap(*facts, asked=Signals(paused=True), live=True)
    assert (paused.state, paused.pending, paused.problem) == ("paused", "", "")
    assert paused.outcome == "It waits for: ralph resume"
    stays = Request("1", PAUSE, Origin.WEB, 1012.0, "agent command 'x' was not found")
    found = recap(*facts, asked=Signals(paused=True, requests=(stays,)), live=True)
    assert found.problem == "Stays paused: agent command 'x' was not found"
    stopped = recap(*facts, asked=Signals(paused=True, cancels=1), live=True)
    assert stopped.pending == "stop"
    assert recap(*facts, asked=Signals(paused=True, cancels=1)).pending == ""


def test_a_prompt_in_a_file_is_told_by_its_first_line_too() -> None:
    file = Beside(asked="the prompt in PROMPT.md")
    for started, told in (
        (STARTED, "Do prompt (the prompt in PROMPT.md)"),
        (replace(STARTED, profile="tasks"), "the prompt in PROMPT.md"),
    ):
        assert gathered(started, *turn(1, 1000.0)).recap(Seen(5000.0), file).asked == told


def test_steps_belong_to_their_iteration_also_the_message_turn() -> None:
    message = Launching(1020.0, Role.MESSAGE, "claude", "/s/001.message.stream")
    facts = (
        *(STARTED, *turn(1, 1000.0)),
        *(Decided(1011.0, Boundary.CLOSING, Accept(("x",))), message),
        Step(1025.0, "scm:message", detail="Add it", cost_usd=0.25, usage=Usage(10, 2)),
        Step(1026.0, "scm:commit", detail="Add it", commit=C),
        Settled(1027.0, Accept(("x",))),
    )
    one = only(recap(*facts))
    assert (one.cost_usd, one.usage, one.agent_seconds) == (0.75, Usage(110, 22), 15.0)
    assert (one.commit, one.stream, one.tries) == (C, "/s/001.stream", 1)
    assert [(step.key, step.commit) for step in one.settled] == [
        ("scm:message", ""),
        ("scm:commit", C),
    ]


def test_diffs_are_of_the_trees_before_and_after() -> None:
    facts = (STARTED, *turn(1, 1000.0), *closed(1011.0, Continue()))
    diff = Diff((FileChange("a", 1, 2),))
    found = gathered(*facts).recap(Seen(5000.0), diff_of={f"{A} {B}": diff})
    assert only(found).diff == diff
    same = (STARTED, began(1, 1000.0, tree=B), *turn(1, 1000.0)[1:], *closed(1011.0, Continue()))
    assert [draft.changed for _, draft in gathered(*same).drafts()] == [""]


def test_reviews_of_stories() -> None:
    started = replace(STARTED, profile="reviewed")
    asks = Review("S-1", "changes_requested", 1, "mend line 3").detail()
    passes = Review("S-1", "approved", 2).detail()
    facts = (
        *(started, *turn(1, 1000.0, task="S-1"), Step(1012.0, "review", detail=asks)),
        *(*closed(1013.0, Continue()), *turn(2, 1020.0, task="S-1")),
        *(Step(1032.0, "review", detail=passes), *closed(1033.0, Continue())),
    )
    stories = (Task("S-1", "One"), Task("S-2", "Two"))
    waits = (stories[0], replace(stories[1], review=ReviewStatus.NEEDS_REVIEW))
    assert rows(recap(*facts, listed=waits))["S-2"].state is TaskState.REVIEW
    found = recap(*facts, Step(1040.0, "review", detail="nonsense"), listed=stories)
    assert [(row.outcome, row.feedback) for row in found.reviews] == [
        ("changes_requested", "mend line 3"),
        ("approved", ""),
    ]
    assert [(row.id, row.state) for row in found.tasks] == [
        ("S-1", TaskState.DONE),
        ("S-2", TaskState.PENDING),
    ]
    assert (found.points[-1].done, found.points[-1].open) == (1, 1)
    assert found.iterations[0].settled[0].detail == "S-1: changes requested"


def test_a_first_look_is_iteration_0() -> None:
    """`--until-green`: the checks run before the first turn."""
    looked = (
        *(STARTED, Step(1000.0, "note"), Checking(1001.0, "make test")),
        *(Checked(1003.0, "make test", 2.0, (Finding("make test", "fails", code=1),)),),
        *(Proved(1003.0, A, Stand(A, C), C), Step(1004.0, "first look", detail="red")),
        Decided(1004.0, Boundary.OPENING, Continue()),
    )
    look = only(recap(*looked[:3], live=True, now=1002.0))
    assert (look.number, look.mode, look.gate_seconds, look.ended) == (0, "look", 1.0, None)
    found = recap(*looked, *turn(1, 1005.0), *closed(1016.0, Continue()))
    look, first = found.iterations
    assert (look.gate_seconds, look.ended, look.commit, look.task) == (2.0, 1004.0, "", "")
    assert (look.checks[0].code, look.judgement) == (1, None)
    assert (first.number, first.checks, first.began) == (1, (), 1005.0)


VERDICTS = [
    (Accept(("x",)), "Believed: the task is done."),
    (Park("too hard"), "Left to a person: too hard"),
    (Wait(None, "paused"), "Waits to be resumed: paused"),
    (Wait(0, "rate limited"), "Taken again: rate limited"),
    (Stop(Reason.STALLED), "The run ends: stalled"),
    (Continue(), "Goes on."),
    (Release("held back 5 times"), "held back 5 times"),
]


@pytest.mark.parametrize(("verdict", "words"), VERDICTS)
def test_a_verdict_in_words(verdict: Verdict, words: str) -> None:
    decided = Decided(1.0, Boundary.CLOSING, verdict)
    assert judgement_of(decided, WORK, None, {}).words == words


def test_a_claim_and_what_speaks_against_it() -> None:
    found = (Finding("make test", "2 failed\nmore", code=1), Finding("secrets", "a key\nmore"))
    decided = Decided(1.0, Boundary.CLOSING, Continue(), found)
    told = [judgement_of(decided, turn, None, {}) for turn in (DONE, WORK)]
    assert [each.words for each in told] == [
        "The claim is not believed: make test, secrets objected.",
        "Not done yet: make test, secrets objected.",
    ]
    assert told[0].objections == ("make test: exit code 1", "secrets: a key")
    assert [each.is_disbelieved for each in told] == [True, False]


@pytest.mark.parametrize("size", [3_900, 4_001, 20_000])
def test_a_long_text_keeps_its_beginning_and_its_end(size: int) -> None:
    text = shown("first\n" + "x\n" * (size // 2) + "last")
    assert text.startswith("first\n")
    assert text.endswith("\nlast")
    assert ("left out" in text) == (size > 4_000)
    assert len(text) <= 4_100
    assert shown("caf\u00e9 \ud800") == "caf\u00e9 ?"


# ------------------------------------------------------------------ tasks and workers

TASKS = replace(STARTED, profile="tasks")
CREW = replace(TASKS, workers=2)
LISTED = (
    Task("a", "The first", status=Status.DONE),
    Task("b", "The second", status=Status.BLOCKED, question="tabs?", reason="tabs?"),
    Task("c", "The third"),
    Task("old", "Done long ago", status=Status.DONE),
    Task("other", "Not for this run", aside=True),
)


def rows(found: Recap) -> dict[str, TaskRow]:
    return {row.id: row for row in found.tasks}


def test_the_board_joins_the_list_with_what_the_run_did() -> None:
    parked = Park("tabs?", Cause.QUESTION)
    facts = (
        *(TASKS, *turn(1, 1000.0, task="a"), *closed(1011.0, Accept(("claimed",)))),
        *(*turn(2, 1020.0, task="b"), *closed(1031.0, parked)),
    )
    found = rows(recap(*facts, listed=LISTED))
    assert {name: row.state for name, row in found.items()} == {
        "a": TaskState.DONE,
        "b": TaskState.BLOCKED,
        "c": TaskState.PENDING,
    }
    assert (found["a"].evidence, found["a"].cost_usd, found["a"].seconds) == (
        ("claimed",),
        0.5,
        10.0,
    )
    assert (found["b"].question, found["b"].why) == ("tabs?", "tabs?")
    live = recap(*facts, *turn(3, 1040.0, task="c")[:2], listed=LISTED, live=True)
    assert (rows(live)["c"].state, live.state) == (TaskState.ACTIVE, "asking")
    assert rows(recap(*facts))["b"].state is TaskState.BLOCKED  # without the list, too
    # The answer has come since.
    answered = (LISTED[0], replace(LISTED[1], status=Status.PENDING, question="", reason=""))
    assert rows(recap(*facts, listed=answered))["b"].state is TaskState.PENDING


def test_who_has_answered_is_not_asked_again() -> None:
    """Of an ended run too, whose own last words are about what was left then."""
    parked = Park("tabs?", Cause.QUESTION)
    stop = Stop(Reason.BLOCKED, "b asks: tabs?; d is blocked: no key; c waits for b")
    facts = (TASKS, *turn(1, 1000.0, task="b"), *closed(1011.0, parked), *closed(1030.0, stop))
    b, d = LISTED[1], Task("d", status=Status.BLOCKED)
    c = replace(LISTED[2], blocked_by=("b",))
    found = recap(*facts, listed=(b, c, d))
    assert found.left == ("b asks: tabs?", "d is blocked: no key", "c waits for b")
    assert found.next[:1] == ('ralph tasks answer b "..."',)
    open_again = replace(b, status=Status.PENDING, question="", reason="")
    found = recap(*facts, listed=(open_again, c, d))
    assert found.left == ("d is blocked: no key",)
    assert found.next[:1] == ("ralph tasks edit d --status pending",)
    found = recap(*facts, listed=(open_again, c, replace(d, status=Status.CANCELLED)))
    assert (found.left, found.next) == ((), ("ralph tasks run",))


def crew() -> tuple[list[Fact], dict[str, list[Fact]]]:
    """Two workers: one is back, and one is at work."""
    accept = Accept(("claimed",))
    lead: list[Fact] = [
        *(CREW, Assigned(1001.0, Assignment("a"), "w-1"), Assigned(1002.0, Assignment("c"), "w-2")),
        Returned(1020.0, "a", "w-1", accept, Spent(1, 20.0, 0.5, Usage(100, 20)), commit=C),
    ]
    worker = replace(TASKS, limits=Limits())
    return lead, {
        "w-1": [worker, *turn(1, 1003.0, task="a"), *closed(1015.0, accept)],
        "w-2": [worker, *turn(1, 1004.0, task="c"), *closed(1016.0, Continue())],
    }


@given(order=st.lists(st.sampled_from(["", "w-1", "w-2"]), max_size=30))
def test_workers_may_be_heard_in_any_order(order: list[str]) -> None:
    """Each journal is read by itself."""
    lead, workers = crew()
    found = Gathered(RUN)
    for fact in lead[:3]:
        found.take(fact)
    rest = {"": iter(lead[3:]), **{name: iter(facts) for name, facts in workers.items()}}
    for name in (*order, *[""] * 9, *["w-1"] * 9, *["w-2"] * 9):
        for fact in rest[name]:
            found.take(fact, name)
            break
    seen = Seen(1030.0, pid=7, listed=LISTED)
    told = found.recap(seen)
    assert [(each.worker, each.number) for each in told.iterations] == [("w-1", 1), ("w-2", 1)]
    assert (told.spent.iterations, told.spent.dollars) == (2, 1.0)
    assert (told.points[-1].dollars, told.points[-1].done) == (1.0, 1)
    assert [(lane.worker, lane.ended, lane.outcome) for lane in told.lanes] == [
        ("w-1", 1020.0, "done"),
        ("w-2", None, ""),
    ]
    assert rows(told)["a"].commit == C
    assert rows(told)["a"].worker == "w-1"
    again = Gathered(RUN)
    for fact in lead:
        again.take(fact)
    for name, facts in workers.items():
        for fact in facts:
            again.take(fact, name)
    assert again.recap(seen) == told


def test_a_task_that_was_answered_asks_no_more() -> None:
    lead, _ = crew()
    asks = Returned(1020.0, "a", "w-1", Park("tabs?", Cause.QUESTION))
    waits = (*lead[:3], asks)
    assert recap(*waits, live=True).state == "asking"
    recalled = Returned(1020.0, "c", "w-2", Stop(Reason.LIMIT, "money"))
    assert [lane.outcome for lane in recap(*waits, recalled).lanes] == ["parked", "limit"]
    assert recap(*waits, Assigned(1030.0, Assignment("a"), "w-3"), live=True).state == "running"


# ------------------------------------------------------------------ hostile


def test_whatever_agents_write_is_shown_as_text() -> None:
    """No escape sequence, no mark that turns text around, no key, and no endless line."""
    evil = f"\x1b[31m\u202e{KEY}\x07<script>" + "\ud800"
    agent = said(f"<promise>COMPLETE: {evil}</promise>")
    verdict = Continue((Feedback(evil + "x" * 10_000_000),))
    judged = Decided(1011.0, Boundary.CLOSING, verdict, notes=(evil,), rule=evil)
    assigned = Began(1000.0, 1, Assignment(evil, evil, Mode.IMPLEMENT))
    facts = (
        replace(TASKS, workspace=evil, model=evil, agent=evil, profile="tasks"),
        *(assigned, Ended(1010.0, replace(agent, why=evil, exit_code=1, stderr=evil))),
        *(judged, Step(1012.0, evil, detail=evil, commit=evil), Settled(1013.0, verdict)),
        Asked(1014.0, Request("1", evil, Origin.CLI, 1.0, evil, evil)),
    )
    listed = (Task(evil, evil, question=evil, reason=evil, status=Status.BLOCKED),)
    found = gathered(*facts).recap(
        Seen(5000.0, listed=listed, problem=evil), Beside(asked=evil, branch=evil)
    )
    text = msgspec.json.encode(found).decode()
    assert KEY not in text
    assert not {"\x1b", "\u202e", "\x07"} & set("".join(walk(found)))
    assert len(text) < 200_000


def walk(value: object) -> list[str]:
    """Every text in a value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for each in value.values() for text in walk(each)]
    if isinstance(value, list | tuple):
        return [text for each in value for text in walk(each)]
    return walk(msgspec.to_builtins(value)) if hasattr(value, "__slots__") else []
