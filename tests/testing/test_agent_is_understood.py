"""Ralph's own parsers understand every line that a scripted agent prints."""

import time
from pathlib import Path
from typing import Any

import pytest
from agent_play import play

from ralph.agents.streams.collect import Collector
from ralph.agents.streams.dialects import parser_for
from ralph.kernel.events import AgentEvent, Result, ToolEnd, Unknown

FULL: dict[str, Any] = {
    "thinking": "hm",
    "text": ["first", "last"],
    "tools": [{"run": "echo good"}, {"run": "exit 3"}],
    "todo": [["a", "completed"], ["b", "pending"]],
    "subagent_text": "from below",
    "hook_text": "go on",
    "response": "DONE",
    "rate_limit_event": True,
}


def events(directory: Path, kind: str, turn: dict[str, Any]) -> list[AgentEvent]:
    parser = parser_for(kind, "do it")
    found = parser.feed(play(directory, kind, turn).stdout.encode())
    return [*found, *parser.end()]


@pytest.mark.parametrize(
    "kind", ["claude", "codex", "amp", "gemini", "opencode", "ralph-agent", "text"]
)
def test_no_line_is_unknown_and_only_its_own_words_are_the_assistants(
    tmp_path: Path, kind: str
) -> None:
    # Plain text cannot tell the echo of a harmless prompt from an answer.
    found = events(tmp_path, kind, {**FULL, "echo_prompt": kind != "text"})
    assert not [event for event in found if isinstance(event, Unknown)]
    collector = Collector()
    collector.add(found)
    said = collector.turn(has_result=False).text
    assert said.strip() == "first\nlast\n<response>DONE</response>"


@pytest.mark.parametrize("kind", ["claude", "codex", "amp", "opencode", "ralph-agent"])
def test_tools_end_as_their_commands_did(tmp_path: Path, kind: str) -> None:
    ends = [event for event in events(tmp_path, kind, FULL) if isinstance(event, ToolEnd)]
    assert [end.is_error for end in ends[:2]] == [False, True]
    assert ends[0].output.strip() == "good"


@pytest.mark.parametrize("kind", ["claude", "codex", "gemini", "opencode", "ralph-agent"])
@pytest.mark.parametrize("status", [401, 429])
def test_a_failure_states_its_status(tmp_path: Path, kind: str, status: int) -> None:
    """ADR 11: rate limits and refusals come "from a failure's own fields"."""
    found = events(tmp_path, kind, {"error": {"status": status, "message": "no"}})
    (result,) = [event for event in found if isinstance(event, Result)]
    assert result.failure is not None
    assert result.failure.status == status


@pytest.mark.parametrize("kind", ["claude", "codex", "gemini", "opencode", "ralph-agent"])
def test_a_limit_states_when_it_resets(tmp_path: Path, kind: str) -> None:
    error = {"status": 429, "message": "Rate limit reached", "resets_at": time.time() + 3600}
    (result,) = [e for e in events(tmp_path, kind, {"error": error}) if isinstance(e, Result)]
    assert result.failure is not None
    assert result.failure.limited
    assert result.failure.resets_at or result.failure.retry_after
