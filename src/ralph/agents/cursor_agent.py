"""Cursor's CLI: `cursor-agent -p`, as it is documented; its text mode prints the last answer."""

from ralph.agents.kinds import (
    Launch,
    Request,
    Tells,
    as_bytes,
    must_fit,
    no_choices,
    no_file,
    without,
)

PROBE: tuple[str, ...] = ()
MODEL_FLAGS: tuple[str, ...] = ("-m", "--model")
REPORTS = ""
PERMISSION_HINT = 'Add "--force" to agent.flags (and "--trust" if it does not trust the folder).'
LOGIN_HINT = "Log in: cursor-agent login; or set CURSOR_API_KEY."
TELLS: frozenset[Tells] = frozenset()
TESTED = False
BARS_TOOLS = False  # without these it is documented to propose changes only

_BARE_GRANTS = ("-f", "--force", "--yolo")

_TOO_LONG = 'Shorten it, or try agent.promptVia "stdin" if your cursor-agent reads that.'


def launch(request: Request) -> Launch:
    """The prompt is the last argument; that it can be piped is not documented."""
    no_file(request, "cursor-agent")
    flags = request.flags if request.tools else without(request.flags, bare=_BARE_GRANTS)
    argv = (*request.command, "-p", *flags, *request.model_by("--model"), "--output-format", "text")
    if request.prompt_via == "stdin":
        return Launch(argv, "text", as_bytes(request.prompt))
    must_fit(request.prompt, _TOO_LONG)
    return Launch((*argv, "--", request.prompt), "text")


choices = no_choices
