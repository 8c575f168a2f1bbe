"""How each CLI is called: enough of its grammar to find the prompt where the real one does."""

from collections.abc import Iterator
from typing import NamedTuple


class Grammar(NamedTuple):
    """One CLI's options, and what it says of itself."""

    version: str
    help: str
    values: frozenset[str] = frozenset()  # options that take the next word
    subcommands: frozenset[str] = frozenset()
    usage_error: int = 1  # exit code when it does not understand its arguments


CLAUDE = Grammar(
    version="2.1.197 (Claude Code)",
    help="""Usage: claude [options] [command] [prompt]

Options:
  --dangerously-skip-permissions  Bypass all permission checks
  -h, --help                      Display help for command
  --max-budget-usd <amount>       Maximum dollar amount to spend on API calls (only with --print)
  --model <model>                 Model for the current session
  --output-format <format>        Output format (choices: "text", "json", "stream-json")
  --permission-mode <mode>        Permission mode to use for the session
  -p, --print                     Print response and exit
  --verbose                       Override verbose mode setting from config
  -v, --version                   Output the version number
""",
    values=frozenset(
        {"--output-format", "--input-format", "--model", "--fallback-model", "--max-turns"}
        | {"--max-budget-usd", "--permission-mode", "--append-system-prompt", "--system-prompt"}
        | {"--settings", "--setting-sources", "--add-dir", "--mcp-config", "--plugin-dir"}
        | {"--allowedTools", "--disallowedTools", "--session-id", "--agents", "-r", "--resume"}
    ),
)

CODEX = Grammar(
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
    values=frozenset(
        {"-c", "--config", "-m", "--model", "-s", "--sandbox", "-o", "--output-last-message"}
        | {"-C", "--cd", "-p", "--profile", "-i", "--image", "--color", "--output-schema"}
        | {"--enable", "--disable", "--add-dir"}
    ),
    subcommands=frozenset({"exec", "e"}),
    usage_error=2,
)

AMP = Grammar(
    version="0.0.1763000000 (scripted)",
    help="""Usage: amp [options] [command]

Options:
  -V, --version
  --dangerously-allow-all
  --stream-json
  -x, --execute [message]
""",
    values=frozenset({"--mode", "--settings-file", "--log-level", "--log-file", "--mcp-config"}),
)

TEXT = Grammar(version="agent 1.0.0", help="Usage: agent [prompt]\n")

GRAMMARS = {"claude": CLAUDE, "codex": CODEX, "amp": AMP}


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
        last = self.words[-1] if self.words else "-"
        return None if last == "-" else last

    @property
    def streams(self) -> bool:
        """Whether JSON lines are asked for."""
        return (
            self.options.get("--output-format") == "stream-json"
            or "--stream-json" in self.options
            or "--json" in self.options
        )

    @property
    def output_file(self) -> str | None:
        """Where codex puts its last message, too."""
        return self.options.get("-o") or self.options.get("--output-last-message")

    @property
    def probe(self) -> str | None:
        """`version` or `help` if that is all that is asked for."""
        asked = self.options if self.kind in GRAMMARS else self.argv[:1]
        return next((word[2:] for word in ("--version", "--help") if word in asked), None)

    def objection(self, help_text: str) -> str | None:
        """Why the real CLI would refuse these arguments."""
        for name in self.options:
            # An item like `--model opus`, not split, or a prompt that begins with a dash.
            if len(name.split()) > 1:
                return f"error: unknown option '{name}'"
        if self.kind == "codex" and "--full-auto" in self.options.keys() - help_text.split():
            return "error: unexpected argument '--full-auto' found"
        if self.kind == "claude" and self.streams and "--verbose" not in self.options:
            return "Error: When using --print, --output-format=stream-json requires --verbose"
        return None
