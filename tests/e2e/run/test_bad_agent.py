"""Bad input: agents (the issue, "Bad input"). A clear message, the remedy, nothing lost."""

from pathlib import Path
from typing import Any

import pytest
from run_support import Here, assert_clear, journals, prepare, program, prompts, turns

from ralph.kernel.turn import Ending
from ralph.testing.scripted_agent.install import calls

DONE = {"response": "DONE"}


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("nosuch", ("agent command 'nosuch' was not found", "Check --agent or agent.command")),
        ("/no/such/agent", ("'/no/such/agent' was not found",)),
        ("./folder", ("'./folder' is a directory", "Name the program itself")),
        ("./plain", ("'./plain' is not executable", "chmod +x ./plain")),
        ("", ("--agent: found", "text that is not blank")),
    ],
)
def test_an_agent_that_cannot_be_used_is_refused_before_the_run(
    here: Here, workspace: Path, command: str, words: tuple[str, ...]
) -> None:
    """Bad input: "unknown agent command", a directory, not executable."""
    (workspace / "folder").mkdir()
    (workspace / "plain").write_text("#!/bin/sh\n")
    assert_clear(here("-p", "x", "--agent", command), 2, *words)
    assert journals() == []


def test_no_agent_at_all(here: Here, workspace: Path) -> None:
    """ADR 15: "none: 2, with the remedy"."""
    installs = (
        "claude    npm install -g @anthropic-ai/claude-code",
        "opencode  npm install -g ope",
    )
    assert_clear(here("-p", "x"), 2, "no agent found on PATH", *installs, "ralph demo")


def test_the_first_known_agent_on_path_is_named(
    here: Here, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ADR 15: "the first of claude, codex, amp, … on PATH, named"."""
    prepare(workspace, DONE, kind="codex")
    (workspace / ".ralph" / "settings.json").unlink()
    monkeypatch.setenv("PATH", str(workspace.parent / "bin"), prepend=":")
    assert_clear(here("-p", "x"), 0, "Agent: codex (codex)")


@pytest.mark.parametrize("text", ["#!/no/such/interpreter\n", "no program at all", ""])
def test_an_agent_with_a_bad_interpreter(here: Here, workspace: Path, text: str) -> None:
    path = workspace / "agent"
    path.write_text(text)
    path.chmod(0o755)
    words = ("is no program that this machine can run", f"Check its first line: head -1 {path}")
    assert_clear(here("-p", "x", "--agent", str(path)), 2, *words)


def test_an_agent_that_vanishes_during_the_run(here: Here, workspace: Path) -> None:
    """ "Not found / not executable ends the run (2)"; the first iteration's work is kept."""
    path = program(workspace / "agent", 'echo work > work; rm "$0"')
    words = (f"agent command {path!r} was not found", "2 iterations")
    assert_clear(here("-p", "x", "--agent", path), 2, *words)
    assert (workspace / "work").exists()
    assert [t.turn.ending for t in turns()] == [Ending.EXITED, Ending.UNSTARTABLE]


def test_an_agent_that_removes_the_workspace(here: Here, workspace: Path) -> None:
    path = program(workspace.parent / "agent", f"rm -rf {workspace}")
    assert_clear(here("-p", "x", "--agent", path), 2, f"cannot use {workspace}: No such file")
    assert len(turns()) == 2


NOISE = [
    pytest.param({"lines_of": [3, 10_000_000]}, id="lines of 10 MB"),
    pytest.param({"raw": {"base64": "//7/gYIKw+nDCg=="}}, id="invalid UTF-8"),
    pytest.param({"raw": {"base64": "AAAAAAoACg=="}}, id="NUL bytes"),
    pytest.param({"raw": '{\n[]\n{}\nnull\n{"type": 5}\n'}, id="half JSON"),
]


@pytest.mark.parametrize("kind", ["claude", "codex", "amp", "text"])
@pytest.mark.parametrize("noise", NOISE)
def test_an_agent_that_prints_noise_is_heard_all_the_same(
    here: Here, workspace: Path, kind: str, noise: dict[str, Any]
) -> None:
    """Bad input: "an agent that prints 10 MB lines, invalid UTF-8, NUL bytes"."""
    prepare(workspace, {**noise, **DONE}, kind=kind)
    assert_clear(here("-p", "x"), 0, "Completed after 1 iteration")
    assert len(turns()) == 1


def test_what_was_skipped_is_counted(here: Here, workspace: Path) -> None:
    prepare(workspace, {"lines_of": [3, 10_000_000], **DONE})
    assert_clear(here("-p", "x", "-V"), 0, "3 lines of the agent's output not understood")


def test_a_plain_agent_that_prints_nothing_at_all(here: Here, workspace: Path) -> None:
    """Bad input: "or nothing at all": H's loop goes on to its limit and says what to do."""
    prepare(workspace, {}, kind="text")
    assert_clear(here("-p", "x", "-m", "2"), 1, "2 iterations used up", "ralph resume")


@pytest.mark.parametrize("kind", ["claude", "codex", "amp"])
def test_an_agent_with_a_stream_that_prints_nothing_at_all_fails(
    here: Here, workspace: Path, kind: str
) -> None:
    agent = prepare(workspace, {"frame": False}, kind=kind)
    words = ("the stream ended without a final result", "3 agent failures in a row")
    assert_clear(here("-p", "x"), 5, *words)
    assert len(calls(agent)) == 3


def test_an_agent_that_is_killed_is_a_failure_with_its_signal(here: Here, workspace: Path) -> None:
    path = program(workspace / "agent", "echo '<response>DONE</response>'; kill -9 $$")
    assert_clear(here("-p", "x", "--agent", path, "-m", "1"), 1, "code 137")


def test_what_an_agent_says_on_stderr_is_shown_when_it_fails(here: Here, workspace: Path) -> None:
    agent = prepare(workspace, {"exit": 1, "stderr": "one\ntwo\nplease log in"}, DONE)
    assert_clear(here("-p", "x"), 0, "stderr: please log in")
    assert prompts(agent)[1].endswith("exit code 1: please log in")


def test_an_agent_that_closes_its_pipes_and_goes_on_is_waited_for(
    here: Here, workspace: Path
) -> None:
    script = "echo '<response>DONE</response>'; exec >&- 2>&-; sleep 0.2; echo late > late"
    path = program(workspace / "agent", script)
    assert_clear(here("-p", "x", "--agent", path), 0)
    assert (workspace / "late").exists()


def test_a_daemon_that_keeps_the_output_open_does_not_hold_up_the_run(
    here: Here, workspace: Path
) -> None:
    """It inherits the pipe and outlives the agent; its end is not awaited."""
    prepare(workspace, {"spawn": [{"run": "sleep 2", "setsid": True}], **DONE})
    assert_clear(here("-p", "x"), 0, "Completed after 1 iteration")
