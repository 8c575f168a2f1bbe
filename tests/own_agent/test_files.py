"""What a model may read and write: files of the workspace and nothing else (B §Actions)."""

import os
from pathlib import Path

import pytest

from ralph.own_agent.files import Denied, line_range, read, replace, write


def test_a_file_is_written_read_and_edited(tmp_path: Path) -> None:
    assert write(str(tmp_path), "a/b.txt", "one\r\ntwo\n") == "a/b.txt is written"
    assert read(str(tmp_path), "a/b.txt") == "one\r\ntwo"
    assert replace(str(tmp_path), "a/b.txt", "two", "three") == "a/b.txt is written"
    assert (tmp_path / "a/b.txt").read_bytes() == b"one\r\nthree\n"


def test_a_file_of_nothing_is_shown_as_such(tmp_path: Path) -> None:
    """Services do not all take an outcome of nothing."""
    (tmp_path / "f").touch()
    assert read(str(tmp_path), "f") == "[empty]"


def test_a_directory_is_listed(tmp_path: Path) -> None:
    assert read(str(tmp_path), ".") == "[empty]"
    (tmp_path / "b").mkdir()
    (tmp_path / "a").touch()
    assert read(str(tmp_path), ".") == "a\nb/"
    for number in range(600):
        (tmp_path / "b" / f"{number:03}").touch()
    assert read(str(tmp_path), "b").endswith("499\n[and 100 more]")


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ("2-3", "l2\nl3\n[lines 2 to 3 of 5]"),
        ("4-99", "l4\nl5\n[lines 4 to 5 of 5]"),
        ("1-5", "l1\nl2\nl3\nl4\nl5"),
        (None, "l1\nl2\nl3\nl4\nl5"),
        ([2, 3], "l2\nl3\n[lines 2 to 3 of 5]"),
        (2, "l2\n[lines 2 to 2 of 5]"),
    ],
)
def test_lines_are_shown_as_they_are_asked_for(tmp_path: Path, lines: object, shown: str) -> None:
    (tmp_path / "f").write_text("l1\nl2\nl3\nl4\nl5\n")
    assert read(str(tmp_path), "f", line_range(lines)) == shown


@pytest.mark.parametrize("lines", ["x", "0-2", "3-2", "1-2-3", [1, 2, 3], {}, -1, "9-9"])
def test_lines_that_are_not_there_are_denied(tmp_path: Path, lines: object) -> None:
    (tmp_path / "f").write_text("l1\nl2\n")
    with pytest.raises(Denied):
        read(str(tmp_path), "f", line_range(lines))


def test_what_is_long_is_cut_and_says_where(tmp_path: Path) -> None:
    (tmp_path / "many").write_text("x\n" * 5000)
    assert read(str(tmp_path), "many").endswith("[lines 1 to 2000 of 5000]")
    (tmp_path / "wide").write_text(f"{'y' * 1000}\n" * 100)
    shown = read(str(tmp_path), "wide")
    assert len(shown) < 61_000
    assert shown.endswith("[lines 1 to 60 of 100]")
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(1 << 34)
    assert read(str(tmp_path), "huge") == "huge is binary"
    (tmp_path / "large").write_bytes(b"z\n" * (5 << 20))
    assert "of the first 8388608 bytes" in read(str(tmp_path), "large", (1, 1))


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "link", "dir/x", "", "a\0b"])
def test_what_is_outside_is_denied(tmp_path: Path, path: str) -> None:
    """Also behind a link, which a command may have made."""
    (tmp_path / "x").write_text("secret")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "link").symlink_to("../x")
    (workspace / "dir").symlink_to("..")
    with pytest.raises(Denied):
        read(str(workspace), path)
    with pytest.raises(Denied):
        write(str(workspace), path, "mine")
    with pytest.raises(Denied):
        replace(str(workspace), path, "secret", "mine")
    assert (tmp_path / "x").read_text() == "secret"


def test_a_link_within_leads_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a")
    (tmp_path / "link").symlink_to("f")
    write(str(tmp_path), "link", "b")
    assert ((tmp_path / "f").read_text(), (tmp_path / "link").is_symlink()) == ("b", True)


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", "sub/.git", ".git/config", ".GIT/config"]
)
def test_what_is_gits_own_is_not_written(tmp_path: Path, path: str) -> None:
    with pytest.raises(Denied, match="git"):
        write(str(tmp_path), path, "x")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["pipe", "dir", "gone/x", "null"])
def test_what_is_no_file_holds_nobody_up(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dir").mkdir()
    (tmp_path / "null").symlink_to("/dev/null")
    if name != "dir":
        with pytest.raises(Denied):
            read(str(tmp_path), name)
    if name != "gone/x":
        with pytest.raises(Denied):
            write(str(tmp_path), name, "x")
    with pytest.raises(Denied):
        replace(str(tmp_path), name, "a", "b")


def test_an_edit_is_exact_and_keeps_mode_names_and_odd_bytes(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"a \xff a b")
    file.chmod(0o755)
    os.link(file, tmp_path / "other")
    with pytest.raises(Denied, match="2 times"):
        replace(str(tmp_path), "f", "a", "c")
    with pytest.raises(Denied, match="does not have"):
        replace(str(tmp_path), "f", "A", "c")
    with pytest.raises(Denied, match="does not have"):
        replace(str(tmp_path), "f", "", "c")
    assert replace(str(tmp_path), "f", "a", "c", everywhere=True) == "f is written, 2 times"
    assert (tmp_path / "other").read_bytes() == b"c \xff c b"
    assert file.stat().st_mode & 0o777 == 0o755
