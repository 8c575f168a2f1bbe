"""Ralph's own hooks in the agents' settings here, and how long Claude Code lets a stop be held."""

import os
import shlex

from ralph.adapters.host_files import read_text
from ralph.adapters.machine import Machine
from ralph.adapters.machine.claude import claude_settings, read_json
from ralph.core.health import Check, ok, warning
from ralph.core.hook_text import KEY, found
from ralph.core.json_text import JsonText, JsonTextError
from ralph.errors import ConfigError

CAP = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
_LIFT = f'in claude\'s settings: "env": {{"{CAP}": "0"}}'
_FILES = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
}


def ralph_hooks(machine: Machine) -> Check:
    """Whose settings in this workspace have the hooks, and whether these can run."""
    paths = {agent: os.path.join(machine.workspace, file) for agent, file in _FILES.items()}
    there = {agent: words for agent, path in paths.items() if (words := _commands(path))}
    if not there:
        return ok("ralph hooks", "none here; to put them in: ralph plugin install")
    for agent, commands in there.items():
        if gone := next((p for p in map(_program, commands) if not os.access(p, os.X_OK)), ""):
            remedy = f"Put them in anew: ralph plugin install --agent {agent}"
            return warning("ralph hooks", f"those of {agent} need {gone}, which is gone", remedy)
    return ok("ralph hooks", f"here for {', '.join(there)}")


def stop_cap(machine: Machine) -> Check:
    """Claude Code goes on by itself after some held stops in a row; loops of a session end then."""
    said = [_cap(read_json(path).content.get("env")) for path in claude_settings(machine)]
    cap = next((cap for cap in reversed(said) if cap), machine.environ.get(CAP, ""))
    if cap == "0":
        return ok("held stops", f"claude may be held as often as it takes ({CAP}=0)")
    if cap and not (cap.isascii() and cap.isdigit()):
        return warning("held stops", f"{CAP} is {cap!r}, which is no number", f"Say {_LIFT}")
    told = f"claude ends a turn after {cap or 8} in a row without a tool call"
    return ok("held stops", f"{told}; to lift that for long loops of a session, {_LIFT}")


def _cap(env: object) -> str:
    cap = env.get(CAP) if isinstance(env, dict) else None
    return cap if isinstance(cap, str) else ""


def _commands(path: str) -> list[str]:
    """The commands of ours in a file; none where it cannot be read: that is not ours to mend."""
    try:
        text = read_text(path)
        groups = found(JsonText.of(text, comments=True)) if text else {}
    except (ConfigError, JsonTextError):
        return []
    return [group[KEY][0]["command"] for ours in groups.values() for group in ours]


def _program(command: str) -> str:
    try:
        return next(iter(shlex.split(command)), "")
    except ValueError:
        return command


HOST_HOOKS = (ralph_hooks, stop_cap)
