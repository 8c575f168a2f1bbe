"""`ralph prd stats`: what the reviews of the stories were worth."""

import json
import os

import click

from ralph.cli.params import in_project
from ralph.cli.prd.common import in_json, ralph_dir
from ralph.loops.stories.folder import analytics_of, found_folder
from ralph.text.redact import redact

_EPILOG = """\b
Examples:
  ralph prd stats
  ralph prd stats --json | jq .average
\b
Reviews are counted in tasks.json; what they caught is in the journals of the
runs here since the last archive. Exit codes: 0, or 2 without a list.
"""


@click.command(epilog=_EPILOG)
@ralph_dir
@in_json
@in_project
def stats(*, ralph_dir: str, in_json: bool) -> None:
    """Show the reviews of each story: how many, how they ended, what they caught."""
    from ralph.loops.stories.review_report import stats_dict, stats_lines

    found = analytics_of(found_folder(ralph_dir), os.environ)
    if in_json:
        click.echo(json.dumps(stats_dict(found)))
    elif not found.stories:
        click.echo("There are no stories yet. Write some: ralph/tasks.json, or /ralph:ralph-plan")
    else:
        click.echo("\n".join(stats_lines(found, redact)))
