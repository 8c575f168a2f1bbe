"""Agents that speak ACP: how a command shows it, and whose account they use (ADR 53)."""

import os
from collections.abc import Mapping, Sequence

ACP = "acp"
_MODES = frozenset({"acp", "--acp", "--experimental-acp"})
# By their programs: the words that have them speak ACP, as they are documented.
BY_ACP: Mapping[str, str] = {
    "auggie": "auggie --acp",
    "copilot": "copilot --acp",
    "droid": "droid exec --output-format acp",
    "goose": "goose acp",
    "kimi": "kimi acp",
    "qwen": "qwen --acp",
    "vibe": "vibe-acp",
}
# Programs whose login, keys and provider are those of a kind by another name.
ACCOUNTS = {"claude-agent-acp": "claude", "claude-code-acp": "claude", "codex-acp": "codex"}


def speaks_acp(command: Sequence[str]) -> bool:
    """True if the words of a command say that it does: `goose acp`, `gemini --acp`, `codex-acp`."""
    return not _MODES.isdisjoint(command[1:]) or any(
        program_name(w).endswith("-acp") for w in command
    )


def program_name(word: str) -> str:
    """The name of a program, also of a package of npm with its version."""
    return os.path.basename(word).lower().partition("@")[0]
