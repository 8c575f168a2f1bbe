"""The framer: whole lines from any chunks (ADR 7, issue: the same lines for any chunking)."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ralph.agents.streams.framing import Framer

LIMIT = 8
# Few letters and many newlines: lines around the limit are common, not rare.
STREAMS = st.lists(st.sampled_from([b"\n", b"\r", b"a", b"bcd", b"efghijklmnop"])).map(b"".join)


def frame(chunks: list[bytes], limit: int = LIMIT) -> tuple[bytes, bytes, int]:
    framer = Framer(limit)
    whole = b"".join([framer.feed(chunk) for chunk in chunks])
    return whole, framer.rest(), framer.dropped


def frame_by_hand(stream: bytes) -> tuple[bytes, bytes, int]:
    *lines, rest = stream.split(b"\n")
    kept = b"".join(line + b"\n" for line in lines if len(line) <= LIMIT)
    dropped = sum(len(line) > LIMIT for line in [*lines, rest])
    return kept, rest if len(rest) <= LIMIT else b"", dropped


@st.composite
def chunked(draw: st.DrawFn) -> list[bytes]:
    stream = draw(STREAMS)
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)))))
    return [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


@settings(deadline=None)
@given(chunked())
@example([b"123456789\n"])
@example([b"1234", b"56789", b"\nnext\n"])
@example([b"12345678", b"\n"])
@example([b"ok\n", b"123456789"])
def test_the_same_lines_and_the_same_count_for_any_chunking(chunks: list[bytes]) -> None:
    assert frame(chunks) == frame_by_hand(b"".join(chunks))


@settings(deadline=None)
@given(chunked())
def test_what_comes_out_is_whole_lines(chunks: list[bytes]) -> None:
    framer = Framer(LIMIT)
    assert all(block == b"" or block.endswith(b"\n") for block in map(framer.feed, chunks))


def test_a_block_is_cut_at_the_last_newline() -> None:
    framer = Framer()
    assert framer.feed(b"a\nb\nc") == b"a\nb\n"
    assert framer.feed(b"d") == b""
    assert framer.feed(b"e\n") == b"cde\n"
    assert framer.rest() == b""


def test_the_rest_is_given_once() -> None:
    framer = Framer()
    framer.feed(b"unfinished")
    assert framer.rest() == b"unfinished"
    assert framer.rest() == b""


@pytest.mark.parametrize("size", [1024 * 1024, 20 * 1024 * 1024])
def test_a_line_over_8_mb_is_dropped_and_its_neighbours_stay(size: int) -> None:
    """docs/facts.md §2: a line may be 10 MB long: skip and count, never stop."""
    stream = b"before\n" + b"x" * (10 * 1024 * 1024) + b"\nafter\n"
    chunks = [stream[i : i + size] for i in range(0, len(stream), size)]
    assert frame(chunks, limit=8 * 1024 * 1024) == (b"before\nafter\n", b"", 1)
