"""A change in detail: diffs that git and people can read, whatever the names and the content."""

import subprocess
from pathlib import Path

import pytest

from ralph.sandbox.changes.diff import quoted, unified
from ralph.sandbox.interface import Change, ChangeKind


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a/plain", "a/plain"),
        ("a/with space", "a/with space"),
        ("a/größe", "a/größe"),
        ("a/new\nline", '"a/new\\nline"'),
        ("a/tab\t", '"a/tab\\t"'),
        ("a/\x1b[31m", '"a/\\033[31m"'),
        ("a/\udcff", '"a/\\377"'),
        ('a/"', '"a/\\""'),
        ("a/\\", '"a/\\\\"'),
        ("a/\u2028", '"a/\\342\\200\\250"'),
    ],
)
def test_names_are_quoted_as_git_quotes_them(name: str, shown: str) -> None:
    assert quoted(name) == shown


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"1\r\n2\r\n3\r\n", b"1\r\n2\r\nx\r\n"),
        (b"a\rb\rc\n", b"a\rb\rd\n"),
        (b"a\x0cb\n", b"a\x0cc\n"),
        (b"a\xe2\x80\xa8b\n", b"a\xe2\x80\xa8c\n"),
        (b"1\n2", b"1\n2\n"),
        (b"", b"no newline"),
    ],
)
@pytest.mark.parametrize("name", ["file", "new\nline", 'quote"'])
def test_git_can_apply_a_diff(tmp_path: Path, old: bytes, new: bytes, name: str) -> None:
    """A carriage return, a form feed or a line separator ends no line."""
    before, after, place = tmp_path / "before", tmp_path / "after", tmp_path / "place"
    before.write_bytes(old)
    after.write_bytes(new)
    place.mkdir()
    (place / name).write_bytes(old)
    said = unified(Change(name, ChangeKind.MODIFIED), str(before), str(after))
    assert (b"\\ No newline" in said.encode()) == (
        not (old.endswith(b"\n") and new.endswith(b"\n"))
    )
    words = ["git", "apply", "--whitespace=nowarn", "-"]
    subprocess.run(words, cwd=place, input=said.encode(), check=True)
    assert (place / name).read_bytes() == new


def test_what_cannot_be_shown_is_said(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"\0" * 10)
    new.write_bytes(b"\0" * 20)
    change = Change("x", ChangeKind.MODIFIED)
    assert unified(change, str(old), str(new)) == "x: 10 bytes became 20 bytes\n"
    deep = str(tmp_path / ("d/" * 4000))
    assert unified(change, "", deep) == "x: nothing became something out of reach\n"
