"""Ralph's plugin and hooks in the agents' settings here, and hooks of the workspace."""

import json
import os
import shlex
from collections.abc import Mapping

from ralph.doctor.checks import Check, ok, warning
from ralph.doctor.machine import Machine
from ralph.errors import ConfigError
from ralph.files.json_edit import JsonText, JsonTextError
from ralph.hosts.files import read_text
from ralph.hosts.hosts import HOSTS, ON_PATH
from ralph.hosts.settings_edit import KEY, found
from ralph.hosts.stop_cap import CAP
from ralph.kernel.value import value

_MARK = "ralph@"  # a plugin is NAME@MARKETPLACE
_HERE = (".claude/settings.json", ".claude/settings.local.json")
_LARGEST = 4_000_000
_LIFT = f'in claude\'s settings: "env": {{"{CAP}": "0"}}'


@value
class JsonFile:
    """A JSON file; `trouble` says why there is nothing to be read in it."""

    content: Mapping[str, object]
    trouble: str = ""


def plugin(machine: Machine) -> Check:
    users = HOSTS["claude"].user_file(machine.environ)
    if not users:
        return ok("plugin", "not known: there is no HOME")
    settings = claude_settings(machine)
    wanted = [(name, on) for path in settings for name, on in _ralphs(path, "enabledPlugins")]
    plugins = os.path.join(os.path.dirname(users), "plugins", "installed_plugins.json")
    installed = _ralphs(plugins, "plugins")
    if wanted:
        name, on = wanted[-1]  # the workspace has the last word
        return ok("plugin", f"{name} is turned {'off' if on is False else 'on'} in Claude Code")
    if installed:
        return ok("plugin", f"{installed[0][0]} is installed in Claude Code")
    return ok("plugin", "not installed in Claude Code; ralph run does not need it")


def claude_hooks(machine: Machine) -> Check:
    """The hooks that the workspace gives to Claude Code: they run in every turn of it."""
    told = []
    for path in _HERE:
        file = read_json(os.path.join(machine.workspace, path))
        if file.trouble:
            return warning("claude hooks", f"{path} {file.trouble}", f"Fix it: $EDITOR {path}")
        hooks = file.content.get("hooks")
        counts = {}  # an event has groups, and a group has commands
        for event, listed in hooks.items() if isinstance(hooks, dict) else ():
            groups = listed if isinstance(listed, list) else []
            inner = [group.get("hooks") for group in groups if isinstance(group, dict)]
            counts[event] = sum(len(commands) for commands in inner if isinstance(commands, list))
        if words := ", ".join(f"{event} {number}" for event, number in counts.items() if number):
            told.append(f"{path}: {words}")
    if not told:
        return ok("claude hooks", "none in .claude/settings*.json here")
    return ok("claude hooks", f"{'; '.join(told)}; they run in every turn of claude")


def claude_session(machine: Machine) -> Check | None:
    if not machine.environ.get("CLAUDECODE"):
        return None
    return ok("session", "inside a Claude Code session; agents are not told (CLAUDECODE)")


def claude_settings(machine: Machine) -> list[str]:
    """Every settings file that Claude Code reads here; a later one has the last word."""
    users = HOSTS["claude"].user_file(machine.environ)
    here = [os.path.join(machine.workspace, path) for path in _HERE]
    return [users, *here] if users else here


def _ralphs(path: str, key: str) -> list[tuple[str, object]]:
    table = read_json(path).content.get(key)
    entries = table.items() if isinstance(table, dict) else ()
    return [(name, entry) for name, entry in entries if name.startswith(_MARK)]


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


def ralph_hooks(machine: Machine) -> Check:
    """Settings in this workspace that have the hooks, and whether these can run."""
    there: dict[str, list[str]] = {}
    for agent, host in HOSTS.items():
        for file in dict.fromkeys(map(host.file_of, ("project", "shared"))):
            try:
                text = read_text(os.path.join(machine.workspace, file))
                groups = found(JsonText.of(text, comments=True)) if text else {}
            except (ConfigError, JsonTextError):
                continue  # that is not ours to fix
            if words := [group[KEY][0]["command"] for ours in groups.values() for group in ours]:
                there.setdefault(agent, []).extend(words)
    if not there:
        return ok("ralph hooks", "none here; to put them in: ralph plugin install")
    for agent, commands in there.items():
        missing = next(filter(None, (_missing(command, machine) for command in commands)), "")
        if missing == "ralph":
            gone = f"those of {agent} call ralph, which is not on PATH"
            return warning("ralph hooks", gone, "Install it: pipx install ralph-engine")
        if missing:
            remedy = f"Put them in anew: ralph plugin install --agent {agent}"
            return warning("ralph hooks", f"those of {agent} need {missing}, which is gone", remedy)
    return ok("ralph hooks", f"here for {', '.join(there)}")


def _missing(command: str, machine: Machine) -> str:
    """The program that a hook needs and that is not there; "" if it is."""
    if command.startswith(ON_PATH):
        return "" if machine.which("ralph") else "ralph"
    try:
        program = shlex.split(command)[0]
    except (ValueError, IndexError):
        program = command
    return "" if os.access(program, os.X_OK) else program


def stop_cap(machine: Machine) -> Check:
    """Claude Code goes on by itself after some held stops in a row; loops of a session end then."""
    cap = machine.environ.get(CAP, "")
    for path in claude_settings(machine):
        env = read_json(path).content.get("env")
        said = env.get(CAP) if isinstance(env, dict) else None
        cap = said if said and isinstance(said, str) else cap
    if cap == "0":
        return ok("held stops", f"claude may be held as often as it takes ({CAP}=0)")
    if cap and not (cap.isascii() and cap.isdigit()):
        return warning("held stops", f"{CAP} is {cap!r}, which is no number", f"Say {_LIFT}")
    told = f"claude ends a turn after {cap or 8} in a row without a tool call"
    return ok("held stops", f"{told}; to lift that for long loops of a session, {_LIFT}")


CLAUDE = (plugin, claude_hooks, claude_session, ralph_hooks, stop_cap)
