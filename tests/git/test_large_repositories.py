"""In a large repository the view's index stays as it is while few files change: what it says of
them is what an index that is written anew would say."""

import os
import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from kits.thorough import dealt
from kits.work_tree import git, new_repository
from ralph.git import view
from ralph.git.checkpoint.trees import GitTrees, trees_of_run

NAMES = ("a/one", "a/two", "b", "tool", "link", "c/d/e", "c", "x.log", "new", "ü\n")


def run_of(top: Path, name: str) -> GitTrees:
    run_dir = top.parent / "runs" / name
    run_dir.mkdir(parents=True)
    trees = trees_of_run(str(top), os.environ, str(run_dir))
    assert trees is not None
    trees.begin()
    return trees


def change(top: Path, choose: random.Random) -> None:
    """Something that an agent does."""
    path = top / choose.choice(NAMES)
    act = choose.choice(("write", "write", "remove", "mode", "link", "ends", "ignore", "commit"))
    if act == "commit":
        git(top, "add", "--all")
        git(top, "commit", "--quiet", "--allow-empty", "--message", "More")
    elif act == "ignore":
        (top / ".gitignore").write_text(choose.choice(("*.log\n", "c\n", "new\nb\n", "")))
    elif act == "remove" and path.is_symlink() | path.is_file():
        path.unlink()
    elif act == "mode" and path.is_file() and not path.is_symlink():
        path.chmod(choose.choice((0o644, 0o755)))
    elif act in ("write", "link", "ends"):
        for above in path.relative_to(top).parents:
            if (top / above).is_file() or (top / above).is_symlink():
                (top / above).unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            return
        path.unlink(missing_ok=True)
        if act == "link":
            path.symlink_to("b")
        else:
            path.write_bytes(b"%d\r\n" % choose.randint(0, 3) if act == "ends" else b"text\n")


def files(top: Path, ignored: Iterable[str]) -> set[str]:
    """The files that are meant, of which git may name the folder."""
    below = (found for path in ignored for found in (top / path, *(top / path).rglob("*")))
    return {str(path) for path in below if not path.is_dir()}


@pytest.mark.parametrize("seed", dealt(range(8), 3))
def test_it_sees_what_an_index_written_anew_would_see(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose, top = random.Random(seed), new_repository(tmp_path / "top")
    if choose.random() < 0.5:
        (top / ".gitattributes").write_text("* text=auto\n")
        git(top, "add", "--all")
        git(top, "commit", "--quiet", "--message", "Attributes")
    (top / ".ralph").mkdir()
    (top / ".ralph" / "tasks.jsonl").write_text("{}\n")
    git(top, "add", ".ralph")
    git(top, "commit", "--quiet", "--message", "Plan")
    small = run_of(top, "small")
    with monkeypatch.context() as patched:
        patched.setattr(view, "_LARGE", 0)
        large = run_of(top, "large")
    for _ in range(12):
        for _ in range(choose.randint(1, 3)):
            change(top, choose)
        expected = small.look()
        with monkeypatch.context() as patched:
            patched.setattr(view, "_LARGE", 0)
            patched.setattr(view, "_FEW", choose.choice((0, 3, 64)))
            assert large.look() == expected
        seen = large.seen
        changed = {*large.view.differing(expected.tree, expected.head)} - {".ralph/tasks.jsonl"}
        assert changed <= {*seen.there, *seen.gone, *seen.staged}
        assert files(top, small.seen.ignored) <= files(top, seen.ignored)
        assert seen.apart == small.seen.apart


def test_a_file_of_the_same_size_and_time_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What once differed from the index is believed to nobody."""
    monkeypatch.setattr(view, "_LARGE", 0)
    top = new_repository(tmp_path / "top")
    trees = run_of(top, "run")
    written = trees.view.index
    before, times = os.stat(written), (10**9, 10**9)
    (top / "b").write_text("1\n")
    os.utime(top / "b", times)
    first = trees.look().tree
    (top / "b").write_text("2\n")
    os.utime(top / "b", times)
    assert trees.look().tree != first
    assert os.stat(written).st_mtime_ns == before.st_mtime_ns


def test_an_index_of_a_tree_holds_that_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`git commit` works on it, with the user's hooks."""
    monkeypatch.setattr(view, "_LARGE", 0)
    top = new_repository(tmp_path / "top")
    trees = run_of(top, "run")
    (top / "new").write_text("x\n")
    (top / "b").unlink()
    tree = trees.look().tree
    trees.view.copy(str(tmp_path / "index"), tree)
    assert trees.view.identifier("write-tree", index=str(tmp_path / "index")) == tree
