"""Calls of each agent's CLI: one function and one row of `CLIS` each; `text` is any other command.

A function adds no permission flag beyond H's table: the hint names it. Asked for a turn without
tools, it takes out what grants some and adds what bars them.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from ralph.agents.acp import ACP
from ralph.agents.kinds import as_bytes, value_in, without
from ralph.agents.own import call_of, others, program
from ralph.agents.providers import KEYS, OWN, default_model, model_of
from ralph.errors import ConfigError
from ralph.kernel.value import value

ARGUMENT_LIMIT = 128 * 1024 - 1  # Linux passes no single argument of 128 KiB or more


@value
class Request:
    """Everything a launch depends on."""

    command: tuple[str, ...]
    prompt: str
    flags: tuple[str, ...] = ()
    model: str | None = None
    stream: bool = True  # the dialect's own stream; else plain text
    dollars: float | None = None
    prompt_via: str | None = None
    prompt_file: str = ""  # where the prompt was written, if it goes by file
    answer_file: str = ""  # where a CLI may write its last message
    help_text: Callable[[], str | None] = lambda: None
    tools: bool = True  # else the agent is to change nothing, as far as the CLI can be told
    variable: Callable[[str], str | None] = lambda _: None  # of the agent's environment

    def model_by(self, flag: str) -> tuple[str, ...]:
        """The flag and the model; nothing where no model is asked for."""
        return () if self.model is None else (flag, self.model)

    def dialect(self, stream: str) -> str:
        """The dialect of this turn, for a CLI that has this stream."""
        return stream if self.stream else "text"


@value
class Launch:
    """The call of the agent, and the dialect that it will speak."""

    argv: tuple[str, ...]
    dialect: str
    stdin: bytes | None = None
    answer_file: str | None = None  # where the last message will be, instead of on stdout
    env: Mapping[str, str] = field(default_factory=dict)  # beside the agent's usual environment

    def shown(self, prompt: str) -> tuple[tuple[str, ...], str]:
        """The arguments without the prompt, and how the prompt gets there, in words."""
        if self.argv[-1] == prompt:
            return self.argv[:-1], "as the last argument"
        return self.argv, "in a file" if self.stdin is None else "on standard input"


@value
class Choice:
    """A flag that the launch takes because of what the probe found; "" where it takes none."""

    flag: str
    why: str


@value
class Cli:
    """An agent's CLI."""

    kind: str
    call: Callable[[Request], Launch]
    permission_hint: str  # what to add when the stream reports denied permissions
    login_hint: str  # what to type when it is not logged in
    # Flags with which it works unattended: the whole of it, and what is enough in place, if less.
    unattended: tuple[str, ...] = ()
    in_place: tuple[str, ...] = ()
    model_flags: tuple[str, ...] = ()  # its own flags that name a model
    reports: str = ""  # what its stream says of money: "cost", "tokens" or nothing
    tested: bool = False  # its real output is held against ours; else only its documentation was
    probe: tuple[str, ...] = ()  # arguments that print its help; () where none is needed
    # What the launch chooses by the binary's help, with the reasons; None is not probed. Nothing
    # where flags are the same in every version, or asking takes seconds.
    choices: Callable[[str | None], tuple[Choice, ...]] = lambda _: ()
    reads_files: bool = False  # its prompt can be a file
    # Variables that pay for it; the first that is set wins. None where it chooses among many keys
    # by settings of its own.
    keys: tuple[str, ...] = ()
    one_provider: bool = False  # no other's key is of use to it

    def launch(self, request: Request) -> Launch:
        """The call for one turn. Refuses what the CLI would misunderstand."""
        name = request.command[0] if self.kind == "text" else self.kind
        if request.model is not None and not self.model_flags:
            raise ConfigError(
                f"agent.model (--model): {name} has no model flag that ralph knows",
                'Put the right flag into agent.flags, for example ["--some-model-flag", "NAME"].',
            )
        if request.prompt_via == "file" and not self.reads_files:
            raise ConfigError(
                f"agent.promptVia: {name} does not read its prompt from a file",
                'Use "arg" or "stdin", or leave it out.',
            )
        return self.call(request)


def _prompted(
    request: Request, argv: Sequence[str], dialect: str, *flag: str, longest: int = ARGUMENT_LIMIT
) -> Launch:
    """The call with the prompt last, behind the flag; or on standard input: as asked for, else
    where no argument would do."""
    stdin = request.prompt.startswith("-") or len(as_bytes(request.prompt)) > longest
    if request.prompt_via is not None:
        stdin = request.prompt_via == "stdin"
    if stdin:
        return Launch(tuple(argv), dialect, as_bytes(request.prompt))
    return Launch((*argv, *flag, request.prompt), dialect)


def _must_fit(prompt: str, remedy: str) -> None:
    """Refuse a prompt that cannot be an argument, where it has to be one."""
    size = len(as_bytes(prompt))
    if size > ARGUMENT_LIMIT:
        message = f"the prompt has {size} bytes; one argument holds at most {ARGUMENT_LIMIT}"
        raise ConfigError(message, remedy)


_BUDGET = "--max-budget-usd"
# No tool of its own, none of anybody's, and no server that brings some. What a flag of the user
# names beside an empty list is still there, so those flags go.
_NO_TOOLS_OF_CLAUDE = ("--tools=", "--disallowedTools=*", "--strict-mcp-config")
_SKIPS = ("--dangerously-skip-permissions", "--allow-dangerously-skip-permissions")
_PERMISSIONS = ("--permission-mode", "--permission-prompt-tool", "--permission-prompts")
_ALLOWED = ("--allowedTools", "--allowed-tools")


def _claude(request: Request) -> Launch:
    """H §Agent Output Flags. Ours come last: a greedy flag of the user cannot eat the prompt."""
    command, flags = request.command, request.flags
    if not request.tools:
        # Also grants in the command itself: `--agent "claude --dangerously-skip-permissions"`.
        command = without(command, bare=_SKIPS)
        kept = without(flags, _PERMISSIONS, _SKIPS, (*_ALLOWED, "--tools", "--mcp-config"))
        flags = (*kept, *_bars_of_claude(request.help_text()))
    argv = [*command, "-p", *flags, *request.model_by("--model")]
    if request.dollars is not None and _BUDGET in (request.help_text() or ""):
        try:
            own = float(value_in(flags, (_BUDGET,)) or "inf")
        except ValueError:
            own = float("inf")
        if own > request.dollars:  # else the user's own is tighter
            argv += [f"{_BUDGET}={max(request.dollars, 0.01):.2f}"]
    output = ("stream-json", "--verbose") if request.stream else ("text",)
    argv += ["--output-format", *output]
    return _prompted(request, argv, request.dialect("claude"), longest=100 * 1024)


def unasked(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Claude's flags that let every tool run unasked; none where its arguments say what may run."""
    said = (*_SKIPS, *_PERMISSIONS, *_ALLOWED)
    if any(argument.partition("=")[0] in said for argument in arguments):
        return ()
    return _SKIPS[:1]


def _choices_of_claude(help_text: str | None) -> tuple[Choice, ...]:
    """The flags that cap a turn, and those that take one without tools."""
    not_probed = "not probed" if help_text is None else ""
    if _BUDGET in (help_text or ""):
        budget = Choice(_BUDGET, "caps a turn at what --max-cost leaves")
    else:
        why = not_probed or f"this claude has no {_BUDGET}"
        budget = Choice("", f"{why}, so --max-cost ends a run only after a turn")
    if flags := _bars_of_claude(help_text):
        return budget, Choice(" ".join(flags), "a commit message is written without tools")
    why = not_probed or f"this claude has no {_NO_TOOLS_OF_CLAUDE[0][:-1]}"
    return budget, Choice("", f"{why}, so a commit message is written without permissions only")


def _bars_of_claude(help_text: str | None) -> tuple[str, ...]:
    known = (help_text or "").replace(",", " ").split()
    return tuple(flag for flag in _NO_TOOLS_OF_CLAUDE if flag.partition("=")[0] in known)


_FORMER, _PRESENT = "--full-auto", "-s workspace-write"
_READ_ONLY = "--sandbox=read-only"  # in every version; it may still look at the changes
_BYPASSES = (_FORMER, "--yolo", "--dangerously-bypass-approvals-and-sandbox", "--approve-for-me")
# Also `-sread-only`, and `sandbox_mode=...` behind `-c` or stuck to it.
_CHOOSES_SANDBOX = (
    rf"-s|(?:-c)?sandbox_mode(?:=|$)|(?:-c|--config)=sandbox_mode"
    rf"|(?:--sandbox|{'|'.join(_BYPASSES)})(?:=|$)"
)


def _codex(request: Request) -> Launch:
    """H §Codex Integration Details, with what today's codex has in place of `--full-auto`."""
    command, flags = request.command, request.flags
    if not request.tools:
        # It refuses two sandboxes, and bypassing beats ours; `-c sandbox_mode=...` does not.
        command = without(command, bare=_BYPASSES)
        kept = without(flags, ("-s", "--sandbox"), _BYPASSES)
        flags = (*(flag for flag in kept if not flag.startswith("-s")), _READ_ONLY)
    argv = [*command, "e", *flags, *request.model_by("-m")]
    if not any(re.match(_CHOOSES_SANDBOX, flag) for flag in flags):
        argv += _choices_of_codex(request.help_text())[0].flag.split()
    argv += ["--json"] if request.stream else []
    answer = None
    if not request.stream or not request.tools:
        # The last message and nothing before it: what it said between calls is no answer.
        answer = request.answer_file
        argv += ["-o", answer]
    dialect = request.dialect("codex")
    if request.prompt_via == "arg":
        return Launch((*argv, "--", request.prompt), dialect, None, answer)
    return Launch((*argv, "-"), dialect, as_bytes(request.prompt), answer)


def _choices_of_codex(help_text: str | None) -> tuple[Choice, ...]:
    """The flag that lets it work by itself, unless agent.flags choose a sandbox."""
    if _FORMER in (help_text or ""):
        return (Choice(_FORMER, f"this codex has {_FORMER}"),)
    not_probed = "not probed, so the present flag" if help_text is None else ""
    return (Choice(_PRESENT, not_probed or f"this codex has no {_FORMER}"),)


_AUTO = ("--auto", "--dangerously-skip-permissions")
_RULES, _CONFIG = "OPENCODE_PERMISSION", "OPENCODE_CONFIG_CONTENT"
# A rule of the user that stands after `*` beats it, so each is named.
_DENIED = dict.fromkeys(
    (
        *("*", "read", "edit", "glob", "grep", "list", "bash", "task", "skill", "lsp"),
        *("todoread", "todowrite", "question", "webfetch", "websearch", "codesearch"),
        *("external_directory", "doom_loop"),
    ),
    "deny",
)


def _opencode(request: Request) -> Launch:
    """By standard input: `run` puts an argument with a blank into quotes that the model reads."""
    command, flags, env = request.command, request.flags, {}
    if not request.tools:
        env = _bars_of_opencode(request)
        command, flags = (without(words, bare=_AUTO) for words in (command, flags))
    # Nothing where the user has written it: opencode used to be called like any command.
    written = "run" in command[1:] or flags[:1] == ("run",)
    argv = (*command, *(() if written else ("run",)), *flags, *request.model_by("-m"))
    if request.stream:
        argv += ("--format", "json")
    dialect = request.dialect("opencode")
    if request.prompt_via == "arg":
        return Launch((*argv, "--", request.prompt), dialect, env=env)
    return Launch(argv, dialect, as_bytes(request.prompt), env=env)


def _bars_of_opencode(request: Request) -> dict[str, str]:
    """Rules for all agents and, since an agent's own would beat those, for the one that answers:
    another agent could have another model. Only a configuration that can be read is added to."""
    name = value_in(request.flags, ("--agent",)) or "build"
    env = {_RULES: json.dumps(_DENIED)}
    try:
        config = json.loads(request.variable(_CONFIG) or "{}")
        agents = config.setdefault("agent", {})
        agents[name] = {**agents.get(name, {}), "permission": _DENIED}
    except (ValueError, AttributeError, TypeError):
        return env
    return {**env, _CONFIG: json.dumps(config)}


# Without a terminal gemini drops every tool that would need approval, except those of a server that
# is trusted; `none` is a server that nobody has. Older than its stream, so it need not be asked.
_NO_TOOLS_OF_GEMINI = ("--approval-mode=default", "--allowed-mcp-server-names=none")
_YOLO = ("--yolo", "-y")
_GRANTED_TO_GEMINI = ("--allowed-tools", "--allowed-mcp-server-names", "--policy")
_ALLOW_ALL = "--dangerously-allow-all"  # of amp
_NO_TOOLS_OF_COPILOT = ("--deny-tool=shell", "--deny-tool=write")  # beats every flag that allows


def _gemini(request: Request) -> Launch:
    """The prompt is the last argument; one that cannot be goes by standard input, which makes
    gemini work without a terminal as `-p` does."""
    command, flags = request.command, request.flags
    if not request.tools:
        command = without(command, bare=_YOLO[:1])  # `-y` in a command may be npx's
        flags = without(flags, ("--approval-mode",), _YOLO, _GRANTED_TO_GEMINI)
        flags += _NO_TOOLS_OF_GEMINI
    output = "stream-json" if request.stream else "text"
    argv = (*command, *flags, *request.model_by("-m"), "--output-format", output)
    return _prompted(request, argv, request.dialect("gemini"), "-p")


def _amp(request: Request) -> Launch:
    """H §Amp Integration Details: `-x` and the prompt together at the end. A prompt that cannot be
    an argument goes by standard input."""
    output = ("--stream-json",) if request.stream else ()
    given = (*request.flags, *output, _ALLOW_ALL)
    # No flag bars tools; without the one that allows all, its own rules decide.
    flags = given if request.tools else without(given, bare=(_ALLOW_ALL,))
    return _prompted(request, (*request.command, *flags, "-x"), request.dialect("amp"))


def _copilot(request: Request) -> Launch:
    """As its help describes it. `--silent` leaves the agent's words. It reads a piped prompt."""
    flags = (*request.flags, *request.model_by("--model"))
    flags += () if request.tools else _NO_TOOLS_OF_COPILOT
    return _prompted(request, (*request.command, *flags, "--silent"), "text", "-p")


def _cursor(request: Request) -> Launch:
    """As it is documented; its text mode prints the last answer. The prompt is the last argument:
    that it can be piped is not documented."""
    # Without its grants it is documented to propose changes only.
    grants = () if request.tools else ("-f", "--force", "--yolo")
    flags = (*without(request.flags, bare=grants), *request.model_by("--model"))
    argv = (*request.command, "-p", *flags, "--output-format", "text")
    if request.prompt_via == "stdin":
        return Launch(argv, "text", as_bytes(request.prompt))
    remedy = 'Shorten it, or try agent.promptVia "stdin" if your cursor-agent reads that.'
    _must_fit(request.prompt, remedy)
    return Launch((*argv, "--", request.prompt), "text")


def _goose(request: Request) -> Launch:
    """As it is documented. `--quiet` leaves the agent's words; every turn is a new session."""
    flags = (*request.flags, *request.model_by("--model"), "--quiet", "--no-session")
    argv, env = (*request.command, "run", *flags), {} if request.tools else {"GOOSE_MODE": "chat"}
    if request.prompt_via == "arg":
        _must_fit(request.prompt, "Leave agent.promptVia out: goose reads standard input.")
        return Launch((*argv, "-t", request.prompt), "text", env=env)
    return Launch((*argv, "-i", "-"), "text", as_bytes(request.prompt), env=env)


def _own(request: Request) -> Launch:
    """Ralph itself, as `ralph agent`; a path is called as it is."""
    command = request.command
    words = (*program(), *command[1:]) if command[0] == OWN else command
    argv = [*words, *request.flags, *request.model_by("--model")]
    argv += [] if request.tools else ["--no-tools"]
    argv += ["--output", "json" if request.stream else "text"]
    return _prompted(request, argv, request.dialect(OWN), "-p")


def _acp(request: Request) -> Launch:
    """A client of ours, which starts the agent and takes the turn with it. There is no text mode:
    without the protocol it says nothing."""
    if request.prompt_via == "arg":
        message = "agent.promptVia: an agent that speaks ACP gets its prompt by the protocol"
        raise ConfigError(message, "Leave it out.")
    argv = [*call_of("ralph.acp.program"), *request.model_by("--model")]
    argv += [] if request.tools else ["--no-tools"]
    words = (*argv, "--", *request.command, *request.flags)
    return Launch(words, ACP, as_bytes(request.prompt))


def _text(request: Request) -> Launch:
    """The prompt is the last argument, or as `agent.promptVia` says; there may be none."""
    argv = (*request.command, *request.flags)
    if not request.prompt:
        return Launch(argv, "text")
    if request.prompt_via == "stdin":
        return Launch(argv, "text", as_bytes(request.prompt))
    if request.prompt_via == "file":
        return Launch((*argv, request.prompt_file), "text")
    remedy = 'Set agent.promptVia to "stdin" or "file", whichever your agent reads.'
    _must_fit(request.prompt, remedy)
    return Launch((*argv, request.prompt), "text")


_M, _MODEL = "-m", "--model"
_ALL = (
    Cli(
        "claude",
        _claude,
        'Add "--dangerously-skip-permissions" or "--allowedTools ..." to agent.flags.',
        "Log in: start claude and type /login; or set ANTHROPIC_API_KEY.",
        unattended=_SKIPS[:1],
        in_place=("--permission-mode=acceptEdits", "--allowedTools=Bash"),  # the guard hears those
        model_flags=(_MODEL,),
        reports="cost",
        tested=True,
        probe=("--help",),
        choices=_choices_of_claude,
        keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        one_provider=True,
    ),
    Cli(
        "codex",
        _codex,
        'Add "-s danger-full-access" to agent.flags if you run in a sandbox of your own.',
        "Log in: codex login; or set the API key of its provider.",
        model_flags=(_M, _MODEL),
        reports="tokens",
        tested=True,
        probe=("e", "--help"),
        choices=_choices_of_codex,
        keys=("CODEX_API_KEY", "OPENAI_API_KEY", "AZURE_OPENAI_API_KEY"),
        one_provider=True,
    ),
    Cli(
        "amp",
        _amp,
        'Amp runs with --dangerously-allow-all; see "amp permissions".',
        "Log in: amp login; or set AMP_API_KEY.",
        reports="tokens",
        keys=("AMP_API_KEY",),
    ),
    Cli(
        "gemini",
        _gemini,
        'Add "--yolo" to agent.flags (and "--skip-trust" if it does not trust the folder).',
        "Log in: start gemini and choose how; or set GEMINI_API_KEY.",
        unattended=_YOLO[:1],
        model_flags=(_M, _MODEL),
        reports="tokens",
        tested=True,
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
        one_provider=True,
    ),
    Cli(
        "opencode",
        _opencode,
        'Add "--auto" to agent.flags, or allow it under "permission" in opencode.json.',
        "Log in: opencode auth login; or set the API key of its provider.",
        unattended=_AUTO[:1],
        model_flags=(_M, _MODEL),
        reports="cost",
        tested=True,
    ),
    Cli(
        "copilot",
        _copilot,
        'Add "--allow-all-tools" to agent.flags: without a terminal copilot needs it.',
        "Log in: start copilot and type /login; or set GH_TOKEN.",
        unattended=("--allow-all-tools",),
        model_flags=(_MODEL,),
        keys=("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"),
    ),
    Cli(
        "cursor-agent",
        _cursor,
        'Add "--force" to agent.flags (and "--trust" if it does not trust the folder).',
        "Log in: cursor-agent login; or set CURSOR_API_KEY.",
        unattended=("--force",),
        model_flags=(_M, _MODEL),
        keys=("CURSOR_API_KEY",),
    ),
    Cli(
        "goose",
        _goose,
        'Set GOOSE_MODE to "auto" under agent.env.set.',
        "Choose a provider and log in: goose configure",
        model_flags=(_MODEL,),
    ),
    Cli(
        OWN,
        _own,
        "It asks for no permission; what its guard refuses, guard.allow lets pass.",
        "Set a key that its service accepts, or name another model: --agent builtin:MODEL.",
        model_flags=(_MODEL,),
        reports="tokens",
        tested=True,
        one_provider=True,  # that of its model
    ),
    Cli(
        ACP,
        _acp,
        "Its requests are answered by the guard; what that refuses, guard.allow lets pass.",
        "Log in with the agent's own command, or set the key that it takes; then run again.",
        model_flags=(_MODEL,),
        reports="tokens",
        tested=True,
    ),
    Cli(
        "text",
        _text,
        permission_hint="",
        login_hint="Log in with the agent's own command, then run again.",
        tested=True,
        reads_files=True,
    ),
)
CLIS: Mapping[str, Cli] = {cli.kind: cli for cli in _ALL}


# ------------------------------------------------------------------ the environment (ADR 13)

OWN_LOGIN = "the agent's own login"
_MORE_THAN_A_KEY = frozenset({"GH_TOKEN", "GITHUB_TOKEN"})  # git and gh need them too
_OTHERS = (
    *("CEREBRAS_API_KEY", "COHERE_API_KEY", "DEEPSEEK_API_KEY", "FIREWORKS_API_KEY"),
    *("GROQ_API_KEY", "MISTRAL_API_KEY", "OPENCODE_API_KEY", "OPENROUTER_API_KEY"),
    *("PERPLEXITY_API_KEY", "TOGETHER_API_KEY", "XAI_API_KEY", "OPENCODE_AUTH_CONTENT"),
)


@value
class Environment:
    """The agent's variables, those taken out, and who pays; "" where we cannot know."""

    values: Mapping[str, str]
    removed: tuple[str, ...]
    payer: str


def agent_environment(
    environ: Mapping[str, str],
    kind: str,
    *,
    keep: tuple[str, ...] = (),
    unset: tuple[str, ...] = (),
    put: Mapping[str, str] | None = None,
    model: str | None = None,
) -> Environment:
    """Everything passes but CLAUDECODE and, where one provider pays, all the others' keys. Who
    pays for our own agent follows from its model."""
    unwanted, agent = {"CLAUDECODE"}, CLIS.get(kind, CLIS["text"])
    keys = agent.keys
    if agent.one_provider:
        unwanted.update(*(cli.keys for cli in _ALL if cli is not agent), _OTHERS)
        unwanted -= _MORE_THAN_A_KEY
    if agent.kind == OWN:
        everything = {k: v for k, v in environ.items() if k not in unset} | dict(put or {})
        own = model_of(model) if model else default_model(everything)
        keys = own.provider.keys if own else KEYS
        unwanted = (unwanted | (others(own) if own else set())) - set(keys)
    unwanted = (unwanted - set(keep)) | set(unset)
    values = {k: v for k, v in environ.items() if k not in unwanted} | dict(put or {})
    paying = next((name for name in keys if values.get(name)), None)
    removed = tuple(sorted(unwanted & environ.keys()))
    return Environment(values, removed, paying or (OWN_LOGIN if agent.keys else ""))
