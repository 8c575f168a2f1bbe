"""Amp's stream (H §Amp Streaming JSON): the messages are Claude's, the rest is its own."""

from stream_support import parse_values, result

from ralph.kernel.events import Failure, Progress, Result, Text, ToolEnd, ToolStart, Usage

BEGIN = {"type": "system", "subtype": "init", "session_id": "T-1", "tools": ["Bash"]}
TEXT = {"type": "text", "text": "<response>DONE</response>"}
CALL = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"cmd": "ls"}}
ANSWER = {"type": "tool_result", "tool_use_id": "t1", "content": "a.py"}
USAGE = {
    "input_tokens": 100,
    "output_tokens": 50,
    "cache_read_input_tokens": 80,
    "cache_creation_input_tokens": 0,
}


def test_the_lines_of_the_specification() -> None:
    """H §Amp Streaming JSON, its own examples. There is no cost."""
    found = parse_values(
        "amp",
        BEGIN,
        {"type": "assistant", "message": {"content": [TEXT], "usage": USAGE}},
        {"type": "assistant", "message": {"content": [CALL]}},
        {"type": "user", "message": {"content": [ANSWER]}},
        {"type": "result", "subtype": "success", "result": "done", "num_turns": 3, "usage": USAGE},
    )
    assert found == [
        Progress("session T-1", "T-1"),
        Text("<response>DONE</response>"),
        ToolStart("t1", "Bash", "ls"),
        ToolEnd("t1", "a.py"),
        Result("done", usage=Usage(100, 50, 80, 0)),
    ]


def test_an_error_ends_the_turn() -> None:
    """H: result `error_during_execution` with `error` and `is_error`."""
    line = {"type": "result", "subtype": "error_during_execution", "error": "no", "is_error": True}
    assert result(parse_values("amp", line)).failure == Failure("no")


def test_lines_that_only_claude_has_say_nothing() -> None:
    rate_limit = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected"}}
    assert parse_values("amp", rate_limit) == []
