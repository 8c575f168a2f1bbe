"""The agent's process: messages to it and from it, and its end."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from ralph.agents.streams.framing import Framer
from ralph.processes.keeper_main import signal_group

_CHUNK = 128 * 1024
_ASK = 0.02


class Peer:
    """An agent that was started, in a process group of its own: a signal for us is not one for it.
    Writing to it never blocks: it may not read."""

    def __init__(self, argv: Sequence[str], cwd: str, env: Mapping[str, str], signals: int) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=pipe, stdout=pipe, process_group=0
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._stdin, False)
        os.set_blocking(self._stdout, False)
        self._signals = signals
        self._unsent = bytearray()
        self._framer = Framer()
        self.is_over = False  # it will say nothing more

    def signals(self) -> bytes:
        """The numbers of the signals that came for us since the last call."""
        try:
            return os.read(self._signals, 64)
        except BlockingIOError:
            return b""

    @property
    def dropped(self) -> int:
        """How many lines were too long to be heard."""
        return self._framer.dropped

    def send(self, data: bytes) -> None:
        """Send this now, and what it does not take while we listen."""
        self._unsent += data
        self._write()

    def listen(self, seconds: float) -> list[bytes]:
        """The lines that it has said, after so many seconds at most; none where a signal comes."""
        poller = select.poll()
        poller.register(self._stdout, select.POLLIN)
        poller.register(self._signals, select.POLLIN)
        if self._unsent:
            poller.register(self._stdin, select.POLLOUT)
        ready = {descriptor for descriptor, _ in poller.poll(max(0.0, seconds) * 1000)}
        if self._stdin in ready:
            self._write()
        if self._stdout not in ready:
            return []
        chunk = os.read(self._stdout, _CHUNK)
        self.is_over = not chunk
        block = self._framer.feed(chunk) if chunk else self._framer.rest()
        return [line for line in block.split(b"\n") if line.strip()]

    def ended(self, patience: float) -> int | None:
        """Its exit code, as shells have it, if it ends in time."""
        end = time.monotonic() + patience
        while (code := self._process.poll()) is None and time.monotonic() < end:
            time.sleep(_ASK)
        return code if code is None or code >= 0 else 128 - code

    def close(self, patience: float) -> None:
        """End it: by the end of its input, by TERM, by KILL. The keeper ends what it leaves."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        if self.ended(patience) is None:
            signal_group(self._process.pid, signal.SIGTERM)
        if self.ended(patience) is None:
            signal_group(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _write(self) -> None:
        try:
            while self._unsent:
                sent = os.write(self._stdin, memoryview(self._unsent)[:_CHUNK])
                del self._unsent[:sent]
        except BlockingIOError:
            return
        except OSError:  # it reads no more; what it says tells why
            self._unsent.clear()
