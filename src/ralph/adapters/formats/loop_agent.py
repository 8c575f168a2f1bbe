"""Which agent another loop runs, as our settings name it."""

import os
import shlex

from ralph.adapters.agents import KINDS
from ralph.adapters.formats.loop_draft import Draft, text

_ALIASES = {"claude-code": "claude", "cursor": "cursor-agent"}


def agent(draft: Draft, name: tuple[str, object], command: tuple[str, object] = ("", None)) -> None:
    """Their name for the agent, and the command that they run in its place: each with its key, and
    None where they do not say."""
    kind = _kind(name[1])
    if command[1]:
        draft.take(command[0], "agent.command", command[1], text)
        if name[1] and kind != _program(command[1]):
            draft.put(name[0], "agent.kind", kind or "text")
    elif kind:
        draft.put(name[0], "agent.command", kind)
    elif name[1] not in (None, "", "auto"):
        draft.lose(name[0], "Ralph does not know this agent; set agent.command to how it is called")


def _kind(name: object) -> str | None:
    known = _ALIASES.get(name, name) if isinstance(name, str) else None
    return known if known in KINDS else None


def _program(command: object) -> str:
    try:
        words = shlex.split(str(command))
    except ValueError:
        return ""
    return os.path.basename(words[0]) if words else ""
