"""Every stream that an agent has really printed, exported in every format: valid, whole, and with
the sums of the ledger."""

from pathlib import Path

import pytest

from kits.export.exported import assert_sums, atif, otlp
from kits.export.stored import PROMPT, Stored, captures, lines
from ralph.kernel.turn import Role

AGENTS = ("claude", "codex", "gemini", "opencode", "ralph-agent")
AMP = lines(
    {"type": "system", "subtype": "init", "session_id": "s"},
    {
        "type": "assistant",
        "message": {
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
            ]
        },
    },
    {
        "type": "user",
        "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a.py"}]},
    },
    {"type": "result", "result": "Done.", "usage": {"input_tokens": 7, "output_tokens": 3}},
)


@pytest.mark.parametrize("agent", AGENTS)
def test_every_capture_of_an_agent(agent: str, tmp_path: Path) -> None:
    for number, capture in enumerate(captures(agent)):
        stored = Stored(tmp_path / str(number)).begin(agent=agent)
        stored.turn(agent, capture.read_bytes(), cost=0.25).end()
        assert_sums(stored)


def test_amp_and_plain_text(tmp_path: Path) -> None:
    stored = Stored(tmp_path).begin()
    stored.turn("amp", AMP).turn("text", b"I did it.\nReally.\n").turn("nobody", b"Me too.").end()
    assert_sums(stored)
    agent = atif(stored).of("agent")
    assert [step.message for step in agent] == ["I look.", "I did it.\nReally.\n", "Me too."]
    call = (agent[0].tool_calls or [])[0]
    assert (call.function_name, call.arguments) == ("Bash", {"command": "ls"})
    assert agent[0].observation
    assert agent[0].observation.results[0].content == "a.py"


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("claude", "success"),
        ("codex", "success-bypass"),
        ("gemini", "success"),
        ("opencode", "success"),
        ("acp", "claude-work"),
        ("acp", "opencode-work"),
    ],
)
def test_tool_calls_have_all_their_arguments(agent: str, name: str, tmp_path: Path) -> None:
    capture = next(path for path in captures(agent) if path.stem.startswith(name))
    stored = Stored(tmp_path).begin(agent=agent).turn(agent, capture.read_bytes()).end()
    steps = atif(stored).of("agent")
    calls = [call for step in steps for call in step.tool_calls or ()]
    assert calls
    assert all(call.arguments for call in calls if call.function_name != "TaskList")
    answered = [r for step in steps if step.observation for r in step.observation.results]
    assert {r.source_call_id for r in answered} == {call.tool_call_id for call in calls}
    spans = otlp(stored, content=True)
    tools = [span for span in spans if span.name.startswith("execute_tool ")]
    ids = {span.told["gen_ai.tool.call.id"] for span in tools}
    assert ids == {call.tool_call_id for call in calls}
    assert all("gen_ai.tool.call.arguments" in span.told for span in tools)


def test_message_and_review_turns_are_told_too(tmp_path: Path) -> None:
    stored = Stored(tmp_path).begin()
    stored.launch("text", b"Add greet", role=Role.MESSAGE)
    stored.launch("text", b"It looks right", role=Role.REVIEW)
    found = atif(stored)
    roles = [step.extra["role"] for step in found.of("user") if step.extra]
    assert roles == ["message", "review"]
    assert [step.message for step in found.of("user")] == [PROMPT, PROMPT]
    assert [step.message for step in found.of("agent")] == ["Add greet", "It looks right"]
