"""`ralph guard check`: what the guard says about a command, without running it."""

import json
import os
import sys
from typing import TYPE_CHECKING

import click

from ralph.cli.params import current_directory, in_directory
from ralph.guard.rules.rule import LEVELS, STANDARD, STRICT
from ralph.hooks.pre_tool import allowing, choices, project_of, surroundings, verdict_on
from ralph.text.clean import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ralph.guard.judge import Verdict

_EPILOG = """\b
Examples:
  ralph guard check -- 'rm -rf build/'
  ralph guard check --json -- 'git push --force'
"""
_CHECK_EPILOG = """\b
Examples:
  ralph guard check -- 'rm -rf build/'           allowed, exit code 0
  ralph guard check -- 'git push --force'        refused, exit code 2
  ralph guard check --level strict --explain -- 'git commit --amend'
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
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    help="Judge at this level instead of the settings' guard.level.",
)
@click.option("--explain", is_flag=True, help="Name the rule and its level, and how to allow it.")
@click.option("--json", "in_json", is_flag=True, help="Print one JSON object.")
@in_directory
@click.pass_context
def check(
    context: click.Context,
    command: tuple[str, ...],
    *,
    level: str | None,
    explain: bool,
    in_json: bool,
) -> None:
    """Say whether the guard would let COMMAND run, and if not, why.

    COMMAND is one text, quoted for the shell; - reads it from standard input. It is judged as in
    a run that has kept what was not committed.
    """
    text = _text(command)
    here = current_directory()
    project = project_of(here, os.environ)
    chosen = choices(project)
    level = level or chosen.level

    def judged(strict: bool) -> "Verdict":
        where = surroundings(here, project, os.environ, strict=strict, command=text)
        return verdict_on(text, where, chosen.allow)

    verdict = judged(level == STRICT)
    if in_json:
        click.echo(json.dumps({"command": text, "level": level, **_fields(verdict)}))
    else:
        refused_by_strict = explain and verdict.allowed and level == STANDARD
        stricter = judged(strict=True) if refused_by_strict else verdict
        click.echo(clean("\n".join(_lines(text, verdict, stricter, explain=explain))))
    context.exit(0 if verdict.allowed else 2)


def _fields(verdict: "Verdict") -> dict[str, object]:
    return {
        "allowed": verdict.allowed,
        "category": verdict.category or None,
        "reason": verdict.reason or None,
        "part": verdict.command or None,
        "rule": verdict.rule or None,
        "refused_from": verdict.level or None,
    }


def _lines(text: str, verdict: "Verdict", stricter: "Verdict", *, explain: bool) -> "Iterator[str]":
    if verdict.allowed:
        yield "allowed"
        if not stricter.allowed:
            yield f"  strict refuses it ({stricter.category}): {stricter.reason}"
            yield f"  rule: {stricter.rule or stricter.category}"
        return
    yield f"refused ({verdict.category}): {verdict.reason}"
    if verdict.command and verdict.command != text:
        yield f"  in: {verdict.command}"
    if explain:
        also = "strict only" if verdict.level == STRICT else "standard and strict"
        yield f"  rule: {verdict.rule or verdict.category} (level: {also})"
        yield from filter(None, [allowing(verdict).lstrip("\n")])


def _text(words: tuple[str, ...]) -> str:
    if words == ("-",):
        return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    if len(words) > 1:
        raise click.UsageError(
            "COMMAND is one text: quote it, as in: ralph guard check -- 'rm -rf build/'"
        )
    return words[0]
