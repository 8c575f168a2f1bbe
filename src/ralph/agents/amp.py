"""Amp: `amp … -x PROMPT`, with `-x` and the prompt together at the end."""

from ralph.agents.kinds import (
    Choice,
    Launch,
    Request,
    Tells,
    as_bytes,
    by_stdin,
    no_file,
    no_model,
    without,
)

PROBE: tuple[str, ...] = ()
MODEL_FLAGS: tuple[str, ...] = ()
REPORTS = "tokens"
PERMISSION_HINT = 'Amp runs with --dangerously-allow-all; see "amp permissions".'
LOGIN_HINT = "Log in: amp login; or set AMP_API_KEY."
TELLS = frozenset({Tells.TOOLS, Tells.TODO})
TESTED = False
BARS_TOOLS = False  # its help names no such flag; without the one below, its own rules decide

_GRANT = "--dangerously-allow-all"


def launch(request: Request) -> Launch:
    """H §Amp Integration Details. A prompt that cannot be an argument goes by standard input."""
    no_model(request, "amp")
    no_file(request, "amp")
    output = ("--stream-json",) if request.stream else ()
    given = (*request.flags, *output, _GRANT)
    argv = (*request.command, *(given if request.tools else without(given, bare=(_GRANT,))), "-x")
    dialect = "amp" if request.stream else "text"
    if by_stdin(request):
        return Launch(argv, dialect, as_bytes(request.prompt))
    return Launch((*argv, request.prompt), dialect)


def choices(help_text: str | None) -> tuple[Choice, ...]:
    """Its flags are the same in every version."""
    return ()
