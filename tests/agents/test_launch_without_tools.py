"""A turn without tools (ADR 8, ADR 15): how each agent is called for a commit message, and told."""

import json
from typing import Any

import pytest

from ralph.agents.clis import CLIS, Launch, Request
from ralph.agents.kinds import KINDS

OLD_CODEX = "Options: --full-auto  Convenience alias"
NEW_CODEX = "Options: -s, --sandbox <MODE>"
CONFIG = "OPENCODE_CONFIG_CONTENT"
CLAUDE_STREAM = "claude -p --output-format stream-json --verbose"


def launched(kind: str, **more: Any) -> Launch:  # noqa: ANN401
    help_text = more.pop("help", "")
    request = Request(
        (kind,), "do it", answer_file="ANSWER", help_text=lambda: help_text, tools=False, **more
    )
    return CLIS[kind if kind in KINDS else "text"].launch(request)


CLAUDE_WITHOUT = "--tools <a> --disallowedTools, --disallowed-tools <a> --strict-mcp-config"
CLAUDE_NO_TOOLS = (
    "--tools= --disallowedTools=* --strict-mcp-config --output-format stream-json --verbose"
)
CODEX_WITHOUT = "--sandbox=read-only --json -o ANSWER -"
GEMINI_WITHOUT = "--approval-mode=default --allowed-mcp-server-names=none"


@pytest.mark.parametrize(
    ("kind", "more", "words"),
    [
        (
            "claude",
            {
                "flags": (
                    *("--settings", "s.json", "--allowedTools", "Bash", "Edit", "--tools=Bash"),
                    *("--dangerously-skip-permissions", "--permission-mode", "acceptEdits"),
                    *("--mcp-config", "a.json", "b.json", "--disallowedTools", "Read"),
                ),
                "help": CLAUDE_WITHOUT,
            },
            f"claude -p --settings s.json --disallowedTools Read {CLAUDE_NO_TOOLS} PROMPT",
        ),
        (
            "claude",
            {"flags": ("--dangerously-skip-permissions",), "help": "an older claude"},
            f"{CLAUDE_STREAM} PROMPT",
        ),
        ("codex", {"help": NEW_CODEX}, f"codex e {CODEX_WITHOUT}"),
        ("codex", {"help": OLD_CODEX}, f"codex e {CODEX_WITHOUT}"),
        (
            "codex",
            {"flags": ("-c", 'model_provider="x"', "--full-auto", "-s", "danger-full-access")},
            f'codex e -c model_provider="x" {CODEX_WITHOUT}',
        ),
        (
            "codex",
            {"flags": ("--sandbox=workspace-write", "--yolo", "--disable", "plugins")},
            f"codex e --disable plugins {CODEX_WITHOUT}",
        ),
        ("codex", {"flags": ("-sdanger-full-access",)}, f"codex e {CODEX_WITHOUT}"),
        (
            "codex",
            {"flags": ("--dangerously-bypass-approvals-and-sandbox",), "model": "gpt-5.5"},
            "codex e --sandbox=read-only -m gpt-5.5 --json -o ANSWER -",
        ),
        ("codex", {"flags": ("--approve-for-me",)}, f"codex e {CODEX_WITHOUT}"),
        (
            "codex",
            {"stream": False},
            "codex e --sandbox=read-only -o ANSWER -",
        ),
        (
            "amp",
            {"flags": ("--mode", "smart", "--dangerously-allow-all")},
            "amp --mode smart --stream-json -x PROMPT",
        ),
        (
            "gemini",
            {"flags": ("--yolo", "--skip-trust", "--allowed-tools", "a", "b", "--policy", "p")},
            f"gemini --skip-trust {GEMINI_WITHOUT} --output-format stream-json -p PROMPT",
        ),
        (
            "gemini",
            {"flags": ("-y", "--approval-mode", "yolo"), "model": "pro"},
            f"gemini {GEMINI_WITHOUT} -m pro --output-format stream-json -p PROMPT",
        ),
        (
            "opencode",
            {"flags": ("--auto", "--agent", "me")},
            "opencode run --agent me --format json",
        ),
        (
            "copilot",
            {"flags": ("--allow-all-tools",)},
            "copilot --allow-all-tools --deny-tool=shell --deny-tool=write --silent -p PROMPT",
        ),
        (
            "cursor-agent",
            {"flags": ("--force", "--trust")},
            "cursor-agent -p --trust --output-format text -- PROMPT",
        ),
        ("goose", {}, "goose run --quiet --no-session -i -"),
        ("my-agent", {"flags": ("--yolo",)}, "my-agent --yolo PROMPT"),
    ],
)
def test_the_argument_vector_without_tools(kind: str, more: dict[str, Any], words: str) -> None:
    """ADR 8: flags that contradict are taken out, all others stay."""
    expected = tuple("do it" if word == "PROMPT" else word for word in words.split())
    assert launched(kind, **more).argv == expected


@pytest.mark.parametrize(
    ("kind", "command", "expected"),
    [
        ("claude", "npx claude --dangerously-skip-permissions", "npx claude"),
        ("codex", "npx codex --yolo", "npx codex"),
        ("gemini", "npx -y gemini --yolo", "npx -y gemini"),
        ("opencode", "npx opencode run --auto", "npx opencode run"),
    ],
)
def test_grants_in_the_command_itself_are_taken_out_too(
    kind: str, command: str, expected: str
) -> None:
    """Those that are no word of anybody else's: `-y` is npx's."""
    request = Request(tuple(command.split()), "do it", tools=False)
    words = tuple(expected.split())
    assert CLIS[kind].launch(request).argv[: len(words)] == words


@pytest.mark.parametrize("kind", KINDS)
def test_only_a_turn_without_tools_has_another_environment(kind: str) -> None:
    assert CLIS[kind].launch(Request((kind,), "do it")).env == {}
    said = {"opencode": {"OPENCODE_PERMISSION", "OPENCODE_CONFIG_CONTENT"}, "goose": {"GOOSE_MODE"}}
    assert launched(kind).env.keys() == said.get(kind, set())


@pytest.mark.parametrize(
    ("flags", "config", "agents"),
    [
        ((), None, {"build": "deny"}),
        (("--agent", "me"), "", {"me": "deny"}),
        ((), '{"agent": {"build": {"model": "m"}, "me": {}}}', {"build": "deny", "me": None}),
        ((), '{"agent": {"build": {"permission": {"bash": "allow"}}}}', {"build": "deny"}),
    ],
)
def test_opencode_is_denied_every_tool_whoever_answers(
    flags: tuple[str, ...], config: str | None, agents: dict[str, str | None]
) -> None:
    """An agent's own rules beat those for all; its model and other agents stay."""
    launch = launched("opencode", flags=flags, variable={CONFIG: config}.get)
    rules = json.loads(launch.env["OPENCODE_PERMISSION"])
    assert set(rules.values()) == {"deny"}
    assert {"*", "bash", "edit", "task"} <= rules.keys()
    told = json.loads(launch.env[CONFIG])["agent"]
    assert {n: a.get("permission", {}).get("bash") for n, a in told.items()} == agents
    if "model" in (config or ""):
        assert told["build"]["model"] == "m"


@pytest.mark.parametrize("config", ["{ // a comment\n}", "[]", "null", '{"agent": 5}'])
def test_a_configuration_of_opencode_that_cannot_be_added_to_stays(config: str) -> None:
    launch = launched("opencode", variable={CONFIG: config}.get)
    assert launch.env.keys() == {"OPENCODE_PERMISSION"}
