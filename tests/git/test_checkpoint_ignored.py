"""Small files that git ignores, such as `.env`: an agent may spoil them, a restore mends it."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from kits.work_tree import git, new_repository, state, work_of
from ralph.git.checkpoint import copies


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = new_repository(tmp_path / "top")
    (top / ".env").chmod(0o600)
    (top / "conf").mkdir()
    (top / "conf" / "x.log").write_bytes(b"\0binary\xff")
    return top


def delete(top: Path) -> None:
    (top / ".env").unlink()


def overwrite(top: Path) -> None:
    (top / ".env").write_text("SECRET=2\n")


def open_to_all(top: Path) -> None:
    (top / ".env").chmod(0o644)


def replace_by_directory(top: Path) -> None:
    (top / ".env").unlink()
    (top / ".env").mkdir()
    (top / ".env" / "x").write_text("x")


def replace_by_link(top: Path) -> None:
    (top / ".env").unlink()
    (top / ".env").symlink_to(top.parent / "outside")


def link_above(top: Path) -> None:
    (top / "conf" / "x.log").unlink()
    (top / "conf").rmdir()
    (top.parent / "outside").mkdir()
    (top / "conf").symlink_to(top.parent / "outside")


def commit_it(top: Path) -> None:
    (top / ".env").write_text("SECRET=3\n")
    git(top, "add", "--force", ".env")
    git(top, "commit", "--quiet", "--message", "Oh no")


HOWS = (
    delete,
    overwrite,
    open_to_all,
    replace_by_directory,
    replace_by_link,
    link_above,
    commit_it,
)


@pytest.mark.parametrize("how", HOWS)
def test_what_was_changed_or_deleted_comes_back(top: Path, how: Callable[[Path], None]) -> None:
    """The issue: "a person's uncommitted work at the start is never touched"."""
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    how(top)
    work.restore(point, "cut-1")
    assert state(top) == was
    assert any("though git ignores it" in note for note in work.notes())
    assert not (top.parent / "outside" / "x.log").exists()
    work.restore(point, "cut-1")
    assert work.notes() == ()


def test_what_stood_there_is_put_aside(top: Path) -> None:
    work = work_of(top)
    point = work.checkpoint()
    overwrite(top)
    assert work.restore(point, "cut-1") == ""
    assert Path(work.run_dir, "aside/cut-1/.env").read_text() == "SECRET=2\n"
    assert f"{work.run_dir}/aside/cut-1" in work.notes()[0]


def test_what_is_new_or_only_touched_stays(top: Path) -> None:
    work = work_of(top)
    point = work.checkpoint()
    (top / "new.log").write_text("new")
    (top / "build" / "out").write_text("in an ignored directory")
    os.utime(top / ".env", (1, 1))
    work.restore(point, "cut-1")
    assert (top / "new.log").read_text() == "new"
    assert (top / "build" / "out").read_text() == "in an ignored directory"
    assert (top / ".env").stat().st_mtime == 1
    assert work.notes() == ()


def test_copies_are_private_and_serve_again(top: Path) -> None:
    work = work_of(top)
    first, second = work.checkpoint(), work.checkpoint()
    name = work.apart(first).copies[".env"][0]
    copies = [Path(point.index).parent / name for point in (first, second)]
    assert copies[0].samefile(copies[1])
    assert stat.S_IMODE(copies[0].stat().st_mode) == 0o600
    overwrite(top)
    third = work.checkpoint()
    delete(top)
    work.restore(third, "cut-1")
    assert (top / ".env").read_text() == "SECRET=2\n"
    work.restore(first, "cut-2")
    assert (top / ".env").read_text() == "SECRET=1\n"
    assert stat.S_IMODE((top / ".env").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("limit", "size", "kept"),
    [
        ("_LARGEST", 3, {"a.log"}),
        ("_LARGEST_OF_ALL", 6, {"a.log", "z.log"}),
        ("_MOST", 2, {"a.log", "m.log"}),
    ],
)
def test_only_so_much_is_copied_and_from_the_top_first(
    top: Path, monkeypatch: pytest.MonkeyPatch, limit: str, size: int, kept: set[str]
) -> None:
    for name, text in (("a.log", "123"), ("m.log", "12345"), ("z.log", "123")):
        (top / name).write_text(text) if name != "z.log" or limit != "_LARGEST" else None
    (top / ".env").unlink()
    monkeypatch.setattr(copies, limit, size)
    work = work_of(top)
    assert {*work.apart(work.checkpoint()).copies} == kept
