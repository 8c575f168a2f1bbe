"""How each agent is called (H §Agent Output Flags, ADR 14, ADR 15): tables of requests."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from ralph.agents.clis import ARGUMENT_LIMIT, CLIS, Launch, Request
from ralph.agents.kinds import (
    FOUND_BY_ITSELF,
    KINDS,
    Command,
    account_of,
    as_bytes,
    find_command,
    kind_of,
    split_flags,
)
from ralph.agents.own import call_of
from ralph.errors import ConfigError

NEW_CODEX = "Options: -s, --sandbox <MODE>"
OLD_CODEX = "Options: --full-auto  Convenience alias"
CLAUDE_STREAM = "claude -p --output-format stream-json --verbose"


def launched(kind: str, prompt: str = "do it", **more: Any) -> Launch:  # noqa: ANN401
    help_text = more.pop("help", "")
    request = Request((kind,), prompt, answer_file="ANSWER", help_text=lambda: help_text, **more)
    return CLIS[kind if kind in KINDS else "text"].launch(request)


@pytest.mark.parametrize(
    ("kind", "more", "words"),
    [
        ("claude", {}, f"{CLAUDE_STREAM} PROMPT"),
        ("claude", {"stream": False}, "claude -p --output-format text PROMPT"),
        (
            "claude",
            {"flags": ("--tools", "Edit"), "model": "opus"},
            "claude -p --tools Edit --model opus --output-format stream-json --verbose PROMPT",
        ),
        (
            "claude",
            {"dollars": 1.5, "help": "--max-budget-usd <amount>"},
            "claude -p --max-budget-usd=1.50 --output-format stream-json --verbose PROMPT",
        ),
        (
            "claude",
            {"dollars": 0.0, "help": "--max-budget-usd <amount>"},
            "claude -p --max-budget-usd=0.01 --output-format stream-json --verbose PROMPT",
        ),
        ("claude", {"dollars": 1.5, "help": "an older claude"}, f"{CLAUDE_STREAM} PROMPT"),
        ("codex", {"help": NEW_CODEX}, "codex e -s workspace-write --json -"),
        ("codex", {"help": OLD_CODEX}, "codex e --full-auto --json -"),
        ("codex", {"stream": False}, "codex e -s workspace-write -o ANSWER -"),
        (
            "codex",
            {"stream": False, "help": OLD_CODEX},
            "codex e --full-auto -o ANSWER -",
        ),
        (
            "codex",
            {"flags": ("-s", "danger-full-access"), "help": OLD_CODEX},
            "codex e -s danger-full-access --json -",
        ),
        ("codex", {"flags": ("--sandbox=read-only",)}, "codex e --sandbox=read-only --json -"),
        ("codex", {"flags": ("--yolo",)}, "codex e --yolo --json -"),
        ("codex", {"model": "gpt-5.5"}, "codex e -m gpt-5.5 -s workspace-write --json -"),
        ("codex", {"prompt_via": "arg"}, "codex e -s workspace-write --json -- PROMPT"),
        ("amp", {}, "amp --stream-json --dangerously-allow-all -x PROMPT"),
        ("amp", {"stream": False}, "amp --dangerously-allow-all -x PROMPT"),
        (
            "amp",
            {"flags": ("--mode", "smart")},
            "amp --mode smart --stream-json --dangerously-allow-all -x PROMPT",
        ),
        ("gemini", {}, "gemini --output-format stream-json -p PROMPT"),
        ("gemini", {"stream": False}, "gemini --output-format text -p PROMPT"),
        (
            "gemini",
            {"flags": ("--yolo", "--allowed-tools", "a"), "model": "pro"},
            "gemini --yolo --allowed-tools a -m pro --output-format stream-json -p PROMPT",
        ),
        ("opencode", {}, "opencode run --format json"),
        ("opencode", {"stream": False}, "opencode run"),
        (
            "opencode",
            {"flags": ("--auto",), "model": "anthropic/claude"},
            "opencode run --auto -m anthropic/claude --format json",
        ),
        ("opencode", {"prompt_via": "arg"}, "opencode run --format json -- PROMPT"),
        ("opencode", {"flags": ("run", "--auto")}, "opencode run --auto --format json"),
        ("copilot", {}, "copilot --silent -p PROMPT"),
        (
            "copilot",
            {"flags": ("--allow-all-tools",), "model": "auto"},
            "copilot --allow-all-tools --model auto --silent -p PROMPT",
        ),
        ("cursor-agent", {}, "cursor-agent -p --output-format text -- PROMPT"),
        (
            "cursor-agent",
            {"flags": ("--force",), "model": "auto", "stream": False},
            "cursor-agent -p --force --model auto --output-format text -- PROMPT",
        ),
        ("goose", {}, "goose run --quiet --no-session -i -"),
        ("goose", {"prompt_via": "arg"}, "goose run --quiet --no-session -t PROMPT"),
        (
            "goose",
            {"flags": ("--debug",), "model": "large"},
            "goose run --debug --model large --quiet --no-session -i -",
        ),
        ("my-agent", {"flags": ("--go",)}, "my-agent --go PROMPT"),
        ("my-agent", {"stream": False}, "my-agent PROMPT"),
    ],
)
def test_the_argument_vector(kind: str, more: dict[str, Any], words: str) -> None:
    """H §Agent Output Flags: streaming and text mode of every kind."""
    expected = tuple("do it" if word == "PROMPT" else word for word in words.split())
    assert launched(kind, **more).argv == expected


@pytest.mark.parametrize(
    ("kind", "stream", "dialect"),
    [(kind, True, kind) for kind in (*FOUND_BY_ITSELF, "ralph-agent")]
    + [(kind, False, "text") for kind in (*FOUND_BY_ITSELF, "ralph-agent")]
    + [(kind, True, "text") for kind in ("copilot", "cursor-agent", "goose", "my-agent")],
)
def test_the_dialect_is_that_of_the_output_mode(kind: str, stream: bool, dialect: str) -> None:
    assert launched(kind, stream=stream).dialect == dialect


def test_codex_writes_its_last_message_into_a_file_in_text_mode_only() -> None:
    """H: "`-o <output-file>` writes final response to file"."""
    assert launched("codex", stream=False).answer_file == "ANSWER"
    assert launched("codex").answer_file is None


@pytest.mark.parametrize(
    ("kind", "prompt", "by_stdin"),
    [
        ("claude", "x" * 102_400, False),
        ("claude", "x" * 102_401, True),
        ("claude", "é" * 51_201, True),  # bytes count, not characters
        ("claude", "- a list", True),
        ("codex", "x", True),
        ("amp", "x" * ARGUMENT_LIMIT, False),
        ("amp", "x" * (ARGUMENT_LIMIT + 1), True),
        ("amp", "--help", True),
        ("gemini", "x" * ARGUMENT_LIMIT, False),
        ("gemini", "x" * (ARGUMENT_LIMIT + 1), True),
        ("gemini", "- a list", True),
        ("opencode", "x", True),
        ("copilot", "x", False),
        ("copilot", "--help", True),
        ("copilot", "x" * (ARGUMENT_LIMIT + 1), True),
        ("cursor-agent", "--help", False),
        ("goose", "x", True),
        ("ralph-agent", "x" * ARGUMENT_LIMIT, False),
        ("ralph-agent", "x" * (ARGUMENT_LIMIT + 1), True),
        ("ralph-agent", "- a list", True),
        ("my-agent", "x" * ARGUMENT_LIMIT, False),
        ("my-agent", "--help", False),
    ],
)
def test_where_the_prompt_goes_by_itself(kind: str, prompt: str, by_stdin: bool) -> None:
    """ADR 14: "claude above 100 KB or with a leading `-`, codex `-`", else an argument."""
    launch = launched(kind, prompt)
    assert launch.stdin == (prompt.encode() if by_stdin else None)
    assert (launch.argv[-1] == prompt) is not by_stdin


def test_one_argument_of_128_kb_is_refused_by_the_kernel_and_one_byte_less_passes() -> None:
    """The limit in the code is the kernel's."""
    assert os.spawnvp(os.P_WAIT, "true", ["true", "x" * ARGUMENT_LIMIT]) == 0
    assert os.spawnvp(os.P_WAIT, "true", ["true", "x" * (ARGUMENT_LIMIT + 1)]) == 127


@pytest.mark.parametrize(
    ("kind", "more"), [("my-agent", {}), ("cursor-agent", {}), ("goose", {"prompt_via": "arg"})]
)
def test_a_long_prompt_that_must_be_an_argument_is_refused_with_the_remedy(
    kind: str, more: dict[str, Any]
) -> None:
    """ADR 14: "else 2 naming `agent.promptVia arg|stdin|file`"."""
    with pytest.raises(ConfigError, match="the prompt has 131072 bytes") as caught:
        launched(kind, "x" * (ARGUMENT_LIMIT + 1), **more)
    assert "agent.promptVia" in caught.value.remedy


@pytest.mark.parametrize("kind", KINDS)
def test_prompt_via_stdin_is_obeyed(kind: str) -> None:
    launch = launched(kind, prompt_via="stdin")
    assert launch.stdin == b"do it"
    assert "do it" not in launch.argv


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "text"])
def test_prompt_via_file_is_refused_where_the_path_would_be_taken_for_the_prompt(
    kind: str,
) -> None:
    with pytest.raises(ConfigError, match=f"agent.promptVia: {kind} does not read"):
        launched(kind, prompt_via="file")


def test_prompt_via_file_passes_the_path() -> None:
    launch = launched("my-agent", prompt_via="file", prompt_file="/ws/.ralph/prompt_001.txt")
    assert launch.argv == ("my-agent", "/ws/.ralph/prompt_001.txt")


def test_a_subcommand_that_the_user_has_written_is_not_written_twice() -> None:
    """Such as `--agent "opencode run"`, from when opencode was called like any command."""
    request = Request(("npx", "opencode-ai", "run"), "do it")
    assert CLIS["opencode"].launch(request).argv[:4] == (
        *("npx", "opencode-ai", "run"),
        "--format",
    )


@pytest.mark.parametrize("kind", ["amp", "my-agent"])
def test_a_model_for_an_agent_without_such_a_flag_is_refused(kind: str) -> None:
    with pytest.raises(ConfigError, match=f"{kind} has no model flag") as caught:
        launched(kind, model="opus")
    assert "agent.flags" in caught.value.remedy


def test_bytes_that_were_never_utf_8_pass_as_they_came() -> None:
    assert as_bytes(os.fsdecode(b"caf\xe9 \xff")) == b"caf\xe9 \xff"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--model opus", "--no-auto-compact"), ("--model", "opus", "--no-auto-compact")),
        (("--append-system-prompt 'be brief'",), ("--append-system-prompt", "be brief")),
        (("-c key=a b",), ("-c", "key=a", "b")),
        (("--setting=a b",), ("--setting=a b",)),
        (("two words", "--x"), ("two words", "--x")),
        (("",), ("",)),
        ((), ()),
    ],
)
def test_flags_are_split_like_shell_words_where_h_writes_them_so(
    flags: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    """ADR 14: an item that "begins with `-` and holds a blank before any `=`"."""
    assert split_flags(flags) == expected


def test_a_flag_with_half_a_quote_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"agent\.flags: --x 'half: No closing quotation"):
        split_flags(("--x 'half",))


@pytest.mark.parametrize(
    ("command", "override", "kind"),
    [
        ("claude", None, "claude"),
        ("/opt/bin/Claude", None, "claude"),
        ("CODEX", None, "codex"),
        ("amp", None, "amp"),
        ("/opt/Gemini", None, "gemini"),
        ("opencode", None, "opencode"),
        ("copilot", None, "copilot"),
        ("cursor-agent", None, "cursor-agent"),
        ("goose", None, "goose"),
        ("ralph-agent", None, "ralph-agent"),
        ("/opt/ralph-agent", None, "ralph-agent"),
        ("my-agent", None, "text"),
        ("my-agent", "claude", "claude"),
        ("claude", "text", "text"),
    ],
)
def test_the_kind_is_the_name_of_the_command_unless_settings_say_otherwise(
    command: str, override: str | None, kind: str
) -> None:
    """ADR 15: "Kind = basename of the command, lower case, `agent.kind` overrides"."""
    assert kind_of((command,), override) == kind


@pytest.mark.parametrize(
    ("words", "kind", "account"),
    [
        ("goose acp", "acp", "goose"),
        ("gemini --acp", "acp", "gemini"),
        ("gemini --experimental-acp", "acp", "gemini"),
        ("droid exec --output-format acp", "acp", "text"),
        ("/opt/vibe-acp", "acp", "text"),
        ("claude-agent-acp", "acp", "claude"),
        ("npx -y @agentclientprotocol/codex-acp@2.6.0", "acp", "codex"),
        ("npx @google/gemini-cli --acp", "acp", "text"),
        ("goose", "goose", "goose"),
        ("claude", "claude", "claude"),
        ("npx mine", "text", "text"),
    ],
)
def test_a_command_shows_that_it_speaks_acp(words: str, kind: str, account: str) -> None:
    """ADR 53: and whose login, keys and hosts it uses."""
    command = tuple(words.split())
    assert (kind_of(command), account_of(kind, command)) == (kind, account)


def test_an_agent_that_speaks_acp_is_called_by_a_client_of_ours() -> None:
    request = Request(("goose", "acp"), "-x do it", flags=("--debug",), model="m", stream=False)
    launch = CLIS["acp"].launch(request)
    client = call_of("ralph.acp.program")
    assert launch.argv == (*client, "--model", "m", "--", "goose", "acp", "--debug")
    assert (launch.stdin, launch.dialect) == (b"-x do it", "acp")
    words = CLIS["acp"].launch(Request(("goose", "acp"), "x", tools=False)).argv
    assert words == (*client, "--no-tools", "--", "goose", "acp")
    for way, problem in (("arg", "by the protocol"), ("file", "does not read its prompt")):
        with pytest.raises(ConfigError, match=problem):
            CLIS["acp"].launch(Request(("goose", "acp"), "x", prompt_via=way))


def test_an_unknown_kind_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(ConfigError, match="unknown kind 'gpt'") as caught:
        kind_of(("claude",), "gpt")
    assert (
        "claude, codex, amp, gemini, opencode, copilot, cursor-agent, goose, ralph-agent, acp, text"
        in (caught.value.remedy)
    )


def test_the_order_in_which_agents_are_looked_for(tmp_path: Path) -> None:
    """ADR 15: the first of claude, codex, amp, gemini, opencode on PATH."""
    for name in ("opencode", "gemini", "amp", "codex", "claude"):
        path = tmp_path / name
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        assert find_command(None, {"PATH": str(tmp_path)}) == (name,)


@pytest.fixture
def bin_directory(tmp_path: Path) -> Path:
    """A directory with some commands, and nothing else on PATH."""
    for name in ("codex", "amp", "npx", "with blank"):
        path = tmp_path / name
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (tmp_path / "notes.txt").write_text("no program")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (None, ("codex",)),
        ("amp", ("amp",)),
        ("npx claude --yes", ("npx", "claude", "--yes")),
        ("with blank", ("with blank",)),
        (("with blank", "a b", "'"), ("with blank", "a b", "'")),
        (("amp",), ("amp",)),
    ],
)
def test_a_command_is_found(
    bin_directory: Path, command: Command | None, expected: tuple[str, ...]
) -> None:
    """ADR 15: neither settings nor `--agent`: the first known agent on PATH."""
    assert find_command(command, {"PATH": str(bin_directory)}) == expected


@pytest.mark.parametrize(
    ("command", "problem", "remedy"),
    [
        ("nosuch", "'nosuch' was not found", "Check --agent or agent.command, and PATH."),
        (("nosuch", "acp"), "'nosuch' was not found", "PATH"),
        ("no such thing", "'no such thing' was not found", "PATH"),
        ("goose acp", "'goose acp' was not found", "Install goose, or check PATH."),
        ("claude -c", "was not found", "Install claude: npm install"),
        ("half 'a quote", "was not found", "PATH"),
        ("./folder", "'./folder' is a directory", "Name the program itself"),
        ("./notes.txt", "'./notes.txt' is not executable", "chmod +x ./notes.txt"),
        ("amp", "'amp' was not found on PATH", "--agent ./amp"),
    ],
)
def test_a_command_that_cannot_be_used_is_refused_with_the_reason(
    bin_directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Command,
    problem: str,
    remedy: str,
) -> None:
    monkeypatch.chdir(bin_directory)
    with pytest.raises(ConfigError) as caught:
        find_command(command, {"PATH": "/nowhere"})
    assert problem in caught.value.message
    assert remedy in caught.value.remedy


def test_with_no_agent_at_all_the_remedy_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match="no agent found on PATH") as caught:
        find_command(None, {"PATH": "/nowhere"})
    assert "ralph demo" in caught.value.remedy
    assert "Or set a key for Ralph's own agent: export ANTHROPIC_API_KEY=" in caught.value.remedy


def test_a_key_alone_is_enough_for_our_own_agent_and_every_cli_comes_before(
    bin_directory: Path,
) -> None:
    environ = {"PATH": "/nowhere", "OPENAI_API_KEY": "k"}
    assert find_command(None, environ) == ("ralph-agent", "--model", "openai:gpt-6.1-sol")
    assert find_command(None, {**environ, "PATH": str(bin_directory)}) == ("codex",)


def test_an_executable_bit_alone_makes_a_command(bin_directory: Path) -> None:
    path = bin_directory / "notes.txt"
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    assert find_command(str(path), {}) == (str(path),)
