"""What a process prints, on disk: bounded, and in order at every moment (ADR 9)."""

from collections.abc import Iterator
from io import FileIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.agents.turn_files import SavedStream, private
from ralph.journal.runs import Growing

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

MOST = 4000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a stream goes."""
    return tmp_path / "001.stream"


def saved(path: Path) -> SavedStream:
    return SavedStream(lambda: open(path, "w+b", 0, opener=private), MOST)


def lines() -> Iterator[bytes]:
    return (b"line %06d\n" % number for number in range(10_000))


class Halting(FileIO):
    """A file that takes a few bytes at a time."""

    def write(self, data: "Buffer") -> int:
        return super().write(bytes(data)[:7])


def test_a_write_that_takes_only_a_part_is_gone_on_with(path: Path) -> None:
    stream = SavedStream(lambda: Halting(path, "w+"), MOST)
    for line in islice(lines(), 20):
        stream.write(line)
    stream.end()
    stream.close()
    assert path.read_bytes() == b"".join(islice(lines(), 20))
    assert not stream.is_short


def test_a_long_stream_keeps_its_beginning_and_its_end(path: Path) -> None:
    """ADR 9: "Neither grows beyond 64 MB: what is longer loses its middle"."""
    stream = saved(path)
    for line in lines():
        stream.write(line)
        assert path.stat().st_size <= MOST
    assert stream.is_short
    stream.close()
    kept = path.read_bytes()
    head, mark, tail = kept.partition(b"bytes are left out here")
    assert b"".join(lines()).startswith(head[: head.rindex(b"\n...")])
    assert b"".join(lines()).endswith(tail.split(b"\n", 1)[1])
    assert len(tail) >= MOST // 4
    whole = len(b"".join(lines()))
    left_out = int(head.rpartition(b"... ")[2])
    assert left_out + len(kept) == pytest.approx(whole, abs=len(mark) + MOST // 2)


def test_a_stream_that_fits_is_kept_whole(path: Path) -> None:
    stream = saved(path)
    assert not path.exists()  # it is opened for its first byte
    stream.write(b"x" * MOST)
    stream.end()
    stream.close()
    assert (path.read_bytes(), stream.is_short) == (b"x" * MOST, False)


@given(st.lists(st.integers(1, 900), max_size=60))
def test_the_end_is_always_there(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    """Whatever the pieces are."""
    path = tmp_path_factory.mktemp("saved") / "001.stream"
    stream, said = saved(path), b""
    for number, size in enumerate(sizes):
        piece = b"%d " % number * size
        said += piece[:size]
        stream.write(piece[:size])
    stream.close()
    kept = path.read_bytes() if sizes else b""
    assert kept.endswith(said[-MOST // 4 :])
    assert kept.startswith(said[: MOST // 4])
    assert stream.is_short is (len(said) > MOST)


def test_who_follows_a_stream_goes_on_when_it_is_shortened(path: Path) -> None:
    """`ralph logs -f`."""
    stream, growing = saved(path), Growing(str(path))
    for line in lines():
        stream.write(line)
    seen = b"".join(growing.blocks())
    stream.write(b"y" * (2 * MOST))
    list(growing.blocks())
    stream.write(b"at last\n")
    assert b"".join(growing.blocks()) == b"at last\n"
    assert seen.startswith(b"line 000000\n")
    stream.close()


def test_a_link_in_its_place_is_not_followed(path: Path) -> None:
    """What cannot be saved ends the saving, never the turn."""
    path.symlink_to("elsewhere")
    stream = saved(path)
    stream.write(b"x")
    stream.end()
    assert "not saved from here on" in stream.problem
    assert not (path.parent / "elsewhere").exists()


def test_an_open_file_is_left_open(path: Path) -> None:
    """It is closed by whoever opened it."""
    with FileIO(str(path), "wb") as file:
        stream = SavedStream(lambda: file)
        stream.write(b"x")
        stream.end()
        assert path.read_bytes() == b"x"
        assert not file.closed
