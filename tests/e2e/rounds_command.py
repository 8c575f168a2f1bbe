"""`ralph rounds`, as `ralph/cli/rounds.py` would have it."""

import click

from ralph.cli.params import (
    agent_patience,
    in_directory,
    json_lines,
    option,
    run_display,
    run_loop,
    which_agent,
)


@click.command()
@click.argument("count", type=int)
@option("-p, --prompt TEXT", "The prompt of every turn.", required=True)
@which_agent()
@agent_patience
@run_display
@json_lines
@in_directory
def rounds(**flags: object) -> int:
    """Take COUNT turns at one prompt."""
    return run_loop("rounds", flags)
