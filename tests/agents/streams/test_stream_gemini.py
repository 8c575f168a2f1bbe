"""Gemini's stream and its traps (docs/facts.md §2)."""

import json

import pytest
from stream_support import capture, claimed, of, parse, parse_values, result, said

from ralph.agents.streams.collect import Collector
from ralph.agents.streams.dialects import parser_for
from ralph.kernel.events import (
    AgentEvent,
    Failure,
    Progress,
    Result,
    Speaker,
    Text,
    ToolEnd,
    ToolStart,
    Unknown,
    Usage,
)

DONE = "<response>DONE</response>"


def events(*lines: object) -> list[AgentEvent]:
    return parse_values("gemini", *lines)


def piece(content: object) -> dict[str, object]:
    return {"type": "message", "role": "assistant", "content": content, "delta": True}


def call(name: str, **parameters: object) -> dict[str, object]:
    return {"type": "tool_use", "tool_name": name, "tool_id": name, "parameters": parameters}


def failure(message: object) -> Failure | None:
    return result(events({"type": "result", "status": "error", "error": message})).failure


def test_a_turn_from_beginning_to_end() -> None:
    stats = {"total_tokens": 2040, "input_tokens": 1900, "output_tokens": 140}
    found = events(
        {"type": "init", "session_id": "s1", "model": "m1"},
        {"type": "message", "role": "user", "content": "do it"},
        piece("I work."),
        call("run_shell_command", command="ls"),
        {"type": "tool_result", "tool_id": "run_shell_command", "status": "success", "output": "a"},
        piece(DONE),
        {"type": "result", "status": "success", "stats": {**stats, "cached": 1200, "input": 700}},
    )
    assert found == [
        Progress("session s1 model m1", "s1"),
        Text("do it", Speaker.PROMPT),
        Text("I work."),
        ToolStart("run_shell_command", "run_shell_command", "ls"),
        ToolEnd("run_shell_command", "a"),
        Text(DONE),
        Result(usage=Usage(input=700, output=140, cache_read=1200)),
    ]


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_pieces_of_text_join_without_a_newline(size: int) -> None:
    """docs/facts.md §2: text comes in pieces, cut anywhere, also in the middle of a tag."""
    text = f"I am\ndone.\n\n{DONE}\n and more"
    pieces = [piece(text[i : i + size]) for i in range(0, len(text), size)]
    collector = Collector()
    collector.add(events(*pieces, {"type": "result", "status": "success"}))
    turn = collector.turn(has_result=True)
    assert (turn.text, [claim.raw for claim in turn.claims]) == (text, [DONE])


def test_a_line_comes_out_as_soon_as_it_is_whole() -> None:
    found = events(piece("one\ntw"), piece("o\nthr"), piece("ee"), piece(""), piece(None))
    assert found == [Text("one\n"), Text("two\n"), Text("three")]


def test_noise_between_pieces_does_not_split_a_tag() -> None:
    assert claimed(events(piece("<response>DO"), "npm warn", piece("NE</response>"))) == [DONE]


def test_blocks_that_something_separates_are_separate() -> None:
    found = events(piece("a"), call("x"), piece("b"), {"type": "error", "message": "m"}, piece("c"))
    assert said(found) == ["a", "b", "c"]


def test_a_model_that_does_not_stream_says_whole_blocks() -> None:
    whole = {"type": "message", "role": "assistant", "content": "all of it"}
    assert events(piece("a"), whole, {**whole, "content": ""}) == [Text("a"), Text("all of it")]


def test_a_hooks_feedback_is_the_hooks() -> None:
    """docs/facts.md §2: an AfterAgent hook that holds the agent is told as a warning."""
    found = parse("gemini", capture("gemini", "hooks-afteragent"))
    assert said(found, Speaker.HOOK) == ["Keep going (RALPH)"] * 3
    assert said(found)[1:] == [f"I stop here ({n})" for n in range(1, 5)]


def test_warnings_are_told_and_fail_nothing() -> None:
    warning = {"type": "error", "severity": "warning", "message": "Loop detected"}
    found = events(warning, {"type": "result", "status": "success"})
    assert found == [Progress("Loop detected"), Result()]


def test_a_result_without_words_fails_for_the_error_before_it() -> None:
    error = {"type": "error", "severity": "error", "message": "an empty response"}
    bad = {"type": "result", "status": "error"}
    assert result(events(error, bad)).failure == Failure("an empty response")
    assert result(events(bad)).failure == Failure("the agent reports an error")


@pytest.mark.parametrize("status", [None, "cancelled", 7])
def test_a_result_of_another_status_is_no_success(status: object) -> None:
    (found,) = events({"type": "result", "status": status})
    assert isinstance(found, Unknown)


@pytest.mark.parametrize(
    ("message", "status", "retry_after"),
    [
        ('[API Error: {"error":{"code":403,"message":"no"}}]', 403, None),
        ('[API Error: {"error":{"code":429,"message":"Please retry in 12.5s."}}]', 429, 12.5),
        ("[API Error: slow]\nPlease wait and try again later. To increase", 429, None),
        ("[API Error: slow]\nPossible quota limitations in place or slow", 429, None),
        ("[API Error: x\nSuggested retry after 60s.]\nPlease wait and try again later.", 429, 60),
        ("[API Error: Your quota will reset after 1h20m5s.]", None, 4805),
        ("[API Error: retry in 250ms]", None, 0.25),
        ("[API Error: API key not valid (Status: UNAUTHENTICATED)]", 401, None),
        ("[API Error: no (Status: PERMISSION_DENIED)]", 403, None),
        ("[API Error: slow (Status: RESOURCE_EXHAUSTED)]", 429, None),
        ("[API Error: odd (Status: OF_NEXT_YEAR)]", None, None),
        ("[API Error: {half of it]", None, None),
        ("[API Error: " + "[{" * 5000 + "]", None, None),
        ('[API Error: {"error":"words"}]', None, None),
        ("fetch failed", None, None),
    ],
)
def test_a_failure_says_why(message: str, status: int | None, retry_after: float | None) -> None:
    """ADR 11: from the failure's own words, which quote the service."""
    found = failure({"type": "unknown", "message": message})
    assert found is not None
    assert found.status == status
    assert found.retry_after == (retry_after and pytest.approx(retry_after))


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ('[API Error: {"error":{"code":403,"message":"no way"}}]', "API error 403: no way"),
        ('[API Error: {"error":{"code":403}}]', '[API Error: {"error":{"code":403}}]'),
        ("x" * 3000, "x" * 2000),
        (7, "the agent reports an error"),
    ],
)
def test_a_failure_is_told_in_words(message: object, words: str) -> None:
    assert failure({"message": message}) == Failure(words, 403 if "403" in words else None)


@pytest.mark.parametrize(
    ("name", "kind", "denied"),
    [
        ("write_file", "tool_not_registered", ("write_file",)),
        ("run_shell_command", "tool_not_registered", ("run_shell_command",)),
        ("invented_tool", "tool_not_registered", ()),
        ("invented_tool", "policy_violation", ("invented_tool",)),
        ("write_file", "file_write_failure", ()),
    ],
)
def test_a_tool_that_is_not_allowed_is_named(name: str, kind: str, denied: tuple[str, ...]) -> None:
    """docs/facts.md §2: without an approval mode the tools that need one do not exist."""
    error = {"type": kind, "message": "no"}
    answer = {"type": "tool_result", "tool_id": name, "status": "error", "error": error}
    found = events(call(name), answer, {"type": "result", "status": "success"})
    assert of(found, ToolEnd) == [ToolEnd(name, "no", is_error=True)]
    assert result(found).denied == denied


def test_a_denial_of_a_call_that_nobody_saw_names_nothing() -> None:
    answer = {"type": "tool_result", "tool_id": "x", "error": {"type": "policy_violation"}}
    assert result(events(answer, {"type": "result", "status": "success"})).denied == ()


@pytest.mark.parametrize(
    ("stats", "usage"),
    [
        ({"input_tokens": 100, "cached": 80, "output_tokens": 5}, Usage(20, 5, 80)),
        ({"total_tokens": 150, "input_tokens": 100, "output_tokens": 5}, Usage(100, 50)),
        ({"input_tokens": 10, "cached": 80}, Usage(0, 0, 80)),
        (None, Usage()),
    ],
)
def test_tokens(stats: object, usage: Usage) -> None:
    """What is cached is no input; what was thought is output, and only in the total."""
    found = result(events({"type": "result", "status": "success", "stats": stats}))
    assert found.usage == usage


def test_a_session_without_a_name() -> None:
    assert events({"type": "init"}) == [Progress("session")]


def test_a_line_without_end_is_not_kept_for_ever() -> None:
    """A turn is small whatever was printed."""
    parser = parser_for("gemini")
    line = json.dumps(piece("x" * 1000)).encode() + b"\n"
    said = [event for _ in range(200) for event in parser.feed(line)]
    assert len(said) == 3
    together = "".join(e.text for e in (*said, *parser.end()) if isinstance(e, Text))
    assert together == "x" * 200_000
