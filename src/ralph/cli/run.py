"""`ralph run`: the prompt loop (H)."""

import click

from ralph.cli.params import (
    agent_output,
    agent_patience,
    completed_by,
    in_directory,
    json_lines,
    looks,
    run_limits,
    run_loop,
    run_sandbox,
    which_agent,
    whole_number,
)

_EPILOG = """\b
Examples:
  ralph run -p "Make the tests pass. Say <response>DONE</response> when they do."
  ralph run -f PROMPT.md -m 30 --max-time 8h --max-cost 20
  ralph run -p "Fix the lint errors" --agent codex --tell-completion
  ralph run -f PROMPT.md --sandbox --network pypi.org,files.pythonhosted.org
  ralph run -f PROMPT.md --dry-run
\b
Exit codes: 0 completed, 1 limit, 2 configuration, 3 a person is needed,
4 stalled, 5 the agent keeps failing, 130 interrupted.
"""


@click.command(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-p", "--prompt", metavar="TEXT", help="The prompt to send to the agent.")
@click.option(
    "-f",
    "--prompt-file",
    metavar="FILE",
    shell_complete=completed_by("files"),
    help="Read it from FILE, before each turn; - is stdin.",
)
@click.option("-m", "--maximum-iterations", metavar="N", type=whole_number, help="Most iterations.")
@click.option("-c", "--completion-response", metavar="TEXT", help="What the agent says when done.")
@agent_output
@click.option("-V", "--verbose", is_flag=True, help="Say more about what happens.")
@which_agent
@run_limits
@agent_patience
@run_sandbox
@click.option(
    "--tell-completion/--no-tell-completion",
    default=None,
    help="Add to the prompt how to say that it is done.",
)
@looks
@click.option("--dry-run", is_flag=True, help="Print the prompt and the command, run nothing.")
@json_lines
@in_directory
def run(**flags: object) -> int:
    """Run an agent in a loop until its work is done and proven.

    The agent works; the guardrails of .ralph/settings.json check; what they find goes into the
    next prompt. Only when the agent says <response>DONE</response> and every guardrail passes is
    the work believed to be done.
    """
    return run_loop("prompt", flags)
