"""Whether Claude Code has Ralph's plugin, and turned on."""

import os

from ralph.hosts.protocol import parsed, read_all

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Mapping

PLUGIN = "ralph@ralph"  # NAME@MARKETPLACE
_SETTINGS = ("settings.json", "settings.local.json")


def plugin_is_on(environ: "Mapping[str, str]") -> bool:
    """Whether Claude Code has our plugin, turned on; the project has the last word."""
    home = claude_home(environ)
    project = environ.get("CLAUDE_PROJECT_DIR", "")
    files = [os.path.join(home, _SETTINGS[0])] if home else []
    files += [os.path.join(project, ".claude", name) for name in _SETTINGS] if project else []
    said = [on for path in files if (on := _entry(path, "enabledPlugins")) is not None]
    if not said or said[-1] is False:
        return False
    return bool(_entry(os.path.join(home, "plugins", "installed_plugins.json"), "plugins"))


def claude_home(environ: "Mapping[str, str]") -> str:
    """Where Claude Code keeps a person's settings; empty where nobody is at home."""
    chosen, home = environ.get("CLAUDE_CONFIG_DIR"), environ.get("HOME")
    return chosen or (os.path.join(home, ".claude") if home else "")


def _entry(path: str, table: str) -> object:
    """What a file says about the plugin; None for nothing, or where it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        raw = read_all(descriptor)
        content = parsed(raw) if PLUGIN.encode() in raw else None
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)
    entries = content.get(table) if isinstance(content, dict) else None
    return entries.get(PLUGIN) if isinstance(entries, dict) else None
