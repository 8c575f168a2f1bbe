"""The command `ralph`: its commands by name, and how the words after them are read."""

import os
import signal
import sys
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

import click

from ralph.cli.commands import commands, ralph, with_command
from ralph.cli.ending import ending, print_anything, report
from ralph.kernel.verdict import Reason
from ralph.runner.loops import is_run
from ralph.text.redact import know
from ralph.text.secrets import secret_among, secrets_of

if TYPE_CHECKING:
    from ralph.loops.supervise.register_job import Registered
    from ralph.processes.keeper_main import Launched


_OF_TASKS = ("--fleet", "--parallel")  # which people try elsewhere too


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
    # Paths that are told again and again: what stands in them is no secret.
    named = [word for flag, word in pairwise(arguments) if flag == "-C"]
    with suppress(OSError):  # it may be gone
        named.append(os.getcwd())
    know(secret_among(secrets_of(os.environ), named))
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    last = ""  # what a command with `--json` prints when it fails: a run's `stop`, or an `error`
    if "--json" in own:
        last = "stop" if is_run(own) or own[:1] == ["demo"] else "error"
    return ending(lambda: _invoke(arguments, keeper, job, last), arguments, last)


def _invoke(
    arguments: list[str], keeper: "Launched | None", job: "Registered | None", last: str
) -> int:
    try:
        # Not `main`: it would exit by itself when a pipe is closed.
        with ralph.make_context("ralph", [*arguments], obj=keeper) as context:
            context.meta["job"] = job
            code = ralph.invoke(context)
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.ClickException as error:
        at = getattr(error, "ctx", None)
        named = [word for word in arguments[:1] if word in commands()]
        where = at.command_path if at is not None else " ".join(("ralph", *named))
        words = error.format_message()
        if isinstance(error, click.NoSuchOption) and error.option_name in _OF_TASKS:
            words, where = f"{where} has no {error.option_name}; tasks do", "ralph tasks run"
        return report(words, f"Try: {where} --help", Reason.CONFIG, last=last)
    except click.Abort as error:
        raise KeyboardInterrupt from error
    if sys.stdout is not None:
        sys.stdout.flush()
    return code if isinstance(code, int) else 0
