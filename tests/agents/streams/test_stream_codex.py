"""Codex's stream (H §Codex Streaming JSON) and its traps (docs/facts.md §2)."""

import pytest
from stream_support import capture, of, parse, parse_values, result

from ralph.kernel.events import (
    AgentEvent,
    Failure,
    Progress,
    Result,
    Retry,
    Text,
    Thinking,
    ToolEnd,
    ToolStart,
    Unknown,
    Usage,
)


def item(line: str, kind: str, **fields: object) -> dict[str, object]:
    return {"type": f"item.{line}", "item": {"id": "i1", "type": kind, **fields}}


def events(*lines: object) -> list[AgentEvent]:
    return parse_values("codex", *lines)


def failure(message: object) -> Failure | None:
    return result(events({"type": "turn.failed", "error": {"message": message}})).failure


def test_the_lines_of_the_specification() -> None:
    """H §Codex Streaming JSON, its own examples."""
    usage = {"input_tokens": 1000, "cached_input_tokens": 800, "output_tokens": 500}
    found = events(
        {"type": "thread.started", "thread_id": "th1"},
        {"type": "turn.started"},
        item("started", "command_execution", command="ls"),
        item("completed", "command_execution", aggregated_output="a.py", exit_code=0),
        item("completed", "reasoning", text="hm"),
        item("completed", "agent_message", text="done"),
        {"type": "turn.completed", "usage": usage},
    )
    assert found == [
        Progress("session th1", "th1"),
        ToolStart("i1", "shell", "ls"),
        ToolEnd("i1", "a.py"),
        Thinking("hm"),
        Text("done"),
        Result(usage=Usage(input=200, output=500, cache_read=800)),
    ]


def test_cached_tokens_are_not_counted_twice() -> None:
    """Codex's input_tokens include the cached ones. No cost (docs/facts.md §2)."""
    found = result(parse("codex", capture("codex", "success-bypass")))
    assert found == Result(usage=Usage(input=700, output=140, cache_read=1200))
    odd = {"input_tokens": 5, "cached_input_tokens": 9}
    assert result(events({"type": "turn.completed", "usage": odd})).usage.input == 0


@pytest.mark.parametrize(
    ("fields", "is_error"),
    [
        ({"exit_code": 0, "status": "completed"}, False),
        ({"exit_code": 3, "status": "failed"}, True),
        ({"exit_code": 3}, True),
        ({"exit_code": None, "status": "declined"}, True),
        ({}, False),
    ],
)
def test_a_command_fails_by_its_exit_code_or_status(
    fields: dict[str, object], is_error: bool
) -> None:
    *_, ended = events(item("completed", "command_execution", command="x", **fields))
    assert ended == ToolEnd("i1", is_error=is_error)


def test_an_item_that_never_started_gets_its_start_first() -> None:
    line = item("completed", "command_execution", command="ls", exit_code=0)
    assert events(line) == [ToolStart("i1", "shell", "ls"), ToolEnd("i1")]


def test_a_command_that_goes_on_starts_once() -> None:
    line = item("started", "command_execution", command="make")
    more = item("updated", "command_execution", command="make")
    assert events(line, more, more) == [ToolStart("i1", "shell", "make")]


def test_a_command_still_running_has_no_end() -> None:
    """docs/facts.md §2: a command still running has no `item.completed`."""
    found = parse("codex", capture("codex", "interrupted-sigint"))
    assert found[-1] == ToolStart("item_1", "shell", "/bin/bash -lc 'sleep 30'")


def test_file_changes_are_named() -> None:
    """docs/facts.md §2: `file_change` items exist."""
    found = parse("codex", capture("codex", "success-bypass"))
    patches = [e for e in of(found, ToolStart) if isinstance(e, ToolStart) and e.name == "patch"]
    assert [patch.summary for patch in patches] == ["add added.txt", "update added.txt"]
    changes = [{"kind": "add", "path": "/p/a.py"}, {"kind": "delete", "path": "b.py"}]
    line = item("completed", "file_change", changes=changes, status="failed")
    assert events(line) == [
        ToolStart("i1", "patch", "add a.py, delete b.py"),
        ToolEnd("i1", is_error=True),
    ]


def test_calls_of_tool_servers() -> None:
    called = {"server": "tracker", "tool": "get", "arguments": {"query": "AB-1"}}
    content = {"content": [{"type": "text", "text": "found"}]}
    ended = item("completed", "mcp_tool_call", **called, result=content, status="completed")
    failed = item("completed", "mcp_tool_call", **called, error={"message": "no"}, status="failed")
    start = ToolStart("i1", "tracker.get", "AB-1")
    assert events(item("started", "mcp_tool_call", **called), ended) == [
        start,
        ToolEnd("i1", "found"),
    ]
    assert events(failed) == [start, ToolEnd("i1", "no", is_error=True)]


def test_a_search_tells_its_query_when_it_knows_it() -> None:
    found = events(item("started", "web_search"), item("completed", "web_search", query="why"))
    assert found == [ToolStart("i1", "web_search"), ToolEnd("i1", "why")]


@pytest.mark.parametrize("line", ["item", "top"])
@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Reconnecting... 2/5 (stream closed)", Retry(2, 5, why="stream closed")),
        ("Reconnecting… 1/1", Retry(1, 1)),
        ("clamping hook timeout", Progress("clamping hook timeout")),
    ],
)
def test_errors_that_are_none(line: str, message: str, expected: AgentEvent) -> None:
    """docs/facts.md §2: `item.type:"error"` and top-level `error` also in runs that succeed."""
    top = {"type": "error", "message": message}
    said = item("completed", "error", message=message) if line == "item" else top
    assert events(said) == [expected]


def test_items_that_only_begin_say_nothing_yet() -> None:
    assert events(item("started", "agent_message", text="<response>")) == []


def test_empty_words_are_no_event() -> None:
    assert events(item("completed", "agent_message"), item("completed", "reasoning", text="")) == []


def test_items_of_a_later_version_are_unknown() -> None:
    (found,) = events(item("completed", "hologram", text="<response>DONE</response>"))
    assert isinstance(found, Unknown)


@pytest.mark.parametrize(
    ("message", "status", "retry_after"),
    [
        ("exceeded retry limit, last status: 429 Too Many Requests", 429, None),
        ("unexpected status 401 Unauthorized: wrong key", 401, None),
        ("unexpected status 503 Service Unavailable: billing is down", 503, None),
        ("Rate limit reached. Please try again in 1.2s.", 429, 1.2),
        ("rate limit: try again in 250ms", 429, 0.25),
        ("You've hit your usage limit. Try again in 3m 20s.", 429, 200),
        ("You've hit your usage limit, try again in 2 hours", 429, 7200),
        ("usage limit; try again in 1 day, 2 hours and 5 minutes.", 429, 93900),
        ("rate limit: try again in 1h2min3sec", 429, 3723),
        ("Rate limit reached. Please try again in 5 moments.", 429, None),
        ("Quota exceeded. Check your plan and billing details.", None, None),
        ("unexpected status 429 Too Many Requests: check your quota", None, None),
        ("the file status 200 ok could not be read", None, None),
    ],
)
def test_a_failed_turn_says_why(
    message: str, status: int | None, retry_after: float | None
) -> None:
    """ADR 11: rate limits and refusals come from the `turn.failed` message."""
    found = failure(message)
    assert found is not None
    assert (found.message, found.status) == (message, status)
    assert found.retry_after == (retry_after and pytest.approx(retry_after))


@pytest.mark.parametrize("message", [None, "", 7, ["x"]])
def test_a_failed_turn_without_words(message: object) -> None:
    assert failure(message) == Failure("the turn failed")


def test_a_session_without_a_name() -> None:
    assert events({"type": "thread.started"}) == [Progress("session")]


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("Selected model is at capacity. Please try a different model.", 503),
        ("We’re currently experiencing high demand, which may cause temporary errors.", 503),
        ("unexpected status 503 Service Unavailable: x", 503),
        ("server overloaded", 503),
        ("stream disconnected before completion", None),
        ("Quota exceeded, we are experiencing high demand", None),
    ],
)
def test_a_service_without_room_is_known_by_codex_own_words(
    message: str, status: int | None
) -> None:
    """ADR 11: `"at capacity" and "experiencing high demand" are such failures`."""
    found = result(parse_values("codex", {"type": "turn.failed", "error": {"message": message}}))
    assert found.failure is not None
    assert found.failure.status == status
