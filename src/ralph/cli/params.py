"""Options that commands share, and the kinds of values they take."""

import math
import os
import re
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

import click

from ralph.runner import arguments
from ralph.sandbox.names import BACKENDS
from ralph.text.words import seconds_of

DIRECTORY = "ralph.directory"  # in a context's meta: what `-C` was given
_Function = TypeVar("_Function", bound=Callable[..., Any])
current_directory = arguments.current_directory  # where `-C` leads to


def whole_number(value: str) -> int:
    """Decimal digits, leading zeros allowed; the settings check the range."""
    if not re.fullmatch(r"-?[0-9]{1,18}", value):
        raise click.BadParameter(f"{value!r} is not a whole number.")
    return int(value, 10)


def at_least(least: int) -> Callable[[str], int]:
    """A whole number from `least` (0 or 1) on."""

    def check(value: str) -> int:
        number = whole_number(value)
        if number < least:
            raise click.BadParameter(f"{value} is less than {least or 'nothing'}.")
        return number

    return check


def duration(value: str) -> float:
    """Seconds, or `90s`, `30m`, `2h`."""
    seconds = seconds_of(value)
    if seconds is None:
        raise click.BadParameter(f"{value!r} is not a duration such as 90, 90s, 30m or 2h.")
    return seconds


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


a_directory = click.Path(file_okay=False).shell_complete
a_file = click.Path().shell_complete
_METAVARS: dict[str, dict[str, Any]] = {
    "N": {"type": whole_number},
    "DURATION": {"type": duration},
    "USD": {"type": dollars},
    "DIR": {"shell_complete": a_directory},
    "FILE": {"shell_complete": a_file},
    "COMMAND": {"shell_complete": completed_by("agents")},
}


def option(shown: str, words: str, *name: str, **more: Any) -> Callable[[_Function], _Function]:  # noqa: ANN401  click's
    """An option as its help shows it: `option("-n, --lines N", "Only the last N lines.")`. The
    metavar says what it takes and how a shell completes it, `[a|b]` that it is a choice; without
    one it is a flag. A default is shown, unless the words end with it: `[50]`."""
    parts = shown.split()
    flags = [part.rstrip(",") for part in parts if part.startswith("-")]
    metavar = " ".join(parts[len(flags) :])
    if "default" in more:
        more = {"show_default": not words.endswith("]"), **more}
    if metavar.startswith("[") and "|" in metavar:
        more = {"type": click.Choice(metavar.strip("[]").split("|")), **more}
    if metavar:
        more = {"metavar": metavar, **_METAVARS.get(metavar, {}), **more}
    elif "/" in shown:
        more = {"default": None, **more}
    else:
        more = {"is_flag": True, **more}
    return click.option(*flags, *name, help=words, **more)


def together(*options: Callable[[_Function], _Function]) -> Callable[[_Function], _Function]:
    """Several options at once, in this order in the help."""

    def add(function: _Function) -> _Function:
        for each in reversed(options):
            function = each(function)
        return function

    return add


def _directory(shown: str) -> Callable[[_Function], _Function]:
    def change(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        try:
            if value is not None:
                os.chdir(value)
                ctx.meta[DIRECTORY] = value
        except OSError as error:
            raise click.BadParameter(f"{value}: {error.strerror}", ctx, param) from error

    eager = {"is_eager": True, "expose_value": False, "callback": change}
    return option(shown, "Work in DIR instead of the current directory.", "directory", **eager)


in_directory = _directory("-C DIR")
in_project = _directory("-C, -d, --project-dir DIR")  # R's names for it too
in_json = option("--json", "Print JSON.", "in_json")
the_usual = together(in_json, in_directory)  # of most commands
usual_in_project = together(in_json, in_project)
json_lines = option("--json", "Print only JSON objects on stdout, one per line.", "in_json")
the_run = click.argument("run", required=False, shell_complete=completed_by("run_ids"))
passed_on = click.argument(
    "command", nargs=-1, required=True, metavar="-- COMMAND...", type=click.UNPROCESSED
)


def which_agent(model: str = "--model NAME") -> Callable[[_Function], _Function]:
    named = {"callback": _no_number} if "-m" in model.replace(",", " ").split() else {}
    return together(
        option(
            "--agent COMMAND",
            "The agent: claude, codex, amp, gemini, opencode, any command.  [default: the first of "
            "these on PATH]",
        ),
        option(
            model,
            "The agent's model.  [default: the agent's own choice]",
            shell_complete=completed_by("models"),
            **named,
        ),
    )


def _no_number(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Elsewhere `-m` is the limit of iterations."""
    if value is not None and re.fullmatch(r"[+-]?[0-9]+", value):
        words = f"{value!r} is no model: did you mean -n {int(value)}?"
        raise click.BadParameter(words, ctx, param)
    return value


agent_patience = together(
    option("--timeout DURATION", "Stop a turn that takes longer.  [default: no limit]"),
    option(
        "--idle-timeout DURATION",
        "Stop a turn that prints nothing for longer.  [default: no limit]",
    ),
    option(
        "--stop-grace DURATION",
        "Time for the turn to finish after Ctrl+C.  [default: as long as it takes]",
    ),
)
looks = together(
    option("--emoji/--no-emoji", "Use emoji as markers.  [default: on a terminal]"),
    option("--color/--no-color", "Use colours.  [default: on a terminal, without NO_COLOR]"),
)


def _channels(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> object:
    """The setting `notify`, as these words have it; it replaces that of the files."""
    if not given:
        return None
    urls = [word for word in given if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*://\S+$", word)]
    others = [word for word in given if word not in (*urls, "bell", "off")]
    if not all(word.strip() for word in given):
        raise click.BadParameter("it is empty: give bell, off, a URL or a command.")
    if len(others) > 1:
        raise click.BadParameter(f"{others[1]!r} is a second command; one is all there may be.")
    return {"command": others[0] if others else None, "urls": urls, "bell": "bell" in given}


notify_by = option(
    "--notify bell|off|URL|COMMAND",
    "Tell somebody how the run ended: by a bell, an apprise URL, a command.",
    multiple=True,
    callback=_channels,
)
shown_run = together(
    option(
        "--stream-agent-output/--no-stream-agent-output",
        "Show the agent's output as it comes.  [default: show it]",
    ),
    option("-V, --verbose", "Say more about what happens."),
    looks,
    option("--timestamps/--no-timestamps", "Print the time before each line.  [default: no times]"),
    notify_by,
)
run_display = together(
    shown_run,
    option("--detach", "Run in the background, also after you log out."),
    option("--watch", "The same, and watch it: q leaves it alone, see ralph watch."),
)
shown_credentials = option(
    "--sandbox-show PATH",
    "Show credentials that a sandbox hides, such as ~/.aws; repeat for more.  [default: none]",
    multiple=True,
    callback=lambda _context, _option, paths: list(paths) or None,
)


publishing = together(
    option(
        "--pr [per-task|per-run|stacked]",
        "Push the work and open pull requests: for each task, for the run, or for each task on top "
        "of the one before.",
    ),
    option("--base BRANCH", "Branch to merge them into.  [default: the forge's default]"),
    option("--draft", "Open them as drafts.", default=None),
    option("--merge", "Merge them once they are complete.", default=None),
    option("--ci/--no-ci", "Complete only when CI is green on that commit.  [default: with --pr]"),
)


def work_options(
    model: str = "--model NAME",
    *,
    time: str = "no limit",
    cost: str = "no limit",
    sandbox: str = "work in place",
) -> Callable[[_Function], _Function]:
    """Options about the agent, the run's limits and the sandbox, with the words for defaults."""
    return together(
        which_agent(model),
        option("--max-time DURATION", f"Stop the run after this time of work.  [default: {time}]"),
        option("--max-cost USD", f"Stop the run after this many dollars.  [default: {cost}]"),
        option(
            "--max-wait DURATION",
            "Stop the run after this much waiting for the provider, in total.  [default: 24h]",
        ),
        agent_patience,
        option(
            "--sandbox [=NAME]",
            "Run each turn in a sandbox, the best there is or this one; a failed turn is undone.  "
            f"[default: {sandbox}]",
            is_flag=False,
            flag_value="auto",
            type=click.Choice(["auto", *BACKENDS]),
        ),
        option("--no-sandbox", "Work in place; nothing contains the agent."),
        option(
            "--guard/--no-guard",
            "Check claude's commands where no sandbox contains it.  [default: guard]",
        ),
        option(
            "--network off|on|HOST,...",
            "Hosts that a sandbox may reach besides the agent's provider.  [default: no others]",
        ),
        shown_credentials,
    )


def run_options(model: str = "--model NAME", **defaults: str) -> Callable[[_Function], _Function]:
    """Options of every loop whose turns may be sandboxed, with the words for its defaults."""
    return together(
        work_options(model, **defaults),
        option(
            "--branch [=NAME]",
            "Make a new branch for the work, by default ralph/RUN, and stay on it.",
            is_flag=False,
            flag_value=arguments.BRANCH_OF_RUN,
        ),
        publishing,
        run_display,
        option("--dry-run", "Print the prompt and the command; run nothing."),
        json_lines,
    )


def in_place_if_asked(flags: dict[str, Any]) -> None:
    """`--no-sandbox` as a sandbox; a UsageError where there are both."""
    if flags.get("no_sandbox"):
        if flags["sandbox"] is not None:
            raise click.UsageError("--sandbox and --no-sandbox exclude each other.")
        flags["sandbox"] = "direct"


def run_loop(name: str, flags: dict[str, object]) -> int:
    """Begin a run of that loop, with what was typed, here."""
    from ralph.runner.carry_out import execute
    from ralph.runner.invocation import Invocation

    here = current_directory()
    in_place_if_asked(flags)
    streams = (sys.stdin, sys.stdout, sys.stderr)
    keeper = click.get_current_context().obj
    detached, watched = flags.pop("detach", False), flags.pop("watch", False)
    invocation = Invocation(here, dict(os.environ), flags, *streams, keeper)
    if flags.get("dry_run") or not (detached or watched):
        return execute(name, invocation)
    from ralph.cli.runs.background import in_background

    return in_background(invocation, partial(execute, name), watched=bool(watched))


def print_lines(lines: Iterable[str]) -> None:
    """Print them as their style dressed them, in a pipe too."""
    click.echo("\n".join(lines), color=True)
