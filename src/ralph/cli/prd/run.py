"""`ralph prd run`: stories that must survive a fresh review (R)."""

import click

from ralph.cli.params import (
    agent_output,
    agent_patience,
    completed_by,
    in_project,
    json_lines,
    looks,
    positive,
    run_limits,
    run_loop,
    run_sandbox,
    whole_number,
)
from ralph.review.law import DEFAULT_CAP

_EPILOG = """\b
Examples:
  ralph prd run                            each turn in a sandbox, 15 at most
  ralph prd run -n 40 --max-cost 20
  ralph prd run --review-agent codex       another vendor reviews
  ralph prd run --review-model opus        another model does
  ralph prd run --skip-review --no-sandbox
  ralph prd run --dry-run                  the first prompt and command
\b
Exit codes: 0 every story is approved, 1 a limit, 2 configuration (no stories,
a broken list), 3 a person is needed, 4 stalled, 5 the agent keeps failing,
130 interrupted.
"""


@click.command(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-n", "--max-iterations", metavar="N", type=whole_number, help="Most iterations.  [default: 15]"
)
@click.option(
    "--ralph-dir",
    metavar="DIR",
    shell_complete=completed_by("directories"),
    help="The folder of prd.md and tasks.json.  [default: ./ralph]",
)
@click.option(
    "--agent",
    metavar="COMMAND",
    shell_complete=completed_by("agents"),
    help="The agent: claude, codex, amp, gemini, opencode, any command.",
)
@click.option(
    "-m",
    "--model",
    metavar="NAME",
    shell_complete=completed_by("models"),
    help="The model the agent shall use.",
)
@click.option("--skip-review", is_flag=True, help="No reviews: a story passes when it is done.")
@click.option(
    "--review-cap",
    metavar="N",
    type=positive(whole_number),
    default=str(DEFAULT_CAP),
    show_default=True,
    help="Most reviews of a story; then it is approved, and you are told.",
)
@click.option(
    "--review-agent",
    metavar="COMMAND",
    shell_complete=completed_by("agents"),
    help="Another agent for reviews.",
)
@click.option("--review-model", metavar="NAME", help="Another model for reviews.")
@run_limits
@agent_patience
@run_sandbox
@agent_output
@click.option("-V", "--verbose", is_flag=True, help="Say more about what happens.")
@looks
@click.option("--dry-run", is_flag=True, help="Print the prompt and the command, run nothing.")
@json_lines
@in_project
def run(**flags: object) -> int:
    """Work through the stories of ralph/tasks.json; each must survive a review by a fresh session.

    One turn implements a story, the next one reviews it, another mends what the review found. Only
    a review can approve a story: what an agent writes into the list beyond that is put back. The
    run is complete when every story is approved and everything is committed.
    """
    return run_loop("stories", flags)
