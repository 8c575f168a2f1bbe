"""A worker's lines among those of others: each with its task in front, and none in another's."""

from collections.abc import Callable
from typing import TextIO


class Tagged:
    """Takes the place of a stream; whole lines are handed on, as one piece."""

    def __init__(self, stream: TextIO, tag: str, hand_on: Callable[[TextIO, str], None]) -> None:
        self._stream = stream
        self._tag = tag
        self._hand_on = hand_on
        self._rest = ""

    @property
    def encoding(self) -> str:
        """As the stream has it."""
        return self._stream.encoding

    def write(self, text: str) -> int:
        """Keep what is no whole line yet."""
        *lines, self._rest = (self._rest + text).split("\n")
        if lines:
            self._hand_on(self._stream, "".join(f"{self._tag}{line}\n" for line in lines))
        return len(text)

    def flush(self) -> None:
        """Lines have been handed on."""

    def isatty(self) -> bool:
        """As the stream is."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """As the stream has it."""
        return self._stream.fileno()
