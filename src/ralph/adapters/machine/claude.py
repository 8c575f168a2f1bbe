"""What is installed in Claude Code here: Ralph's plugin, and hooks of the workspace."""

import json
import os
from collections.abc import Mapping

from ralph.adapters.machine import Machine
from ralph.core.health import Check, ok, warning
from ralph.core.value import value

_MARK = "ralph@"  # a plugin is NAME@MARKETPLACE
_HERE = (".claude/settings.json", ".claude/settings.local.json")
_LARGEST = 4_000_000


@value
class JsonFile:
    """A JSON file; `trouble` says why there is nothing to be read in it."""

    content: Mapping[str, object]
    trouble: str = ""


def plugin(machine: Machine) -> Check:
    """Whether Claude Code has the plugin `ralph`, and has it turned on."""
    home = _claude_home(machine.environ)
    if home is None:
        return ok("plugin", "not known: there is no HOME")
    settings = claude_settings(machine)
    wanted = [(name, on) for path in settings for name, on in _ralphs(path, "enabledPlugins")]
    installed = _ralphs(os.path.join(home, "plugins", "installed_plugins.json"), "plugins")
    if wanted:
        name, on = wanted[-1]  # the workspace has the last word
        return ok("plugin", f"{name} is turned {'off' if on is False else 'on'} in Claude Code")
    if installed:
        return ok("plugin", f"{installed[0][0]} is installed in Claude Code")
    return ok("plugin", "not installed in Claude Code; ralph run does not need it")


def claude_hooks(machine: Machine) -> Check:
    """The hooks that the workspace gives to Claude Code: they run in every turn of it."""
    files = {path: read_json(os.path.join(machine.workspace, path)) for path in _HERE}
    for path, file in files.items():
        if file.trouble:
            return warning("claude hooks", f"{path} {file.trouble}", f"Mend it: $EDITOR {path}")
    told = [f"{path}: {words}" for path, f in files.items() if (words := _hooks_words(f.content))]
    if not told:
        return ok("claude hooks", "none in .claude/settings*.json here")
    return ok("claude hooks", f"{'; '.join(told)}; they run in every turn of claude")


def claude_session(machine: Machine) -> Check | None:
    """Whether we run inside Claude Code."""
    if not machine.environ.get("CLAUDECODE"):
        return None
    return ok("session", "inside a Claude Code session; agents are not told (CLAUDECODE)")


def _claude_home(environ: Mapping[str, str]) -> str | None:
    chosen, home = environ.get("CLAUDE_CONFIG_DIR"), environ.get("HOME")
    return chosen or (os.path.join(home, ".claude") if home else None)


def claude_settings(machine: Machine) -> list[str]:
    """Every settings file that Claude Code reads here; a later one has the last word."""
    home = _claude_home(machine.environ)
    users = [os.path.join(home, "settings.json")] if home else []
    return users + [os.path.join(machine.workspace, path) for path in _HERE]


def _ralphs(path: str, key: str) -> list[tuple[str, object]]:
    table = read_json(path).content.get(key)
    entries = table.items() if isinstance(table, dict) else ()
    return [(name, entry) for name, entry in entries if name.startswith(_MARK)]


def _hooks_words(content: Mapping[str, object]) -> str:
    """`Stop 1, PreToolUse 2`: how many commands for each event."""
    hooks = content.get("hooks")
    events = hooks.items() if isinstance(hooks, dict) else ()
    counts = {event: _commands(groups) for event, groups in events}
    return ", ".join(f"{event} {number}" for event, number in counts.items() if number)


def _commands(groups: object) -> int:
    """An event has groups, and a group has commands."""
    if not isinstance(groups, list):
        return 0
    inner = [group.get("hooks") for group in groups if isinstance(group, dict)]
    return sum(len(commands) for commands in inner if isinstance(commands, list))


def read_json(path: str) -> JsonFile:
    """An object from a JSON file; a file that is not there is empty."""
    try:
        if not os.path.isfile(path):  # opening a pipe would wait for ever
            return JsonFile({}, "is no file" if os.path.exists(path) else "")
        with open(path, encoding="utf-8-sig") as file:
            content = json.loads(file.read(_LARGEST))
    except OSError as error:
        return JsonFile({}, f"cannot be read: {error.strerror}")
    except (ValueError, RecursionError):
        return JsonFile({}, "is not JSON")
    return JsonFile(content) if isinstance(content, dict) else JsonFile({}, "holds no JSON object")


CLAUDE = (plugin, claude_hooks, claude_session)
