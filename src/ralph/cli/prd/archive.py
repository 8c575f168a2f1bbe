"""`ralph prd archive`: put the stories away with what they came to, and begin anew (R §10)."""

import os

import click

from ralph.cli.params import in_project
from ralph.cli.prd.common import in_json, ralph_dir
from ralph.loops.stories.archive_folder import ABOUT, EPILOG, LABEL_HELP, archived


@click.command(help=ABOUT, epilog=EPILOG)
@ralph_dir
@click.option("--label", metavar="LABEL", help=LABEL_HELP)
@in_json
@in_project
def archive(*, ralph_dir: str, label: str | None, in_json: bool) -> None:
    """Put the stories away, and begin anew."""
    click.echo(archived(ralph_dir, os.environ, label, in_json=in_json))
