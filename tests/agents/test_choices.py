"""What an agent's row says of itself: flags chosen by its help, hints, and how sure we are."""

from pathlib import Path

import pytest

from ralph.agents.clis import CLIS, Choice, Request
from ralph.agents.kinds import KINDS, is_path_from, value_in, without

CAPTURES = Path(__file__).resolve().parent.parent / "captures"


def launched(kind: str, help_text: str | None) -> tuple[str, ...]:
    request = Request((kind,), "do it", dollars=1.0, help_text=lambda: help_text)
    return CLIS[kind].launch(request).argv


@pytest.mark.parametrize(
    ("kind", "help_text", "expected"),
    [
        (
            "codex",
            "-s, --sandbox <MODE>",
            Choice("-s workspace-write", "this codex has no --full-auto"),
        ),
        ("codex", "--full-auto  An alias", Choice("--full-auto", "this codex has --full-auto")),
        ("codex", None, Choice("-s workspace-write", "not probed, so the present flag")),
        (
            "claude",
            "--max-budget-usd <amount>",
            Choice("--max-budget-usd", "caps a turn at what --max-cost leaves"),
        ),
        (
            "claude",
            "an older claude",
            Choice(
                "",
                "this claude has no --max-budget-usd, so --max-cost ends a run only after a turn",
            ),
        ),
        ("claude", None, Choice("", "not probed, so --max-cost ends a run only after a turn")),
    ],
)
def test_a_choice_is_told_with_its_reason_and_is_what_the_launch_does(
    kind: str, help_text: str | None, expected: Choice
) -> None:
    """ADR 15: the binary's own help decides between flags."""
    assert CLIS[kind].choices(help_text)[0] == expected
    argv = launched(kind, help_text)
    words = [word.split("=")[0] for word in argv]
    told = expected.flag.split()
    assert [word for word in words if word in told] == told
    flags = {"--full-auto", "workspace-write", "--max-budget-usd"}
    assert flags & set(words) <= set(told)


@pytest.mark.parametrize(
    ("help_text", "expected"),
    [
        (
            "--disallowedTools, --disallowed-tools <tools...>\n --strict-mcp-config\n --tools <a>",
            Choice(
                "--tools= --disallowedTools=* --strict-mcp-config",
                "a commit message is written without tools",
            ),
        ),
        (
            "--disallowedTools <tools...>",
            Choice("--disallowedTools=*", "a commit message is written without tools"),
        ),
        (
            "--toolsmith",
            Choice(
                "",
                "this claude has no --tools, so a commit message is written without permissions"
                " only",
            ),
        ),
        (
            None,
            Choice("", "not probed, so a commit message is written without permissions only"),
        ),
    ],
)
def test_what_takes_the_tools_from_claude_is_what_its_help_has(
    help_text: str | None, expected: Choice
) -> None:
    """ADR 15: an older claude is still called correctly."""
    claude = CLIS["claude"]
    assert claude.choices(help_text)[1] == expected
    request = Request(("claude",), "do it", tools=False, help_text=lambda: help_text)
    assert claude.launch(request).argv[2:-4] == tuple(expected.flag.split())


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("claude", "codex")])
def test_nothing_else_is_asked_or_chosen(kind: str) -> None:
    assert (CLIS[kind].probe, CLIS[kind].choices("any help")) == ((), ())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "text"])
def test_what_was_only_read_about_says_so(kind: str) -> None:
    """Tested is what has a capture: real output that ours is held against."""
    assert CLIS[kind].tested is (CAPTURES / kind).is_dir()


@pytest.mark.parametrize(
    ("arguments", "model"),
    [
        ((), None),
        (("--full-auto",), None),
        (("-m", "gpt-5.5"), "gpt-5.5"),
        (("--model", "gpt-5.5", "-s", "read-only"), "gpt-5.5"),
        (("--model=gpt-5.5",), "gpt-5.5"),
        (("-m=gpt-5.5",), "gpt-5.5"),
        (("-m", "gpt-5", "--model", "gpt-5.5"), "gpt-5.5"),
        (("-m", "gpt-5", "-m"), "gpt-5"),
        (("-m",), None),
        (("--model=",), None),
        (("--model-provider", "x"), None),
        (("--mode", "gpt-5"), None),
        (("-mode", "fast"), None),
    ],
)
def test_the_value_in_an_agents_own_arguments(
    arguments: tuple[str, ...], model: str | None
) -> None:
    assert value_in(arguments, ("-m", "--model")) == model


def test_a_flag_of_another_program_names_no_model() -> None:
    """`python -m my_agent` asks for a module."""
    assert value_in(("-m", "my_agent"), CLIS["text"].model_flags) is None


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "text"])
def test_every_agent_has_a_word_for_what_it_may_not_do(kind: str) -> None:
    """ADR 15: the flag to add is named, never added."""
    cli = CLIS[kind]
    assert cli.permission_hint
    assert not [word for word in launched(kind, None) if word in cli.permission_hint.split('"')]


@pytest.mark.parametrize(
    "flags",
    [
        ("-s", "read-only"),
        ("-sread-only",),
        ("--sandbox=read-only",),
        ("-c", 'sandbox_mode="read-only"'),
        ('-csandbox_mode="read-only"',),
        ('--config=sandbox_mode="read-only"',),
        ("--yolo",),
    ],
)
def test_a_sandbox_that_the_user_chose_for_codex_stays(flags: tuple[str, ...]) -> None:
    """ADR 15: "A user's own sandbox flag for codex replaces ours"."""
    argv = CLIS["codex"].launch(Request(("codex",), "do it", flags)).argv
    assert argv == ("codex", "e", *flags, "--json", "-")


@pytest.mark.parametrize(
    ("own", "added"), [("1", False), ("5", False), ("9", True), ("much", True)]
)
def test_the_tighter_budget_of_a_turn_counts(own: str, added: bool) -> None:
    """ADR 22: never more than is left, and never more than the user allows."""
    request = Request(
        ("claude",),
        "do it",
        ("--max-budget-usd", own),
        dollars=5.0,
        help_text=lambda: "--max-budget-usd",
    )
    assert ("--max-budget-usd=5.00" in CLIS["claude"].launch(request).argv) is added


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (("-m", "a", "-x"), ("-x",)),
        (("-x", "--model=a"), ("-x",)),
        (("--model", "a", "-m"), ()),
        (("--mode", "a"), ("--mode", "a")),
    ],
)
def test_a_model_is_named_once(arguments: tuple[str, ...], kept: tuple[str, ...]) -> None:
    """Codex and opencode refuse two; `--model` of ralph counts."""
    assert without(arguments, ("-m", "--model")) == kept


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (("--yolo", "-m", "a"), ("-m", "a")),
        (("--yolo=true", "a"), ("a",)),
        (("--allowed", "a", "b c", "-m", "a"), ("-m", "a")),
        (("--allowed=a", "b"), ("b",)),
        (("--allowed", "a", "--yolo", "b"), ("b",)),
        (("-s", "--yolo", "b"), ("b",)),  # whatever follows is its value
        (("--allowed",), ()),
    ],
)
def test_grants_are_taken_out_with_all_their_values(
    arguments: tuple[str, ...], kept: tuple[str, ...]
) -> None:
    assert without(arguments, ("-s",), ("--yolo",), ("--allowed",)) == kept


@pytest.mark.parametrize(
    ("command", "is_path"),
    [
        ("./agent.sh", True),
        ("bin/agent --fast", True),
        ("my tools/agent", True),  # it is there
        ("python3 ./agent.py", False),
        ("sh -c 'echo /tmp'", False),
        ("/usr/bin/agent", False),
        ("agent", False),
        ("builtin ./more", False),
    ],
)
def test_a_path_among_the_arguments_makes_no_path_of_a_command(
    tmp_path: Path, command: str, is_path: bool
) -> None:
    (tmp_path / "my tools").mkdir()
    (tmp_path / "my tools" / "agent").touch()
    assert is_path_from(str(tmp_path), command) is is_path
