"""GitHub Copilot CLI: `copilot -p PROMPT`, as its help describes it; it prints text."""

from ralph.adapters.agents import Choice, Launch, Request, Tells, as_bytes, fits_argument, no_file

PROBE: tuple[str, ...] = ()
MODEL_FLAGS: tuple[str, ...] = ("--model",)
REPORTS = ""
PERMISSION_HINT = 'Add "--allow-all-tools" to agent.flags: without a terminal copilot needs it.'
TELLS: frozenset[Tells] = frozenset()
TESTED = False


def launch(request: Request) -> Launch:
    """`--silent` leaves the agent's words and nothing else. It reads a prompt that is piped."""
    no_file(request, "copilot")
    argv = [*request.command, *request.flags]
    if request.model is not None:
        argv += ["--model", request.model]
    argv += ["--silent"]
    if _by_stdin(request):
        return Launch(tuple(argv), "text", as_bytes(request.prompt))
    return Launch((*argv, "-p", request.prompt), "text")


def choices(help_text: str | None) -> tuple[Choice, ...]:
    """None."""
    return ()


def _by_stdin(request: Request) -> bool:
    if request.prompt_via is not None:
        return request.prompt_via == "stdin"
    return request.prompt.startswith("-") or not fits_argument(request.prompt)
