"""The command lines of each CLI: enough grammar to find the prompt where the real one does."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Grammar(NamedTuple):
    """One CLI's options, and what it says of itself."""

    version: str
    help: str = "Usage: agent [prompt]\n"
    values: frozenset[str] = frozenset()  # options that take the next word
    subcommands: frozenset[str] = frozenset()
    usage_error: int = 1  # exit code when it does not understand its arguments
    prompts: frozenset[str] = frozenset()  # options whose value is the prompt
    quotes: bool = False  # it puts words with blanks into quotation marks


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TEXT = Grammar("agent 1.0.0")
GRAMMARS = {
    "claude": Grammar(
        version="2.1.197 (Claude Code)",
        help="""Usage: claude [options] [command] [prompt]

Options:
  --dangerously-skip-permissions  Bypass all permission checks
  --disallowedTools, --disallowed-tools <tools...>
                                  Comma or space-separated list of tool names to deny
  -h, --help                      Display help for command
  --max-budget-usd <amount>       Maximum dollar amount to spend on API calls (only with --print)
  --model <model>                 Model for the current session
  --output-format <format>        Output format (choices: "text", "json", "stream-json")
  --permission-mode <mode>        Permission mode to use for the session
  -p, --print                     Print response and exit
  --strict-mcp-config             Only use MCP servers from --mcp-config
  --tools <tools...>              Specify the list of available tools; "" disables all tools
  --verbose                       Override verbose mode setting from config
  -v, --version                   Output the version number
""",
        values=words(
            "--output-format --input-format --model --fallback-model --max-turns --max-budget-usd "
            "--permission-mode --append-system-prompt --system-prompt --settings "
            "--setting-sources --add-dir --mcp-config --plugin-dir --allowedTools "
            "--disallowedTools --session-id --agents -r --resume --tools --allowed-tools "
            "--disallowed-tools"
        ),
    ),
    "codex": Grammar(
        version="codex-cli 0.166.0",
        help="""Run Codex non-interactively

Usage: codex exec [OPTIONS] [PROMPT]

Options:
  -c, --config <key=value>
  -m, --model <MODEL>
  -s, --sandbox <SANDBOX_MODE>
          [possible values: read-only, workspace-write, danger-full-access]
      --dangerously-bypass-approvals-and-sandbox
      --skip-git-repo-check
      --json
  -o, --output-last-message <FILE>
  -h, --help
  -V, --version
""",
        values=words(
            "-c --config -m --model -s --sandbox -o --output-last-message -C --cd -p --profile -i "
            "--image --color --output-schema --enable --disable --add-dir"
        ),
        subcommands=words("exec e"),
        usage_error=2,
    ),
    "acp": Grammar(version="agent 1.0.0"),
    "amp": Grammar(
        version="0.0.1763000000 (scripted)",
        values=words("--mode --settings-file --log-level --log-file --mcp-config"),
    ),
    "gemini": Grammar(
        version="0.61.0",
        values=words(
            "-m --model -p --prompt -o --output-format --approval-mode --policy --allowed-tools "
            "--allowed-mcp-server-names --include-directories -e --extensions --session-id"
        ),
        prompts=words("-p --prompt"),
    ),
    "opencode": Grammar(
        version="1.18.33",
        values=words(
            "-m --model --format --agent -s --session -f --file --title --command --attach --port "
            "--variant --dir --log-level"
        ),
        subcommands=words("run"),
        quotes=True,
    ),
    "copilot": Grammar(
        version="GitHub Copilot CLI 1.0.102.",
        values=words("-p --prompt --model --agent --allow-tool --deny-tool"),
        prompts=words("-p --prompt"),
    ),
    "cursor-agent": Grammar(
        version="2026.08.04-aaa8809",
        values=words("--output-format --model -m --mode --resume --workspace"),
    ),
    "goose": Grammar(
        version="1.20.0",
        values=words("-t --text -i --instructions --model --provider"),
        subcommands=words("run"),
        usage_error=2,
        prompts=words("-t --text"),
    ),
    "ralph-agent": Grammar(
        version="ralph 0.2.0",
        values=words("-p --prompt --model --output -C --max-steps --context --max-tokens"),
        usage_error=2,
        prompts=words("-p --prompt"),
    ),
}
NEW_IN_CLAUDE = frozenset({"--tools", "--disallowedTools", "--strict-mcp-config"})
BYPASSES = "--dangerously-bypass-approvals-and-sandbox"  # of codex


class Arguments:
    """A command line, taken apart by the grammar of its CLI."""

    def __init__(self, kind: str, argv: list[str]) -> None:
        self.kind = kind
        self.argv = argv
        self.grammar = GRAMMARS.get(kind, TEXT)
        self.options: dict[str, str] = {}  # name to value; "" for a bare flag
        self.words: list[str] = []
        if kind in GRAMMARS:
            self._read(iter(argv))
        else:
            self.words = argv

    def _read(self, rest: Iterator[str]) -> None:
        for word in rest:
            if word == "--":
                self.words.extend(rest)
            elif word in self.grammar.values:
                self.options[word] = next(rest, "")
            elif word.startswith("-") and word != "-":
                name, _, value = word.partition("=")
                self.options[name] = value
            else:
                self.words.append(word)
        if self.words and self.words[0] in self.grammar.subcommands:
            del self.words[0]

    @property
    def prompt(self) -> str | None:
        """The prompt, where it is an argument; None where it comes by standard input."""
        for name in self.grammar.prompts & self.options.keys():
            return self.options[name]
        if self.grammar.quotes and self.words:
            return " ".join(map(in_quotes, self.words))
        last = self.words[-1] if self.words else "-"
        return None if last == "-" else last

    @property
    def streams(self) -> bool:
        """True if JSON lines are asked for."""
        return (
            self.kind == "acp"
            or self.options.get("--output-format") == "stream-json"
            or "--stream-json" in self.options
            or "--json" in self.options
            or self.options.get("--format") == "json"
            or self.options.get("--output") == "json"
        )

    @property
    def output_file(self) -> str | None:
        """The file into which codex also puts its last message."""
        return self.options.get("-o") or self.options.get("--output-last-message")

    @property
    def probe(self) -> str | None:
        """`version` or `help` if that is all that is asked for."""
        asked = self.options if self.kind in GRAMMARS else self.argv[:1]
        return next((word[2:] for word in ("--version", "--help") if word in asked), None)

    def objection(self, help_text: str) -> str | None:
        """The error by which the real CLI would refuse these arguments."""
        for name in self.options:
            # An item like `--model opus`, not split, or a prompt that begins with a dash.
            if len(name.split()) > 1:
                return f"error: unknown option '{name}'"
        for name in self.grammar.prompts & self.options.keys():
            if self.options[name].startswith("-"):
                return f"Not enough arguments following: {name}"
        if self.kind == "codex" and "--full-auto" in self.options.keys() - help_text.split():
            return "error: unexpected argument '--full-auto' found"
        if self.kind == "claude" and self.streams and "--verbose" not in self.options:
            return "Error: When using --print, --output-format=stream-json requires --verbose"
        if self.kind == "claude" and (new := NEW_IN_CLAUDE & self.options.keys()):
            unknown = sorted(new - set(help_text.replace(",", " ").split()))
            return f"error: unknown option '{unknown[0]}'" if unknown else None
        names = self.options.keys()
        if self.kind == "gemini" and "--approval-mode" in names and names & {"-y", "--yolo"}:
            return "Cannot use both --yolo (-y) and --approval-mode together."
        sandboxes = [word for word in self.argv if word.partition("=")[0] in ("-s", "--sandbox")]
        if self.kind == "codex" and len(sandboxes) > 1:
            return "error: the argument '--sandbox <SANDBOX_MODE>' cannot be used multiple times"
        return None

    def bars_tools(self, environ: Mapping[str, str]) -> bool:
        """True if the agent may change nothing, by what it was told in this call."""
        options = self.options
        match self.kind:
            case "claude":
                return options.get("--tools") == "" or options.get("--disallowedTools") == "*"
            case "codex":
                sandbox = options.get("-s") or options.get("--sandbox")
                return sandbox == "read-only" and BYPASSES not in options
            case "gemini":
                return options.get("--approval-mode") == "default"
            case "opencode":
                return '"*": "deny"' in environ.get("OPENCODE_PERMISSION", "")
            case "copilot":
                return "--deny-tool" in options
            case "ralph-agent":
                return "--no-tools" in options
            case "goose":
                return environ.get("GOOSE_MODE") == "chat"
        return False


def in_quotes(word: str) -> str:
    """A word of the message as opencode passes it on: not as it came."""
    escaped = word.replace('"', '\\"')
    return f'"{escaped}"' if " " in word else word
