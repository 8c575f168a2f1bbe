"""The agent that another loop runs, as our settings name it."""

import os
import shlex

from ralph.agents.kinds import KINDS
from ralph.settings.from_others.draft import Draft, text

_ALIASES = {"claude-code": "claude", "cursor": "cursor-agent"}


def agent(draft: Draft, name: tuple[str, object], command: tuple[str, object] = ("", None)) -> None:
    """Take over their name for the agent, and the command that they run in its place: each with its
    key, and None where they do not say."""
    known = _ALIASES.get(name[1], name[1]) if isinstance(name[1], str) else None
    kind = known if known in KINDS else None
    if command[1]:
        draft.take(command[0], "agent.command", command[1], text)
        try:
            words = shlex.split(str(command[1]))
        except ValueError:
            words = []
        if name[1] and kind != (os.path.basename(words[0]) if words else ""):
            draft.put(name[0], "agent.kind", kind or "text")
    elif kind:
        draft.put(name[0], "agent.command", kind)
    elif name[1] not in (None, "", "auto"):
        draft.lose(name[0], "Ralph does not know this agent; set agent.command to how it is called")
