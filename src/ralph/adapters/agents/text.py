"""Any other command: it gets the prompt and prints text."""

from ralph.adapters.agents import (
    ARGUMENT_LIMIT,
    Launch,
    Request,
    as_bytes,
    fits_argument,
    no_model,
)
from ralph.errors import ConfigError

PROBE: tuple[str, ...] = ()
REPORTS = ""
PERMISSION_HINT = ""


def launch(request: Request) -> Launch:
    """The prompt is the last argument, unless `agent.promptVia` says otherwise."""
    no_model(request, request.command[0])
    argv = (*request.command, *request.flags)
    if request.prompt_via == "stdin":
        return Launch(argv, "text", as_bytes(request.prompt))
    if request.prompt_via == "file":
        return Launch((*argv, request.prompt_file), "text")
    if not fits_argument(request.prompt):
        raise ConfigError(
            f"the prompt has {len(as_bytes(request.prompt))} bytes; one argument holds at most "
            f"{ARGUMENT_LIMIT}",
            'Set agent.promptVia to "stdin" or "file", whichever your agent reads.',
        )
    return Launch((*argv, request.prompt), "text")
