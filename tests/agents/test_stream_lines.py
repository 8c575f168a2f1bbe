"""A saved stream loses its middle when it grows too long. Whoever follows it loses no line that is
still there and is told none twice, and every line ends at the same count for all."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ralph.agents.stream_lines import StreamLines
from ralph.agents.turn_files import SavedStream

Line = tuple[int, bytes]  # and where it ends
STEPS = st.lists(
    st.tuples(st.integers(0, 80), st.booleans()), min_size=1, max_size=300
)  # the length of a line, and whether somebody looks then


def lines_of(reader: StreamLines) -> list[Line]:
    """The whole lines since the last look."""
    return [(reader.told, piece) for piece in reader.new() if piece.endswith(b"\n")]


@example([(40, number % 3 == 0) for number in range(300)], 1_000)
@given(STEPS, st.sampled_from([1_000, 4_000]))
def test_lines_end_where_they_were_printed(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, bool]], most: int
) -> None:
    path = tmp_path_factory.mktemp("stream") / "001.stream"
    followed(path, steps, most)


def followed(path: Path, steps: list[tuple[int, bool]], most: int) -> None:
    stream = SavedStream(lambda: path.open("wb+", buffering=0), most)
    reader, seen, printed, end = StreamLines(str(path), most), list[Line](), dict[int, bytes](), 0
    for number, (length, looks) in enumerate(steps):
        line = f"{number:04d} {'x' * length}\n".encode()
        end += len(line)
        printed[end] = line
        stream.write(line)
        if looks:
            seen += lines_of(reader)
    stream.end()
    seen += lines_of(reader)
    late = lines_of(StreamLines(str(path), most))
    stream.close()
    assert late[-1] == seen[-1] or late[-1][0] == seen[-1][0] == end
    for told in (seen, late):
        places = [place for place, _ in told]
        assert places == sorted(places)
        whole = [(place, line) for place, line in told if printed.get(place) == line]
        torn = [line for place, line in told if printed.get(place) != line]
        assert len(whole) == len({line for _, line in whole}), "a line is told twice"
        # What is torn is the mark, and what stood where it begins and ends, each time it was made.
        assert len(torn) <= 3 * len(steps)
    if not stream.is_short:
        assert seen == late == list(printed.items())
    begin = end - most // 4 + 1  # of lines that are kept for sure: before it one may be torn
    kept = [each for each in late if each[0] - len(each[1]) >= begin]
    assert kept == [each for each in seen if each[0] - len(each[1]) >= begin]
    assert kept == [each for each in printed.items() if each[0] - len(each[1]) >= begin]


def test_a_line_may_come_in_pieces_and_a_torn_one_is_told_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "001.stream"
    reader = StreamLines(str(path))
    assert list(reader.new()) == []  # there is no file yet
    path.write_bytes(b"one\ntw")
    assert list(reader.new()) == [b"one\n", b"tw"]
    assert reader.told == 4
    with path.open("ab") as file:
        file.write(b"o\nthree")
    assert list(reader.new()) == [b"o\n", b"three"]
    assert reader.told == 8
    assert list(reader.new()) == []
