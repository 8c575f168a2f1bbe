"""The hosts that Ralph's hooks can be put into: their files, events, commands, and trust."""

import os
import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import ralph
from ralph.hosts.plugin_state import claude_home
from ralph.hosts.protocol import module_of
from ralph.kernel.value import value

if TYPE_CHECKING:
    from ralph.hosts.settings_edit import Group

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(ralph.__file__)))
ON_PATH = "command -v ralph >/dev/null 2>&1"  # how commands begin that others share
_PATIENCE = {"stop": 600}  # seconds; gates of a loop may run in it
_LEAST_PATIENCE = 10
OURS = "Written by `ralph plugin install`. Take this line out to keep what you change here."
_CLAUDE = """---
description: {about}
argument-hint: "{hint}"
disable-model-invocation: true
---

<!-- {ours} -->

Ralph's hook has read this command, and its message beside this one says what to do: follow that.
If there is no message of Ralph, its hooks do not run in this session. Then do nothing else than
say so: `ralph plugin status` tells more.
"""
_GEMINI = """# {ours}
description = "{about}"
prompt = "/{name} {{{{args}}}}"
"""
_HINT = "TASK [--max-iterations N] [--completion-promise P] [--min-tool-calls M] [--gate CMD]"
_COMMANDS = {  # the commands by their bare names, what they do, and what follows them
    "ralph-loop": (
        "Work on a task in this session until it is done, by a promise that is checked",
        _HINT,
    ),
    "ulw-loop": ("The same as ralph-loop, in ultrawork mode", _HINT),
    "cancel-ralph": ("End the loop of this session now", ""),
    "ralph-status": ("Show the loop of this session", ""),
}


@value
class Host:
    """An agent whose settings take hooks."""

    agent: str
    file: str  # in a project
    events: Mapping[str, str]  # by the name of our hook
    tool: str = "Bash"  # runs shell commands
    template: str = ""  # of a command; "" if it has none
    second: int = 1  # what a timeout counts
    shared: str = ""  # for everybody in a project, where `file` is a person's own
    comments: bool = False  # whether it reads settings with comments in them
    note: str = ""  # what people must do besides

    def file_of(self, scope: str) -> str:
        """The file in a project, for the person alone or for everybody ("shared")."""
        return self.shared if scope == "shared" and self.shared else self.file

    def is_portable(self, scope: str) -> bool:
        """True if the file may be committed: then it names nothing of this machine."""
        return scope == "shared" or (scope == "project" and not self.shared)

    def groups(self, scope: str = "project") -> dict[str, "Group"]:
        """The groups that its settings get, one an event."""
        command = portable if self.is_portable(scope) else installed
        groups: dict[str, Group] = {}
        for hook, event in self.events.items():
            patience = _PATIENCE.get(hook, _LEAST_PATIENCE) * self.second
            call = {"type": "command", "command": command(self.agent, hook), "timeout": patience}
            groups[event] = self.group(hook, call)
        return groups

    def group(self, hook: str, call: Mapping[str, object]) -> "Group":
        """A group of settings that calls one hook."""
        tools = {"pre-tool": self.tool, "post-tool": ".*"}
        return {**({"matcher": tools[hook]} if hook in tools else {}), "hooks": [call]}

    def command_files(self) -> dict[str, str]:
        """Its commands, as files with their text; paths are relative to the folder of `file`."""
        ending = "toml" if self.template == _GEMINI else "md"
        return {
            os.path.join("commands", f"{name}.{ending}"): self.template.format(
                name=name, about=about, hint=hint, ours=OURS
            )
            for name, (about, hint) in (_COMMANDS.items() if self.template else ())
        }

    def user_file(self, environ: Mapping[str, str]) -> str:
        """The same file for all projects of a person; empty where nobody is at home."""
        home = environ.get("HOME", "")
        folder = environ.get("CODEX_HOME") or (home and os.path.join(home, ".codex"))
        if self.agent == "claude":
            folder = claude_home(environ)
        elif self.agent == "gemini":
            home = environ.get("GEMINI_CLI_HOME") or home
            folder = home and os.path.join(home, ".gemini")
        return os.path.join(folder, os.path.basename(self.file_of("shared"))) if folder else ""


_SHARED = {
    "stop": "Stop",
    "prompt": "UserPromptSubmit",
    "pre-tool": "PreToolUse",
    "post-tool": "PostToolUse",
    "session-start": "SessionStart",
}
HOSTS = {
    "claude": Host(
        agent="claude",
        file=".claude/settings.local.json",
        shared=".claude/settings.json",
        events={**_SHARED, "stop-failure": "StopFailure"},
        template=_CLAUDE,
        note="Claude Code ends a turn after 8 held stops in a row without a tool call; a longer "
        'loop needs CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0 in its environment, or in "env" of its '
        "settings: ralph plugin install --lift-cap puts it there.",
    ),
    "codex": Host(
        agent="codex",
        file=".codex/hooks.json",
        events=_SHARED,
        note="Codex skips hooks that nobody has trusted: start codex here and choose to trust them "
        "(/hooks shows them), or give codex exec --dangerously-bypass-hook-trust.",
    ),
    "gemini": Host(
        agent="gemini",
        file=".gemini/settings.json",
        events={
            "stop": "AfterAgent",
            "prompt": "BeforeAgent",
            "pre-tool": "BeforeTool",
            "post-tool": "AfterTool",
            "session-start": "SessionStart",
        },
        tool="run_shell_command",
        template=_GEMINI,
        second=1000,
        comments=True,
        note="Gemini runs a project's hooks in folders that it trusts: start gemini here and say "
        "so, or set GEMINI_CLI_TRUST_WORKSPACE=true; --skip-trust comes too late for hooks.",
    ),
}


def quickly(name: str) -> str:
    """A hook without the site's packages: it starts in half the time."""
    return _isolated(f"from {module_of(name)} import main", "main()")


def installed(agent: str, name: str) -> str:
    """The same for an agent's settings, where it must not run beside another one of its kind."""
    from ralph.hosts.settings_edit import MARK

    return _isolated(f"from {MARK} import main", f'main("{agent}", "{name}")')


def portable(agent: str, name: str) -> str:
    """The same by whatever `ralph` is on PATH, for a file that others share; lets go without."""
    from ralph.hosts.settings_edit import MARK

    missing = 'echo "[ralph] the hook did not run: ralph is not on PATH" >&2; exit 0'
    return f"{ON_PATH} || {{ {missing}; }}; exec ralph hook {name} {agent}  # {MARK}"


def with_packages(name: str) -> str:
    """A hook that may use installed packages. Isolated, so that no file of the project is run."""
    return f"{shlex.quote(sys.executable)} -I -m ralph hook {name}"


def _isolated(imports: str, call: str) -> str:
    # In Python's quotes that a shell's do not make unreadable, as far as possible.
    plain = SOURCE.isprintable() and not {'"', "\\"} & set(SOURCE)
    source = f'"{SOURCE}"' if plain else ascii(SOURCE)
    words = f"import sys; sys.path.insert(0, {source}); {imports}; sys.exit({call})"
    return f"{shlex.quote(sys.executable)} -I -S -c {shlex.quote(words)}"
