"""Whole lines from chunks of any size: the first thing every stream passes."""


class Framer:
    """Cuts a stream at its newlines. A line longer than `limit` bytes is dropped and counted.

    The result, and the count, do not depend on how the stream was chunked. Pieces of an unfinished
    line are collected in a list: joining them chunk by chunk would be quadratic.
    """

    def __init__(self, limit: int = 8 * 1024 * 1024) -> None:
        self.dropped = 0
        self._limit = limit
        self._pieces: list[bytes] = []
        self._length = 0
        self._skipping = False  # inside a line that is already too long

    def feed(self, chunk: bytes) -> bytes:
        """All lines that are whole now, each with its newline; `b""` if there are none yet."""
        if self._skipping:  # to the end of the long line, if it is in this chunk
            end = chunk.find(b"\n") + 1
            self._skipping = not end
            chunk = chunk[end:] if end else b""
        cut = chunk.rfind(b"\n") + 1
        whole = self._pieces_with(chunk[:cut]) if cut else b""
        piece = chunk[cut:]
        self._length += len(piece)
        if self._length > self._limit:
            self._pieces, self._length, self._skipping = [], 0, True
            self.dropped += 1
        elif piece:
            self._pieces.append(piece)
        if len(whole) <= self._limit:
            return whole
        lines = whole.split(b"\n")[:-1]  # not splitlines: it also splits at \r
        kept = [line + b"\n" for line in lines if len(line) <= self._limit]
        self.dropped += len(lines) - len(kept)
        return b"".join(kept)

    def rest(self) -> bytes:
        """The unterminated last line, once the stream is over."""
        return self._pieces_with(b"")

    def _pieces_with(self, end: bytes) -> bytes:
        """All pieces, taken out, and the end."""
        pieces, self._pieces, self._length = self._pieces, [], 0
        return b"".join((*pieces, end))
