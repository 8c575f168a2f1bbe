"""goose: `goose run`, as it is documented, the prompt on standard input; it prints text."""

from ralph.agents.kinds import Launch, Request, Tells, as_bytes, must_fit, no_choices, no_file

PROBE: tuple[str, ...] = ()
MODEL_FLAGS: tuple[str, ...] = ("--model",)
REPORTS = ""
PERMISSION_HINT = 'Set GOOSE_MODE to "auto" under agent.env.set.'
LOGIN_HINT = "Choose a provider and log in: goose configure"
TELLS: frozenset[Tells] = frozenset()
TESTED = False
BARS_TOOLS = True

_NO_TOOLS = {"GOOSE_MODE": "chat"}

_TOO_LONG = "Leave agent.promptVia out: goose reads standard input."


def launch(request: Request) -> Launch:
    """`--quiet` leaves the agent's words; `--no-session` because every turn is a new one."""
    no_file(request, "goose")
    flags = (*request.flags, *request.model_by("--model"), "--quiet", "--no-session")
    argv, env = (*request.command, "run", *flags), {} if request.tools else _NO_TOOLS
    if request.prompt_via == "arg":
        must_fit(request.prompt, _TOO_LONG)
        return Launch((*argv, "-t", request.prompt), "text", env=env)
    return Launch((*argv, "-i", "-"), "text", as_bytes(request.prompt), env=env)


choices = no_choices
