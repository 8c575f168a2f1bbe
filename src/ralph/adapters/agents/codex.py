"""Codex: `codex e`, the prompt on standard input."""

from ralph.adapters.agents import Choice, Launch, Request, Tells, as_bytes, no_file

PROBE = ("e", "--help")
MODEL_FLAGS: tuple[str, ...] = ("-m", "--model")
REPORTS = "tokens"
PERMISSION_HINT = 'Add "-s danger-full-access" to agent.flags if you run in a sandbox of your own.'
TELLS = frozenset({Tells.TOOLS, Tells.TODO, Tells.STATUS})
TESTED = True

_FORMER, _PRESENT = "--full-auto", "-s workspace-write"
_SETTING = "sandbox_mode"  # in its configuration, which `-c` overrides
_CHOOSES_SANDBOX = (
    "--sandbox",
    "--full-auto",
    "--yolo",
    "--dangerously-bypass-approvals-and-sandbox",
)


def launch(request: Request) -> Launch:
    """H §Codex Integration Details, with what today's codex has in place of `--full-auto`."""
    no_file(request, "codex")
    argv = [*request.command, "e", *request.flags]
    if request.model is not None:
        argv += ["-m", request.model]
    if not any(map(_chooses_sandbox, request.flags)):
        argv += _autonomy(request.help_text()).flag.split()
    if request.stream:
        return _with_prompt(request, [*argv, "--json"], "codex")
    return _with_prompt(request, [*argv, "-o", request.answer_file], "text", request.answer_file)


def choices(help_text: str | None) -> tuple[Choice, ...]:
    """What lets it work by itself, unless agent.flags choose a sandbox."""
    return (_autonomy(help_text),)


def _chooses_sandbox(flag: str) -> bool:
    """Also `-sread-only`, and `sandbox_mode=...` behind `-c` or stuck to it."""
    short = flag.startswith("-s") and not flag.startswith("--")
    name, _, setting = flag.partition("=")
    config = name.removeprefix("-c") == _SETTING or (
        name in ("-c", "--config") and setting.startswith(_SETTING)
    )
    return short or config or name in _CHOOSES_SANDBOX


def _autonomy(help_text: str | None) -> Choice:
    if help_text is None:
        return Choice(_PRESENT, "not probed, so the present flag")
    if _FORMER in help_text:
        return Choice(_FORMER, f"this codex has {_FORMER}")
    return Choice(_PRESENT, f"this codex has no {_FORMER}")


def _with_prompt(
    request: Request, argv: list[str], dialect: str, answer_file: str | None = None
) -> Launch:
    if request.prompt_via == "arg":
        return Launch((*argv, "--", request.prompt), dialect, None, answer_file)
    return Launch((*argv, "-"), dialect, as_bytes(request.prompt), answer_file)
