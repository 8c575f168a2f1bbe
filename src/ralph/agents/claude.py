"""Claude Code: `claude -p`."""

from ralph.agents.kinds import (
    Choice,
    Launch,
    Request,
    Tells,
    no_file,
    prompted,
    value_in,
    without,
)

PROBE = ("--help",)
MODEL_FLAGS: tuple[str, ...] = ("--model",)
REPORTS = "cost"
PERMISSION_HINT = 'Add "--dangerously-skip-permissions" or "--allowedTools ..." to agent.flags.'
LOGIN_HINT = "Log in: start claude and type /login; or set ANTHROPIC_API_KEY."
TELLS = frozenset(Tells)
TESTED = True
BARS_TOOLS = True

_BUDGET = "--max-budget-usd"
_LONGEST_ARGUMENT = 100 * 1024
# No tool of its own, none of anybody's, and no server that brings some. What a flag of the user
# names beside an empty list is still there, so those flags go.
_NO_TOOLS = ("--tools=", "--disallowedTools=*", "--strict-mcp-config")
_BARE_GRANTS = ("--dangerously-skip-permissions", "--allow-dangerously-skip-permissions")
_GRANTS = ("--permission-mode", "--permission-prompt-tool", "--permission-prompts")
_ALLOWED = ("--allowedTools", "--allowed-tools")
_GRANTED = (*_ALLOWED, "--tools", "--mcp-config")


def launch(request: Request) -> Launch:
    """H §Agent Output Flags. Ours come last: a greedy flag of the user cannot eat the prompt."""
    no_file(request, "claude")
    command, flags = request.command, request.flags
    if not request.tools:
        # Also grants in the command itself: `--agent "claude --dangerously-skip-permissions"`.
        command = without(command, bare=_BARE_GRANTS)
        kept = without(flags, _GRANTS, _BARE_GRANTS, _GRANTED)
        flags = (*kept, *_no_tools(request.help_text()))
    argv = [*command, "-p", *flags, *request.model_by("--model")]
    if _needs_budget(request, flags):
        argv += [f"{_BUDGET}={max(request.dollars or 0.0, 0.01):.2f}"]
    output = ("stream-json", "--verbose") if request.stream else ("text",)
    dialect = "claude" if request.stream else "text"
    argv += ["--output-format", *output]
    return prompted(request, argv, dialect, longest=_LONGEST_ARGUMENT)


def unasked(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Flags that let every tool run without a question; none where its own arguments say what may
    run."""
    said = (*_BARE_GRANTS, *_GRANTS, *_ALLOWED)
    if any(argument.partition("=")[0] in said for argument in arguments):
        return ()
    return _BARE_GRANTS[:1]


def _needs_budget(request: Request, flags: tuple[str, ...]) -> bool:
    """True if a limit is left, this claude can keep to it, and the user's own is not tighter."""
    if request.dollars is None or _BUDGET not in (request.help_text() or ""):
        return False
    own = value_in(flags, (_BUDGET,))
    try:
        return own is None or float(own) > request.dollars
    except ValueError:
        return True


def choices(help_text: str | None) -> tuple[Choice, ...]:
    """The flags that cap a turn, and those that take one without tools."""
    not_probed = "not probed" if help_text is None else ""
    if _BUDGET in (help_text or ""):
        budget = Choice(_BUDGET, "caps a turn at what --max-cost leaves")
    else:
        why = not_probed or f"this claude has no {_BUDGET}"
        budget = Choice("", f"{why}, so --max-cost ends a run only after a turn")
    if flags := _no_tools(help_text):
        return budget, Choice(" ".join(flags), "a commit message is written without tools")
    why = not_probed or f"this claude has no {_NO_TOOLS[0][:-1]}"
    return budget, Choice("", f"{why}, so a commit message is written without permissions only")


def _no_tools(help_text: str | None) -> tuple[str, ...]:
    known = (help_text or "").replace(",", " ").split()
    return tuple(flag for flag in _NO_TOOLS if flag.partition("=")[0] in known)
