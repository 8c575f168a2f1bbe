"""Whole lines from chunks of any size: the first thing every stream passes."""


class Framer:
    """Cuts a stream at its newlines. A line longer than `limit` bytes is dropped and counted.

    What comes out, and the count, do not depend on how the stream was chunked. Pieces of an
    unfinished line are collected in a list: joining them chunk by chunk would be quadratic.
    """

    def __init__(self, limit: int = 8 * 1024 * 1024) -> None:
        self.dropped = 0
        self._limit = limit
        self._pieces: list[bytes] = []
        self._length = 0
        self._skipping = False  # inside a line that is already too long

    def feed(self, chunk: bytes) -> bytes:
        """All lines that are whole now, each with its newline; `b""` if there are none yet."""
        if self._skipping:
            chunk = self._skip(chunk)
        cut = chunk.rfind(b"\n") + 1
        if not cut:
            self._hold(chunk)
            return b""
        whole = b"".join((*self._pieces, chunk[:cut]))
        self._clear()
        self._hold(chunk[cut:])
        return whole if len(whole) <= self._limit else self._without_long_lines(whole)

    def rest(self) -> bytes:
        """The unterminated last line, once the stream is over."""
        rest = b"".join(self._pieces)
        self._clear()
        return rest

    def _hold(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._length > self._limit:
            self._clear()
            self._skipping = True
            self.dropped += 1
        elif piece:
            self._pieces.append(piece)

    def _clear(self) -> None:
        self._pieces = []
        self._length = 0

    def _skip(self, chunk: bytes) -> bytes:
        """What follows the long line, if it ends in this chunk."""
        end = chunk.find(b"\n") + 1
        self._skipping = not end
        return chunk[end:] if end else b""

    def _without_long_lines(self, whole: bytes) -> bytes:
        lines = whole.split(b"\n")[:-1]  # not splitlines: it also splits at \r
        kept = [line + b"\n" for line in lines if len(line) <= self._limit]
        self.dropped += len(lines) - len(kept)
        return b"".join(kept)
