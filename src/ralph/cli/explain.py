"""`ralph explain`: shows the settings in force, where each came from, and the rules in order."""

import json
import os
import shlex

import click

from ralph.cli.base import command
from ralph.cli.params import current_directory, option, the_usual
from ralph.errors import ConfigError
from ralph.kernel.case import rule_name
from ralph.kernel.ports import Policy
from ralph.settings.load import Loaded, load


@command()
@option("--schema", "Print the JSON Schema of the settings files.")
@the_usual
def explain(*, schema: bool, in_json: bool) -> None:
    """Show the settings in force, the file each came from, and the rules in order.

    The first rule of a ladder that answers wins, so its order is the precedence.

    Examples:
      ralph explain                  settings with their origin, and all ladders
      ralph explain --schema         every setting there is, as JSON Schema
      ralph explain --json -C DIR    for programs, about another workspace
    """
    from ralph.runner.showing.ladders import ladders, words
    from ralph.settings.explain import as_dict, json_schema, lines

    if schema:
        click.echo(json.dumps(json_schema(), indent=2))
        return
    loaded = load(current_directory())
    agent = _agent(loaded.settings.agent.command)
    if in_json:
        named = {
            policy.name: {name: list(map(rule_name, ladder)) for name, ladder in ladders(policy)}
            for policy in _policies(loaded)
        }
        shown = {**as_dict(loaded), "agent": agent, "ladders": named}
        click.echo(json.dumps(shown, indent=2))
        return
    click.echo(f"Settings: {' and '.join(loaded.files) or 'no file, all defaults'}\n")
    for line in lines(loaded):
        click.echo(f"  {line}")
    click.echo(f"\nAgent: {agent}")
    for policy in _policies(loaded):
        click.echo(f"\nProfile {policy.name}: the first rule that answers wins")
        for boundary, ladder in ladders(policy):
            click.echo(f"  {boundary}")
            for number, rule in enumerate(ladder, 1):
                click.echo(f"    {number:2}. {rule_name(rule)}\n        {words(rule)}")


def _agent(command: str | tuple[str, ...] | None) -> str:
    """The agent that a run would take here, and how it was found."""
    from ralph.agents.kinds import find_command
    from ralph.agents.providers import OWN

    try:
        words = find_command(command, os.environ)
    except ConfigError as error:
        return f"none ({error.message})"
    if command is not None:
        return shlex.join(words)
    why = "no other is on PATH, and its key is set" if words[0] == OWN else "the first on PATH"
    return f"{shlex.join(words)} ({why})"


def _policies(loaded: Loaded) -> tuple[Policy, ...]:
    """The policies of all loops, as the settings in force make them."""
    from ralph.loops.session.policy import session
    from ralph.runner.showing.ladders import policies

    return (*policies(loaded), session())
