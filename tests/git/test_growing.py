"""What is written of files that grow is what git would have written."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kits.work_tree import git
from ralph.git.checkpoint.trees import GitTrees, trees_of_run
from ralph.git.growing import GrowingFiles
from ralph.git.repository import NOTHING

LINE = b'{"type": "iteration", "taskId": "T-%d", "reason": "claimed"}\n'


@pytest.fixture(params=["sha1", "sha256"])
def top(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    top = tmp_path / "top"
    os.system(f"git init -q --object-format={request.param} {top}")
    (top / "records").write_bytes(b"".join(LINE % number for number in range(50)))
    return top


def trees_in(top: Path) -> GitTrees:
    run_dir = top.parent / "run"
    run_dir.mkdir(exist_ok=True)
    trees = trees_of_run(str(top), os.environ, str(run_dir))
    assert trees is not None
    trees.begin()
    return trees


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(LINE * 3 % (1, 2, 3))


CHANGES: list[Callable[[Path], object]] = [
    append,
    append,
    lambda path: path.write_bytes(b"another\n" + path.read_bytes()),
    append,
    lambda path: path.write_bytes(b""),
    append,
    lambda path: path.write_bytes(os.urandom(200_000)),
    append,
]


def test_every_state_of_a_file_is_kept(top: Path) -> None:
    trees, growing, wanted = trees_in(top), None, []
    growing = GrowingFiles(trees.view, trees.run_dir)
    for change in (lambda _: None, *CHANGES):
        change(top / "records")
        mode, blob = growing.entries(["records"])["records"]
        assert (mode, blob) == ("100644", git(top, "hash-object", "records"))
        wanted.append((blob, (top / "records").read_bytes()))
    for blob, data in wanted:
        assert trees.view.ask("cat-file", "blob", blob) == data
    assert "error" not in git(top, "fsck", "--no-dangling")
    git(top, "repack", "-adfq")


def test_modes_links_and_what_is_gone(top: Path) -> None:
    (top / "tool").write_text("x\n")
    (top / "tool").chmod(0o755)
    trees = trees_in(top)
    found = trees.growing.entries(["records", "tool", "gone"])
    assert [mode for mode, _ in found.values()] == ["100644", "100755", NOTHING]
    (top / "link").symlink_to("records")
    ((mode, blob),) = trees.growing.entries(["link"]).values()
    assert mode == "120000"
    assert trees.view.ask("cat-file", "blob", blob) == b"records"


@pytest.mark.parametrize("how", ["attribute", "setting"])
def test_what_git_would_change_is_left_to_git(top: Path, how: str) -> None:
    if how == "attribute":
        (top / ".gitattributes").write_text("records text\n")
    else:
        git(top, "config", "core.autocrlf", "input")
    (top / "records").write_bytes(b"one\r\ntwo\r\n")
    trees = trees_in(top)
    ((_, blob),) = trees.growing.entries(["records"]).values()
    assert trees.view.ask("cat-file", "blob", blob) == b"one\ntwo\n"
