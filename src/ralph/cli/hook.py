"""`ralph hook`: for an agent's host. Called by its name alone, a hook runs before any of this."""

import importlib

import click

from ralph.cli.base import Command, Group
from ralph.hooks.installed import main
from ralph.hosts.protocol import AGENTS, HOOKS, module_of


class _Hooks(Group):
    """Names every hook to whoever names none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(HOOKS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in HOOKS:
            raise click.UsageError(f"no hook {cmd_name!r}: there is {', '.join(HOOKS)}", ctx)
        about = f"{HOOKS[cmd_name]}\n\nExamples:\n  ralph hook {cmd_name} < event.json"

        def answer(agent: str | None) -> int:
            if agent is not None:
                return main(agent, cmd_name)
            return int(importlib.import_module(module_of(cmd_name)).main())

        whose = click.Argument(
            ["agent"], required=False, type=click.Choice(AGENTS)
        )  # in whose settings it stands
        return Command(
            cmd_name, params=[whose], callback=answer, help=about, short_help=HOOKS[cmd_name]
        )


@click.group(cls=_Hooks)
def hook() -> None:
    """Answer the host of an agent. Hosts call this, not people.

    Examples:
      ralph hook stop < event.json           hold the agent, or let it stop
      ralph hook pre-tool < event.json       exit code 2 refuses the call

    A hook reads the host's event, JSON, on standard input. Letting go is
    no output and exit code 0; words for people go to stderr.
    The Claude Code plugin calls them all: docs/plugin.md
    """
