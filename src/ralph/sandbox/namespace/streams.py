"""The streams of commands in a sandbox: no file of the host gets in there as a descriptor.

A descriptor leads to its file, past every mount: by `/proc/self/fd` it is opened again, for writing
too, and `fchmod` needs not even that. So files are read and written here, and passed on by pipes.
"""

import os
import select
import stat
from collections.abc import Callable

from ralph.kernel.value import replace
from ralph.kernel.verdict import Cut
from ralph.processes.child import CallerStreams, Child, Exit

_CHUNK = 128 * 1024
_ANONYMOUS = ("pipe:", "socket:")
# A sandbox has these for its own (`inside.py`): null, zero, full, random, urandom.
_OWN_DEVICES = frozenset(os.makedev(1, minor) for minor in (3, 5, 7, 8, 9))


def is_harmless(descriptor: int) -> bool:
    """True if it leads to nothing but another process, a person, or a device of the sandbox."""
    info = os.fstat(descriptor)
    if stat.S_ISCHR(info.st_mode):
        return os.isatty(descriptor) or info.st_rdev in _OWN_DEVICES
    return os.readlink(f"/proc/self/fd/{descriptor}").startswith(_ANONYMOUS)


def write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])


class _Outlet:
    """Passes on what comes from a pipe; if it cannot, whoever writes into that finds it closed."""

    def __init__(self, pipe: int, to: int, name: str) -> None:
        self._pipe = pipe
        self._to = to
        self._name = name
        self.lost = ""  # why it could not

    def __call__(self, data: bytes) -> None:
        try:
            if not self.lost:
                write_all(self._to, data)
        except OSError as error:
            self.lost = f"{self._name} cannot be written: {error.strerror}"
            # The number stays taken, for it is in the poll loop.
            nowhere = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nowhere, self._pipe, inheritable=False)
            os.close(nowhere)


class _Inlet:
    """Reads a file, and passes it on into a pipe as fast as that takes it."""

    def __init__(self, source: int, pipe: int) -> None:
        self.source = source
        self._pipe: int | None = pipe
        self._data = b""
        os.set_blocking(pipe, False)

    def serve(self, poller: select.poll, descriptor: int) -> bool:
        """Do what is possible now; False if the descriptor is none of ours."""
        reads = descriptor == self.source
        if self._pipe is None or not (reads or descriptor == self._pipe):
            return False
        try:
            if reads:
                self._data = os.read(descriptor, _CHUNK)
            else:
                self._data = self._data[os.write(descriptor, self._data) :]
            over = reads and not self._data
        except BlockingIOError:
            return True
        except OSError:
            over = True  # it is a directory, say, or nobody reads it
        if over:
            poller.unregister(descriptor)
            self.close()
        elif reads or not self._data:
            poller.unregister(descriptor)
            other = (self._pipe, select.POLLOUT) if reads else (self.source, select.POLLIN)
            poller.register(*other)
        return True

    def close(self) -> None:
        if self._pipe is not None:
            os.close(self._pipe)
            os.close(self.source)
            self._pipe = None


class Passed(CallerStreams):
    """Streams of the caller's: as they are where that is harmless, else by pipes."""

    def __init__(self, stdin: int, stdout: int, stderr: int) -> None:
        super().__init__(stdin, stdout, stderr)
        self._outlets: list[_Outlet] = []
        self._inlet: _Inlet | None = None
        if not is_harmless(stdin):
            self.stdin, ours = os.pipe()
            self._theirs.append(self.stdin)
            self._inlet = _Inlet(os.dup(stdin), ours)
        self.stdout = self._passed(stdout, "stdout")
        same = os.path.samestat(os.fstat(stdout), os.fstat(stderr))  # what was said stays in order
        self.stderr = self.stdout if same else self._passed(stderr, "stderr")

    def child(self, child: Child) -> Child:
        """A child with these streams, so that it is fed and heard."""
        return _Served(child, self._inlet, self._outlets)

    def __exit__(self, *error: object) -> None:
        super().__exit__()
        if error[0] is not None and self._inlet is not None:
            self._inlet.close()

    def _passed(self, to: int, name: str) -> int:
        if is_harmless(to):
            return to
        theirs = self._pipe(None)
        ours = next(reversed(self._readers))
        self._readers[ours] = outlet = _Outlet(ours, to, name)
        self._outlets.append(outlet)
        return theirs


class _Served(Child):
    """A child some of whose streams are files."""

    def __init__(self, child: Child, inlet: _Inlet | None, outlets: list[_Outlet]) -> None:
        super().__init__(child.handle, child.started, child.readers, child.most_grace)
        self._inlet = inlet
        self._outlets = outlets

    def wait(self, watch: Callable[[], Cut | None]) -> Exit:
        try:
            ended = super().wait(watch)
        finally:
            if self._inlet is not None:
                self._inlet.close()
        lost = next((outlet.lost for outlet in self._outlets if outlet.lost), "")
        return replace(ended, cut=Cut(lost, 0.0)) if lost and ended.cut is None else ended

    def _loop(self, poller: select.poll, watch: Callable[[], Cut | None]) -> Cut | None:
        if self._inlet is not None:
            poller.register(self._inlet.source, select.POLLIN)
        return super()._loop(poller, watch)

    def _read(self, poller: select.poll, descriptor: int) -> None:
        if self._inlet is None or not self._inlet.serve(poller, descriptor):
            super()._read(poller, descriptor)
