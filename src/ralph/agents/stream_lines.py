"""The lines of a saved stream for whoever looks at it again and again, and must lose nothing."""

import os
import re
from collections.abc import Iterator
from functools import cache

from ralph.agents.turn_files import LEFT_OUT, MOST_SAVED
from ralph.files.safe_open import open_regular

_BLOCK = 256 * 1024
_LONGEST_MARK = len(LEFT_OUT) + 18
_PATIENCE = 20  # looks at a stream that is being shortened


class StreamLines:
    """The lines of a stream, also while it grows and loses its middle.

    `told` counts the bytes that the agent has printed up to the end of the last line, whatever is
    left of them in the file: the same line ends at the same count for whoever reads it when.
    """

    def __init__(self, path: str, most: int = MOST_SAVED) -> None:
        self.told = 0
        self._path = path
        self._most, self._kept = most, most // 4
        self._at = 0  # of all that was printed, read so far
        self._left_out, self._mark = 0, 0  # bytes, and the length of the mark in their place
        self._size = 0
        self._looks = 0  # since the middle began to go

    def new(self, *, is_over: bool = False) -> Iterator[bytes]:
        """The lines since the last call, each with its newline, and the beginning of one that has
        not ended. While the middle goes there may be none, unless nobody writes any more. OSError
        where the file cannot be read."""
        try:
            file = open_regular(self._path)
        except FileNotFoundError:
            return
        with file:
            descriptor = file.fileno()
            size, before = os.fstat(descriptor).st_size, self._left_out
            if self._look(descriptor) != before and size > self._most:
                # It is being shortened just now: nothing is where it belongs.
                self._looks += 1
                if self._looks <= _PATIENCE and not is_over:
                    self._left_out = before
                    return
            if size < self._size and self._left_out == before:  # who did that, nobody knows
                self._at = min(self._at, size + (before - self._mark if before else 0))
            self._looks, self._size = 0, size
            yield from self._lines(descriptor)

    def _lines(self, descriptor: int) -> Iterator[bytes]:
        while True:
            kept, left_out = self._kept, self._left_out
            end = kept + left_out  # of what is gone, if anything is
            begin, most, ends = self._at, _BLOCK, 0
            if left_out and kept <= self._at < end:
                begin, most, place = end, self._mark, kept
            elif left_out and self._at >= end:
                place = self._at - left_out + self._mark
            else:
                place, most = self._at, min(most, kept - self._at) if left_out else most
            block = os.pread(descriptor, most, place)
            if not block or self._look(descriptor) != left_out:
                self._left_out = left_out
                return
            is_mark = begin != self._at
            self._at = end if is_mark else begin + len(block)
            *lines, rest = block.split(b"\n")
            for line in lines:
                ends += len(line) + 1
                # The mark's first newline ends a line that was torn where it stands.
                mark_ends = kept if ends == 1 else end
                self.told = max(self.told, mark_ends if is_mark else begin + ends)
                yield line + b"\n"
            if rest:
                yield rest

    def _look(self, descriptor: int) -> int:
        """See how many bytes are left out of the file now."""
        found = gap_at(descriptor, self._kept)
        self._left_out, mark = found or (0, self._mark)
        self._mark = mark
        return self._left_out


def gap_at(descriptor: int, kept: int) -> tuple[int, int] | None:
    """How many bytes are left out of a stream behind those that are `kept` of its beginning, and
    the length of the mark that says so; None for one that is whole."""
    found = _mark().match(os.pread(descriptor, _LONGEST_MARK, kept))
    return (int(found[1]), found.end()) if found else None


@cache
def _mark() -> re.Pattern[bytes]:
    return re.compile(re.escape(LEFT_OUT).replace(b"%d", rb"(\d{1,18})"))
