"""`ralph prd run`: stories that must survive a fresh review (R)."""

import click

from ralph.cli.params import (
    agent_patience,
    at_least,
    dry_run,
    in_project,
    json_lines,
    option,
    run_display,
    run_limits,
    run_loop,
    run_sandbox,
    which_agent,
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


@click.command(epilog=_EPILOG)
@option("-n, --max-iterations N", "Maximum number of iterations.  [default: 15]")
@option("--ralph-dir DIR", "The folder of prd.md and tasks.json.  [default: ./ralph]")
@which_agent("-m, --model NAME")
@option("--skip-review", "No reviews: a story passes when it is done.")
@option(
    "--review-cap N",
    "Maximum number of reviews of a story; then it is approved, and you are told.",
    type=at_least(1),
    default=str(DEFAULT_CAP),
    show_default=True,
)
@option("--review-agent COMMAND", "Another agent for reviews.")
@option("--review-model NAME", "Another model for reviews.")
@run_limits
@agent_patience
@run_sandbox
@run_display
@dry_run
@json_lines
@in_project
def run(**flags: object) -> int:
    """Work through the stories of ralph/tasks.json; each must survive a review by a fresh session.

    One turn implements a story, the next one reviews it, another fixes what the review found. Only
    a review can approve a story: anything else that an agent writes into the list is reverted. The
    run is complete when every story is approved and everything is committed.
    """
    return run_loop("stories", flags)
