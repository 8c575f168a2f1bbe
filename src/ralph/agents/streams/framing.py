"""Whole lines from chunks of any size: the first thing every stream passes."""


class Framer:
    """Cuts a stream at its newlines, however it was chunked. A line longer than `limit` bytes is
    dropped and counted."""

    def __init__(self, limit: int = 8 * 1024 * 1024) -> None:
        self.dropped = 0
        self._limit = limit
        self._rest = bytearray()  # of the line that has not ended; no more than shows it too long

    def feed(self, chunk: bytes) -> bytes:
        """All lines that are whole now, each with its newline; `b""` if there are none yet."""
        cut = chunk.rfind(b"\n") + 1
        whole = b""
        if cut:
            whole = b"".join((self._rest, memoryview(chunk)[:cut]))  # copied once
            self._rest.clear()
        self._rest += chunk[cut:]
        del self._rest[self._limit + 1 :]
        if len(whole) <= self._limit:
            return whole
        lines = whole.split(b"\n")[:-1]  # not splitlines: it also splits at \r
        kept = [line + b"\n" for line in lines if len(line) <= self._limit]
        self.dropped += len(lines) - len(kept)
        return b"".join(kept)

    def rest(self) -> bytes:
        """The unterminated last line, once the stream is over."""
        rest, self._rest = bytes(self._rest), bytearray()
        if len(rest) <= self._limit:
            return rest
        self.dropped += 1
        return b""
