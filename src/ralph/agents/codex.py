"""Codex: `codex e`, the prompt on standard input."""

from ralph.agents.kinds import Choice, Launch, Request, Tells, as_bytes, no_file, without
from ralph.kernel.value import replace

PROBE = ("e", "--help")
MODEL_FLAGS: tuple[str, ...] = ("-m", "--model")
REPORTS = "tokens"
PERMISSION_HINT = 'Add "-s danger-full-access" to agent.flags if you run in a sandbox of your own.'
LOGIN_HINT = "Log in: codex login; or set the API key of its provider."
TELLS = frozenset({Tells.TOOLS, Tells.TODO, Tells.STATUS})
TESTED = True
BARS_TOOLS = True

_FORMER, _PRESENT = "--full-auto", "-s workspace-write"
_READ_ONLY = "--sandbox=read-only"  # in every version; it may still look at the changes
_SETTING = "sandbox_mode"  # in its configuration, which `-c` overrides
_BARE_GRANTS = (
    "--full-auto",
    "--yolo",
    "--dangerously-bypass-approvals-and-sandbox",
    "--approve-for-me",
)
_CHOOSES_SANDBOX = ("--sandbox", *_BARE_GRANTS)


def launch(request: Request) -> Launch:
    """H §Codex Integration Details, with what today's codex has in place of `--full-auto`."""
    no_file(request, "codex")
    if not request.tools:
        request = _read_only(request)
    argv = [*request.command, "e", *request.flags]
    if request.model is not None:
        argv += ["-m", request.model]
    if not any(map(_chooses_sandbox, request.flags)):
        argv += _autonomy(request.help_text()).flag.split()
    if request.stream and request.tools:
        return _with_prompt(request, [*argv, "--json"], "codex")
    # The last message and nothing before it: what it said between calls is no answer.
    output, dialect = (["--json"], "codex") if request.stream else ([], "text")
    argv += [*output, "-o", request.answer_file]
    return _with_prompt(request, argv, dialect, request.answer_file)


def choices(help_text: str | None) -> tuple[Choice, ...]:
    """What lets it work by itself, unless agent.flags choose a sandbox."""
    return (_autonomy(help_text),)


def _read_only(request: Request) -> Request:
    """It refuses two sandboxes, and bypassing beats ours; `-c sandbox_mode=...` does not."""
    kept = without(request.flags, ("-s", "--sandbox"), _BARE_GRANTS)
    kept = tuple(flag for flag in kept if not _is_short(flag))
    return replace(
        request,
        command=without(request.command, bare=_BARE_GRANTS),
        flags=(*kept, _READ_ONLY),
    )


def _is_short(flag: str) -> bool:
    return flag.startswith("-s")


def _chooses_sandbox(flag: str) -> bool:
    """Also `-sread-only`, and `sandbox_mode=...` behind `-c` or stuck to it."""
    name, _, setting = flag.partition("=")
    config = name.removeprefix("-c") == _SETTING or (
        name in ("-c", "--config") and setting.startswith(_SETTING)
    )
    return _is_short(flag) or config or name in _CHOOSES_SANDBOX


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
