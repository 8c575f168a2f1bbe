"""Bad input: settings that are no file, no HOME, no PATH, two runs at once."""

import json
import signal
from pathlib import Path

import pytest
from run_support import (
    Here,
    Running,
    assert_clear,
    in_shell,
    journals,
    nothing_runs,
    prepare,
    prompts,
    ralph,
)

from ralph.testing.scripted_agent.install import calls

DONE = {"response": "DONE"}


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_settings_that_are_a_directory(here: Here, workspace: Path, name: str) -> None:
    """Bad input: "a settings *directory*"."""
    agent = prepare(workspace, DONE)
    path = workspace / ".ralph" / name
    path.unlink(missing_ok=True)
    path.mkdir()
    done = here("-p", "x", "--agent", agent)
    assert_clear(done, 2, f".ralph/{name}: is not a file.", f"Move .ralph/{name} away")
    assert calls(agent) == []


def test_a_ralph_directory_that_is_a_file(here: Here, workspace: Path) -> None:
    agent = prepare(workspace, DONE)
    (workspace / ".ralph" / "settings.json").unlink()
    (workspace / ".ralph").rmdir()
    (workspace / ".ralph").write_text("x")
    assert_clear(here("-p", "x", "--agent", agent), 2, ".ralph")
    assert calls(agent) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", ".ralph/settings.json:1:"),
        ('{"maximumIterations": 0}', ".ralph/settings.json: maximumIterations: found 0"),
        ('{"maximumIteratons": 3}', "maximumIterations"),
        ('{"agent": {"command": "a", "command": "b"}}', "agent.command: stands there twice"),
        ("[]", "expected a JSON object"),
    ],
)
def test_settings_that_are_wrong(here: Here, workspace: Path, text: str, words: str) -> None:
    """The issue: "Settings errors name file, JSON path, what was found and what is allowed"."""
    agent = prepare(workspace, DONE)
    (workspace / ".ralph" / "settings.json").write_text(text)
    assert_clear(here("-p", "x", "--agent", agent), 2, words)
    assert calls(agent) == []


def test_settings_that_are_spoilt_during_the_run_are_put_back(here: Here, workspace: Path) -> None:
    """ADR 12: "Settings are read once, at the start"."""
    agent = prepare(workspace, {"files": {".ralph/settings.json": "{ broken"}}, DONE)
    assert_clear(here("-p", "x"), 0)
    assert json.loads((workspace / ".ralph" / "settings.json").read_text())
    assert len(calls(agent)) == 2


# ------------------------------------------------------------------ the environment


def test_home_unset(workspace: Path) -> None:
    agent = prepare(workspace, DONE)
    assert_clear(in_shell("unset HOME; ralph -p x"), 0)
    assert "HOME" not in calls(agent)[0]["env"]


def test_no_home_to_be_found(workspace: Path) -> None:
    """A user without an entry: nothing is written into a directory called `~`."""
    prepare(workspace, DONE)
    site = workspace.parent / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import pwd; pwd.getpwuid = {}.__getitem__")
    unset = "unset HOME XDG_STATE_HOME RALPH_STATE_DIR"
    done = in_shell(f"{unset}; export PYTHONPATH={site}:$PYTHONPATH; ralph -p x")
    assert_clear(done, 2, "there is no home directory to keep the journal in", "RALPH_STATE_DIR=")
    assert not (workspace / "~").exists()


def test_path_unset(workspace: Path) -> None:
    """The agent is named by its path, a guardrail's `sh` is found where the system has it."""
    agent = prepare(workspace, DONE, guardrails=[{"command": "echo hello"}])
    assert_clear(in_shell("unset PATH; ralph -p x"), 0, "Guardrail exited with code 0")
    assert len(calls(agent)) == 1


@pytest.mark.parametrize("path", ["unset PATH", "PATH="])
def test_no_path_and_no_agent(workspace: Path, path: str) -> None:
    assert_clear(in_shell(f"{path}; ralph -p x"), 2, "no agent found on PATH")


def test_the_agent_knows_its_run_and_no_foreign_key(
    here: Here, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ADR 13, and `RALPH_RUN`."""
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    env = {"set": {"RALPH_EXTRA": "yes"}, "unset": ["LANG"]}
    agent = prepare(workspace, DONE, agent={"env": env})
    assert here("-p", "x").code == 0
    seen = calls(agent)[0]["env"]
    assert not {"CLAUDECODE", "OPENAI_API_KEY", "LANG"} & set(seen)
    assert (seen["RALPH_EXTRA"], seen["RALPH_RUN"]) == ("yes", journals()[0].parent.name)


# ------------------------------------------------------------------ two runs at once


def test_a_second_run_in_the_same_workspace_is_refused_and_told_the_pid(workspace: Path) -> None:
    """Bad input; ADR 10: "A live owner is named and refused (2)"."""
    turn = {"tools": [{"name": "Bash", "run": "until [ -e go ]; do sleep 0.02; done"}], **DONE}
    agent = prepare(workspace, turn)
    first = Running(workspace, "-p", "first")
    first.await_that(lambda: calls(agent))
    second = ralph("-p", "second", "--json")
    words = ("another ralph works in this directory", f"pid {first.process.pid}", "kill -INT")
    assert_clear(second, 2, *words)
    assert second.objects[-1]["run"] is None
    (workspace / "go").touch()
    assert first.end().code == 0
    assert prompts(agent) == ["first"]
    assert nothing_runs(agent)
    assert ralph("-p", "third").code == 0


def test_runs_in_two_workspaces_do_not_meet(workspace: Path) -> None:
    other = workspace.parent / "other"
    other.mkdir()
    turn = {"tools": [{"name": "Bash", "run": "until [ -e go ]; do sleep 0.02; done"}], **DONE}
    agent = prepare(workspace, turn)
    first = Running(workspace, "-p", "x")
    first.await_that(lambda: calls(agent))
    (other / "go").touch()
    assert ralph("-p", "x", "-C", str(other), "--agent", agent).code == 0
    first.send(signal.SIGINT)
    (workspace / "go").touch()
    assert first.end().code == 130
