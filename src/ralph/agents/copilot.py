"""GitHub Copilot CLI: `copilot -p PROMPT`, as its help describes it; it prints text."""

from ralph.agents.kinds import Launch, Request, Tells, no_choices, no_file, prompted

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
    flags = (*request.flags, *request.model_by("--model"))
    argv = (*request.command, *flags, *(() if request.tools else _NO_TOOLS), "--silent")
    return prompted(request, argv, "text", "-p")


choices = no_choices
