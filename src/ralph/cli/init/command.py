"""`ralph init`: a settings file from what is found here and a few questions (H §Init Command), or
from another loop's."""

import json
import os
import shlex
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from ralph.cli.base import command
from ralph.cli.params import DIRECTORY, current_directory, in_directory, option
from ralph.cli.params import in_json as as_json
from ralph.errors import ConfigError

if TYPE_CHECKING:
    from ralph.doctor.proposals import Proposals

_SETTINGS = ".ralph/settings.json"  # as settings.source has it, which the help need not load
_USUAL = {
    "maximumIterations": 10,
    "completionResponse": "DONE",
    "outputTruncateChars": 5000,
    "streamAgentOutput": True,
}


@command()
@option("-y, --yes", "Accept every proposal and ask nothing; settings that are there stay.")
@option("--agent COMMAND", "Propose this agent instead of the first one that is installed.")
@option(
    "--from FILE",
    "Take over another loop's settings: ralph.yml, .ralphrc, config.toml, ... No questions.",
    "source",
)
@option("--dry-run", "Show what was found and would be written; write nothing.")
@as_json
@in_directory
def init(source: str | None, agent: str | None, *, yes: bool, dry_run: bool, in_json: bool) -> None:
    """Look at this project and propose its settings; Enter accepts each proposal.

    Proposed are the agent on PATH, the project's own test, lint and build commands, a commit of
    what passes, and a sandbox if this machine has one. The answers go to .ralph/settings.json.

    Examples:
      ralph init                     look, ask, and write .ralph/settings.json
      ralph init --yes               accept everything, without a terminal too
      ralph init --dry-run           only look
      ralph init --from ralph.yml    take over the settings of another loop

    Exit codes: 0 written, or nothing to change, 2 nothing to propose, or no
    place to write it, 130 given up.
    """
    workspace = current_directory()
    if not dry_run:
        _refuse_hopeless(workspace)
    if source is not None:
        if agent is not None:
            raise click.UsageError("--from asks nothing about an agent; leave out --agent.")
        from ralph.settings.from_others.merge import report, take_over

        outcome = take_over(workspace, source, dry_run=dry_run)
        print(report(outcome, source, in_json=in_json))
    elif yes or dry_run:
        _accept(workspace, agent, dry_run=dry_run, in_json=in_json)
    elif in_json:
        raise click.UsageError("--json asks nothing: add --yes, or --dry-run to write nothing.")
    elif sys.stdin is None or not sys.stdin.isatty():
        raise ConfigError(
            "ralph init needs a terminal: it asks questions.",
            "To accept its proposals without one: ralph init --yes. To see them: --dry-run",
        )
    else:
        from ralph.cli.asking import dialogue

        with dialogue("no settings were written."):
            _converse(workspace, agent)


def _refuse_hopeless(workspace: str) -> None:
    """Say now, and not after ten questions, that the answers could not be written."""
    directory = os.path.join(workspace, ".ralph")
    if os.path.lexists(directory) and not os.path.isdir(directory):
        raise ConfigError(".ralph: is not a directory.", "Move the file .ralph away.")
    if os.path.isdir(os.path.join(workspace, _SETTINGS)):
        raise ConfigError(".ralph/settings.json: is a directory.", "Move it away.")
    place = directory if os.path.isdir(directory) else workspace
    if not os.access(place, os.W_OK):
        raise ConfigError(f"{place}: cannot be written.", f"Make it writable: chmod u+w {place}")


def _accept(workspace: str, agent: str | None, *, dry_run: bool, in_json: bool) -> None:
    """Write every proposal that the settings say nothing about yet."""
    from ralph.agents.kinds import how_to_install
    from ralph.cli.init.shown import as_dict, change_lines, ending_lines, found_lines
    from ralph.settings.from_others.draft import Draft
    from ralph.settings.from_others.merge import write_settings
    from ralph.ui.style import style_here

    found = _look(workspace, agent, quietly=in_json)
    if found.is_empty and not dry_run:
        raise ConfigError(
            f"nothing to propose: no agent is installed, and {workspace} holds no project",
            "\n".join(("Install an agent, or go to your project:", *how_to_install(os.environ))),
        )
    new = not os.path.exists(os.path.join(workspace, _SETTINGS))
    proposed = _in_order({**(_USUAL if new else {}), **found.settings()})
    outcome = write_settings(workspace, Draft("found here", proposed), dry_run=dry_run)
    if in_json:
        print(json.dumps(as_dict(found, outcome, _next())))
        return
    print(*found_lines(found, style_here()), "", sep="\n")
    if not new:
        print(*change_lines(outcome, written=not dry_run), sep="\n")
    elif dry_run:
        print(json.dumps(proposed, indent=2, ensure_ascii=False))
    else:
        print(f"Settings written to {_SETTINGS}")
    if not dry_run:
        print(*ending_lines(found, found.command, _next(), os.environ), sep="\n")


def _converse(workspace: str, agent: str | None) -> None:
    """H's dialogue: show what is there, ask, and write."""
    from ralph.cli.asking import ask, yes
    from ralph.cli.init.questions import answers_to
    from ralph.cli.init.shown import ending_lines, found_lines
    from ralph.settings.from_others.merge import write
    from ralph.ui.style import style_here

    kept: dict[str, Any] = {}
    if os.path.exists(os.path.join(workspace, _SETTINGS)):
        _show_existing(workspace)
        if not ask("Overwrite? (y/N): ", yes):
            return
        kept = _worth_keeping(workspace)
    found = _look(workspace, agent)
    print()
    if not found.is_empty:
        print(*found_lines(found, style_here()), sep="\n")
        print("\nEnter accepts what stands in [brackets]; - leaves it out.\n")
    answers = answers_to(found, os.environ)
    settings = {**_USUAL, **kept, **answers}
    settings["agent"] = {**(kept.get("agent") or {}), **answers["agent"]}
    write(workspace, _in_order(settings))
    print(f"\nSettings written to {_SETTINGS}")
    command = answers["agent"].get("command", "")
    print(*ending_lines(found, command, _next(), os.environ), sep="\n")


def _look(workspace: str, agent: str | None, *, quietly: bool = False) -> "Proposals":
    """Look around; on a terminal a line says so meanwhile. A misspelt agent is refused."""
    from ralph.agents.kinds import misspelt, unusable
    from ralph.doctor.machine import Machine
    from ralph.doctor.proposals import look
    from ralph.doctor.report import Waiting
    from ralph.ui.style import style_of

    if agent is not None and misspelt(agent, os.environ):
        raise unusable(agent, os.environ)
    fancy = style_of(sys.stderr, os.environ).color and not quietly
    waiting = Waiting(sys.stderr if fancy else None, None)
    waiting.show("Looking around ...")
    try:
        return look(Machine(workspace, os.environ), agent)
    finally:
        waiting.show("")


def _next() -> str:
    """The command to type next, in the directory that the person is in."""
    directory = click.get_current_context().meta.get(DIRECTORY)
    there = f" -C {shlex.quote(directory)}" if directory is not None else ""
    return f'ralph run{there} -p "What to do"'


def _in_order(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings in the schema's order, without those that are null."""
    from ralph.settings.schema import Settings

    keys = Settings.__struct_encode_fields__
    return {key: settings[key] for key in keys if settings.get(key) is not None}


def _show_existing(workspace: str) -> None:
    """Show the settings as both files make them, or what is wrong with them."""
    from ralph.settings.explain import redacted
    from ralph.settings.load import load

    try:
        loaded = load(workspace)
    except ConfigError as error:
        print(error.message)
        return
    print(json.dumps(redacted(loaded.merged), indent=2, ensure_ascii=False))
    overlay = " (with local overlay from settings.local.json)" if loaded.files[1:] else ""
    print(f"Loaded from .ralph/settings.json{overlay}")


def _worth_keeping(workspace: str) -> dict[str, Any]:
    """The content of settings.json by itself; nothing if that file is broken."""
    from ralph.settings.load import combine
    from ralph.settings.source import read_layer

    with suppress(ConfigError):
        layer = read_layer(workspace, _SETTINGS)
        if layer:
            combine([layer])
            return layer.data
    return {}
