"""The terminal at a stream, for every command the same: its size, and how to write to it."""

import os
import select
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any, TextIO

from ralph.errors import RalphError
from ralph.ui.style import Style, Wishes, choose_style


def is_terminal(stream: TextIO | None) -> bool:
    """True if a person sees it; None is a stream that was closed from the beginning."""
    return stream is not None and stream.isatty()


class Audience:
    """The reader of a stream: one that goes away (`| head`) is noticed also while there is nothing
    to write."""

    def __init__(self, out: IO[Any]) -> None:
        self._closed = select.poll()
        with suppress(OSError, ValueError):  # not a file of the system, so nobody can close it
            self._closed.register(out, 0)  # no event but that

    def leaves_within(self, seconds: float) -> bool:
        """Wait so long; True if nobody reads any more."""
        return bool(self._closed.poll(seconds * 1000))


def size_of(stream: TextIO | None) -> tuple[int | None, int | None]:
    """Columns and rows; None is what nobody knows, and so is 0, as terminals without a window
    have it."""
    try:
        columns, rows = os.get_terminal_size(stream.fileno()) if stream is not None else (0, 0)
    except (OSError, ValueError):
        return None, None
    return columns or None, rows or None


def encoding_of(stream: TextIO | None) -> str:
    """The encoding of a stream; "" where it does not tell."""
    return getattr(stream, "encoding", None) or ""


def style_of(
    stream: TextIO | None,
    environ: Mapping[str, str],
    settings: Wishes = Wishes(),
    flags: Wishes = Wishes(),
) -> Style:
    """The look of what is written there."""
    columns, _ = size_of(stream)
    return choose_style(
        settings,
        flags,
        terminal=is_terminal(stream),
        environ=environ,
        encoding=encoding_of(stream) or "utf-8",
        width=columns,
    )


def style_here(flags: Wishes = Wishes()) -> Style:
    """The look of standard output, as the settings of this directory wish. Settings that cannot be
    read wish nothing: who only looks at runs is not refused for them."""
    from ralph.settings.load import load

    wishes = Wishes()
    try:
        display = load(os.getcwd()).settings.display
        wishes = Wishes(display.emoji, display.color)
    except (OSError, RalphError):
        pass
    return style_of(sys.stdout, os.environ, wishes, flags)
