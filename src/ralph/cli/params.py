"""Kinds of flag values: strict about numbers, generous about durations."""

import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import click

from ralph.runner import arguments
from ralph.sandbox.names import BACKENDS

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_Function = TypeVar("_Function", bound=Callable[..., Any])
current_directory = arguments.current_directory  # where `-C` leads to


def whole_number(value: str) -> int:
    """Decimal digits, leading zeros allowed; the settings check the range."""
    if not re.fullmatch(r"-?[0-9]{1,18}", value):
        raise click.BadParameter(f"{value!r} is not a whole number.")
    return int(value, 10)


def not_negative(kind: Callable[[str], int]) -> Callable[[str], int]:
    """A number from 0 on."""
    return _at_least(0, kind)


def positive(kind: Callable[[str], int]) -> Callable[[str], int]:
    """A number from 1 on."""
    return _at_least(1, kind)


def _at_least(least: int, kind: Callable[[str], int]) -> Callable[[str], int]:
    def check(value: str) -> int:
        number = kind(value)
        if number < least:
            raise click.BadParameter(f"{value} is less than {least or 'nothing'}.")
        return number

    return check


def duration(value: str) -> float:
    """Seconds, or `90s`, `30m`, `2h`."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)", value, re.ASCII)
    if found is None:
        raise click.BadParameter(f"{value!r} is not a duration such as 90, 90s, 30m or 2h.")
    return float(found[1]) * _UNITS[found[2]]


def dollars(value: str) -> float:
    """An amount of money, with or without the sign."""
    found = re.fullmatch(r"\$?([0-9]+(?:\.[0-9]+)?)", value, re.ASCII)
    if found is None or not math.isfinite(float(found[1])):
        raise click.BadParameter(f"{value!r} is not an amount of dollars such as 5 or 0.50.")
    return float(found[1])


def completed_by(name: str) -> Callable[[click.Context, click.Parameter, str], Any]:
    """A function of `ralph.cli.completion`, imported only when a shell asks for it."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:  # noqa: ANN401
        from ralph.cli import completion

        return getattr(completion, name)(ctx, param, incomplete)

    return complete


def in_directory(function: _Function) -> _Function:
    """The option `-C DIR`: do everything as if started there."""
    return _directory_option("-C")(function)


def in_project(function: _Function) -> _Function:
    """The same by R's names too: `-d DIR`, `--project-dir DIR`."""
    return _directory_option("-C", "-d", "--project-dir")(function)


def _directory_option(*names: str) -> Callable[[_Function], _Function]:
    return click.option(
        *names,
        "directory",
        metavar="DIR",
        is_eager=True,
        expose_value=False,
        callback=_change_directory,
        shell_complete=completed_by("directories"),
        help="Work in DIR instead of the current directory.",
    )


def _change_directory(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    try:
        os.chdir(value)
    except OSError as error:
        raise click.BadParameter(f"{value}: {error.strerror}", ctx, param) from error


def _together(*options: Callable[[_Function], _Function]) -> Callable[[_Function], _Function]:
    """Several options at once, in this order in the help."""

    def add(function: _Function) -> _Function:
        for option in reversed(options):
            function = option(function)
        return function

    return add


which_agent = _together(
    click.option(
        "--agent",
        metavar="COMMAND",
        shell_complete=completed_by("agents"),
        help="The agent: claude, codex, amp, gemini, opencode, any command.",
    ),
    click.option(
        "--model",
        metavar="NAME",
        shell_complete=completed_by("models"),
        help="The model the agent shall use.",
    ),
)
agent_patience = _together(
    click.option("--timeout", metavar="DURATION", type=duration, help="Longest turn of the agent."),
    click.option(
        "--idle-timeout", metavar="DURATION", type=duration, help="Longest silence of it."
    ),
    click.option("--stop-grace", metavar="DURATION", type=duration, help="Time left after Ctrl+C."),
)
run_limits = _together(
    click.option(
        "--max-time", metavar="DURATION", type=duration, help="End the run after 8h, say."
    ),
    click.option(
        "--max-cost", metavar="USD", type=dollars, help="End the run after so many dollars."
    ),
    click.option("--max-wait", metavar="DURATION", type=duration, help="Wait no longer, in all."),
)
agent_output = click.option(
    "--stream-agent-output/--no-stream-agent-output",
    default=None,
    help="Show the agent's output as it comes.",
)
looks = _together(
    click.option("--emoji/--no-emoji", default=None, help="Emoji as markers."),
    click.option("--color/--no-color", default=None, help="Colours."),
    click.option("--timestamps/--no-timestamps", default=None, help="The time before each line."),
)
shown_credentials = click.option(
    "--sandbox-show",
    metavar="PATH",
    multiple=True,
    callback=lambda _context, _option, paths: list(paths) or None,
    help="Show credentials that a sandbox hides: ~/.aws, say.",
)
run_sandbox = _together(
    click.option(
        "--sandbox",
        is_flag=False,
        flag_value="auto",
        metavar="[=NAME]",
        type=click.Choice(["auto", *BACKENDS]),
        help="Take each turn in a sandbox: a failed one is undone.",
    ),
    click.option(
        "--no-sandbox",
        is_flag=True,
        help="Work in place: nothing contains the agent.",
    ),
    click.option(
        "--guard/--no-guard",
        default=None,
        help="Judge claude's commands where no sandbox contains it.  [default: guard]",
    ),
    click.option(
        "--network",
        metavar="off|on|HOST,...",
        help="Whom a sandbox may call beside the agent's provider.",
    ),
    shown_credentials,
)


def sandbox_wish(flags: Mapping[str, Any]) -> str | None:
    """What the two flags about sandboxes say together, as the setting has it."""
    if flags["sandbox"] is not None and flags["no_sandbox"]:
        raise click.UsageError("--sandbox and --no-sandbox exclude each other.")
    return "direct" if flags["no_sandbox"] else flags["sandbox"]


def run_loop(name: str, flags: dict[str, object]) -> int:
    """Begin a run of that loop, with what was typed, here."""
    from ralph.runner.carry_out import execute
    from ralph.runner.invocation import Invocation

    here = current_directory()
    if "no_sandbox" in flags:
        flags["sandbox"] = sandbox_wish(flags)
    streams = (sys.stdin, sys.stdout, sys.stderr)
    keeper = click.get_current_context().obj
    return execute(name, Invocation(here, dict(os.environ), flags, *streams, keeper))


json_lines = click.option(
    "--json", "in_json", is_flag=True, help="Only JSON objects on stdout, one a line."
)


def print_lines(lines: Iterable[str]) -> None:
    """Print them as their style dressed them, in a pipe too."""
    click.echo("\n".join(lines), color=True)
