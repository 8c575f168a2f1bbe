"""Looks whether Claude Code has Ralph's plugin, and turned on."""

import os

from ralph.hosts.protocol import Environ, json_in

PLUGIN = "ralph@ralph"  # NAME@MARKETPLACE
_SETTINGS = ("settings.json", "settings.local.json")


def plugin_is_on(environ: Environ) -> bool:
    """True if Claude Code has our plugin, turned on; the project has the last word."""
    home = claude_home(environ)
    project = environ.get("CLAUDE_PROJECT_DIR", "")
    files = [os.path.join(home, _SETTINGS[0])] if home else []
    files += [os.path.join(project, ".claude", name) for name in _SETTINGS] if project else []
    said = [on for path in files if (on := _entry(path, "enabledPlugins")) is not None]
    if not said or said[-1] is False:
        return False
    return bool(_entry(os.path.join(home, "plugins", "installed_plugins.json"), "plugins"))


def claude_home(environ: Environ) -> str:
    """The folder of a person's settings of Claude Code; empty where nobody is at home."""
    chosen, home = environ.get("CLAUDE_CONFIG_DIR"), environ.get("HOME")
    return chosen or (os.path.join(home, ".claude") if home else "")


def _entry(path: str, table: str) -> object:
    """A file's words about the plugin; None where there are none."""
    content = json_in(path)
    entries = content.get(table) if isinstance(content, dict) else None
    return entries.get(PLUGIN) if isinstance(entries, dict) else None
