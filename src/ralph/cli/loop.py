"""`ralph loop`: the loop inside one session of an agent, from a terminal (P)."""

import glob
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from ralph.cli.base import Command, Group
from ralph.cli.params import current_directory, in_json, option
from ralph.errors import ConfigError, StateError
from ralph.hosts.protocol import Event
from ralph.loops.session import commands
from ralph.loops.session.state import SessionLoop, aged, shown_record, told_of
from ralph.loops.session.store import Unreadable, every, load
from ralph.loops.session.words import POLICIES, UnusableLoop, opening, wished
from ralph.runner.arguments import shown
from ralph.text.plain import clean, safe

# How hosts tell the commands of an agent which session it is.
VARIABLES = ("CLAUDE_CODE_SESSION_ID", "CLAUDE_SESSION_ID", "CODEX_THREAD_ID", "GEMINI_SESSION_ID")
_of_session = option(
    "--session ID",
    "The agent's session.  [default: what its host says in $CLAUDE_CODE_SESSION_ID, "
    "$CODEX_THREAD_ID or $GEMINI_SESSION_ID]",
)
_LONGEST = 60  # characters of a task in a list
_HIDDEN = "\0"  # in front of words that click would take for flags; no argument can hold it
_VALUES = ("--max-iterations", "--completion-promise", "--min-tool-calls", "--on-promise-no-work")


@click.group(cls=Group)
def loop() -> None:
    """Keep one session of an agent at a task until it is done.

    The hooks of the agent's host hold every stop without the promise: see docs/plugin.md. In Claude
    Code with the plugin the same is /ralph:ralph-loop, /ralph:cancel-ralph and /ralph:ralph-status.

    Examples:
      ralph loop start --session ID "Make the tests pass" --gate "make test"
      ralph loop status --session ID
      ralph loop cancel --session ID
      ralph loop list
    """


@contextmanager
def _keeping() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = "Name another place: export RALPH_STATE_DIR=DIR, for the agent too"
        raise StateError(f"the loop's state cannot be used: {error}", remedy) from error


class _Start(Command):
    """Takes a word that begins with a dash, and is no flag, for the task's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        hidden = [f"{_HIDDEN}{word}" if _is_of_task(word) else word for word in args]
        return super().parse_args(ctx, hidden)


def _is_of_task(word: str) -> bool:
    """`---`, or `- a list`, or `--verbose is broken`: not `--`, nor a flag with its value."""
    if not word.startswith("-") or word in ("-", "--"):
        return False
    return not word.strip("-") or any(c.isspace() for c in word.partition("=")[0])


@loop.command(cls=_Start)
@click.argument("task", nargs=-1)
@_of_session
@option(
    "--max-iterations N",
    "Maximum number of held stops; 0: no limit.  [default: 50]",
    default="50",
    type=str,
)
@option(
    "--completion-promise P", "The promise that ends the loop.  [default: DONE]", default="DONE"
)
@option("--min-tool-calls M", "Minimum number of tool calls; 0: none.  [default: 1]", default="1")
@option(
    f"--on-promise-no-work {'|'.join(POLICIES)}",
    "What to do about a promise without work.  [default: reject]",
    default="reject",
)
@option("--gate CMD", "A command that must succeed first; repeat for more.", multiple=True)
@option("--ulw", "Ultrawork: say so in every continuation.")
@in_json
def start(
    task: tuple[str, ...],
    session: str | None,
    *,
    ulw: bool,
    in_json: bool,
    **given: Any,  # noqa: ANN401  see wished
) -> None:
    """Begin a loop in a session, and print what its agent must be told.

    TASK may be one quoted argument or many words. --json prints the loop as `ralph loop status`
    does, and what its agent must be told as `opening`.

    Examples:
      ralph loop start --session ID "Make the tests pass"
      ralph loop start --session ID --max-iterations 20 --gate "make test" Fix it
      ralph loop start --session ID --completion-promise SHIPPED Ship it

    Exit codes: 0, or 2 when there is no loop: wrong flags, no task, or one
    that runs in this session already.
    """
    name = _session(session)
    flags = [(flag, given[flag[2:].replace("-", "_")]) for flag in _VALUES]
    flags += [("--gate", command) for command in given["gate"]]
    flags = [(flag, word.removeprefix(_HIDDEN)) for flag, word in flags]
    text = " ".join(word.removeprefix(_HIDDEN) for word in task)
    try:
        wish = wished(text, flags, ulw=ulw)
        event: Event = {"transcript_path": _transcript(name)}
        with _keeping():
            commands.start(wish, name, event, os.environ, current_directory())
    except UnusableLoop as error:
        raise ConfigError(f"no loop: {error}", "Try: ralph loop start --help") from error
    told = opening(wish, name)
    if in_json:
        click.echo(json.dumps({**shown_record(_known(name)), "opening": told}))
    else:
        click.echo(clean(told))


@loop.command()
@_of_session
@in_json
def status(session: str | None, *, in_json: bool) -> None:
    """Show the loop of a session, also after its end.

    --json prints `session, task, promise, iteration` (held stops), `max_iterations, status, why`
    and `decisions`, among others.

    Examples:
      ralph loop status --session ID
      ralph loop status --session ID --json | jq .status

    Exit codes: 0, or 2 when the session has no loop.
    """
    found = _known(_session(session))
    click.echo(json.dumps(shown_record(found)) if in_json else safe(told_of(found)))


@loop.command()
@_of_session
@in_json
def cancel(session: str | None, *, in_json: bool) -> None:
    """End the loop of a session: its agent may stop from now on.

    Examples:
      ralph loop cancel --session ID

    Exit codes: 0, also when it has ended already; 2 when there is no loop.
    """
    name = _session(session)
    _known(name)
    within = any(os.environ.get(variable) == name for variable in VARIABLES)
    with _keeping():
        words = commands.cancelled(name, os.environ, "from within its session" if within else "")
    click.echo(json.dumps(shown_record(_known(name))) if in_json else words)


@loop.command("list")
@in_json
def list_loops(*, in_json: bool) -> None:
    """Show the loops of all sessions, the latest first.

    Examples:
      ralph loop list
      ralph loop list --json | jq -r '.[].session'
    """
    found = []
    with _keeping():
        for each in every(os.environ):
            if isinstance(each, Unreadable):
                click.echo(f"[ralph] A loop cannot be read: {each}", err=True)
            else:
                found.append(aged(each, time.time()))
    if in_json:
        click.echo(json.dumps([shown_record(one) for one in found]))
        return
    if not found:
        click.echo("[ralph] There is no loop.", err=True)
    for one in found:
        task = shown(one.wish.task)[:_LONGEST]
        click.echo(f"{clean(one.session)}  {one.status}  {one.progress}  {task}")


def _session(given: str | None) -> str:
    named = (os.environ.get(variable, "") for variable in VARIABLES)
    found = next(filter(None, named), "") if given is None else given
    if not found.strip():
        raise ConfigError(
            "which session is meant?",
            "Name it: --session ID. In Claude Code, /status shows the session's ID.",
        )
    return found


def _known(session: str) -> SessionLoop:
    try:
        with _keeping():
            found = load(session, os.environ)
    except Unreadable as error:
        remedy = f"Remove it: rm {str(error).partition(': ')[0]}"
        raise StateError(f"the loop's state cannot be read: {error}", remedy) from error
    if found is None:
        raise ConfigError(
            f"session {clean(session)} has no loop", "To see those there are: ralph loop list"
        )
    return aged(found, time.time())


def _transcript(session: str) -> str:
    """Claude Code's transcript of this session; "" if there is none. The id is never a path."""
    home = os.environ.get("HOME", "")
    root = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")
    found = glob.glob(os.path.join(glob.escape(root), "projects", "*", "*.jsonl"))
    return next((p for p in sorted(found) if os.path.basename(p) == f"{session}.jsonl"), "")
