"""What the agent's host calls: standard library only, and quick, since each call starts anew.

A hook is a module with a `main() -> int`, named as below. docs/plugin.md tells people about them.
"""

HOOKS = {  # `ralph hook NAME`, and what it does
    "stop": "Hold an agent whose loop is not done, or whose stories or changes are not in order.",
    "prompt": "Begin, end and show the loop of a session.",
    "pre-tool": "Judge a shell command before it runs, where the guard is on.",
    "post-tool": "Tell the model how full its context window is.",
    "session-start": "Forget what the hooks remember of this session.",
    "stop-failure": "Let a turn end that failed, and tell its loop.",
}


def module_of(name: str) -> str:
    """The module of a hook."""
    return f"ralph.hooks.{name.replace('-', '_')}"
