"""`ralph prd`: stories that must survive a fresh review, from the plan to the archive (R)."""

import json
import os

import click

from ralph.cli.lazy import LazyGroup
from ralph.cli.params import completed_by, current_directory, in_json, in_project, option
from ralph.loops.stories import archive_folder, init_folder
from ralph.loops.stories.folder import RALPH_DIR, analytics_of, found_folder
from ralph.text.redact import redact

_COMMANDS = {  # the module, the name in it, and a line about it
    "init": ("ralph.cli.prd.group", "init", "Create ralph/ with its templates."),
    "check": ("ralph.cli.prd.check", "check", "Say what is wrong with the stories."),
    "run": ("ralph.cli.prd.run", "run", "Work through the stories until all are approved."),
    "stats": ("ralph.cli.prd.group", "stats", "Show how useful the reviews were."),
    "archive": ("ralph.cli.prd.group", "archive", "Archive the finished stories and start afresh."),
}
ralph_dir = option(
    "--ralph-dir PATH",
    "The folder of the stories.",
    default=f"./{RALPH_DIR}",
    show_default=True,
    shell_complete=completed_by("directories"),
)


@click.group(
    cls=LazyGroup,
    lazy=lambda: _COMMANDS,
    epilog="""\b
Examples:
  ralph prd init --name login       ralph/ with its templates
  ralph prd check                   what is wrong with the stories
  ralph prd run -n 30               until every story is approved
  ralph prd stats                   how useful the reviews were
  ralph prd archive                 archive it and start afresh
""",
)
@in_project
def prd() -> None:
    """Work through stories that must survive a fresh review.

    ralph/prd.md says what is wanted, ralph/tasks.json has the stories. A story is done when a
    turn that did not write its code has approved it; the host sees to that, not the prompt.
    """


@click.command(help=init_folder.ABOUT, epilog=init_folder.EPILOG)
@option("--name NAME", init_folder.NAME_HELP)
@in_json
@in_project
def init(*, name: str | None, in_json: bool) -> None:
    click.echo(init_folder.initialized(current_directory(), os.environ, name, in_json=in_json))


@click.command(help=archive_folder.ABOUT, epilog=archive_folder.EPILOG)
@ralph_dir
@option("--label LABEL", archive_folder.LABEL_HELP)
@in_json
@in_project
def archive(*, ralph_dir: str, label: str | None, in_json: bool) -> None:
    click.echo(archive_folder.archived(ralph_dir, os.environ, label, in_json=in_json))


@click.command(
    epilog="""\b
Examples:
  ralph prd stats
  ralph prd stats --json | jq .average
\b
Reviews are counted in tasks.json; what they caught is in the journals of the
runs here since the last archive. Exit codes: 0, or 2 without a list.
"""
)
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
