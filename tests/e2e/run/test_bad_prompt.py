"""Bad input: prompts (the issue, "Bad input"). A clear message, the remedy, nothing lost."""

import os
from pathlib import Path

import pytest
from run_support import (
    FINISH,
    Here,
    assert_clear,
    facts,
    in_shell,
    journals,
    prepare,
    program,
    prompts,
    ralph,
    turns,
)

from kits.thorough import dealt
from ralph.kernel.facts import Settled
from ralph.kernel.verdict import Reason, Stop
from ralph.testing.scripted_agent.install import calls

DONE = {"response": "DONE"}


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-f", "missing.md"), "cannot read the prompt file missing.md: No such file or directory"),
        (("-f", "."), "cannot read the prompt file .: Is a directory"),
        (("-f", "binary.md"), "the prompt file binary.md is not UTF-8 text (byte 1)"),
        (("-f", "nul.md"), "the prompt file nul.md contains a NUL byte: it is not text"),
        (("-f", "empty.md"), "the prompt file empty.md is empty: write down what the agent should"),
        (("-f", "blank.md"), "the prompt file blank.md is empty"),
        (("-f", "pipe"), "pipe is a pipe: the prompt is read again before each turn"),
        (("-f", ""), "cannot read the prompt file : No such file or directory"),
        (("-p", ""), "the prompt is empty: write down what the agent should do"),
        (("-p", " \n "), "the prompt is empty"),
    ],
)
def test_a_prompt_that_cannot_be_used(
    here: Here, workspace: Path, arguments: tuple[str, ...], words: str
) -> None:
    """Bad input: "A missing … prompt file, empty prompt"; also binary, or a directory."""
    (workspace / "binary.md").write_bytes(b"\x7f\xff\xd8\x00")
    (workspace / "nul.md").write_bytes(b"a\0b")
    (workspace / "empty.md").touch()
    (workspace / "blank.md").write_text(" \n\t\n")
    os.mkfifo("pipe")
    agent = prepare(workspace, DONE)
    assert_clear(here("run", *arguments), 2, words, "Give a prompt with -p TEXT or -f FILE.")
    assert calls(agent) == []
    assert journals() == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("rm p.md", "cannot read the prompt file p.md: No such file or directory"),
        ("rm p.md; mkdir p.md", "cannot read the prompt file p.md: Is a directory"),
        ("printf '' > p.md", "the prompt file p.md is empty"),
        ("printf '\\377' > p.md", "the prompt file p.md is not UTF-8 text"),
    ],
)
def test_a_prompt_file_that_vanishes_during_the_run(
    here: Here, workspace: Path, change: str, words: str
) -> None:
    """Bad input: "a vanishing prompt file"; the work and the journal of iteration 1 are there."""
    (workspace / "p.md").write_text("do it")
    tools = [{"name": "Bash", "run": change}]
    agent = prepare(workspace, {"files": {"work": "done"}, "tools": tools}, DONE)
    assert_clear(here("-f", "p.md"), 2, words, "(config). 1 iteration")
    assert (len(calls(agent)), len(turns())) == (1, 1)
    assert (workspace / "work").read_text() == "done"
    last = facts()[-1]
    assert isinstance(last, Settled)
    assert isinstance(last.verdict, Stop)
    assert last.verdict.reason is Reason.CONFIG


def test_a_prompt_on_standard_input_is_read_once(workspace: Path) -> None:
    agent = prepare(workspace, {"text": "busy"}, DONE)
    assert_clear(in_shell("printf 'do it' | ralph -f -"), 0)
    assert prompts(agent) == ["do it", "do it"]


@pytest.mark.parametrize(
    ("input_", "words"),
    dealt(
        [
            ("printf '' |", "the prompt on standard input is empty"),
            ("<&-", "the prompt on standard input is empty"),
            ("printf 'a\\0b' |", "the prompt on standard input contains a NUL byte"),
            ("printf 'ab\\377' |", "the prompt on standard input is not UTF-8 text (byte 2)"),
        ],
        2,
    ),
)
def test_a_prompt_on_standard_input_that_cannot_be_used(
    workspace: Path, input_: str, words: str
) -> None:
    prepare(workspace, DONE)
    done = in_shell(f"export LC_ALL=C.UTF-8; {input_} ralph -f -")
    assert_clear(done, 2, words, "Give a prompt")


@pytest.mark.parametrize("kind", ["claude", "codex", "amp"])
def test_a_prompt_of_300_kb(here: Here, workspace: Path, kind: str) -> None:
    """Bad input: "a prompt of 300 KB"."""
    prompt = "é" * 150_000 + "end"
    (workspace / "p.md").write_text(prompt, "utf-8")
    agent = prepare(workspace, DONE, kind=kind)
    assert_clear(here("-f", "p.md"), 0)
    assert prompts(agent) == [prompt]


def test_a_prompt_of_300_kb_for_an_agent_that_only_takes_arguments(
    here: Here, workspace: Path
) -> None:
    """ADR 14: "else 2 naming `agent.promptVia`", and before anything is begun."""
    (workspace / "p.md").write_text("x" * 300_000)
    agent = prepare(workspace, DONE, kind="text")
    words = ("the prompt has 300000 bytes", "131071", "agent.promptVia", '"stdin" or "file"')
    assert_clear(here("-f", "p.md"), 2, *words)
    assert (calls(agent), journals()) == ([], [])


@pytest.mark.parametrize("via", ["stdin", "file"])
def test_the_remedy_for_a_long_prompt_helps(here: Here, workspace: Path, via: str) -> None:
    (workspace / "p.md").write_text("x" * 300_000)
    agent = prepare(workspace, DONE, kind="text", agent={"promptVia": via})
    assert_clear(here("-f", "p.md"), 0)
    (told,) = prompts(agent)
    read = told if via == "stdin" else Path(told).read_text().removesuffix(f"\n\n{FINISH}")
    assert read == "x" * 300_000


def test_a_prompt_that_grows_too_long_in_the_run_ends_it_and_keeps_the_work(
    here: Here, workspace: Path
) -> None:
    """The feedback of a guardrail can push a prompt over the limit of an argument."""
    rails = [{"command": "head -c 200000 /dev/zero | tr '\\0' x; exit 1"}]
    agent = prepare(
        workspace, {"files": {"work": "1"}}, kind="text", guardrails=rails, outputTruncateChars=0
    )
    assert_clear(here("-p", "x"), 2, "Agent could not be started", "agent.promptVia")
    assert len(calls(agent)) == 1
    assert (workspace / "work").exists()


def test_a_prompt_that_is_not_utf_8_on_the_command_line_arrives_as_it_was(workspace: Path) -> None:
    agent = prepare(workspace, DONE)
    assert_clear(ralph("-p", os.fsdecode(b"caf\xe9")), 0)
    assert prompts(agent) == [os.fsdecode(b"caf\xe9")]


def test_a_prompt_is_never_seen_by_a_shell(here: Here, workspace: Path) -> None:
    """ADR 14: "never through a shell"."""
    path = program(
        workspace / "agent", 'printf "%s\n" "$1" > said; echo "<response>DONE</response>"'
    )
    prompt = "$(touch evil) `touch evil` ; touch evil # 'quotes' \"more\" \\n %s"
    assert here("-p", prompt, "--agent", path).code == 0
    assert (workspace / "said").read_text() == f"{prompt}\n\n{FINISH}\n"
    assert not (workspace / "evil").exists()


def test_work_that_is_done_stays_done_whatever_becomes_of_its_prompt(
    here: Here, workspace: Path
) -> None:
    """ADR 2: finished work is reported as finished, also if the agent tidied its prompt away."""
    prepare(workspace, {**DONE, "tools": [{"name": "Bash", "run": "rm PROMPT.md"}]})
    (workspace / "PROMPT.md").write_text("do it")
    done = here("-f", "PROMPT.md")
    assert_clear(done, 0, "Completed after 1 iteration")
    assert not (workspace / "PROMPT.md").exists()


def test_standard_input_that_cannot_be_read(workspace: Path) -> None:
    prepare(workspace, DONE)
    done = in_shell("ralph -f - 0>somewhere")
    assert_clear(done, 2, "cannot read the prompt on standard input: Bad file descriptor")
