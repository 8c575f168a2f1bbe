"""opencode: `opencode run`, the prompt on standard input."""

from ralph.adapters.agents import Choice, Launch, Request, Tells, as_bytes, no_file

PROBE: tuple[str, ...] = ()
MODEL_FLAGS: tuple[str, ...] = ("-m", "--model")
REPORTS = "cost"
PERMISSION_HINT = 'Add "--auto" to agent.flags, or allow it under "permission" in opencode.json.'
TELLS = frozenset(Tells)
TESTED = True


def launch(request: Request) -> Launch:
    """By standard input, since `run` puts an argument with a blank into quotation marks, which
    the model then reads."""
    no_file(request, "opencode")
    argv = [*request.command, *_subcommand(request), *request.flags]
    if request.model is not None:
        argv += ["-m", request.model]
    if request.stream:
        argv += ["--format", "json"]
    dialect = "opencode" if request.stream else "text"
    if request.prompt_via == "arg":
        return Launch((*argv, "--", request.prompt), dialect)
    return Launch(tuple(argv), dialect, as_bytes(request.prompt))


def choices(help_text: str | None) -> tuple[Choice, ...]:
    """None: asking it costs three seconds and would change nothing."""
    return ()


def _subcommand(request: Request) -> tuple[str, ...]:
    """Nothing where the user has written it: opencode used to be called like any command."""
    written = "run" in request.command[1:] or request.flags[:1] == ("run",)
    return () if written else ("run",)
