"""Commits of the host for an agent that cannot commit (R §6, ADR 20)."""

import os
import subprocess
from pathlib import Path

import pytest

from ralph.git.uncommitted import HostCommit


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A repository with one commit, and what its person has not committed."""
    git(tmp_path, "init", "-q")
    git(tmp_path, "config", "user.name", "A Person")
    git(tmp_path, "config", "user.email", "person@example.com")
    for name in ("old.txt", "mine.txt", "gone.txt"):
        (tmp_path / name).write_text("before\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "begin")
    (tmp_path / "mine.txt").write_text("not yet\n")
    git(tmp_path, "add", "mine.txt")
    return tmp_path


def git(place: Path, *words: str) -> str:
    done = subprocess.run(("git", *words), cwd=place, capture_output=True, text=True, check=True)
    return done.stdout


def work(place: Path) -> None:
    (place / "old.txt").write_text("after\n")
    (place / "gone.txt").unlink()
    (place / "new").mkdir()
    (place / "new" / "file.txt").write_text("new\n")
    (place / "link").symlink_to("/nowhere/at/all")
    (place / ".ralph-active").write_text("{}")


def test_a_turns_work_is_committed_and_a_persons_is_not(place: Path) -> None:
    """What a person had not committed, or had staged, stays exactly as it is."""
    work(place)
    commit = HostCommit(str(place), os.environ, ["mine.txt"])
    assert commit("feat: [US-001] - One", "run-1")
    assert git(place, "log", "-1", "--format=%s%n%(trailers:key=Ralph-Run,valueonly)").split() == [
        *("feat:", "[US-001]", "-", "One", "run-1")
    ]
    changed = git(place, "show", "--name-status", "--format=", "--no-renames").splitlines()
    assert changed == ["D\tgone.txt", "A\tlink", "A\tnew/file.txt", "M\told.txt"]
    assert git(place, "status", "--porcelain") == "M  mine.txt\n?? .ralph-active\n"
    assert (commit.refusal, commit("feat: nothing", "run-1")) == ("", False)
    assert git(place, "rev-list", "--count", "HEAD") == "2\n", "there was nothing more"


def test_what_a_hook_of_the_persons_says_against_it_is_told(place: Path) -> None:
    work(place)
    hook = place / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho no tests >&2\nexit 1\n")
    hook.chmod(0o755)
    commit = HostCommit(str(place), os.environ, ["mine.txt"])
    assert not commit("feat: [US-001] - One", "run-1")
    assert commit.refusal == "no tests"
    hook.unlink()
    assert commit("feat: [US-001] - One", "run-1")
    assert commit.refusal == ""
