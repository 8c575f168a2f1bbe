"""What an agent must not get away with, end to end: protected paths, secrets, limits."""

import os
import subprocess
from pathlib import Path

import pytest
from run_support import Here, assert_clear, prepare, program, prompts

KEY = "sk-ant-api03-ABCDEFGHIJKLMNOPQRSTUV"
DONE = {"response": "DONE"}
COMMIT = {"tasks": ["commit"]}
WORK = {"files": {"new.txt": "new"}, **DONE}


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], check=True, capture_output=True, text=True)
    return done.stdout


def test_a_message_turn_may_not_touch_protected_paths(here: Here, repo: Path) -> None:
    """ADR 12: "The same holds for the message turn before a commit"."""
    hook = repo / ".git" / "hooks" / "pre-commit"
    plant = f"printf '#!/bin/sh\\ntouch pwned\\n' > {hook}; chmod +x {hook}"
    message = {"text": "Fix it", "tools": [{"name": "Bash", "run": plant}]}
    prepare(repo, WORK, message, kind="amp", scm=COMMIT)  # whose tools nothing takes away
    assert_clear(here("-p", "x"), 0, "No commit: Protected path .git/hooks/pre-commit was changed")
    assert not hook.exists()
    assert not (repo / "pwned").exists()
    assert git("log", "--format=%s") == "Begin\n"


def test_the_hooks_of_a_worktree_are_protected(
    here: Here, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ADR 12: `.git/hooks` is where git runs its hooks from, wherever that is."""
    git("worktree", "add", "--quiet", "tree")
    hook = repo / ".git" / "hooks" / "pre-commit"
    monkeypatch.chdir(repo / "tree")
    plant = {"name": "Bash", "run": f"echo evil > {hook}"}
    prepare(repo / "tree", {**DONE, "tools": [plant]}, DONE)
    assert_clear(here("-p", "x"), 0, "was changed. The change was undone", "after 2 iterations")
    assert not hook.exists()


@pytest.mark.parametrize(
    "trick",
    [
        "mkdir -p .ralph/reverted; touch .ralph/reverted/1; echo '{\"evil\": 1}' > {settings}",
        "rm -rf .ralph; echo in the way > .ralph",
        "rm {settings}; mkdir -p {settings}/below",
    ],
)
def test_what_was_protected_comes_back_whatever_stands_in_the_way(
    here: Here, repo: Path, trick: str
) -> None:
    """ADR 12: a change is undone, and does not become right by lasting."""
    run = trick.replace("{settings}", ".ralph/settings.json")
    prepare(repo, {**DONE, "tools": [{"name": "Bash", "run": run}]}, DONE)
    settings = repo / ".ralph" / "settings.json"
    before = settings.read_text()
    assert_clear(here("-p", "x"), 0, "The change was undone", "Completed after 2 iterations")
    assert settings.read_text() == before


def test_local_settings_are_never_committed(here: Here, repo: Path) -> None:
    """ADR 8: logs and local settings never leave the machine."""
    prepare(repo, WORK, {"text": "Add new"}, scm=COMMIT)
    (repo / ".ralph" / "settings.local.json").write_text('{"agent": {"env": {"set": {"A": "b"}}}}')
    assert here("-p", "x").code == 0
    assert "settings.local.json" not in git("ls-files")
    assert "new.txt" in git("ls-files")


def test_new_files_are_committed_also_where_git_does_not_show_them(here: Here, repo: Path) -> None:
    """ADR 8: "`-am` alone silently leaves new files out"."""
    prepare(repo, WORK, {"text": "Add new"}, scm=COMMIT)
    git("config", "status.showUntrackedFiles", "no")
    assert here("-p", "x").code == 0
    assert "new.txt" in git("ls-files")


def test_a_text_agent_that_echoes_the_message_prompt(here: Here, repo: Path) -> None:
    """ADR 3: a verbatim echo of the prompt is not the agent's word."""
    agent = program(repo / "parrot", 'echo "$1"; echo x > new.txt; echo "Real message"')
    prepare(repo, DONE, scm=COMMIT, agent={"command": agent}, maximumIterations=1)
    here("-p", "x")
    assert git("log", "-1", "--format=%s") == "Real message\n"


@pytest.mark.parametrize("frame", ["{}", "\033[31m{}\033[0m"])
def test_no_key_reaches_the_next_prompt(here: Here, workspace: Path, frame: str) -> None:
    """ADR 13: "key-shaped values out of everything people read", feedback too."""
    said = frame.format(KEY)
    guardrails = [{"command": f"printf '{said}'; exit 1"}]
    agent = prepare(workspace, {"stderr": said, "exit": 1}, DONE, guardrails=guardrails)
    here("-p", "x", "-m", "2")
    assert "[redacted]" in prompts(agent)[1]
    assert KEY not in prompts(agent)[1]
    state = Path(os.environ["RALPH_STATE_DIR"])
    assert not any(KEY in journal.read_text() for journal in state.rglob("journal.jsonl"))


def test_time_that_runs_out_is_a_limit_and_no_failure(here: Here, workspace: Path) -> None:
    """ADR 5: "a limit (1), not a failure (5)"."""
    prepare(workspace, {"hang": "before"}, failAfter=1)
    assert_clear(here("-p", "x", "--max-time", "0.3s"), 1, "of time used up (limit)")


def test_the_runs_time_bounds_a_guardrail(here: Here, workspace: Path) -> None:
    prepare(workspace, DONE, guardrails=[{"command": "sleep 300"}])
    done = here("-p", "x", "--max-time", "0.5s")
    assert_clear(done, 1, "Guardrail exited with code 124", "of time used up (limit)")


def test_an_agent_that_makes_the_repository_goes_on(here: Here, workspace: Path) -> None:
    """Issue 22: the samples in the new `.git/hooks` were findings, turn after turn."""
    again = {"name": "Bash", "run": "rm -rf .git; git init --quiet"}
    prepare(workspace, {"tools": [again]}, {**DONE, "tools": [again]})
    done = here("-p", "x")
    assert_clear(done, 0, "Completed after 2 iterations")
    assert "Protected path" not in done.err
    assert list((workspace / ".git" / "hooks").glob("*.sample"))
