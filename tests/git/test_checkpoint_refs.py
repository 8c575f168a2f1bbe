"""Branches, tags and the stash that an agent deleted or moved come back (ADR 28)."""

from pathlib import Path

import pytest

from kits.work_tree import git, new_repository, state, work_of

Words = tuple[str, ...]


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A repository with two more branches, two tags and two stashes of a person's."""
    top = new_repository(tmp_path / "top")
    git(top, "branch", "other")
    git(top, "branch", "topic/one")
    git(top, "tag", "light")
    git(top, "tag", "--annotate", "heavy", "--message", "heavy")
    git(top, "tag", "of-a-file", "HEAD:b")
    git(top, "tag", "--annotate", "of-a-tag", "--message", "x", "heavy")
    for number in ("one", "two"):
        (top / "b").write_text(f"{number}\n")
        git(top, "stash", "push", "--quiet", "--message", number)
    return top


def refs(top: Path) -> dict[str, str]:
    said = git(top, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags")
    return dict(line.split(" ") for line in said.splitlines())


def stash(top: Path) -> list[str]:
    return git(top, "stash", "list", "--format=%H %gs").splitlines()


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        ("branch", "--delete", "--force", "other", "topic/one"),
        ("branch", "--move", "other", "renamed"),
        ("tag", "--delete", "light", "heavy"),
        ("stash", "clear"),
        ("stash", "drop", "--quiet", "stash@{1}"),
        ("stash", "pop", "--quiet"),
    ],
    ids=" ".join,
)
def test_what_was_deleted_comes_back(top: Path, words: Words, *, failed: bool) -> None:
    """The issue: "a blocked task's [changes are discarded] too"."""
    work = work_of(top)
    point, was, places, stashes = work.checkpoint(), state(top), refs(top), stash(top)
    git(top, *words)
    if words[0] != "tag":
        git(top, "-c", "gc.reflogExpire=now", "gc", "--quiet", "--prune=now")
    if failed:
        (top / "new").write_text("x")
    work.restore(point, "cut-1")
    assert state(top) == was
    assert places.items() <= refs(top).items()
    assert {*stash(top)} == {*stashes}
    (note,) = work.notes()
    assert note.startswith("Brought back")
    assert "refs-cut-1" not in note
    work.restore(point, "cut-1")
    assert {*stash(top)} == {*stashes}
    assert work.notes() == ()


def test_what_was_moved_comes_back_and_what_it_became_is_kept(top: Path) -> None:
    work = work_of(top)
    point, places = work.checkpoint(), refs(top)
    git(top, "checkout", "--quiet", "other")
    git(top, "commit", "--quiet", "--allow-empty", "--message", "on other")
    moved = git(top, "rev-parse", "other")
    git(top, "tag", "--force", "light")
    git(top, "checkout", "--quiet", "main")
    git(top, "branch", "new")
    work.restore(point, "cut-1")
    assert refs(top) == {**places, "refs/heads/new": point.head}
    kept = "refs/ralph/run-1/refs-cut-1"
    assert git(top, "rev-parse", f"{kept}/heads/other", f"{kept}/tags/light") == f"{moved}\n{moved}"
    (note,) = work.notes()
    assert note.startswith("Brought back as they were: other, tags/light.")
    assert kept in note
    git(top, "branch", "--force", "other", "refs/stash")
    work.restore(point, "cut-1")
    assert git(top, "rev-parse", f"{kept}/heads/other.1") == git(top, "rev-parse", "refs/stash")


def test_a_branch_in_another_work_tree_is_left_alone(top: Path) -> None:
    """Somebody works there, who knows nothing of this run."""
    git(top, "worktree", "add", "--quiet", str(top.parent / "second"), "other")
    work = work_of(top)
    point = work.checkpoint()
    git(top.parent / "second", "commit", "--quiet", "--allow-empty", "--message", "a person's")
    moved = git(top, "rev-parse", "other")
    (top / "new").write_text("x")
    assert work.restore(point, "cut-1")
    assert git(top, "rev-parse", "other") == moved
    (note,) = work.notes()
    assert "Not brought back: other: it is checked out in" in note


def test_a_name_that_is_taken_stops_nothing(top: Path) -> None:
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    git(top, "branch", "--delete", "--force", "other")
    git(top, "branch", "other/new")
    (top / "new").write_text("x")
    assert work.restore(point, "cut-1")
    assert state(top) == was
    assert "Not brought back: other: git update-ref" in work.notes()[0]


def test_new_stashes_stay(top: Path) -> None:
    work = work_of(top)
    point, was, stashes = work.checkpoint(), state(top), stash(top)
    (top / "b").write_text("the agent's\n")
    git(top, "stash", "push", "--quiet", "--message", "the agent's")
    git(top, "stash", "drop", "--quiet", "stash@{1}")
    work.restore(point, "cut-1")
    assert state(top) == was
    assert len(stash(top)) == 3
    assert {*stashes} <= {*stash(top)}


def test_what_was_undone_is_counted(top: Path) -> None:
    """A person must see that commits left the branch."""
    work = work_of(top)
    point = work.checkpoint()
    for name in ("one", "two"):
        (top / name).write_text(name)
        git(top, "add", name)
        git(top, "commit", "--quiet", "--message", f"Add {name}")
    (top / "b").unlink()
    ref = work.restore(point, "cut-1")
    assert [line.split(" ", 1)[1] for line in work.undone(point, ref)] == ["Add two", "Add one"]
