"""What the agent's host calls: standard library only, and quick, since each call starts anew.

A hook is a module with a `main() -> int`, named as below. docs/plugin.md tells people about them.
"""

HOOKS = {  # `ralph hook NAME`, and what it does
    "stop": "Hold an agent that stops with a wrong story list or uncommitted changes.",
    "prompt": "Let what a person types pass.",
    "pre-tool": "Judge a shell command before it runs, where the guard is on.",
    "post-tool": "Tell the model how full its context window is.",
    "session-start": "Forget what the hooks remember of this session.",
    "stop-failure": "Let a turn end that failed.",
}


def module_of(name: str) -> str:
    """The module of a hook."""
    return f"ralph.hooks.{name.replace('-', '_')}"
