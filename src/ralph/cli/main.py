"""The command line: commands by their names, and what click makes of the words after them."""

import os
import signal
import sys
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

import click

from ralph.cli.ending import ending, print_anything, report
from ralph.cli.lazy import LazyGroup
from ralph.core.redact import know
from ralph.core.secrets import secret_among, secrets_of
from ralph.core.verdict import Reason
from ralph.runner.loops import LOOPS, is_run

if TYPE_CHECKING:
    from ralph.adapters.keeper_process import Launched
    from ralph.adapters.registration import Registered


_COMMANDS = {
    "run": ("ralph.cli.run", "Run an agent in a loop until its work is done and proven."),
    "tasks": ("ralph.cli.tasks", "Work through a backlog, one proven task at a time."),
    "prd": ("ralph.cli.prd", "Work through stories that must survive a fresh review."),
    "loop": ("ralph.cli.session_loops", "Keep one session of an agent at a task until it is done."),
    "supervise": ("ralph.cli.supervise", "Restart an agent until its task is marked DONE."),
    "job": ("ralph.cli.job", "Run a command as a child run of a task."),
    "bus": ("ralph.cli.bus", "Post, read and follow the messages of a task."),
    "status": ("ralph.cli.status", "Show what a run is doing and what it has spent."),
    "logs": ("ralph.cli.logs", "Tell what a run did, or follow it."),
    "stop": ("ralph.cli.steer", "End a run after its current operation, or at once."),
    "pause": ("ralph.cli.steer", "Pause a run before its next turn."),
    "resume": ("ralph.cli.steer", "Go on with a run that is paused, was stopped or was killed."),
    "guard": ("ralph.cli.guard", "Judge a shell command as the guard does."),
    "hook": ("ralph.cli.hook", "Answer an agent's host: what its hooks call."),
    "plugin": ("ralph.cli.plugin", "Put Ralph's hooks into claude, codex or gemini, or out."),
    "sandbox": ("ralph.cli.sandbox", "Run a command so that what it changes can be undone."),
    "init": ("ralph.cli.init", "Create .ralph/settings.json by answering a few questions."),
    "explain": ("ralph.cli.explain", "Show the settings in force and the rules, in order."),
    "doctor": ("ralph.cli.doctor", "Look at this machine: what is wrong, and what to type."),
    "demo": ("ralph.cli.demo", "See Ralph at work, without any agent, key or network."),
    "completion": ("ralph.cli.completion", "Print the script that makes a shell complete ralph."),
}
_SECTIONS = {  # of the help; what is named in none of them stands first
    "Supervise": ("supervise", "job", "bus"),
    "Watch and steer": ("status", "logs", "stop", "pause", "resume"),
    "Safety": ("sandbox", "guard", "hook"),
    "Set up and understand": ("init", "plugin", "doctor", "explain", "demo", "completion"),
}
_EPILOG = """\b
Examples:
  ralph demo                            what it is about, in a few seconds
  ralph init                            settings for a project of yours
  ralph run -p "Make the tests pass"    then let it work
\b
Every command has examples too: ralph COMMAND --help
"""
_NOT_FOR_RUN = ("-h", "--help", "-v", "--version")


def _commands() -> dict[str, tuple[str, str, str]]:
    """The table above, and a command for each loop that it does not know."""
    told = {name: (module, name, words) for name, (module, words) in _COMMANDS.items()}
    names = {command.split()[0]: name for name, (_, command) in LOOPS.items()}
    new = {word: name for word, name in names.items() if word not in told}
    return told | {w: (f"ralph.cli.{w}", w, f"Run the loop {n}.") for w, n in new.items()}


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:  # a shell that completes wants no answer
        from ralph import __version__

        click.echo(f"ralph {__version__}")
        context.exit()


@click.group(
    cls=LazyGroup,
    lazy=_commands,
    sections=_SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_EPILOG,
)
@click.option(
    "-v",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
def ralph() -> None:
    """Run AI coding agents in a loop until the work is done, and prove that it is done.

    `ralph -p ...` is short for `ralph run -p ...`.
    """


def run_command_line(
    arguments: list[str], keeper: "Launched | None" = None, job: "Registered | None" = None
) -> int:
    """Run one command; the exit code of README §Exit codes. A run takes the keeper, `ralph job`
    also what was registered of it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # from here on it can be caught
    print_anything()
    if not arguments and (asked := os.environ.get("_RALPH_COMPLETE")):
        from ralph.cli.completion import answer

        return answer(asked)
    arguments = with_command(arguments)
    know(secret_among(secrets_of(os.environ), _named_directories(arguments)))
    last = _last_word(arguments)
    return ending(lambda: _invoke(arguments, keeper, job, last), arguments, last)


def _last_word(arguments: list[str]) -> str:
    """What a command with `--json` prints when it fails: a run's `stop`, or an `error`."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if "--json" not in own:
        return ""
    return "stop" if is_run(own) or own[:1] == ["demo"] else "error"


def _named_directories(arguments: list[str]) -> list[str]:
    """Paths that are told again and again: what stands in them is no secret."""
    named = [word for flag, word in pairwise(arguments) if flag == "-C"]
    with suppress(OSError):  # it may be gone
        named.append(os.getcwd())
    return named


def with_command(arguments: list[str]) -> list[str]:
    """`ralph -p x` is `ralph run -p x`, and `ralph -C dir explain` is `ralph explain -C dir`."""
    if arguments[:1] == ["-C"] and arguments[2:3] and arguments[2] in _commands():
        return [arguments[2], *arguments[:2], *arguments[3:]]
    if arguments and arguments[0].startswith("-") and arguments[0] not in _NOT_FOR_RUN:
        return ["run", *arguments]
    return arguments


def _invoke(
    arguments: list[str], keeper: "Launched | None", job: "Registered | None", last: str
) -> int:
    try:
        # Not `main`: it would exit by itself when a pipe is closed.
        with ralph.make_context("ralph", [*arguments] or ["--help"], obj=keeper) as context:
            context.meta["job"] = job
            code = ralph.invoke(context)
    except click.exceptions.Exit as error:
        code = error.exit_code if arguments else Reason.CONFIG.exit_code
    except click.ClickException as error:
        return _usage_error(error, arguments, last=last)
    except click.Abort as error:
        raise KeyboardInterrupt from error
    if sys.stdout is not None:
        sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _usage_error(error: click.ClickException, arguments: list[str], *, last: str) -> int:
    context = getattr(error, "ctx", None)
    named = [word for word in arguments[:1] if word in _commands()]
    where = context.command_path if context is not None else " ".join(("ralph", *named))
    remedy = f"Try: {where} --help"
    return report(error.format_message(), remedy, Reason.CONFIG, last=last)
