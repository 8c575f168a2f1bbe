"""Plays scripted agents the way Ralph calls the real CLIs, and looks at what they print."""

import json
import subprocess
from pathlib import Path
from typing import Any

from ralph.testing.scripted_agent.install import install_agent

CAPTURES = Path(__file__).resolve().parent.parent / "captures"
STREAM = {
    "claude": ["-p", "do it", "--output-format", "stream-json", "--verbose"],
    "codex": ["exec", "--json", "-s", "workspace-write", "-"],
    "amp": ["--stream-json", "--dangerously-allow-all", "-x", "do it"],
    "gemini": ["--output-format", "stream-json", "-p", "do it"],
    "opencode": ["run", "--format", "json"],
    "ralph-agent": ["--output", "json", "-p", "do it"],
    "text": ["do it"],
}


def play(
    directory: Path, kind: str, turn: dict[str, Any], argv: list[str] | None = None
) -> subprocess.CompletedProcess[str]:
    """One call of a new agent, with an empty environment and the prompt `do it`."""
    agent = install_agent(str(directory), [turn], kind=kind)
    return call(agent, STREAM[kind] if argv is None else argv)


def call(agent: str, argv: list[str], prompt: str = "do it") -> subprocess.CompletedProcess[str]:
    """Call an agent that stands; the prompt is on its standard input, too."""
    return subprocess.run(
        [agent, *argv], input=prompt, capture_output=True, encoding="utf-8", env={}, check=False
    )


def lines(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def captured(case: str) -> tuple[list[dict[str, Any]], int]:
    """What the real CLI printed in this case, and its exit code."""
    about = json.loads((CAPTURES / f"{case}.json").read_text("utf-8"))
    return lines((CAPTURES / f"{case}.ndjson").read_text("utf-8")), about["rc"]


def shape(line: dict[str, Any]) -> str:
    """What kind of line it is: `assistant/text`, `item.completed/agent_message` …"""
    more = line.get("subtype") or line.get("item", {}).get("type") or line.get("role")
    more = more or line.get("part", {}).get("reason") or line.get("status")
    content = line.get("message", {})
    if isinstance(content, dict) and content.get("content"):
        more = content["content"][0]["type"]
    return f"{line['type']}/{more}" if more else str(line["type"])


def shapes(found: list[dict[str, Any]]) -> list[str]:
    return [shape(line) for line in found]


def unknown_fields(line: dict[str, Any], real: list[dict[str, Any]]) -> set[str]:
    """Fields that no captured line of the same shape has, also inside `message`, `part` …"""
    models = [model for model in real if shape(model) == shape(line)]
    wrong = set(line) - {name for model in models for name in model}
    for part in ("message", "item", "usage", "part", "stats", "error"):
        if isinstance(line.get(part), dict):
            wrong |= set(line[part]) - {name for model in models for name in model.get(part, {})}
    return wrong
