"""`ralph prd`: stories that must survive a fresh review, from the plan to the archive (R)."""

import click

from ralph.cli.lazy import LazyGroup
from ralph.cli.params import in_project
from ralph.kernel.verdict import Reason

_COMMANDS = {  # the module, the name in it, and a line about it
    "init": ("ralph.cli.prd.init", "init", "Make ralph/ with its templates."),
    "check": ("ralph.cli.prd.check", "check", "Say what is wrong with the stories."),
    "run": ("ralph.cli.prd.run", "run", "Work through the stories until all are approved."),
    "stats": ("ralph.cli.prd.stats", "stats", "Show what the reviews were worth."),
    "archive": ("ralph.cli.prd.archive", "archive", "Put what is done away, and begin anew."),
}


@click.group(
    cls=LazyGroup,
    lazy=lambda: _COMMANDS,
    invoke_without_command=True,
    epilog="""\b
Examples:
  ralph prd init --name login       ralph/ with its templates
  ralph prd check                   what is wrong with the stories
  ralph prd run -n 30               until every story is approved
  ralph prd stats                   what the reviews were worth
  ralph prd archive                 put it away, begin anew
""",
)
@click.pass_context
@in_project
def prd(context: click.Context) -> None:
    """Work through stories that must survive a fresh review.

    ralph/prd.md says what is wanted, ralph/tasks.json has the stories. A story is done when a
    turn that did not write its code has approved it; the host sees to that, not the prompt.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(Reason.CONFIG.exit_code)
