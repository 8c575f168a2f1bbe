"""From events to a turn: what is counted, what is heard, what is forgotten."""

import tracemalloc

import pytest

from ralph.agents.streams.collect import Collector, Tail
from ralph.kernel.claims import Claim
from ralph.kernel.events import (
    AgentEvent,
    Failure,
    Progress,
    Question,
    RateLimited,
    Result,
    Retry,
    Speaker,
    Text,
    Thinking,
    Todo,
    ToolEnd,
    ToolStart,
    Unknown,
    Usage,
    Used,
)
from ralph.kernel.turn import Turn

DONE = "<response>DONE</response>"
KIB = 1024


def collected(*events: AgentEvent, has_result: bool = False) -> Turn:
    collector = Collector()
    collector.add(events)
    return collector.turn(has_result=has_result)


def test_counts_and_the_result_make_a_turn() -> None:
    turn = collected(
        Progress("session 1"),
        Todo(()),
        ToolStart("1", "Bash"),
        Retry(1),
        ToolEnd("1", "no such file", is_error=True),
        ToolStart("2", "Read", subagent=True),
        ToolEnd("2", "x"),
        Unknown("???"),
        Text("So it is."),
        Result("So it is.", cost_usd=0.5, usage=Usage(10, 2), denied=("Write",)),
        has_result=True,
    )
    assert turn == Turn(
        text="So it is.",
        tools=2,
        tool_errors=1,
        unknown=1,
        denied=("Write",),
        cost_usd=0.5,
        usage=Usage(10, 2),
    )
    assert not turn.failed


def test_blocks_of_text_are_joined_by_newlines() -> None:
    """Issue 2, §4: "text blocks are joined by newlines", so a tag may span them."""
    turn = collected(Text("<response>"), Text(""), Text("DONE\n"), Text("</response>"))
    assert turn.text == "<response>\nDONE\n</response>"
    assert turn.claims == (Claim("<response>\nDONE\n</response>"),)


@pytest.mark.parametrize(
    "event",
    [
        ToolEnd("1", DONE),
        Thinking(DONE),
        Text(DONE, Speaker.SUBAGENT),
        Text(DONE, Speaker.HOOK),
        Text(DONE, Speaker.HOST),
    ],
)
def test_only_the_assistant_may_claim(event: AgentEvent) -> None:
    """ADR 3: "Only assistant text of this turn"; the rest is overheard."""
    turn = collected(event, Text("I read it."))
    assert (turn.text, turn.claims, turn.overheard) == ("I read it.", (), (Claim(DONE),))


def test_the_prompt_is_not_even_overheard() -> None:
    """Ralph tells the agent the tag in it: its echo is no near miss."""
    turn = collected(Text(DONE, Speaker.PROMPT), Text("I read it."))
    assert (turn.claims, turn.overheard) == ((), ())


def test_a_few_overheard_tags_are_enough() -> None:
    turn = collected(*[ToolEnd("1", DONE * 5)] * 5)
    assert len(turn.overheard) == 8


@pytest.mark.parametrize(
    ("events", "question"),
    [
        ([Question("Which port?")], "Which port?"),
        ([Question("Which port?"), Text("I asked.")], "Which port?"),
        ([Question("Which port?"), ToolStart("2", "Bash")], None),
        ([Question("Which port?"), Text(f"I took 80. {DONE}")], None),
        ([Question("a?"), ToolStart("2", "Bash"), Question("b?")], "b?"),
    ],
)
def test_a_question_stands_until_the_agent_goes_on(
    events: list[AgentEvent], question: str | None
) -> None:
    assert collected(*events).question == question


LIMITED = RateLimited("the five hour limit is used up", 5000.0)
FAILED = Failure("API error", 500)


@pytest.mark.parametrize(
    ("events", "has_result", "failure"),
    [
        ([], False, None),
        ([], True, Failure("the stream ended without a final result")),
        ([LIMITED], True, Failure(LIMITED.why, 429, resets_at=5000.0)),
        ([LIMITED], False, None),
        ([LIMITED, Result()], True, None),
        ([Result(failure=FAILED)], True, FAILED),
        ([Result(failure=FAILED), Result()], True, None),
    ],
)
def test_what_makes_a_turn_fail(
    events: list[AgentEvent], has_result: bool, failure: Failure | None
) -> None:
    """ADR 4: "a stream whose dialect has a final result and did not send one"."""
    assert collected(*events, has_result=has_result).failure == failure


@pytest.mark.parametrize("size", [1, KIB, 1000 * KIB])
def test_the_tail_is_the_end_of_the_text(size: int) -> None:
    pieces = [chr(ord("a") + n % 26) * size for n in range(40 if size > 1 else 3000)]
    tail = Tail(500)
    for piece in pieces:
        tail.add(piece)
        assert len(tail.text) <= 500
    assert tail.text == "".join(pieces)[-500:]


@pytest.mark.parametrize(("pieces", "size"), [(100, 1000 * KIB), (10_000, 10 * KIB)])
def test_a_hundred_megabytes_of_text_are_a_small_turn(pieces: int, size: int) -> None:
    """ADR 1: a Turn holds "the last 64 KiB of text ..., so memory stays flat"."""
    collector, block = Collector(), Text("x" * size)
    tracemalloc.start()
    try:
        collector.add([Text(f"{DONE} or rather <promise>")])
        collector.add(block for _ in range(pieces))
        turn = collector.turn(has_result=False)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (len(turn.text), turn.claims) == (64 * KIB, (Claim(DONE),))
    assert peak < 8_000 * KIB


@pytest.mark.parametrize(
    ("events", "used"),
    [
        ((), Used()),
        ((Used(Usage(1, 2)), Used(Usage(3, 4))), Used(Usage(4, 6))),
        ((Used(Usage(1), 0.5), Used(Usage(2), 0.25)), Used(Usage(3), 0.75)),
        ((Used(Usage(1), 0.5), Used(Usage(2)), Used(Usage(3), 0.25)), Used(Usage(6))),
        ((Used(cost_usd=-1.0), Used(cost_usd=0.5)), Used(cost_usd=0.5)),
        ((Used(Usage(1), 0.5), Result()), Used(Usage(1), 0.5)),
        ((Used(Usage(1), 0.5), Result(cost_usd=2.0)), Used(Usage(1), 2.0)),
        ((Used(Usage(1), 0.5), Result(usage=Usage(9))), Used(Usage(9), 0.5)),
    ],
)
def test_steps_add_up_and_the_result_knows_better(
    events: tuple[AgentEvent, ...], used: Used
) -> None:
    turn = collected(*events)
    assert Used(turn.usage, turn.cost_usd) == used


@pytest.mark.parametrize(
    ("after", "finished"),
    [
        ((), True),
        ((Progress("a hook ran"), ToolEnd("1"), Text("echo", Speaker.HOST), Text("")), True),
        ((Text("there is more"),), False),
        ((ToolStart("2", "Bash"),), False),
        ((ToolStart("2", "Bash"), Result()), True),
    ],
)
def test_an_agent_that_goes_on_after_its_result_is_not_finished(
    after: tuple[AgentEvent, ...], finished: bool
) -> None:
    """ADR 6 ends a process only after its last word."""
    collector = Collector()
    assert not collector.finished
    collector.add((Result(), *after))
    assert collector.finished is finished


def test_what_is_no_stream_is_kept_where_no_result_came() -> None:
    """ADR 5: "lines on its standard output that are no stream" are the agent's last words."""
    lines = (Unknown("Invalid API key"), Unknown(' {"type": "new"}'), Unknown("Bye"))
    assert collected(*lines, has_result=True).stray == "Invalid API key\nBye\n"
    assert collected(*lines, Result()).stray == ""
    assert len(collected(*[Unknown("x" * 2000)] * 9).stray) == 4 * KIB


@pytest.mark.parametrize(
    ("name", "is_error", "wrote"),
    [
        ("Write", False, True),
        ("write_file", False, True),
        ("mcp__db__insert", False, True),
        ("Write", True, False),
        ("Read", False, False),
        ("Bash", False, False),
    ],
)
def test_tools_that_write_are_known(name: str, is_error: bool, wrote: bool) -> None:
    """ADR 15: "no tool that writes came through"."""
    calls = (ToolStart("1", name), ToolEnd("1", "x", is_error=is_error))
    assert collected(*calls).wrote is wrote
    assert collected(*calls, ToolStart("2", "Read"), ToolEnd("2", "y")).wrote is wrote
    assert collected(ToolStart("1", name)).wrote is False
