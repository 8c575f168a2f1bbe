"""Gemini: `gemini -p PROMPT`."""

from ralph.agents.kinds import (
    Choice,
    Launch,
    Request,
    Tells,
    as_bytes,
    by_stdin,
    no_file,
    without,
)
from ralph.kernel.value import replace

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
    if not request.tools:
        request = _without_tools(request)
    argv = [*request.command, *request.flags]
    if request.model is not None:
        argv += ["-m", request.model]
    argv += ["--output-format", "stream-json" if request.stream else "text"]
    dialect = "gemini" if request.stream else "text"
    if by_stdin(request):
        return Launch(tuple(argv), dialect, as_bytes(request.prompt))
    return Launch((*argv, "-p", request.prompt), dialect)


def _without_tools(request: Request) -> Request:
    """`-y` in a command may be npx's."""
    kept = without(request.flags, _GRANTS, _BARE_GRANTS, _GRANTED)
    command = without(request.command, bare=_BARE_GRANTS[:1])
    return replace(request, command=command, flags=(*kept, *_NO_TOOLS))


def choices(help_text: str | None) -> tuple[Choice, ...]:
    """None: asking it costs two seconds and would change nothing."""
    return ()
