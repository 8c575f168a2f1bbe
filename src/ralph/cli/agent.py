"""`ralph agent`: Ralph's own agent, for one turn (B §Actions)."""

import os
import sys

import click

from ralph.cli.base import command
from ralph.cli.params import at_least, completed_by, current_directory, in_directory, option
from ralph.errors import ConfigError


@command()
@click.argument("words", required=False, metavar="[PROMPT]")
@option("-p, --prompt TEXT", "What to do.  [default: standard input]")
@option(
    "--model MODEL",
    "anthropic:NAME, openai:NAME, openai-chat:NAME or google:NAME.  [default: the usual model of "
    "the first service whose key is in the environment]",
    shell_complete=completed_by("models"),
)
@option(
    "--output [json|text]",
    "JSON objects, one a line, or the agent's words alone.  [default: text on a terminal]",
)
@option("--tools/--no-tools", "Let it act, or only answer.  [default: act]")
@option(
    "--guard/--no-guard",
    "Check commands before they are run.  [default: guard, unless RALPH_GUARD=0]",
)
@option("--max-steps N", "Calls of the model at most.", type=at_least(1), default="250")
@option(
    "--context TOKENS",
    "What the model can read; the talk is shortened before.  [default: as the service has it]",
    type=at_least(1000),
)
@option(
    "--max-tokens N",
    "Length of one answer at most.  [default: as the service has it; 32000 of anthropic]",
    type=at_least(1),
)
@in_directory
def agent(
    words: str | None,
    *,
    prompt: str | None,
    model: str | None,
    output: str | None,
    tools: bool | None,
    guard: bool | None,
    max_steps: int,
    context: int | None,
    max_tokens: int | None,
) -> int:
    """Let a model work in this directory, with nothing but its key.

    It can read, write, bash, git and eval, and works until it has nothing more to do. This is one
    turn, and its word is a claim: `ralph run --agent builtin` and `ralph tasks run` prove it.

    Keys: ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY. Another place that speaks the same:
    ANTHROPIC_BASE_URL, OPENAI_BASE_URL, GOOGLE_GEMINI_BASE_URL, which may need no key.

    Examples:
      ralph agent "Fix the failing test" --model anthropic:claude-sonnet-5-5
      OPENAI_BASE_URL=http://localhost:11434/v1 ralph agent --model openai-chat:qwen3 -p "Add docs"
      ralph run "Fix the failing test" --agent builtin:openai:gpt-6.1-sol

    Exit codes: 0 it has ended by itself, 1 it could not go on, 2 usage or no
    key, 130 interrupted.
    """
    from ralph.agents.own import own_model
    from ralph.agents.providers import KEYS
    from ralph.own_agent.program import Wishes, lines_to, words_to, work
    from ralph.own_agent.service import service_of
    from ralph.processes.secrecy import forget

    if sys.stdout is None:
        raise ConfigError("stdout is closed", "Send the output somewhere, if only to /dev/null.")
    said, environ = _prompt(words, prompt), dict(os.environ)
    service = service_of(own_model(model, environ), environ)
    forget(KEYS)  # what the model runs shall not find them
    people = sys.stderr if sys.stdout.isatty() else None
    is_text = output == "text" if output else people is not None
    tell = words_to(sys.stdout, people) if is_text else lines_to(sys.stdout)
    is_guarded = environ.get("RALPH_GUARD") != "0" if guard is None else guard
    wishes = Wishes(tools is not False, is_guarded, max_steps, context, max_tokens)
    here = os.path.realpath(current_directory())
    return work(said, service, here, environ, wishes=wishes, tell=tell)


def _prompt(words: str | None, given: str | None) -> str:
    if words is not None and given is not None:
        raise click.UsageError("PROMPT and -p exclude each other: give one of them.")
    given = words if given is None else given
    if given is None:
        if sys.stdin is None or sys.stdin.isatty():
            raise click.UsageError("there is no prompt: give -p TEXT, or pipe one in.")
        given = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not given.strip():
        raise click.UsageError("the prompt is empty.")
    return given
