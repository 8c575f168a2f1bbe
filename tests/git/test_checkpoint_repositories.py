"""Another repository in the work tree that an agent deletes comes back (B §Rollback, ADR 28)."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kits.work_tree import git, new_repository, state, work_of
from ralph.git.checkpoint import copies
from ralph.git.checkpoint.checkpoint import WorkTree


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "top")


def clone(top: Path, name: str) -> Path:
    """A person's other repository: a commit, a change, a link and a file only they may read."""
    place = new_repository(top / name)
    (place / "b").write_text("not committed")
    (place / "b").chmod(0o600)
    return place


def is_as_before(place: Path) -> bool:
    same = (place / "b").read_text() == "not committed", (place / "b").stat().st_mode & 0o777
    assert os.readlink(place / "link") == "b"
    assert git(place, "log", "--format=%s") == "Begin"
    git(place, "fsck", "--strict")
    return same == (True, 0o600)


def delete(place: Path) -> None:
    shutil.rmtree(place)


def take_git(place: Path) -> None:
    shutil.rmtree(place / ".git")
    (place / "b").write_text("the agent's")


def write_in_its_place(place: Path) -> None:
    shutil.rmtree(place)
    place.write_text("the agent's")


def link_elsewhere(place: Path) -> None:
    place.rename(place.parents[1] / "moved")
    place.symlink_to(place.parents[1] / "moved")


@pytest.mark.parametrize("name", ["vendor", "a/b/c"])
@pytest.mark.parametrize("do", [delete, take_git, write_in_its_place])
def test_a_repository_that_is_gone_comes_back(
    top: Path, name: str, do: Callable[[Path], None]
) -> None:
    """The issue: "a person's uncommitted work at the start is never touched"."""
    place = clone(top, name)
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    do(place)
    work.restore(point, "cut-1")
    assert state(top) == was
    assert is_as_before(place)
    assert work.notes()[0].startswith(f"Put back, a repository of its own: {name}/")
    assert work.restore(point, "cut-2") == ""
    assert work.notes() == ()


@pytest.mark.parametrize("do", [take_git, write_in_its_place])
def test_what_stood_in_its_place_is_put_aside(top: Path, do: Callable[[Path], None]) -> None:
    place = clone(top, "vendor")
    work = work_of(top)
    point = work.checkpoint()
    do(place)
    work.restore(point, "cut-1")
    aside = Path(work.run_dir, "aside/cut-1/vendor")
    assert (aside / "b" if aside.is_dir() else aside).read_text() == "the agent's"


def test_a_link_in_its_place_is_no_repository(top: Path) -> None:
    place = clone(top, "vendor")
    work = work_of(top)
    point = work.checkpoint()
    link_elsewhere(place)
    work.restore(point, "cut-1")
    assert not place.is_symlink()
    assert is_as_before(place)


def test_a_repository_that_is_there_is_left_as_the_agent_left_it(top: Path) -> None:
    place = clone(top, "vendor")
    work = work_of(top)
    point = work.checkpoint()
    (place / "b").write_text("changed")
    work.restore(point, "cut-1")
    assert (place / "b").read_text() == "changed"


def test_one_that_is_too_large_is_told(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "_MOST_ENTRIES", 200)
    small, large = clone(top, "small"), clone(top, "z")
    for number in range(200):
        (large / f"{number}").touch()
    work = work_of(top)
    point = work.checkpoint()
    delete(small)
    delete(large)
    work.restore(point, "cut-1")
    assert is_as_before(small)
    why = "too large to be copied, or not readable"
    assert work.notes()[1] == f"Not undone, {why}: z/ is gone"


def kept_in(work: WorkTree, number: int) -> Path:
    return Path(work.run_dir, "checkpoints", str(number), "repositories/0")


def test_an_unchanged_repository_is_copied_once(top: Path) -> None:
    """A long run has many checkpoints; the older ones go."""
    place = clone(top, "vendor")
    work = work_of(top)
    work.checkpoint()
    work.settled()
    inode = (kept_in(work, 1) / "b").stat().st_ino
    point = work.checkpoint()
    assert (kept_in(work, 2) / "b").stat().st_ino == inode
    assert not kept_in(work, 1).exists()
    delete(place)
    work.restore(point, "cut-1")
    assert is_as_before(place)
    assert (place / "b").stat().st_ino != inode


def test_a_change_is_copied_anew(top: Path) -> None:
    place = clone(top, "vendor")
    work = work_of(top)
    first = work.checkpoint()
    (place / "b").write_text("changed later")
    second = work.checkpoint()
    delete(place)
    work.restore(second, "cut-1")
    assert (place / "b").read_text() == "changed later"
    delete(place)
    work.restore(first, "cut-2")
    assert is_as_before(place)


def test_pipes_are_left_out_and_a_half_copy_begins_again(top: Path) -> None:
    """As a restore that was killed leaves it: files, and no `.git` yet."""
    place = clone(top, "vendor")
    os.mkfifo(place / "pipe")
    work = work_of(top)
    point = work.checkpoint()
    delete(place)
    shutil.copytree(kept_in(work, 1), place, ignore=shutil.ignore_patterns(".git"), symlinks=True)
    shutil.copytree(kept_in(work, 1) / ".git", place / ".git.ralph")
    work.restore(point, "cut-1")
    assert is_as_before(place)
    assert not (place / ".git.ralph").exists()
    assert not (place / "pipe").exists()


def test_a_linked_worktree_comes_back(top: Path) -> None:
    """Its `.git` is a file."""
    git(top, "worktree", "add", "--quiet", "-b", "other", "linked")
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    delete(top / "linked")
    work.restore(point, "cut-1")
    assert state(top) == was
    assert git(top / "linked", "status", "--porcelain") == ""
