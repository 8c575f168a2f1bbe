"""`ralph guard check`: what the guard says about a command, without running it."""

import json
import os
import sys
from typing import TYPE_CHECKING

import click

from ralph.cli.params import current_directory, in_directory
from ralph.hooks.pre_tool import project_of, surroundings, verdict_on
from ralph.ui.clean import clean

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.core.shell_nodes import Script

_EPILOG = """\b
Examples:
  ralph guard check -- 'rm -rf build/'
  ralph guard check --json -- 'git push --force'
"""
_CHECK_EPILOG = """\b
Examples:
  ralph guard check -- 'rm -rf build/'           allowed, exit code 0
  ralph guard check -- 'git push --force'        refused, exit code 2
  ralph guard check --json -C sub -- 'rm -rf ..'
  ralph guard check - < script.sh                a script from standard input
\b
Paths are judged from the current directory, $HOME and the project's root.
Exit codes: 0 allowed, 2 refused.
"""


@click.group(invoke_without_command=True, epilog=_EPILOG)
@click.pass_context
def guard(context: click.Context) -> None:
    """Judge shell commands as the guard does before an agent runs them."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(2)


@guard.command(epilog=_CHECK_EPILOG)
@click.argument("command", nargs=-1, required=True)
@click.option("--json", "in_json", is_flag=True, help="Print one JSON object.")
@in_directory
@click.pass_context
def check(context: click.Context, command: tuple[str, ...], *, in_json: bool) -> None:
    """Say whether the guard would let COMMAND run, and if not, why.

    COMMAND is one text, quoted for the shell; - reads it from standard input.
    """
    text = _text(command)
    here = current_directory()
    project = project_of(here, os.environ)
    verdict = verdict_on(text, surroundings(here, project, os.environ), project, _second_reader)
    if in_json:
        told = {"allowed": verdict.allowed, "category": verdict.category or None}
        told |= {"reason": verdict.reason or None, "part": verdict.command or None}
        click.echo(json.dumps({"command": text, **told}))
    elif verdict.allowed:
        click.echo("allowed")
    else:
        click.echo(clean(f"refused ({verdict.category}): {verdict.reason}"))
        if verdict.command and verdict.command != text:
            click.echo(clean(f"  in: {verdict.command}"))
    context.exit(0 if verdict.allowed else 2)


def _text(words: tuple[str, ...]) -> str:
    if words == ("-",):
        return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    if len(words) > 1:
        raise click.UsageError(
            "COMMAND is one text: quote it, as in: ralph guard check -- 'rm -rf build/'"
        )
    return words[0]


def _second_reader() -> "Callable[[str], Script] | None":
    from ralph.adapters.bash_tree import reader

    return reader()
