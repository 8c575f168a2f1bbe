"""A stream that may vanish: a closed pipe or a full disk never ends a run."""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

_CLOSED = (errno.EPIPE, errno.EBADF)


class Channel:
    """Writes lines and flushes them; after the first failure it is silent.

    `stream` is None where the process was started without it. `on_loss` hears once, in words.
    """

    def __init__(
        self, stream: TextIO | None, on_loss: Callable[[str], None] = lambda _: None
    ) -> None:
        self._stream = stream
        self._on_loss = on_loss
        self._lost = False

    def write(self, lines: list[str]) -> None:
        """Write these lines, as one piece."""
        self.put("".join(f"{line}\n" for line in lines))

    def put(self, text: str) -> None:
        """Write this as it is, as one piece."""
        if self._lost or not text:
            return
        try:
            if self._stream is None:
                raise ValueError("started without this stream")
            try:
                self._stream.write(text)
            except UnicodeEncodeError:
                encoding = self._stream.encoding
                self._stream.write(text.encode(encoding, "replace").decode(encoding))
            self._stream.flush()
        except BlockingIOError:
            # An agent can set a shared terminal to non-blocking; what is missing is only display.
            return
        except (OSError, ValueError) as error:
            self._lost = True
            if self._stream is not None:
                discard(self._stream)
            if isinstance(error, OSError) and error.errno not in _CLOSED:
                self._on_loss(f"cannot be written ({error.strerror})")
            else:
                self._on_loss("is closed")

    def put_at_once(self, text: str) -> None:
        """For a signal's handler: past every buffer, which may be in use just now."""
        with suppress(OSError, ValueError):
            if self._stream is not None:
                os.write(self._stream.fileno(), text.encode())


def discard(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, or Python complains about it when it exits."""
    with suppress(OSError, ValueError):
        descriptor = stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        if nowhere != descriptor:
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
