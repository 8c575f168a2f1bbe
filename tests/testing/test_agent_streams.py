"""The scripted agent's lines have the shapes of the captured ones, dialect by dialect."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from agent_play import CAPTURES, STREAM, captured, lines, play, shape, shapes, unknown_fields

from ralph.testing.scripted_agent.install import install_agent

FINISHED = "All finished.\n\n<promise>DONE</promise>\n<response>DONE</response>"
TODO = [["Read the file", "completed"], ["Edit", "in_progress"], ["Test", "pending"]]
CASES: list[tuple[str, dict[str, Any]]] = [
    ("claude/trivial", {"text": "hello <promise>DONE</promise>"}),
    ("claude/api-401", {"error": {"status": 401}}),
    ("claude/api-429-ratelimit", {"error": {"status": 429, "message": "slow down"}}),
    ("claude/api-500", {"error": {"status": 500}}),
    ("claude/api-529-overloaded", {"error": {"status": 529, "message": "Overloaded"}}),
    ("claude/todowrite", {"todo": TODO, "text": FINISHED}),
    ("codex/yolo-alias", {"text": FINISHED}),
    ("codex/api-401", {"error": {"status": 401, "message": "Incorrect API key provided"}}),
    ("codex/api-429-ratelimit", {"error": {"status": 429}}),
    ("codex/api-500", {"error": {"status": 500}}),
    (
        "codex/tool-error",
        {"tools": [{"run": "exit 3"}, {"run": "no-such-command"}], "text": FINISHED},
    ),
    (
        "codex/success-bypass",
        {
            "thinking": "**Planning**",
            "text": ["I'll write the file.", FINISHED],
            "tools": [{"run": "echo hello"}, {"name": "apply_patch"}, {"name": "apply_patch"}],
        },
    ),
    ("gemini/trivial", {"text": "hello <promise>DONE</promise>"}),
    ("gemini/api-400", {"error": {"status": 400, "message": "bad request"}}),
    ("gemini/api-401", {"error": {"status": 401, "message": "API key not valid."}}),
    ("gemini/api-429-given-up", {"error": {"status": 429, "message": "exhausted"}}),
    ("gemini/api-500-given-up", {"error": {"status": 500}}),
    (
        "gemini/success",
        {
            "text": ["I'll write the file.", FINISHED],
            "tools": [{"name": "write_file"}, {"run": "echo ok"}, {"name": "read_file"}],
            "todo": TODO,
        },
    ),
    ("opencode/trivial", {"text": "hello <promise>DONE</promise>"}),
    ("opencode/empty-answer", {}),
    ("opencode/thinking", {"thinking": "hmm", "text": "hello <promise>DONE</promise>"}),
    ("opencode/api-400", {"error": {"status": 400, "message": "bad request"}}),
    ("opencode/api-401", {"error": {"status": 401, "message": "bad key"}}),
    ("opencode/api-429", {"error": {"status": 429, "message": "Rate limit reached"}}),
    ("opencode/subagent", {"text": ["I ask.", "Asked."], "subagent_text": "sub says"}),
    (
        "opencode/permission-rejected",
        {"text": ["I look.", "b"], "tools": [{"name": "bash", "denied": True}]},
    ),
    (
        "opencode/success",
        {
            "text": ["I'll write the file.", FINISHED],
            "tools": [{"name": "write"}, {"run": "echo ok"}, {"name": "read"}],
            "todo": TODO,
        },
    ),
    ("ralph-agent/trivial", {"text": "hello <promise>DONE</promise>"}),
    ("ralph-agent/thinking", {"thinking": "hmm", "text": "hello <promise>DONE</promise>"}),
    ("ralph-agent/empty-answer", {}),
    ("ralph-agent/api-400", {"error": {"status": 400, "message": "bad request"}}),
    ("ralph-agent/api-401", {"error": {"status": 401, "message": "invalid x-api-key"}}),
    ("ralph-agent/api-429-reset", {"error": {"status": 429, "message": "slow down"}}),
    ("ralph-agent/refused", {"text": FINISHED, "tools": [{"name": "bash", "is_error": True}]}),
]


@pytest.mark.parametrize(("case", "turn"), CASES, ids=[case for case, _ in CASES])
def test_a_turn_looks_like_the_capture(tmp_path: Path, case: str, turn: dict[str, Any]) -> None:
    """Same kinds of lines in the same order, no field the real CLI does not have, same exit."""
    real, code = captured(case)
    done = play(tmp_path, case.split("/", maxsplit=1)[0], turn)
    found = lines(done.stdout)
    assert shapes(found) == shapes(real)
    assert [(shape(line), unknown_fields(line, real)) for line in found] == [
        (kind, set()) for kind in shapes(real)
    ]
    assert done.returncode == code


def test_claude_tool_lines_look_like_the_captures(tmp_path: Path) -> None:
    """A good command, a failing one, thinking and early text, against two captures."""
    real = captured("claude/success")[0] + captured("claude/tool-error")[0]
    turn = {
        "thinking": "I should write the file.",
        "text": ["Now", "then"],
        "tools": [{"run": "echo ok"}, {"run": "echo out; exit 3"}],
    }
    found = lines(play(tmp_path, "claude", turn).stdout)
    assert shapes(found) == [
        *("system/init", "system/thinking_tokens", "assistant/thinking", "assistant/text"),
        *("assistant/tool_use", "user/tool_result", "assistant/tool_use", "user/tool_result"),
        *("assistant/text", "result/success"),
    ]
    assert not set().union(*(unknown_fields(line, real) for line in found))
    answers = [line["message"]["content"][0] for line in found if line["type"] == "user"]
    assert [(a["content"], a["is_error"]) for a in answers] == [
        ("ok", False),
        ("Exit code 3\nout\n", True),
    ]


def test_claude_hook_feedback_looks_like_the_capture(tmp_path: Path) -> None:
    """docs/facts.md §2: "`user` lines may be synthetic (hook feedback)"."""
    real = [line for line in captured("claude/hooks-stop-block")[0] if line.get("isSynthetic")]
    found = lines(play(tmp_path, "claude", {"hook_text": "Keep going"}).stdout)[1]
    assert found["isSynthetic"]
    assert not unknown_fields(found, real)
    assert found["message"]["content"][0]["text"] == "Stop hook feedback:\nKeep going"


def test_a_sub_agents_words_carry_their_parent(tmp_path: Path) -> None:
    """docs/facts.md §2: "Sub-agent lines carry `parent_tool_use_id`"."""
    _, call, said, answer, _ = lines(play(tmp_path, "claude", {"subagent_text": "DONE"}).stdout)
    parent = call["message"]["content"][0]["id"]
    assert said["parent_tool_use_id"] == parent
    assert said["message"]["content"][0]["text"] == "DONE"
    assert answer["message"]["content"][0]["tool_use_id"] == parent


def test_claude_names_denied_permissions_in_its_result(tmp_path: Path) -> None:
    real = captured("claude/permission-denied")[0][-1]["permission_denials"][0]
    turn = {"tools": [{"name": "Write", "input": {"file_path": "x"}, "denied": True}]}
    (denial,) = lines(play(tmp_path, "claude", turn).stdout)[-1]["permission_denials"]
    assert denial.keys() == real.keys()
    assert denial["tool_name"] == "Write"


def test_claude_states_when_a_rejected_limit_resets(tmp_path: Path) -> None:
    """docs/facts.md §2: `rate_limit_info {status …, resetsAt (unix), rateLimitType}`."""
    turn = {"error": {"status": 429, "message": "no", "resets_at": 1_800_000_000}}
    event = lines(play(tmp_path, "claude", turn).stdout)[1]
    assert event["type"] == "rate_limit_event"
    assert event["rate_limit_info"]["status"] == "rejected"
    assert event["rate_limit_info"]["resetsAt"] == 1_800_000_000


def test_gemini_tool_lines_look_like_the_captures(tmp_path: Path) -> None:
    """docs/facts.md §2: a shell command that fails is a success; a tool that fails is not."""
    real = captured("gemini/tool-error")[0] + captured("gemini/no-approval")[0]
    tools = [
        {"name": "run_shell_command", "run": "echo out; exit 3"},
        {"name": "read_file", "is_error": True, "output": "File not found."},
        {"name": "write_file", "denied": True},
    ]
    found = lines(play(tmp_path, "gemini", {"text": "x", "tools": tools}).stdout)
    assert not set().union(*(unknown_fields(line, real) for line in found))
    answers = [line for line in found if line["type"] == "tool_result"]
    assert [answer["status"] for answer in answers] == ["success", "error", "error"]
    assert answers[2]["error"]["type"] == "tool_not_registered"


def test_gemini_hook_feedback_looks_like_the_capture(tmp_path: Path) -> None:
    real = [line for line in captured("gemini/hooks-afteragent")[0] if line["type"] == "error"]
    found = lines(play(tmp_path, "gemini", {"hook_text": "Keep going (RALPH)"}).stdout)[2]
    assert {**found, "timestamp": ""} == {**real[0], "timestamp": ""}


def test_opencode_tool_lines_look_like_the_capture(tmp_path: Path) -> None:
    """docs/facts.md §2: a command that fails is completed, and its exit code is told."""
    real = captured("opencode/tool-error")[0]
    tools = [{"name": "bash", "run": "exit 3"}, {"name": "read", "is_error": True, "output": "no"}]
    found = lines(play(tmp_path, "opencode", {"tools": tools}).stdout)
    states = [line["part"]["state"] for line in found if line["type"] == "tool_use"]
    models = [line["part"]["state"] for line in real if line["type"] == "tool_use"]
    failed, completed = sorted(models, key=len)
    assert [state.keys() for state in states] == [completed.keys(), failed.keys()]
    assert states[0]["metadata"]["exit"] == 3


@pytest.mark.parametrize("kind", ["gemini", "opencode"])
def test_text_mode_prints_every_text(tmp_path: Path, kind: str) -> None:
    argv = {"gemini": ["--output-format", "text", "-p", "x"], "opencode": ["run"]}[kind]
    turn = {"text": ["a", "b"], "tools": [{"run": "echo no"}]}
    assert play(tmp_path, kind, turn, argv).stdout == "a\nb\n"


@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_text_mode_prints_the_last_message_only(tmp_path: Path, kind: str) -> None:
    """captures/claude/text-format and captures/codex/text-mode: stdout has nothing else."""
    case = {"claude": "text-format", "codex": "text-mode"}[kind]
    argv = {"claude": ["-p", "x", "--output-format", "text"], "codex": ["exec", "do it"]}[kind]
    turn = {"thinking": "hm", "text": ["writing now", FINISHED], "tools": [{"run": "echo x"}]}
    done = play(tmp_path, kind, turn, argv)
    assert done.stdout == (CAPTURES / kind / f"{case}.ndjson").read_text("utf-8")


def test_codex_puts_its_last_message_into_a_file(tmp_path: Path) -> None:
    """H §Codex Integration Details: "`-o <output-file>` writes final response to file"."""
    answer = tmp_path / "last.txt"
    play(tmp_path, "codex", {"text": ["a", "b"]}, ["e", "-o", str(answer), "do it"])
    assert answer.read_text() == "b"


def test_amp_speaks_as_the_specification_says(tmp_path: Path) -> None:
    """H §Amp Streaming JSON."""
    turn = {"tools": [{"run": "echo hi"}], "text": "well", "usage": {"cache_read": 80}}
    found = lines(play(tmp_path, "amp", turn).stdout)
    assert shapes(found) == [
        *("system/init", "user/text", "assistant/tool_use", "user/tool_result"),
        *("assistant/text", "result/success"),
    ]
    result = found[-1]
    assert (result["result"], result["num_turns"]) == ("well", 2)
    assert result["usage"]["cache_read_input_tokens"] == 80
    failed = lines(play(tmp_path, "amp", {"error": {"message": "no credit"}}).stdout)[-1]
    assert (failed["subtype"], failed["is_error"]) == ("error_during_execution", True)
    assert "no credit" in failed["error"]


def test_a_plain_agent_prints_its_words_and_nothing_else(tmp_path: Path) -> None:
    turn = {"thinking": "hm", "text": ["a", "b"], "tools": [{"run": "echo no"}], "response": "DONE"}
    assert play(tmp_path, "text", turn).stdout == "a\nb\n<response>DONE</response>\n"


@pytest.mark.parametrize(
    ("kind", "name", "sent"),
    [
        ("claude", "interrupted-sigint", signal.SIGINT),
        ("claude", "interrupted-sigterm", signal.SIGTERM),
        ("codex", "interrupted-sigint", signal.SIGINT),
        ("codex", "interrupted-sigterm", signal.SIGTERM),
        ("gemini", "interrupted-sigint-group", signal.SIGINT),
        ("gemini", "interrupted-sigterm-group", signal.SIGTERM),
        ("opencode", "interrupted-sigint", signal.SIGINT),
        ("ralph-agent", "interrupted-sigint", signal.SIGINT),
        ("ralph-agent", "interrupted-sigterm", signal.SIGTERM),
    ],
)
def test_a_signal_ends_a_turn_as_captured(
    tmp_path: Path, kind: str, name: str, sent: signal.Signals
) -> None:
    """docs/facts.md §2: "SIGINT: a result line, exit 0 or 1; SIGTERM: 143, none"."""
    # The tool works as long as the agent lives, so that nothing is left behind.
    work = "while kill -0 $PPID 2>/dev/null; do sleep 0.1; done"
    early = [] if kind == "ralph-agent" else ["step"]  # its capture has no words before
    turn = {"text": [*early, "never"], "tools": [{"run": work}]}
    agent = install_agent(str(tmp_path), [turn], kind=kind)
    begun = {
        "claude": "assistant/tool_use",
        "codex": "item.started/command_execution",
        "gemini": "tool_use",
        "opencode": "text",  # a call that runs is not told
        "ralph-agent": "action",
    }[kind]
    found = []
    with subprocess.Popen(
        [agent, *STREAM[kind]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            found.append(json.loads(line))
            if shape(found[-1]) == begun:
                process.send_signal(sent)
    real, code = captured(f"{kind}/{name}")
    assert shapes(found) == shapes(real)
    assert process.returncode == code
