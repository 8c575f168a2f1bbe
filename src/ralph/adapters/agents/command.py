"""A command given as it is, by `ralph supervise -- COMMAND...`."""

from ralph.adapters.agents import Choice, Launch, Request, Tells, must_fit

PROBE: tuple[str, ...] = ()
MODEL_FLAGS: tuple[str, ...] = ()
REPORTS = ""
PERMISSION_HINT = ""
TELLS: frozenset[Tells] = frozenset()
TESTED = True

_TOO_LONG = "Shorten it, and let the command read the rest from a file in $TASK_FOLDER."


def launch(request: Request) -> Launch:
    """The prompt is the last argument, if there is one."""
    if not request.prompt:
        return Launch(request.command, "text")
    must_fit(request.prompt, _TOO_LONG)
    return Launch((*request.command, request.prompt), "text")


def choices(help_text: str | None) -> tuple[Choice, ...]:
    """Nothing is known of its flags."""
    return ()
