"""The stream of Ralph's own agent."""

import pytest
from stream_support import parse_values, result

from ralph.agents.streams.collect import Collector
from ralph.kernel.events import (
    AgentEvent,
    Failure,
    Progress,
    Question,
    Result,
    Retry,
    Text,
    Thinking,
    ToolEnd,
    ToolStart,
    Unknown,
    Usage,
    Used,
)

TOKENS = {
    "input_tokens": 1,
    "output_tokens": 2,
    "cache_read_input_tokens": 3,
    "cache_creation_input_tokens": 4,
}


def events(*lines: object) -> list[AgentEvent]:
    return parse_values("ralph-agent", *lines)


def action(name: str, **arguments: object) -> dict[str, object]:
    return {"type": "action", "id": "c1", "action": name, "input": arguments}


def test_every_line_is_an_event() -> None:
    model = {"model": "anthropic:claude-x", "workspace": "/p", "version": "0.2.0", "guard": True}
    retry = {"attempt": 1, "of": 5, "seconds": 2.0, "why": "429 slow\ndown"}
    ended = {"output": "ok", "is_error": False, "exit_code": 0, "seconds": 1.2}
    found = events(
        {"type": "session", "session": "ab12", **model},
        {"type": "thinking", "text": "hm"},
        {"type": "text", "text": "I test."},
        action("bash", command="make test", timeout=120),
        {"type": "action_result", "id": "c1", **ended},
        {"type": "used", "usage": TOKENS},
        {"type": "retry", **retry},
        {"type": "progress", "text": "the context\nwas shortened"},
        {"type": "question", "text": "tabs or spaces?"},
        {"type": "result", "text": "Done.", "error": None, "usage": TOKENS, "steps": 3},
    )
    assert found == [
        Progress("session ab12 model anthropic:claude-x", "ab12"),
        Thinking("hm"),
        Text("I test."),
        ToolStart("c1", "bash", "make test"),
        ToolEnd("c1", "ok"),
        Used(Usage(1, 2, 3, 4)),
        Retry(1, 5, 2.0, "429 slow down"),
        Progress("the context was shortened"),
        Question("tabs or spaces?"),
        Result("Done.", usage=Usage(1, 2, 3, 4)),
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "summary"),
    [
        ("read", {"path": "a.py", "lines": "1-20"}, "a.py"),
        ("write", {"content": "x = 1", "path": "a.py"}, "a.py"),
        ("edit", {"path": "a.py", "old": "x", "new": "y"}, "a.py"),
        ("bash", {"timeout": 9, "command": "ls\n-l"}, "ls -l"),
        ("git", {"args": ["commit", "-m", "a b"]}, "git commit -m 'a b'"),
        ("git", {"args": ["git", "diff"]}, "git diff"),
        ("git", {"args": [1, None]}, "git '' ''"),
        ("git", {"args": "status"}, "git status"),
        ("git", {}, ""),
        ("eval", {"language": "python", "code": "print(1)"}, "print(1)"),
        ("eval", {"language": "python"}, "python"),
        ("made_up", {"what": "ever"}, "ever"),
    ],
)
def test_an_action_says_what_it_does(name: str, arguments: dict[str, object], summary: str) -> None:
    assert events(action(name, **arguments)) == [ToolStart("c1", name, summary)]


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (None, None),
        ({"message": "slow down", "status": 429, "retry_after": 7}, Failure("slow down", 429, 7.0)),
        ({"message": "x", "status": None, "resets_at": 9.5}, Failure("x", resets_at=9.5)),
        ({"message": "y" * 3000}, Failure("y" * 2000)),
        ({}, Failure("the agent reports an error")),
        ("broken", Failure("broken")),
        (False, Failure("the agent reports an error")),
        ({"message": 1, "status": "429"}, Failure("the agent reports an error")),
    ],
)
def test_a_turn_failed_where_its_result_has_an_error(error: object, failure: object) -> None:
    assert result(events({"type": "result", "error": error})).failure == failure


def test_a_result_that_does_not_say_how_it_ended_is_none() -> None:
    (found,) = events({"type": "result", "text": "Done."})
    assert isinstance(found, Unknown)


def test_odd_values_do_not_cost_the_line() -> None:
    assert events(
        {"type": "text", "text": 1},
        {"type": "text", "text": ""},
        {"type": "thinking"},
        {"type": "action", "action": 5, "input": "x"},
        {"type": "action_result", "id": [], "output": {}, "is_error": 1},
        {"type": "used", "usage": {"input_tokens": -5, "output_tokens": "2"}},
        {"type": "retry", "of": 0, "seconds": "soon"},
        {"type": "question"},
        {"type": "progress"},
    ) == [
        ToolStart("", ""),
        ToolEnd("", is_error=True),
        Used(),
        Retry(0),
        Question("the agent asks a question"),
        Progress(""),
    ]


def test_steps_add_up_until_the_result_tells_the_sum() -> None:
    collector = Collector()
    collector.add(events({"type": "used", "usage": TOKENS}, {"type": "used", "usage": TOKENS}))
    assert collector.used == Used(Usage(2, 4, 6, 8))
    collector.add(events({"type": "result", "error": None, "usage": TOKENS}))
    assert collector.used == Used(Usage(1, 2, 3, 4))


@pytest.mark.parametrize(("name", "wrote"), [("write", True), ("edit", True), ("bash", False)])
def test_write_and_edit_write(name: str, wrote: bool) -> None:
    collector = Collector()
    collector.add(events(action(name), {"type": "action_result", "id": "c1", "output": ""}))
    assert collector.turn(has_result=True).wrote is wrote
