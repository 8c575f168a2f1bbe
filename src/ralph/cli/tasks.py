"""`ralph tasks`: the backlog of a project, and the run that works through it (B)."""

import importlib

import click

from ralph.cli.params import in_directory
from ralph.core.verdict import Reason

_COMMANDS = {  # the module, the name in it, and a line about it
    "add": ("ralph.cli.tasks_add", "add", "Add a task."),
    "list": ("ralph.cli.tasks_show", "list_tasks", "List the tasks."),
    "show": ("ralph.cli.tasks_show", "show", "Show all that is known of a task."),
    "edit": ("ralph.cli.tasks_edit", "edit", "Change a task."),
    "next": ("ralph.cli.tasks_show", "next_one", "Say which task would be taken next."),
    "run": ("ralph.cli.tasks_run", "run", "Work through the tasks until nothing is left."),
    "answer": ("ralph.cli.tasks_edit", "answer", "Answer the question of a task."),
    "learn": ("ralph.cli.tasks_learn", "learn", "Show what earlier tasks have taught."),
}


class LazyTasks(click.Group):
    """Imports a command's module only when that command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, name, _ = _COMMANDS[cmd_name]
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, _, words) in _COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _COMMANDS:
            import difflib

            near = difflib.get_close_matches(args[0], _COMMANDS, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise click.UsageError(f"there is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyTasks,
    invoke_without_command=True,
    epilog="""\b
Examples:
  ralph tasks add "Sort the list by date" --completion "test:make test"
  ralph tasks add "Write it up" --blocked-by T-001 --completion file:NEWS.md
  ralph tasks list
  ralph tasks run
""",
)
@click.pass_context
@in_directory
def tasks(context: click.Context) -> None:
    """Work through a backlog, one proven task at a time.

    The tasks stand in .ralph/tasks.jsonl, one a line, for you and git to keep. A task that names a
    check is done when that check passes, whatever the agent says.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(Reason.CONFIG.exit_code)
