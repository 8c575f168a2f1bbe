"""Claude Code: `claude -p`."""

from ralph.adapters.agents import (
    Choice,
    Launch,
    Request,
    Tells,
    as_bytes,
    by_stdin,
    no_file,
    value_in,
)

PROBE = ("--help",)
MODEL_FLAGS: tuple[str, ...] = ("--model",)
REPORTS = "cost"
PERMISSION_HINT = 'Add "--dangerously-skip-permissions" or "--allowedTools ..." to agent.flags.'
TELLS = frozenset(Tells)
TESTED = True

_BUDGET = "--max-budget-usd"
_LONGEST_ARGUMENT = 100 * 1024


def launch(request: Request) -> Launch:
    """H §Agent Output Flags. Ours come last: a greedy flag of the user cannot eat the prompt."""
    no_file(request, "claude")
    output = ("stream-json", "--verbose") if request.stream else ("text",)
    argv = [*request.command, "-p", *request.flags]
    if request.model is not None:
        argv += ["--model", request.model]
    if _needs_budget(request):
        argv += [f"{_BUDGET}={max(request.dollars or 0.0, 0.01):.2f}"]
    argv += ["--output-format", *output]
    dialect = "claude" if request.stream else "text"
    if by_stdin(request, _LONGEST_ARGUMENT):
        return Launch(tuple(argv), dialect, as_bytes(request.prompt))
    return Launch((*argv, request.prompt), dialect)


def _needs_budget(request: Request) -> bool:
    """A limit is left, this claude can keep to it, and the user's own is not tighter."""
    if request.dollars is None or not _has_budget(request.help_text()):
        return False
    own = value_in(request.flags, (_BUDGET,))
    try:
        return own is None or float(own) > request.dollars
    except ValueError:
        return True


def choices(help_text: str | None) -> tuple[Choice, ...]:
    """Whether a turn can be capped."""
    if _has_budget(help_text):
        return (Choice(_BUDGET, "caps a turn at what --max-cost leaves"),)
    why = "not probed" if help_text is None else f"this claude has no {_BUDGET}"
    return (Choice("", f"{why}, so --max-cost ends a run only after a turn"),)


def _has_budget(help_text: str | None) -> bool:
    return _BUDGET in (help_text or "")
