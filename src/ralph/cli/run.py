"""`ralph run`: the prompt loop (H)."""

from ralph.cli.base import command
from ralph.cli.params import in_directory, option, run_loop, run_options


@command()
@option("-p, --prompt TEXT", "The prompt to send to the agent.")
@option("-f, --prompt-file FILE", "Read the prompt from FILE before each turn; - is stdin.")
@option("-m, --maximum-iterations N", "Maximum number of iterations.")
@option("-c, --completion-response TEXT", "Text that the agent says when it is done.")
@option(
    "--tell-completion/--no-tell-completion",
    "Tell the agent how to finish, unless the prompt contains <response>.  [default: tell]",
)
@option(
    "--until-green/--no-until-green",
    "Complete as soon as every guardrail passes; the agent need not say so.",
)
@run_options()
@in_directory
def run(**flags: object) -> int:
    """Run an agent in a loop until its work is done and proven.

    The agent works; the guardrails of .ralph/settings.json check; what they find goes into the
    next prompt. Only when the agent says <response>DONE</response>, which Ralph tells it to, and
    every guardrail passes is the work believed to be done.

    Examples:
      ralph run -p "Make the tests pass" --until-green
      ralph run -f PROMPT.md -m 30 --max-time 8h --max-cost 20
      ralph run -p "Add a --version flag, with a test" --agent codex
      ralph run -f PROMPT.md --sandbox --network pypi.org,files.pythonhosted.org
      ralph run -f PROMPT.md --dry-run

    Exit codes: 0 completed, 1 limit, 2 configuration, 3 a person is needed,
    4 stalled, 5 the agent keeps failing, 130 interrupted.
    """
    return run_loop("prompt", flags)
