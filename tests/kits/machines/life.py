"""A log of agents that live: who began, when each was last seen alive, and who is there now.

Each agent holds a connection to a socket that every machine sees, also from within a sandbox. The
kernel says whose it is, and closes it when its last holder is gone, however that ended. Times are
of the monotonic clock, which machines of one kernel share.
"""

import os
import select
import socket
import struct
import threading
import time
from pathlib import Path
from typing import Self

from kits.machines.checking import BEAT, BEGIN, END, GONE, SEEN


class LifeLog:
    """Listens at `shared/line`, and appends what it hears to a file."""

    def __init__(self, shared: Path, file: Path) -> None:
        self.file = file
        self._shared = shared
        self._listener = socket.socket(socket.AF_UNIX)
        self._open: dict[int, _Line] = {}  # by descriptor
        self._count = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._poll = select.poll()

    def __enter__(self) -> Self:
        directory = os.open(self._shared, os.O_PATH)
        try:  # the name of a socket is short, and that of a test's directory is not
            self._listener.bind(f"/proc/self/fd/{directory}/line")
        finally:
            os.close(directory)
        os.chmod(self._shared / "line", 0o777)
        self._listener.listen(256)
        self._listener.setblocking(False)
        self._poll.register(self._listener, select.POLLIN)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        for line in self._open.values():
            line.socket.close()
        self._listener.close()
        (self._shared / "line").unlink()

    def lines(self) -> list[str]:
        """Everything that was heard so far."""
        return self.file.read_text("utf-8").splitlines() if self.file.exists() else []

    def alive(self) -> dict[int, str]:
        """The agents that hold a connection now, by process: their tasks."""
        return {line.pid: line.task for line in [*self._open.values()]}

    def _listen(self) -> None:
        with self.file.open("a", encoding="utf-8", buffering=1) as out:
            while not self._stop.is_set():
                for descriptor, _ in self._poll.poll(100):
                    if descriptor in self._open:
                        out.writelines(self._hear(self._open[descriptor]))
                    else:
                        self._accept()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                return
            connection.setblocking(False)
            size = struct.calcsize("3i")
            said = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
            self._count += 1
            line = _Line(connection, self._count, struct.unpack("3i", said)[0])
            self._open[connection.fileno()] = line
            self._poll.register(connection, select.POLLIN)

    def _hear(self, line: "_Line") -> list[str]:
        """The lines of the log that follow from what one agent has said, or from its death."""
        said, is_over = line.read()
        found: list[str] = []
        for words in said:
            stamp, kind, *rest = words.split(" ")
            if kind == BEGIN:
                line.task = rest[0]
                found.append(f"{stamp} {BEGIN} {line.number} {' '.join(rest)} {line.pid}\n")
                found += self._seen_beside(line)
            elif kind in (BEAT, END):
                found.append(f"{stamp} {kind} {line.number}\n")
        if is_over:
            found.append(f"{time.monotonic():.6f} {GONE} {line.number}\n")
            self._poll.unregister(line.socket)
            del self._open[line.socket.fileno()]
            line.socket.close()
        return found

    def _seen_beside(self, line: "_Line") -> list[str]:
        """Other agents of the same task that are alive at this moment, by the kernel's word: also
        one that is stopped, and does not beat."""
        now = time.monotonic()  # before the look, so that it is true of then
        others = [each for each in self._open.values() if each.task == line.task]
        return [
            f"{now:.6f} {SEEN} {each.number}\n"
            for each in others
            if each is not line and each.is_held()
        ]


class _Line:
    """The connection of one agent."""

    def __init__(self, connection: socket.socket, number: int, pid: int) -> None:
        self.socket, self.number, self.pid, self.task = connection, number, pid, ""
        self._rest = b""

    def read(self) -> tuple[list[str], bool]:
        """Whole lines, and whether there will be no more."""
        is_over = False
        try:
            while data := self.socket.recv(65_536):
                self._rest += data
            is_over = True
        except BlockingIOError:
            pass
        except ConnectionResetError:
            is_over = True
        *lines, self._rest = self._rest.split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines], is_over

    def is_held(self) -> bool:
        """True if whoever holds its other end is alive."""
        waiting = select.poll()
        waiting.register(self.socket, select.POLLIN)
        return not any(event & (select.POLLHUP | select.POLLERR) for _, event in waiting.poll(0))
