"""Codex: `codex e`, the prompt on standard input."""

from ralph.agents.kinds import Choice, Launch, Request, Tells, as_bytes, no_file, without

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
    command, flags = request.command, request.flags
    if not request.tools:
        # It refuses two sandboxes, and bypassing beats ours; `-c sandbox_mode=...` does not.
        command = without(command, bare=_BARE_GRANTS)
        kept = without(flags, ("-s", "--sandbox"), _BARE_GRANTS)
        flags = (*(flag for flag in kept if not flag.startswith("-s")), _READ_ONLY)
    argv = [*command, "e", *flags, *request.model_by("-m")]
    if not any(map(_chooses_sandbox, flags)):
        argv += choices(request.help_text())[0].flag.split()
    argv += ["--json"] if request.stream else []
    answer = None
    if not request.stream or not request.tools:
        # The last message and nothing before it: what it said between calls is no answer.
        answer = request.answer_file
        argv += ["-o", answer]
    dialect = "codex" if request.stream else "text"
    if request.prompt_via == "arg":
        return Launch((*argv, "--", request.prompt), dialect, None, answer)
    return Launch((*argv, "-"), dialect, as_bytes(request.prompt), answer)


def choices(help_text: str | None) -> tuple[Choice, ...]:
    """The flag that lets it work by itself, unless agent.flags choose a sandbox."""
    if help_text is None:
        return (Choice(_PRESENT, "not probed, so the present flag"),)
    if _FORMER in help_text:
        return (Choice(_FORMER, f"this codex has {_FORMER}"),)
    return (Choice(_PRESENT, f"this codex has no {_FORMER}"),)


def _chooses_sandbox(flag: str) -> bool:
    """Also `-sread-only`, and `sandbox_mode=...` behind `-c` or stuck to it."""
    name, _, setting = flag.partition("=")
    config = name.removeprefix("-c") == _SETTING or (
        name in ("-c", "--config") and setting.startswith(_SETTING)
    )
    return flag.startswith("-s") or config or name in _CHOOSES_SANDBOX
