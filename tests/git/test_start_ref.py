"""What a person had not committed when a run began, and how long it is kept (ADR 25)."""

import os
import time
from pathlib import Path

import pytest

from kits.thorough import dealt
from kits.work_tree import git, new_repository, work_of
from ralph.git.checkpoint import start_ref as start_ref_module
from ralph.git.checkpoint.start_ref import (
    is_kept,
    is_needed,
    keep_project,
    keep_start,
    start_ref,
)
from ralph.git.checkpoint.trees import trees_of_run

DAY = 24 * 3600.0


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "project")


@pytest.fixture
def kept(top: Path) -> str:
    """A run begins with two stashes, an untracked file, a link, and a deleted file."""
    for name in ("first", "second"):
        (top / name).write_text(name)
        git(top, "stash", "--include-untracked", "--message", name)
    (top / "new").write_text("new\n")
    (top / "linked").symlink_to("new")
    (top / "b").unlink()
    (top / "a" / "one").write_text("staged\n")
    git(top, "add", "a/one")
    (top / "a" / "one").write_text("one\n")
    return start_ref(work_of(top).run_dir)


def needed(top: Path, ref: str, days: float = 0) -> bool:
    return is_needed(work_of(top, "other").repository, ref, time.time() + days * DAY)


def test_files_index_and_stashes_are_kept(top: Path, kept: str) -> None:
    assert git(top, "show", f"{kept}:new") == "new"
    base, _, *kept_stashes = git(top, "rev-parse", f"{kept}^@").splitlines()
    assert base == git(top, "rev-parse", "HEAD")
    assert kept_stashes == git(top, "stash", "list", "--format=%H").splitlines()


@pytest.mark.parametrize(
    ("lost", "is_lost"),
    dealt(
        [
            ("true", False),
            ("git stash drop", True),
            ("git stash clear", True),
            ("rm new", True),
            ("echo other > new", True),
            ("rm linked", True),
            ("ln -sf other linked", True),
            ("git checkout b", True),
            ("echo x > another", False),
            ("git add new && git commit -q -m x -- new", False),
            ("git reset -q", True),
        ],
        4,
    ),
)
def test_it_is_needed_while_something_of_it_is_gone(
    top: Path, kept: str, lost: str, *, is_lost: bool
) -> None:
    assert os.system(f"cd {top} && {lost} > /dev/null 2>&1") == 0
    assert needed(top, kept) is is_lost
    assert not needed(top, kept, days=31)


def test_nothing_is_kept_where_there_is_nothing(top: Path) -> None:
    ref = start_ref(work_of(top).run_dir)
    assert not git(top, "for-each-ref", ref)
    assert not needed(top, ref)


def test_a_conflict_keeps_what_can_be_kept(top: Path) -> None:
    """A run may be started to resolve it."""
    for branch, text in (("other", "theirs\n"), ("main", "ours\n")):
        git(top, "checkout", "-q", "-B", branch, "main")
        (top / "b").write_text(text)
        git(top, "commit", "-q", "-a", "-m", branch)
    git(top, "checkout", "-q", "-B", "main", "HEAD~1")
    (top / "b").write_text("ours\n")
    git(top, "commit", "-q", "-a", "-m", "ours")
    assert os.system(f"git -C {top} merge -q other > /dev/null 2>&1") != 0
    trees = trees_of_run(str(top), os.environ, str(top.parent / "runs" / "run-1"))
    assert trees is not None
    os.makedirs(trees.run_dir)
    trees.begin()
    keep_start(trees)
    assert "<<<<<<<" in git(top, "show", f"{start_ref(trees.run_dir)}:b")
    assert is_kept(trees.run_dir)


@pytest.mark.parametrize("change", ["", "echo new > new", "echo x >> b && git stash", "hidden"])
def test_a_plain_run_keeps_what_there_is_and_needs_no_trees_of_a_clean_project(
    top: Path, change: str
) -> None:
    """It never asks what would be committed."""
    hide = "git update-index --assume-unchanged b && echo x >> b"
    assert os.system(f"cd {top} && ({change.replace('hidden', hide) or 'true'}) > /dev/null") == 0
    run = top.parent / "runs" / "run-1"
    run.mkdir(parents=True)
    assert keep_project(str(top), os.environ, str(run), None) is bool(change)
    assert is_kept(str(run))
    assert bool(git(top, "for-each-ref", start_ref(str(run)))) is bool(change)
    assert (run / "view").is_dir() is bool(change)
    again = keep_project(str(top), os.environ, str(run), None)
    assert again is bool(change), "who was killed before it was noted calls it again"


@pytest.mark.parametrize("change", ["true", "echo new > new"])
def test_a_run_that_begins_forgets_what_a_dead_one_has_left(
    top: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = "refs/ralph/run-0/checkpoint-1"
    git(top, "update-ref", dead, "HEAD")
    assert os.system(f"cd {top} && {change}") == 0
    for name in ("run-0", "run-1"):
        (top.parent / "runs" / name).mkdir(parents=True)
    monkeypatch.setattr(start_ref_module, "_is_over", lambda run: run.endswith("run-0"))
    keep_project(str(top), os.environ, str(top.parent / "runs" / "run-1"), None)
    assert not git(top, "for-each-ref", dead)


def test_outside_git_nothing_is_kept(tmp_path: Path) -> None:
    assert not keep_project(str(tmp_path), os.environ, str(tmp_path / "run"), None)
    assert not (tmp_path / "run").exists()
