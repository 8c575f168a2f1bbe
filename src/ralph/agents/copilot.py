"""GitHub Copilot CLI: `copilot -p PROMPT`, as its help describes it; it prints text."""

from ralph.agents.kinds import Choice, Launch, Request, Tells, as_bytes, by_stdin, no_file

PROBE: tuple[str, ...] = ()
MODEL_FLAGS: tuple[str, ...] = ("--model",)
REPORTS = ""
PERMISSION_HINT = 'Add "--allow-all-tools" to agent.flags: without a terminal copilot needs it.'
LOGIN_HINT = "Log in: start copilot and type /login; or set GH_TOKEN."
TELLS: frozenset[Tells] = frozenset()
TESTED = False
BARS_TOOLS = True

_NO_TOOLS = ("--deny-tool=shell", "--deny-tool=write")  # which beats every flag that allows


def launch(request: Request) -> Launch:
    """`--silent` leaves the agent's words and nothing else. It reads a prompt that is piped."""
    no_file(request, "copilot")
    argv = [*request.command, *request.flags]
    if request.model is not None:
        argv += ["--model", request.model]
    argv += [*(() if request.tools else _NO_TOOLS), "--silent"]
    if by_stdin(request):
        return Launch(tuple(argv), "text", as_bytes(request.prompt))
    return Launch((*argv, "-p", request.prompt), "text")


def choices(help_text: str | None) -> tuple[Choice, ...]:
    """None."""
    return ()
