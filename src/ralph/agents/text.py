"""Any other command: it gets the prompt and prints text."""

from ralph.agents.kinds import Launch, Request, Tells, as_bytes, must_fit, no_choices, no_model

PROBE: tuple[str, ...] = ()
MODEL_FLAGS: tuple[str, ...] = ()
REPORTS = ""
PERMISSION_HINT = ""
LOGIN_HINT = "Log in with the agent's own command, then run again."
TELLS: frozenset[Tells] = frozenset()
TESTED = True
BARS_TOOLS = False

_TOO_LONG = 'Set agent.promptVia to "stdin" or "file", whichever your agent reads.'


def launch(request: Request) -> Launch:
    """The prompt is the last argument, unless `agent.promptVia` says otherwise. A supervised
    command may need none."""
    no_model(request, request.command[0])
    argv = (*request.command, *request.flags)
    if not request.prompt:
        return Launch(argv, "text")
    if request.prompt_via == "stdin":
        return Launch(argv, "text", as_bytes(request.prompt))
    if request.prompt_via == "file":
        return Launch((*argv, request.prompt_file), "text")
    must_fit(request.prompt, _TOO_LONG)
    return Launch((*argv, request.prompt), "text")


choices = no_choices
