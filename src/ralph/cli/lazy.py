"""Groups of commands that import a command's module only when that command is called."""

import importlib
from collections.abc import Mapping
from typing import Any

import click

Commands = Mapping[str, tuple[str, str, str]]  # the module, the name in it, and a line about it


class LazyGroup(click.Group):
    """A group that knows its commands by name alone: `click.group(cls=LazyGroup, lazy=...)`."""

    def __init__(self, *args: Any, lazy: Commands, **kwargs: Any) -> None:  # noqa: ANN401  click's
        super().__init__(*args, **kwargs)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return None
        module, name, _ = self._lazy[cmd_name]
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, _, words) in self._lazy.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self._lazy:
            import difflib

            near = difflib.get_close_matches(args[0], self._lazy, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise click.UsageError(f"there is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)
