"""Claude Code: `claude -p`."""

from ralph.adapters.agents import Launch, Request, as_bytes, no_file

PROBE = ("--help",)
REPORTS = "cost"
PERMISSION_HINT = 'Add "--dangerously-skip-permissions" or "--allowedTools ..." to agent.flags.'

_LONGEST_ARGUMENT = 100 * 1024


def launch(request: Request) -> Launch:
    """H §Agent Output Flags. Ours come last: a greedy flag of the user cannot eat the prompt."""
    no_file(request, "claude")
    output = ("stream-json", "--verbose") if request.stream else ("text",)
    argv = [*request.command, "-p", *request.flags]
    if request.model is not None:
        argv += ["--model", request.model]
    if request.dollars is not None and "--max-budget-usd" in (request.help_text() or ""):
        argv += [f"--max-budget-usd={max(request.dollars, 0.01):.2f}"]
    argv += ["--output-format", *output]
    dialect = "claude" if request.stream else "text"
    if _by_stdin(request):
        return Launch(tuple(argv), dialect, as_bytes(request.prompt))
    return Launch((*argv, request.prompt), dialect)


def _by_stdin(request: Request) -> bool:
    if request.prompt_via is not None:
        return request.prompt_via == "stdin"
    return request.prompt.startswith("-") or len(as_bytes(request.prompt)) > _LONGEST_ARGUMENT
