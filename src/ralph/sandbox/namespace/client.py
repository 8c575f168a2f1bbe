"""Ralph's side of the process that makes sandboxes, and of the keeper in each of them."""

import errno
import marshal
import os
import select
import signal
import sys
from _socket import (
    AF_UNIX,
    CMSG_SPACE,
    MSG_CMSG_CLOEXEC,
    SCM_RIGHTS,
    SO_PASSCRED,
    SOCK_SEQPACKET,
    SOL_SOCKET,
    socket,
    socketpair,
)
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

from ralph.processes import keeper_main, procfs
from ralph.processes.child import Child, Command, Streams, pidfd_of
from ralph.processes.keeper import Keeper, LostError
from ralph.processes.keeper_main import Launched
from ralph.sandbox.namespace.streams import Logged, Passed
from ralph.sandbox.policy import MOST_PORTS

if TYPE_CHECKING:
    from ralph.sandbox.namespace.mounts import MountPlan

_LARGEST = 65536
_SCM_CREDENTIALS = 2
_DESCRIPTORS = 3 + MOST_PORTS
_ANSWER = 30.0  # seconds; a busy machine may take its time
_END = 10.0
_PROGRAM = os.path.join(os.path.dirname(__file__), "maker.py")


class RefusedError(Exception):
    """The kernel, or something around us, does not let us make a sandbox."""

    def __init__(self, step: str, number: int) -> None:
        reason = os.strerror(number) if number else "no answer"
        super().__init__(f"cannot {step}: {reason}")
        self.step = step
        self.number = number


class Launcher:
    """The process that makes sandboxes, started when the first is wanted, or before by `begin`."""

    def __init__(self) -> None:
        self._begun: Launched | None = None
        self._owner = 0

    def begin(self) -> None:
        """Start it; it gets ready while we go on."""
        if self._begun is None or self._owner != os.getpid():
            self._begun = keeper_main.launch(_PROGRAM)
            self._owner = os.getpid()

    def open(self, plan: "MountPlan") -> "Opened":
        """A furnished sandbox with nothing running in it."""
        try:
            return self._open(plan)
        except (BrokenPipeError, ConnectionResetError):
            self.close()  # something killed it since the last time
        return self._open(plan)

    def _open(self, plan: "MountPlan") -> "Opened":
        self.begin()
        assert self._begun is not None
        ours, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
        ours.setsockopt(SOL_SOCKET, SO_PASSCRED, 1)
        number = theirs.fileno().to_bytes(4, sys.byteorder)
        link = socket(fileno=self._begun.link)
        try:
            message = marshal.dumps(("open", dict(plan)))
            link.sendmsg([message], [(SOL_SOCKET, SCM_RIGHTS, number)])
            theirs.close()
            return _ready(ours)
        except BaseException:
            ours.close()
            raise
        finally:
            link.detach()  # it stays with the one that was launched
            theirs.close()

    def close(self) -> None:
        begun, self._begun = self._begun, None
        if begun is not None and self._owner == os.getpid():
            begun.let_go()


class Opened:
    """A sandbox as it comes from the launcher: descriptors, and its keeper."""

    def __init__(self, keeper: "Inner", facts: dict[str, Any], descriptors: list[int]) -> None:
        self.keeper = keeper
        self.kept: str = facts["kept"]
        self.home: str = facts["home"]  # why there is no layer over it, if one was wanted
        self.upper, self.merged, *rest = descriptors
        self.listener = rest[0] if rest else None  # the proxy's
        self.port: int = facts["ports"][0] if rest else 0
        self.forwards: dict[int, int] = dict(zip(facts["ports"][1:], rest[1:], strict=True))

    def close(self) -> None:
        """End what runs in it; the layer lives until its descriptors are closed."""
        self.keeper.close()

    def forget(self) -> None:
        for descriptor in (self.upper, self.merged):
            os.close(descriptor)


def _ready(link: socket) -> Opened:
    if not select.select([link], [], [], _ANSWER)[0]:
        raise RefusedError("make a sandbox", 0)
    space = CMSG_SPACE(_DESCRIPTORS * 4) + CMSG_SPACE(12)
    message, extra, _, _ = link.recvmsg(_LARGEST, space, MSG_CMSG_CLOEXEC)
    link.setsockopt(SOL_SOCKET, SO_PASSCRED, 0)
    if not message:
        raise RefusedError("make a sandbox", errno.ECHILD)
    word, *rest = marshal.loads(message)  # noqa: S302  ours is the other end
    if word == "failed":
        raise RefusedError(*rest)
    facts: dict[str, Any] = rest[0]
    attached = {kind: memoryview(data).cast("i") for _, kind, data in extra}
    # The kernel says who has sent it, by the number that it has for us.
    keeper = Inner(Launched(attached[_SCM_CREDENTIALS][0], link.detach()))
    return Opened(keeper, facts, list(attached[SCM_RIGHTS]))


class CallerStreams(Streams):
    """Streams that the caller has and keeps."""

    def __init__(self, stdin: int, stdout: int, stderr: int) -> None:
        self._readers = {}
        self._theirs = []
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr


class Attaching(Keeper):
    """A keeper that can also give a child the streams that we have."""

    def attach(self, command: Command, stdin: int, stdout: int, stderr: int) -> Child:
        """Start a child on these streams; OSError if it cannot be started."""
        return self._attached(command, CallerStreams(stdin, stdout, stderr))

    def _attached(self, command: Command, streams: Streams) -> Child:
        try:
            return self._start(command, streams)
        except LostError as error:
            raise OSError(errno.EAGAIN, f"the keeper was lost: {error}") from error


class Inner(Attaching):
    """The keeper in a sandbox, which is its first process: when it ends, everything there ends."""

    def __init__(self, begun: Launched) -> None:
        super().__init__(begun=begun)
        self._process = pidfd_of(begun.pid)
        self.begin()

    def __call__(
        self,
        command: Command,
        on_output: Callable[[bytes], None] | None = None,
        on_error: Callable[[bytes], None] | None = None,
        log: IO[bytes] | None = None,
    ) -> Child:
        """Start a child. A log is written by us: as a descriptor it could be emptied."""
        if log is None:
            return super().__call__(command, on_output, on_error)
        return self._attached(command, Logged(command, log))

    def attach(self, command: Command, stdin: int, stdout: int, stderr: int) -> Child:
        streams = Passed(stdin, stdout, stderr)
        return streams.child(self._attached(command, streams))

    def begin(self) -> None:
        """It was begun by the launcher; one outside would run commands outside."""
        if self._begun is None:
            raise LostError("the sandbox has ended")
        super().begin()

    def close(self) -> None:
        """End everything in the sandbox, and wait for that."""
        self._close_link()
        if not self._ended(_END):
            keeper_main.signal_all([self.pid], signal.SIGKILL)
            self._ended(_END)
        if self._process is not None:
            os.close(self._process)
            self._process = None

    def abandon(self) -> tuple[int, ...]:
        """The same at once, when it does not answer."""
        self._close_link()
        if self._process is not None:
            keeper_main.signal_all([self.pid], signal.SIGKILL)
        return () if self._ended(_END) else (self.pid,)

    def _ended(self, seconds: float) -> bool:
        return self._process is None or bool(select.select([self._process], [], [], seconds)[0])

    def _spawned(self, command: Command) -> int:
        """The number that a process of the sandbox has for us; 0 if it has ended already."""
        inside = super()._spawned(command)
        inner = (
            pid for pid in keeper_main.descendants(self.pid) if procfs.number_inside(pid) == inside
        )
        return next(inner, 0)
