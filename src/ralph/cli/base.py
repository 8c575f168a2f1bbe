"""Commands whose help is their docstring, and groups that import a command when it is called."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import click

from ralph.kernel.verdict import Reason

_UNITS = [  # of options, by their metavars
    ("DURATION", "seconds, or with a unit: 90s, 30m, 8h, 2d"),
    ("USD", "dollars, such as 5 or 0.50"),
]
Commands = Mapping[str, tuple[str, str, str]]  # the module, the name in it, and a line about it


def _parts(docstring: str | None) -> dict[str, Any]:
    """The parts of a help; from "Examples:" on they stand below the options, line by line."""
    about, heading, more = inspect.cleandoc(docstring or "").partition("Examples:\n")
    blocks = f"{heading}{more}".split("\n\n") if heading else []
    return {"help": about, "epilog": "\n".join(f"\b\n{block}" for block in blocks)}


class Command(click.Command):
    """A command with its examples at the end of its docstring."""

    def __init__(self, *args: Any, help: str | None = None, **kwargs: Any) -> None:  # noqa: A002, ANN401
        super().__init__(*args, **_parts(help) | kwargs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse them. Click's parser does not tell whose option lacks its value."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options, and below them the units of what they take."""
        super().format_options(ctx, formatter)
        taken = {getattr(param, "metavar", None) for param in self.params}
        if units := [unit for unit in _UNITS if unit[0] in taken]:
            with formatter.section("Units"):
                formatter.write_dl(units)


def is_prompt(word: str) -> bool:
    """True for an argument that holds a blank between words: no command or option does."""
    return len(word.split()) > 1


def command(name: str | None = None, **more: Any) -> Callable[[Callable[..., Any]], Command]:  # noqa: ANN401
    return click.command(name, Command, **more)


class Group(click.Group):
    """A group that prints its help, and fails, when no command is named."""

    command_class = Command

    def __init__(self, *args: Any, help: str | None = None, **kwargs: Any) -> None:  # noqa: A002, ANN401
        super().__init__(*args, **_parts(help) | kwargs)
        self.invoke_without_command, self.no_args_is_help = True, False

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401
        result = super().invoke(ctx)
        if ctx.invoked_subcommand is None:
            click.echo(ctx.get_help())
            ctx.exit(Reason.CONFIG.exit_code)
        return result


class LazyGroup(Group):
    """A group that knows its commands by name alone: `click.group(cls=LazyGroup, lazy=...)`. In its
    help, commands of no section stand first."""

    def __init__(
        self,
        *args: Any,  # noqa: ANN401
        lazy: Callable[[], Commands],
        sections: Mapping[str, tuple[str, ...]] = {},
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*args, **kwargs)
        self._lazy, self._sections = lazy, sections

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy():
            return None
        module, name, _ = self._lazy()[cmd_name]
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def described(self) -> dict[str, str]:
        """Every command with a line about it; none is imported for that."""
        return {name: words for name, (_, _, words) in self._lazy().items()}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        described = self.described()
        width = max(map(len, described))
        placed = {name for names in self._sections.values() for name in names}
        first = tuple(name for name in described if name not in placed)
        for title, names in {"Commands": first, **self._sections}.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), described[name]) for name in names])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in self._lazy():
            return super().resolve_command(ctx, args)
        import difflib

        near = difflib.get_close_matches(args[0], self._lazy(), 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise click.UsageError(f"there is no command {args[0]!r}.{hint}", ctx)
