"""`ralph prd`: stories that must survive a fresh review, from the plan to the archive (R)."""

import json
import os

import click

from ralph.cli.base import LazyGroup, command
from ralph.cli.params import (
    a_directory,
    at_least,
    current_directory,
    in_project,
    option,
    run_loop,
    run_options,
    usual_in_project,
)
from ralph.loops.stories import archive as archiving
from ralph.loops.stories import init_folder
from ralph.loops.stories.folder import RALPH_DIR, analytics_of, found_folder
from ralph.review.law import DEFAULT_CAP

_COMMANDS = {  # the module, the name in it, and a line about it
    "init": ("ralph.cli.prd.group", "init", "Create ralph/ with its templates."),
    "check": ("ralph.cli.prd.check", "check", "Say what is wrong with the stories."),
    "run": ("ralph.cli.prd.group", "run", "Work through the stories until all are approved."),
    "stats": ("ralph.cli.prd.group", "stats", "Show how useful the reviews were."),
    "archive": ("ralph.cli.prd.group", "archive", "Archive the finished stories and start afresh."),
}
ralph_dir = option(
    "--ralph-dir PATH",
    "The folder of the stories.",
    default=f"./{RALPH_DIR}",
    shell_complete=a_directory,
)


@click.group(cls=LazyGroup, lazy=lambda: _COMMANDS)
@in_project
def prd() -> None:
    """Work through stories that must survive a fresh review.

    ralph/prd.md says what is wanted, ralph/tasks.json has the stories. A story is done when a
    turn that did not write its code has approved it; the host sees to that, not the prompt.

    Examples:
      ralph prd init --name login       ralph/ with its templates
      ralph prd check                   what is wrong with the stories
      ralph prd run -n 30               until every story is approved
      ralph prd stats                   how useful the reviews were
      ralph prd archive                 archive it and start afresh
    """


@command(help=init_folder.HELP)
@option("--name NAME", init_folder.NAME_HELP)
@usual_in_project
def init(*, name: str | None, in_json: bool) -> None:
    click.echo(init_folder.initialized(current_directory(), os.environ, name, in_json=in_json))


@command(help=archiving.HELP)
@ralph_dir
@option("--label LABEL", archiving.LABEL_HELP)
@usual_in_project
def archive(*, ralph_dir: str, label: str | None, in_json: bool) -> None:
    click.echo(archiving.archived(ralph_dir, os.environ, label, in_json=in_json))


@command()
@ralph_dir
@usual_in_project
def stats(*, ralph_dir: str, in_json: bool) -> None:
    """Show the reviews of each story: how many, how they ended, what they caught.

    Examples:
      ralph prd stats
      ralph prd stats --json | jq .average

    Reviews are counted in tasks.json; what they caught is in the journals of the
    runs here since the last archive. Exit codes: 0, or 2 without a list.
    """
    from ralph.loops.stories.review_report import stats_dict, stats_lines

    found = analytics_of(found_folder(ralph_dir), os.environ)
    if in_json:
        click.echo(json.dumps(stats_dict(found)))
    elif not found.stories:
        click.echo("There are no stories yet. Write some: ralph/tasks.json, or /ralph:ralph-plan")
    else:
        click.echo("\n".join(stats_lines(found)))


@command()
@option("-n, --max-iterations N", "Maximum number of iterations.  [default: 15]")
@option("--ralph-dir DIR", "The folder of prd.md and tasks.json.  [default: ./ralph]")
@option("--skip-review", "No reviews: a story passes when it is done.")
@option(
    "--review-cap N",
    "Maximum number of reviews of a story; then it is approved, and you are told.",
    type=at_least(1),
    default=str(DEFAULT_CAP),
)
@option("--review-agent COMMAND", "Another agent for reviews.  [default: the same]")
@option("--review-model NAME", "Another model for reviews.  [default: the same]")
@run_options("-m, --model NAME", sandbox="auto")
@in_project
def run(**flags: object) -> int:
    """Work through the stories of ralph/tasks.json; each must survive a review by a fresh session.

    One turn implements a story, the next one reviews it, another fixes what the review found. Only
    a review can approve a story: anything else that an agent writes into the list is reverted. The
    run is complete when every story is approved and everything is committed.

    Examples:
      ralph prd run                            each turn in a sandbox, 15 at most
      ralph prd run -n 40 --max-cost 20
      ralph prd run --review-agent codex       another vendor reviews
      ralph prd run --review-model opus        another model does
      ralph prd run --skip-review --no-sandbox
      ralph prd run --dry-run                  the first prompt and command

    Exit codes: 0 every story is approved, 1 a limit, 2 configuration (no stories,
    a broken list), 3 a person is needed, 4 stalled, 5 the agent keeps failing,
    130 interrupted.
    """
    return run_loop("stories", flags)
