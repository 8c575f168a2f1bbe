"""`ralph rounds`, as `ralph/cli/rounds.py` would have it."""

import click

from ralph.cli.params import (
    agent_output,
    agent_patience,
    in_directory,
    json_lines,
    looks,
    run_loop,
    which_agent,
)


@click.command()
@click.argument("count", type=int)
@click.option("-p", "--prompt", metavar="TEXT", required=True)
@which_agent
@agent_patience
@agent_output
@click.option("-V", "--verbose", is_flag=True)
@looks
@json_lines
@in_directory
def rounds(**flags: object) -> int:
    """Take COUNT turns at one prompt."""
    return run_loop("rounds", flags)
