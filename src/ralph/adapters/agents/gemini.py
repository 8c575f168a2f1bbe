"""Gemini: `gemini -p PROMPT`."""

from ralph.adapters.agents import Choice, Launch, Request, Tells, as_bytes, by_stdin, no_file

PROBE: tuple[str, ...] = ()
MODEL_FLAGS: tuple[str, ...] = ("-m", "--model")
REPORTS = "tokens"
PERMISSION_HINT = (
    'Add "--yolo" to agent.flags (and "--skip-trust" if it does not trust the folder).'
)
TELLS = frozenset(Tells)
TESTED = True


def launch(request: Request) -> Launch:
    """The prompt is the last argument; one that cannot be goes by standard input, which makes
    gemini work without a terminal as `-p` does."""
    no_file(request, "gemini")
    argv = [*request.command, *request.flags]
    if request.model is not None:
        argv += ["-m", request.model]
    argv += ["--output-format", "stream-json" if request.stream else "text"]
    dialect = "gemini" if request.stream else "text"
    if by_stdin(request):
        return Launch(tuple(argv), dialect, as_bytes(request.prompt))
    return Launch((*argv, "-p", request.prompt), dialect)


def choices(help_text: str | None) -> tuple[Choice, ...]:
    """None: asking it costs two seconds and would change nothing."""
    return ()
