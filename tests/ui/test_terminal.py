"""The terminal at a stream: one way to ask for its size, and 0 is not a size."""

import fcntl
import io
import os
import struct
import termios
from collections.abc import Iterator
from typing import TextIO

import pytest

from ralph.settings.schema import DisplaySettings
from ralph.ui.style import Style, encoding_of, is_terminal, size_of, style_of


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    """A terminal that was never told its size, as one without a window."""
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        yield stream
    os.close(ours)


def resize(stream: TextIO, columns: int, rows: int) -> None:
    fcntl.ioctl(stream.fileno(), termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@pytest.mark.parametrize(
    ("columns", "rows", "size"),
    [(100, 30, (100, 30)), (0, 0, (None, None)), (0, 30, (None, 30)), (100, 0, (100, None))],
)
def test_zero_is_an_unknown_size(
    terminal: TextIO, columns: int, rows: int, size: tuple[int | None, int | None]
) -> None:
    resize(terminal, columns, rows)
    assert is_terminal(terminal)
    assert size_of(terminal) == size
    assert style_of(terminal, {}).width == size[0], "lines are not cut to nothing"


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_what_is_no_terminal_has_no_size_and_a_plain_style(stream: TextIO | None) -> None:
    assert not is_terminal(stream)
    assert size_of(stream) == (None, None)
    assert encoding_of(stream) == ""
    assert style_of(stream, {}) == Style()
    forced = style_of(stream, {}, DisplaySettings(emoji=True, color=True))
    assert forced == Style(emoji=True, color=True)


def test_a_file_has_no_size(tmp_path_factory: pytest.TempPathFactory) -> None:
    with (tmp_path_factory.mktemp("x") / "file").open("w", encoding="latin-1") as stream:
        assert size_of(stream) == (None, None)
        assert encoding_of(stream) == "latin-1"


def test_settings_and_flags_are_heard(terminal: TextIO) -> None:
    fancy = style_of(terminal, {"TERM": "xterm"})
    assert (fancy.color, fancy.emoji) == (True, True)
    plain = DisplaySettings(color=False)
    assert not style_of(terminal, {}, plain).color
    assert style_of(terminal, {}, plain, {"color": True}).color
