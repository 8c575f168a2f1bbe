"""Claude Code: `claude -p`."""

from ralph.adapters.agents import Choice, Launch, Request, Tells, as_bytes, by_stdin, no_file

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
    if request.dollars is not None and _has_budget(request.help_text()):
        argv += [f"{_BUDGET}={max(request.dollars, 0.01):.2f}"]
    argv += ["--output-format", *output]
    dialect = "claude" if request.stream else "text"
    if by_stdin(request, _LONGEST_ARGUMENT):
        return Launch(tuple(argv), dialect, as_bytes(request.prompt))
    return Launch((*argv, request.prompt), dialect)


def choices(help_text: str | None) -> tuple[Choice, ...]:
    """Whether a turn can be capped."""
    if _has_budget(help_text):
        return (Choice(_BUDGET, "caps a turn at what --max-cost leaves"),)
    why = "not probed" if help_text is None else f"this claude has no {_BUDGET}"
    return (Choice("", f"{why}, so --max-cost ends a run only after a turn"),)


def _has_budget(help_text: str | None) -> bool:
    return _BUDGET in (help_text or "")
