"""The hooks that a run brings along for its agent; only claude takes any on its command line."""

import json
import os
import shlex
import sys
from typing import TYPE_CHECKING

import ralph
from ralph.hooks import module_of

if TYPE_CHECKING:
    from ralph.cli.planning import Plan

_SETTINGS = "--settings"
_SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(ralph.__file__)))
_OWN = "RALPH_HOOKS"  # tells the plugin's hooks that the run has its own: each shall run once


def can_hook(plan: "Plan") -> bool:
    """Whether the agent can be made to ask. Whoever gives it settings of his own has said which."""
    from ralph.adapters.agents import split_flags, value_in

    flags = (*plan.command[1:], *split_flags(plan.settings.agent.flags))
    return plan.kind == "claude" and not value_in(flags, (_SETTINGS,))


def hook_flags(plan: "Plan") -> tuple[str, ...]:
    """What makes the agent ask the guard where nothing contains it, and for stories the checks
    before it stops (R §5)."""
    events = _events(plan)
    return (_SETTINGS, json.dumps({"hooks": events})) if events else ()


def hook_environment(plan: "Plan") -> dict[str, str]:
    """What the agent's environment says about its hooks."""
    return {_OWN: "1"} if _events(plan) else {}


def hook_places() -> list[str]:
    """What must be visible for hooks to run."""
    return [_SOURCE, sys.prefix, sys.base_prefix]


def _events(plan: "Plan") -> dict[str, object]:
    hooked = can_hook(plan)
    # Isolated: what stands in the project must not be taken for Ralph.
    guard = _hook(f"{_python()} -I -m ralph hook pre-tool", "Bash")
    events: dict[str, object] = {"PreToolUse": guard} if hooked and _is_guarded(plan) else {}
    if plan.stories is not None and hooked:
        events |= {
            "Stop": _hook(_quickly("stop")),
            "PostToolUse": _hook(_quickly("post-tool"), ".*"),
            "SessionStart": _hook(_quickly("session-start")),
        }
    return events


def _is_guarded(plan: "Plan") -> bool:
    return plan.sandbox is not None and plan.sandbox.guarded


def _hook(command: str, matcher: str | None = None) -> list[dict[str, object]]:
    entry: dict[str, object] = {"hooks": [{"type": "command", "command": command}]}
    return [{"matcher": matcher, **entry} if matcher else entry]


def _quickly(name: str) -> str:
    """A hook without the site's packages: it starts in half the time."""
    words = f"import sys; sys.path.insert(0, {_SOURCE!r}); from {module_of(name)} import main"
    return f"{_python()} -I -S -c {shlex.quote(f'{words}; sys.exit(main())')}"


def _python() -> str:
    return shlex.quote(sys.executable)
