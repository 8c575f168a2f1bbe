"""Runs a hook that `ralph plugin install` put into an agent's settings, unless another does it.

A run of Ralph may bring the same hook along, and in Claude Code the plugin may be on too. Each
hook shall run once, so this one leaves it to them.
"""

import os

from ralph.hosts.plugin_state import plugin_is_on
from ralph.hosts.protocol import module_of, tell


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
