"""Claude Code: `claude -p`."""

from ralph.agents.kinds import (
    Choice,
    Launch,
    Request,
    Tells,
    as_bytes,
    by_stdin,
    no_file,
    value_in,
    without,
)
from ralph.kernel.value import replace

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
    output = ("stream-json", "--verbose") if request.stream else ("text",)
    if not request.tools:
        request = _without_tools(request)
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


def unasked(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """What lets every tool run without a question; nothing where its own arguments say what may
    run."""
    said = (*_BARE_GRANTS, *_GRANTS, *_ALLOWED)
    if any(argument.partition("=")[0] in said for argument in arguments):
        return ()
    return _BARE_GRANTS[:1]


def _without_tools(request: Request) -> Request:
    """Also grants in the command itself: `--agent "claude --dangerously-skip-permissions"`."""
    kept = without(request.flags, _GRANTS, _BARE_GRANTS, _GRANTED)
    return replace(
        request,
        command=without(request.command, bare=_BARE_GRANTS),
        flags=(*kept, *_no_tools(request.help_text())),
    )


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
    """Whether a turn can be capped, and how one is taken without tools."""
    not_probed = "not probed" if help_text is None else ""
    if _has_budget(help_text):
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


def _has_budget(help_text: str | None) -> bool:
    return _BUDGET in (help_text or "")
