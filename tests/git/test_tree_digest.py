"""The digest that sees progress (ADR 1): a commit or a changed tree, Ralph's own left out."""

import os
import subprocess
from pathlib import Path

import pytest

from ralph.git.digest import TreeDigest
from ralph.kernel.ports import Workspace


def git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True, capture_output=True)


def digest_of(workspace: Path) -> TreeDigest:
    return TreeDigest(str(workspace), os.environ)


@pytest.fixture(params=["git", "plain"])
def tree(request: pytest.FixtureRequest, workspace: Path) -> Path:
    """A workspace with a file, once with git and once without."""
    if request.param == "git":
        request.getfixturevalue("repo")
    (workspace / "file.txt").write_text("one")
    return workspace


def test_nothing_done_is_no_progress(tree: Path) -> None:
    digest = digest_of(tree)
    assert digest() == digest() == digest_of(tree)()


@pytest.mark.parametrize("name", ["new.txt", "ein neues.txt", "-x", "tief/er/neu", "é\n.txt"])
def test_a_new_file_is_progress(tree: Path, name: str) -> None:
    digest = digest_of(tree)
    before = digest()
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text("new")
    middle = digest()
    assert middle != before
    (tree / name).write_text("newer")
    assert digest() != middle
    (tree / name).unlink()
    assert digest() == before


def test_ralphs_own_files_are_no_progress(tree: Path) -> None:
    """ "Ralph's own files left out"."""
    digest = digest_of(tree)
    before = digest()
    (tree / ".ralph").mkdir()
    (tree / ".ralph" / "guardrail_001_x.log").write_text("x")
    (tree / ".ralph" / "settings.json").write_text("{}")
    assert digest() == before


@pytest.mark.parametrize("stage", [False, True])
def test_a_second_change_of_the_same_file_is_progress(repo: Path, stage: bool) -> None:
    digest = digest_of(repo)
    seen = {digest()}
    for text in ("two words", "three of them", "and four of these"):
        (repo / "README.md").write_text(text)
        if stage:
            git("add", "--all")
        seen.add(digest())
    assert len(seen) == 4


def test_a_commit_is_progress(repo: Path) -> None:
    """A tree that is clean because it was committed is no standstill."""
    digest = digest_of(repo)
    before = digest()
    git("commit", "--quiet", "--allow-empty", "--message", "x")
    assert digest() != before


def test_a_change_of_a_renamed_file_is_progress(repo: Path) -> None:
    git("mv", "README.md", "a new name.md")
    digest = digest_of(repo)
    before = digest()
    (repo / "a new name.md").write_text("changed")
    middle = digest()
    (repo / "a new name.md").write_text("changed again")
    assert len({before, middle, digest()}) == 3


def test_a_change_in_a_folder_of_the_repository_is_progress(repo: Path) -> None:
    """Git's paths are relative to the top of the repository, not to the workspace."""
    folder = repo / "folder"
    folder.mkdir()
    (folder / "file.txt").write_text("one")
    digest = digest_of(folder)
    before = digest()
    (folder / "file.txt").write_text("two words")
    assert digest() != before


def test_ralphs_own_files_in_a_folder_of_the_repository_are_no_progress(repo: Path) -> None:
    folder = repo / "folder"
    (folder / ".ralph").mkdir(parents=True)
    digest = digest_of(folder)
    before = digest()
    (folder / ".ralph" / "x.log").write_text("x")
    assert digest() == before


def test_a_conflict_that_is_worked_on_is_progress(repo: Path) -> None:
    git("checkout", "--quiet", "-b", "other")
    (repo / "README.md").write_text("other")
    git("commit", "--quiet", "--all", "--message", "other")
    git("checkout", "--quiet", "main")
    (repo / "README.md").write_text("main")
    git("commit", "--quiet", "--all", "--message", "main")
    subprocess.run(["git", "merge", "other"], check=False, capture_output=True)
    digest = digest_of(repo)
    before = digest()
    (repo / "README.md").write_text("half solved, half not, and longer than before")
    assert digest() != before


def test_ignored_files_are_no_progress(repo: Path) -> None:
    (repo / ".gitignore").write_text("*.pyc\n")
    digest = digest_of(repo)
    before = digest()
    (repo / "x.pyc").write_text("x")
    assert digest() == before


def test_without_git_on_path_the_files_are_walked(workspace: Path) -> None:
    digest = TreeDigest(str(workspace), {"PATH": "/nowhere"})
    before = digest()
    (workspace / "node_modules").mkdir()
    (workspace / "node_modules" / "x").write_text("x")
    assert digest() == before, "what tools put there is no work"
    (workspace / "x").write_text("x")
    assert digest() != before


def test_progress_is_not_looked_for_where_nobody_asks(workspace: Path) -> None:
    from ralph.gates.protect import Protector
    from ralph.kernel.tasks.task import Backlog
    from ralph.kernel.world import Signals

    protector = Protector(str(workspace), (), str(workspace / "store"))
    world = Workspace(Signals, Backlog, protected=protector.digests)
    assert (world.snapshot().tree, world.signals(), world.backlog()) == ("", Signals(), Backlog())
