"""`ralph guard check`: judges a command as the guard does, without running it."""

import json
import os
import sys
from typing import TYPE_CHECKING

import click

from ralph.cli.base import Group
from ralph.cli.params import current_directory, option, the_usual
from ralph.guard.rules.rule import LEVELS, STANDARD, STRICT
from ralph.hooks.pre_tool import allowing, choices, project_of, surroundings, verdict_on
from ralph.text.plain import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ralph.guard.judge import Verdict

_IN_JSON = {  # what a verdict says of a refusal
    "category": "category",
    "reason": "reason",
    "part": "command",
    "rule": "rule",
    "refused_from": "level",
}


@click.group(cls=Group)
def guard() -> None:
    """Check shell commands as the guard does before an agent runs them.

    Examples:
      ralph guard check -- 'rm -rf build/'
      ralph guard check --json -- 'git push --force'
    """


@guard.command()
@click.argument("command", nargs=-1, required=True)
@option(
    f"--level [{'|'.join(LEVELS)}]",
    "Judge at this level.  [default: guard.level of the settings, else standard]",
)
@option("--explain", "Name the rule and its level, and how to allow it.")
@the_usual
def check(command: tuple[str, ...], *, level: str | None, explain: bool, in_json: bool) -> int:
    """Say whether the guard would let COMMAND run, and if not, why.

    COMMAND is one text, quoted for the shell; - reads it from standard input. It is judged as in
    a run that has kept what was not committed.

    Examples:
      ralph guard check -- 'rm -rf build/'           allowed, exit code 0
      ralph guard check -- 'git push --force'        refused, exit code 2
      ralph guard check --level strict --explain -- 'git commit --amend'
      ralph guard check --json -C sub -- 'rm -rf ..'
      ralph guard check - < script.sh                a script from standard input

    Paths are judged from the current directory, $HOME and the project's root.
    Exit codes: 0 allowed, 2 refused.
    """
    if len(command) > 1:
        raise click.UsageError(
            "COMMAND is one text: quote it, as in: ralph guard check -- 'rm -rf build/'"
        )
    text = command[0]
    if text == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    here = current_directory()
    project = project_of(here, os.environ)
    said, allow = choices(project)
    level = level or said

    def judged(strict: bool) -> "Verdict":
        where = surroundings(here, project, os.environ, strict=strict, command=text)
        return verdict_on(text, where, allow)

    verdict = judged(level == STRICT)
    if in_json:
        told = {"command": text, "level": level, "allowed": verdict.allowed}
        why = {name: getattr(verdict, of) or None for name, of in _IN_JSON.items()}
        click.echo(json.dumps({**told, **why}))
    else:
        refused_by_strict = explain and verdict.allowed and level == STANDARD
        stricter = judged(strict=True) if refused_by_strict else verdict
        click.echo(clean("\n".join(_lines(text, verdict, stricter, explain=explain))))
    return 0 if verdict.allowed else 2


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
