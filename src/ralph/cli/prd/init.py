"""`ralph prd init`: `ralph/` with its templates (R §10)."""

import os

import click

from ralph.cli.params import current_directory, in_project
from ralph.cli.prd.common import in_json
from ralph.loops.stories.init_folder import ABOUT, EPILOG, NAME_HELP, initialized


@click.command(help=ABOUT, epilog=EPILOG)
@click.option("--name", metavar="NAME", help=NAME_HELP)
@in_json
@in_project
def init(*, name: str | None, in_json: bool) -> None:
    """Make ralph/ with its templates."""
    click.echo(initialized(current_directory(), os.environ, name, in_json=in_json))
