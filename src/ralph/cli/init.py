"""`ralph init`: a settings file from a few questions (H §Init Command), or another loop's."""

import json
import os
import sys
from contextlib import suppress

import click

from ralph.cli.asking import ask, dialogue, yes
from ralph.cli.base import command
from ralph.cli.params import current_directory, option
from ralph.errors import ConfigError
from ralph.kernel.verdict import Placement
from ralph.settings.explain import redacted
from ralph.settings.from_others.merge import report, take_over, write
from ralph.settings.load import combine, load
from ralph.settings.paths import Json
from ralph.settings.schema import Settings
from ralph.settings.source import SETTINGS, read_layer

_DEFAULTS: Json = {"outputTruncateChars": 5000, "streamAgentOutput": True}
_MOST_DIGITS = 9


@command()
@option(
    "--from FILE",
    "Take over another loop's settings: ralph.yml, .ralphrc, config.toml, ... No questions.",
    "source",
)
@option("--dry-run", "With --from: show what would change, write nothing.")
def init(source: str | None, *, dry_run: bool) -> None:
    """Create .ralph/settings.json by answering a few questions, or from another loop's.

    Examples:
      ralph init                     answer, then look at .ralph/settings.json
      ralph init --from ralph.yml    take over the settings of another loop
      ralph explain                  what the settings mean for a run
      ralph explain --schema         every setting there is, to write them by hand
    """
    workspace = current_directory()
    if source is not None:
        if not dry_run:
            _refuse_hopeless(workspace)
        print(report(take_over(workspace, source, dry_run=dry_run), source))
        return
    if dry_run:
        raise click.UsageError("--dry-run needs --from FILE.")
    if sys.stdin is None or not sys.stdin.isatty():
        raise ConfigError(
            "ralph init needs a terminal: it asks questions.",
            "Write .ralph/settings.json by hand; see ralph explain --schema.",
        )
    with dialogue("no settings were written."):
        _refuse_hopeless(workspace)
        kept: Json = {}
        if os.path.exists(os.path.join(workspace, SETTINGS)):
            _show_existing(workspace)
            if not ask("Overwrite? (y/N): ", yes):
                return
            kept = _worth_keeping(workspace)
        print()
        write(workspace, _merged(kept, _answers()))
        print("\nSettings written to .ralph/settings.json")


def _refuse_hopeless(workspace: str) -> None:
    """Say now, and not after ten questions, that the answers could not be written."""
    directory = os.path.join(workspace, ".ralph")
    if os.path.lexists(directory) and not os.path.isdir(directory):
        raise ConfigError(".ralph: is not a directory.", "Move the file .ralph away.")
    if os.path.isdir(os.path.join(workspace, SETTINGS)):
        raise ConfigError(".ralph/settings.json: is a directory.", "Move it away.")
    place = directory if os.path.isdir(directory) else workspace
    if not os.access(place, os.W_OK):
        raise ConfigError(f"{place}: cannot be written.", f"Make it writable: chmod u+w {place}")


def _show_existing(workspace: str) -> None:
    """Show the settings as both files make them, or what is wrong with them."""
    try:
        loaded = load(workspace)
    except ConfigError as error:
        print(error.message)
        return
    print(json.dumps(redacted(loaded.merged), indent=2, ensure_ascii=False))
    overlay = " (with local overlay from settings.local.json)" if loaded.files[1:] else ""
    print(f"Loaded from .ralph/settings.json{overlay}")


def _worth_keeping(workspace: str) -> Json:
    """The content of settings.json by itself; nothing if that file is broken."""
    with suppress(ConfigError):
        layer = read_layer(workspace, SETTINGS)
        if layer:
            combine([layer])
            return layer.data
    return {}


def _answers() -> Json:
    """The settings that the person wants, asked in H's order."""
    answers: Json = {
        "agent": {
            "command": ask("Agent command (e.g., claude, codex, amp, or other LLM CLI): ", _needed),
            "flags": ask("Agent flags (comma-separated, optional): ", _items),
        },
        "maximumIterations": ask("Maximum iterations [10]: ", _iterations),
        "completionResponse": ask("Completion response [DONE]: ", str) or "DONE",
        "guardrails": [],
    }
    while command := ask("Add guardrail command (leave blank to finish): ", str):
        action = ask("  Fail action (APPEND|PREPEND|REPLACE): ", _fail_action)
        hint = ask("  Hint (optional, guidance for agent on failure): ", str)
        guardrail = {"command": command, "failAction": action}
        answers["guardrails"].append({**guardrail, "hint": hint} if hint else guardrail)
    if ask("Configure SCM? (y/N): ", yes):
        answers["scm"] = {
            "command": ask("  SCM command (e.g., git): ", _needed),
            "tasks": ask("  SCM tasks (comma-separated, e.g., commit,push): ", _needed_items),
        }
    return answers


def _merged(kept: Json, answers: Json) -> Json:
    """The answers over what is kept, in the schema's order: keys nobody asked for stay."""
    settings = {**_DEFAULTS, **kept, **answers}
    settings["agent"] = {**(kept.get("agent") or {}), **answers["agent"]}
    settings["scm"] = answers.get("scm")
    keys = Settings.__struct_encode_fields__
    return {key: settings[key] for key in keys if settings.get(key) is not None}


def _needed(answer: str) -> str:
    if not answer:
        raise ValueError("This cannot be blank.")
    return answer


def _items(answer: str) -> list[str]:
    return [item.strip() for item in answer.split(",") if item.strip()]


def _needed_items(answer: str) -> list[str]:
    items = _items(answer)
    if not items:
        raise ValueError("Name at least one.")
    return items


def _iterations(answer: str) -> int:
    if not answer:
        return 10
    if not (answer.isascii() and answer.isdigit() and len(answer) <= _MOST_DIGITS and int(answer)):
        raise ValueError("This must be a whole number, from 1 to 999999999.")
    return int(answer)


def _fail_action(answer: str) -> str:
    if answer.upper() not in Placement.__members__:
        raise ValueError("This must be APPEND, PREPEND or REPLACE.")
    return answer.upper()
