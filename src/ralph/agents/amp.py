"""Amp: `amp … -x PROMPT`, with `-x` and the prompt together at the end."""

from ralph.agents.kinds import (
    Launch,
    Request,
    Tells,
    no_choices,
    no_file,
    no_model,
    prompted,
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
    flags = given if request.tools else without(given, bare=(_GRANT,))
    argv = (*request.command, *flags, "-x")
    return prompted(request, argv, "amp" if request.stream else "text")


choices = no_choices
