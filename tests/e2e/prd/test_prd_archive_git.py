"""`ralph prd archive` and git: locks, hooks, odd paths."""

import os
import subprocess
from pathlib import Path

import pytest
from archive_support import here as here  # noqa: PLC0414  a fixture
from archive_support import project as project  # noqa: PLC0414  a fixture
from prd_support import commit_all, contents, git
from run_support import Here, assert_clear, program

pytestmark = pytest.mark.slow


def test_a_lock_that_a_killed_git_has_left(here: Here, project: Path) -> None:
    """ "afterwards the tree is clean and committed": an index that is locked cannot be."""
    lock = project / ".git" / "index.lock"
    lock.touch()
    before, head = contents(project), git(project, "rev-parse", "HEAD")
    assert_clear(here("prd", "archive"), 2, f"{lock} is there", f"rm {lock}")
    assert (contents(project), git(project, "rev-parse", "HEAD")) == (before, head)
    lock.unlink()
    assert here("prd", "archive").code == 0
    assert git(project, "status", "--porcelain") == ""


def test_a_lock_that_comes_while_we_commit(here: Here, project: Path) -> None:
    """The commit is there, and what its index lacks is told with what to type."""
    program(project / ".git" / "hooks" / "post-commit", "touch .git/index.lock")
    said = here("prd", "archive").out
    assert "But git's index does not know of it: " in said
    (project / ".git" / "index.lock").unlink()
    typed = said.partition("then type: ")[2].splitlines()[0]
    subprocess.run(typed, cwd=project, shell=True, check=True)
    assert git(project, "status", "--porcelain") == ""


def test_a_line_end_in_the_path(here: Here, project: Path, tmp_path: Path) -> None:
    moved = tmp_path / "two\nlines"
    project.rename(moved)
    try:
        done = here("prd", "archive", "-d", str(moved))
        assert (done.code, done.err) == (0, "")
        assert git(moved, "status", "--porcelain") == ""
    finally:
        os.chdir(tmp_path)
        moved.rename(project)


def test_what_was_written_while_a_hook_refused_is_not_lost(here: Here, project: Path) -> None:
    folder = project / "ralph"
    before = contents(folder)
    hook = project / ".git" / "hooks" / "pre-commit"
    program(hook, "echo mine > ralph/progress.txt; exit 1")
    assert_clear(here("prd", "archive"), 2, "git did not take the archive")
    assert contents(folder) == {**before, "progress.txt": b"mine\n"}
    (archive,) = (project / "ralph-archive").iterdir()
    kept = contents(archive)
    assert kept["progress.txt"] == before["progress.txt"]


def test_git_is_asked_once_for_all_archives(
    here: Here, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A project of years has hundreds."""
    for number in range(20):
        old = project / "ralph-archive" / f"2026-01-{number:02}-old"
        old.mkdir(parents=True)
        (old / "tasks.json").write_text("{}")
    commit_all(project)
    calls = tmp_path / "calls"
    monkeypatch.setenv("GIT_TRACE", str(calls))
    assert here("prd", "archive").code == 0
    assert calls.read_text().count("git status") <= 1
