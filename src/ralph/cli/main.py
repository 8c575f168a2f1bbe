"""One catch, one exit-code table: every way a command can end becomes a message and a code."""

import os
import sys
import time
from typing import Any

import click

from ralph.core.redact import redact
from ralph.core.verdict import Reason
from ralph.errors import RalphError

_COMMANDS = {
    "run": ("ralph.cli.run", "Run an agent in a loop until its work is done and proven."),
    "init": ("ralph.cli.init", "Create .ralph/settings.json by answering a few questions."),
    "explain": ("ralph.cli.explain", "Show the settings in force and the rules, in order."),
    "demo": ("ralph.cli.demo", "See Ralph at work, without any agent, key or network."),
}
_NOT_FOR_RUN = ("-h", "--help", "-v", "--version")


class LazyGroup(click.Group):
    """Imports a command's module only when that command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        import importlib

        if cmd_name not in _COMMANDS:
            return None
        command = getattr(importlib.import_module(_COMMANDS[cmd_name][0]), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in _COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _COMMANDS:
            raise click.UsageError(_unknown(args[0]), ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Begin with: ralph demo. Then: ralph init, ralph run -p 'what to do'.",
)
@click.option("-v", "--version", is_flag=True, expose_value=False, help="Print the version.")
def ralph() -> None:
    """Run AI coding agents in a loop until the work is done, and prove that it is done.

    `ralph -p ...` is short for `ralph run -p ...`.
    """


def run_command_line(arguments: list[str]) -> int:
    """Run one command; the exit code of DESIGN §2."""
    if arguments and arguments[0].startswith("-") and arguments[0] not in _NOT_FOR_RUN:
        arguments = ["run", *arguments]
    in_json = "--json" in arguments
    try:
        code = ralph.main(arguments or ["--help"], prog_name="ralph", standalone_mode=False)
        return code if isinstance(code, int) else 0 if arguments else 2
    except click.ClickException as error:
        return _usage_error(error, in_json=in_json)
    except click.exceptions.Exit as error:
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _report("interrupted", "", Reason.INTERRUPTED, in_json=in_json)
    except RalphError as error:
        reason = Reason(error.reason)
        return _report(error.message, error.remedy, reason, in_json=in_json, run=error.run)
    except BrokenPipeError:
        _forget_stdout()
        return 0
    except Exception as error:  # noqa: BLE001  the one place that catches everything
        return _bug(error, arguments, in_json=in_json)
    finally:
        _flush()


def _usage_error(error: click.ClickException, *, in_json: bool) -> int:
    context = getattr(error, "ctx", None)
    where = f"{context.command_path} --help" if context is not None else "ralph --help"
    return _report(error.format_message(), f"Try: {where}", Reason.CONFIG, in_json=in_json)


def _report(
    message: str, remedy: str, reason: Reason, *, in_json: bool, run: str | None = None
) -> int:
    for line in (*message.splitlines(), *remedy.splitlines()):
        _say(f"[ralph] {redact(line)}")
    if in_json:
        from ralph.ui.jsonlines import stop_line

        print(stop_line(reason, time=time.time(), run=run))
    return reason.exit_code


def _bug(error: Exception, arguments: list[str], *, in_json: bool) -> int:
    """A bug of ours: a report that can be pasted, with nothing secret in it."""
    import platform
    import traceback

    from ralph import __version__

    details = "".join(traceback.format_exception(error))
    report = redact(
        f"ralph {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"arguments: {arguments}\n\n{details}"
    )
    path = _write_report(report)
    if path is None:
        _say(report)
    where = f"Please report it with this file: {path}" if path else "Please report the above."
    return _report(f"This is a bug in ralph: {error!r}", where, Reason.BUG, in_json=in_json)


def _write_report(report: str) -> str | None:
    from ralph.adapters.files import state_root, write_atomically

    directory = state_root(os.environ)
    path = os.path.join(directory, time.strftime("bug-%Y%m%d-%H%M%S.txt"))
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        write_atomically(path, report, mode=0o600)
    except OSError:
        return None
    return path


def _unknown(word: str) -> str:
    import difflib

    near = difflib.get_close_matches(word, _COMMANDS, 1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return f"there is no command {word!r}.{hint}"


def _say(line: str) -> None:
    try:
        print(line, file=sys.stderr)
    except (OSError, ValueError, AttributeError):
        pass  # stderr is closed: the exit code has to do


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            _forget_stdout()


def _forget_stdout() -> None:
    """Keep the interpreter from complaining about a closed pipe when it exits."""
    quiet: Any = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  for the rest of our life
    sys.stdout = quiet
