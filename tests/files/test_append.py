"""Lines that several processes append: each whole, by itself, and nobody waits for ever."""

import errno
import fcntl
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ralph.files import jsonl
from ralph.files.append import append_line, is_at, lock

_OPEN = os.O_RDWR | os.O_CREAT | os.O_APPEND


@contextmanager
def opened(path: Path) -> Iterator[int]:
    file = os.open(path, _OPEN, 0o644)
    try:
        yield file
    finally:
        os.close(file)


@contextmanager
def no_more_than(size: int) -> Iterator[None]:
    """A file can have so many bytes: what goes beyond them is not written, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"new\n"),
        (b"old\n", b"old\nnew\n"),
        (b"to", b"to\nnew\n"),
        (b"old\n\0\0", b"old\n\0\0\nnew\n"),
        (b"\n", b"\nnew\n"),
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_a_line_stands_by_itself(
    tmp_path: Path, before: bytes, after: bytes, *, alone: bool
) -> None:
    """ "in one write, on a line of its own even after one that was torn off"."""
    path = tmp_path / "file"
    path.write_bytes(before)
    with opened(path) as file:
        append_line(file, b"new\n", alone=alone)
    assert path.read_bytes() == after


@pytest.mark.parametrize(
    ("before", "alone", "after"),
    [
        (b"old\n", True, b"old\n"),
        (b"torn", True, b"torn"),
        (b"old\n", False, b"old\nnew"),  # it could be another's line that is cut off
    ],
)
def test_a_line_without_room_is_an_error(
    tmp_path: Path, before: bytes, after: bytes, *, alone: bool
) -> None:
    """ "who is alone, by a lock, leaves nothing of it"."""
    path = tmp_path / "file"
    path.write_bytes(before)
    with opened(path) as file, no_more_than(7), pytest.raises(OSError, match="No space") as caught:
        append_line(file, b"new line\n", alone=alone)
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == after


def test_what_another_wrote_after_a_torn_line_is_not_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent minds no lock."""
    path = tmp_path / "file"
    really = os.write

    def half(file: int, data: bytes) -> int:
        written = really(file, data[:2])
        really(file, b"\nagent\n")
        return written

    monkeypatch.setattr(os, "write", half)
    with opened(path) as file, pytest.raises(OSError, match="No space"):
        append_line(file, b"new\n", alone=True)
    assert path.read_bytes() == b"ne\nagent\n"


@pytest.mark.parametrize(
    ("held", "wanted", "given"),
    [
        (fcntl.LOCK_EX, fcntl.LOCK_EX, False),
        (fcntl.LOCK_EX, fcntl.LOCK_SH, False),
        (fcntl.LOCK_SH, fcntl.LOCK_EX, False),
        (fcntl.LOCK_SH, fcntl.LOCK_SH, True),
        (fcntl.LOCK_UN, fcntl.LOCK_EX, True),
    ],
)
def test_a_lock_that_another_keeps_is_not_given(
    tmp_path: Path, held: int, wanted: int, *, given: bool
) -> None:
    path = tmp_path / "file"
    with opened(path) as other, opened(path) as file:
        fcntl.flock(other, held)
        assert lock(file, wanted, 0.01) is given


def test_a_lock_goes_when_the_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with opened(path) as file:
        assert lock(file, fcntl.LOCK_EX, 0)
    with opened(path) as file:
        assert lock(file, fcntl.LOCK_EX, 0)


def test_a_file_system_without_locks_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(file: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with opened(tmp_path / "file") as file, pytest.raises(OSError, match="lock"):
        lock(file, fcntl.LOCK_EX, 10)


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


def linked(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


def renamed_directory(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))
    path.parent.write_bytes(b"a file, where the directory was")


@pytest.mark.parametrize("change", [replaced, linked, Path.unlink, renamed_directory])
def test_a_file_that_was_replaced_is_not_there_any_more(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    path = tmp_path / "directory" / "file"
    path.parent.mkdir()
    with opened(path) as file:
        append_line(file, b"x\n", alone=True)
        assert is_at(file, str(path))
        change(path)
        assert not is_at(file, str(path))


def test_a_record_goes_into_the_file_that_has_the_name_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who rewrites the file has the lock, and puts another in its place."""
    path, once = tmp_path / "file", iter([True])
    path.write_text('{"n": 1}\n')

    def waited_for(file: int, kind: int, patience: float) -> bool:
        if next(once, False):
            replaced(path)
        return lock(file, kind, patience)

    monkeypatch.setattr(jsonl, "lock", waited_for)
    jsonl.append(str(path), {"n": 2})
    assert path.read_text() == '{"n": 1}\n{"n":2}\n'
