"""What `ralph plugin install` puts into an agent's settings: a hook that runs where no other does.

A run of Ralph may bring the same hook along, and in Claude Code the plugin may be on too. Each
hook shall run once, so this one leaves it to them.
"""

import os

from ralph.hooks import module_of
from ralph.hooks.host import parsed, read_all, tell

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Mapping

PLUGIN = "ralph@ralph"  # NAME@MARKETPLACE
_SETTINGS = ("settings.json", "settings.local.json")


def main(agent: str, hook: str) -> int:
    """Answer the host as this hook does; the exit code."""
    try:
        if hook in os.environ.get("RALPH_HOOKS", "").split(","):
            return 0
        if agent == "claude" and plugin_is_on(os.environ):
            return 0
        os.environ["RALPH_SLASH"] = "bare"
        return int(__import__(module_of(hook), fromlist=("main",)).main())
    except Exception as error:  # noqa: BLE001  a broken installation is nobody's to suffer from
        tell(f"the hook did not run: {error!r}")
        return 0


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
