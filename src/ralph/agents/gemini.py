"""Gemini: `gemini -p PROMPT`."""

from ralph.agents.kinds import Launch, Request, Tells, no_choices, no_file, prompted, without

PROBE: tuple[str, ...] = ()
MODEL_FLAGS: tuple[str, ...] = ("-m", "--model")
REPORTS = "tokens"
PERMISSION_HINT = (
    'Add "--yolo" to agent.flags (and "--skip-trust" if it does not trust the folder).'
)
LOGIN_HINT = "Log in: start gemini and choose how; or set GEMINI_API_KEY."
TELLS = frozenset(Tells)
TESTED = True
BARS_TOOLS = True

# Without a terminal it drops every tool that would need approval, except those of a server that is
# trusted; `none` is a server that nobody has. Older than its stream, so it need not be asked.
_NO_TOOLS = ("--approval-mode=default", "--allowed-mcp-server-names=none")
_BARE_GRANTS = ("--yolo", "-y")
_GRANTS = ("--approval-mode",)
_GRANTED = ("--allowed-tools", "--allowed-mcp-server-names", "--policy")


def launch(request: Request) -> Launch:
    """The prompt is the last argument; one that cannot be goes by standard input, which makes
    gemini work without a terminal as `-p` does."""
    no_file(request, "gemini")
    command, flags = request.command, request.flags
    if not request.tools:
        command = without(command, bare=_BARE_GRANTS[:1])  # `-y` in a command may be npx's
        flags = (*without(flags, _GRANTS, _BARE_GRANTS, _GRANTED), *_NO_TOOLS)
    output, dialect = ("stream-json", "gemini") if request.stream else ("text", "text")
    argv = (*command, *flags, *request.model_by("-m"), "--output-format", output)
    return prompted(request, argv, dialect, "-p")


choices = no_choices
