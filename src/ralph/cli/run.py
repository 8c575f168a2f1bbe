"""`ralph run`: the prompt loop (H)."""

import click

from ralph.cli.base import command, is_prompt
from ralph.cli.params import in_directory, option, run_loop, run_options


@command()
@click.argument("words", nargs=-1, metavar="[PROMPT]")
@option("-p, --prompt TEXT", "The prompt to send to the agent.")
@option("-f, --prompt-file FILE", "Read the prompt from FILE before each turn; - is stdin.")
@option(
    "-m, --max-iterations, --maximum-iterations N", "Maximum number of iterations.  [default: 10]"
)
@option(
    "-c, --completion-response TEXT",
    "Text that the agent says in <response> tags when it is done.  [default: DONE]",
)
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
def run(words: tuple[str, ...], **flags: object) -> int:
    """Run an agent in a loop until its work is done and proven.

    PROMPT, one argument in quotes, is short for -p PROMPT. Options override
    .ralph/settings.json; the defaults below are those without it.

    The agent works; the guardrails of .ralph/settings.json check; what they find goes into the
    next prompt. Only when the agent says <response>DONE</response>, which Ralph tells it to, and
    every guardrail passes is the work believed to be done.

    Examples:
      ralph run "Make the tests pass" --until-green
      ralph run "Fix the failing tests in src/date" -m 5
      ralph run -f PROMPT.md -m 30 --max-time 8h --max-cost 20
      ralph run -p "Add a --version flag, with a test" --agent codex
      ralph run -f PROMPT.md --sandbox --network pypi.org,files.pythonhosted.org
      ralph run -f PROMPT.md --dry-run

    Exit codes: 0 completed, 1 limit, 2 configuration, 3 a person is needed,
    4 stalled, 5 the agent keeps failing, 130 interrupted.
    """
    if words:
        flags["prompt"] = _prompt_of(words, flags["prompt"])
    return run_loop("prompt", flags)


def _prompt_of(words: tuple[str, ...], prompt: object) -> str:
    """The one argument that is a prompt; a single word is rather a slip of the finger."""
    if len(words) > 1 or not is_prompt(words[0]):
        others = [word for word in words if not is_prompt(word)] or [words[1]]
        raise click.UsageError(
            f"{others[0]!r} is unexpected: a prompt is one argument in quotes, "
            "ralph run 'what to do'."
        )
    if prompt is not None:
        raise click.UsageError("PROMPT and -p exclude each other: give one of them.")
    return words[0]
