"""`ralph hook`: for an agent's host. Called by its name alone, a hook runs before any of this."""

import importlib

import click

from ralph.cli.lazy import Group
from ralph.hosts.hook_names import HOOKS, module_of

_EPILOG = """\b
Examples:
  ralph hook stop < event.json           hold the agent, or let it stop
  ralph hook pre-tool < event.json       exit code 2 refuses the call
\b
A hook reads the host's event, JSON, on standard input. Letting go is
no output and exit code 0; words for people go to stderr.
The Claude Code plugin calls them all: docs/plugin.md
"""


class _Hooks(Group):
    """Names every hook to whoever names none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(HOOKS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in HOOKS:
            raise click.UsageError(f"no hook {cmd_name!r}: there is {', '.join(HOOKS)}", ctx)

        def answer() -> None:
            code = importlib.import_module(module_of(cmd_name)).main()
            click.get_current_context().exit(code)

        epilog = f"\b\nExamples:\n  ralph hook {cmd_name} < event.json"
        about = HOOKS[cmd_name]
        return click.Command(cmd_name, callback=answer, help=about, short_help=about, epilog=epilog)


@click.group(cls=_Hooks, epilog=_EPILOG)
def hook() -> None:
    """Answer the host of an agent. Hosts call this, not people."""
