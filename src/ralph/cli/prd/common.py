"""Options that the commands of `ralph prd` have in common."""

import click

from ralph.cli.params import completed_by
from ralph.loops.stories.folder import RALPH_DIR

in_json = click.option("--json", "in_json", is_flag=True, help="Print one JSON object.")
ralph_dir = click.option(
    "--ralph-dir",
    metavar="PATH",
    default=f"./{RALPH_DIR}",
    show_default=True,
    shell_complete=completed_by("directories"),
    help="Where the stories are.",
)
