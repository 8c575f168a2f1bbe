"""Ralph's side of the process that makes sandboxes, and of the keeper in each of them."""

import errno
import marshal
import os
import select
import signal
from _socket import CMSG_SPACE, MSG_CMSG_CLOEXEC, SCM_RIGHTS, SO_PASSCRED, SOL_SOCKET, socket
from _thread import RLock
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ralph.files.safe_open import read_or_nothing
from ralph.processes import keeper_main, procfs
from ralph.processes.child import Child, Command, pidfd_of
from ralph.processes.keeper import Keeper, LostError
from ralph.processes.keeper_main import Launched
from ralph.sandbox.namespace.streams import Passed
from ralph.sandbox.policy import MOST_PORTS

if TYPE_CHECKING:
    from ralph.sandbox.namespace.inside import MountPlan

_LARGEST = 65536
_SCM_CREDENTIALS = 2
_DESCRIPTORS = 3 + MOST_PORTS
_ANSWER = 30.0  # seconds; a busy machine may take its time
_END = 10.0
_PROGRAM = os.path.join(os.path.dirname(__file__), "maker.py")

_SYSCTLS = (  # a file of /proc/sys, the value that forbids namespaces, what to type
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        b"1",
        "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    ("kernel/unprivileged_userns_clone", b"0", "sudo sysctl kernel.unprivileged_userns_clone=1"),
    ("user/max_user_namespaces", b"0", "sudo sysctl user.max_user_namespaces=10000"),
)


class RefusedError(Exception):
    """The kernel, or something around us, does not let us make a sandbox."""

    def __init__(self, step: str, number: int) -> None:
        reason = os.strerror(number) if number else "no answer"
        super().__init__(f"cannot {step}: {reason}")
        self.step = step


def namespace_remedy() -> str:
    """The command to type, from what the kernel says of itself."""
    for name, forbids, remedy in _SYSCTLS:
        if read_or_nothing(f"/proc/sys/{name}").strip() == forbids:
            return remedy
    return "In a container ask its host, for example: docker run --privileged ..."


class Launcher:
    """The process that makes sandboxes, started when the first is wanted, or before by `begin`. It
    serves all threads, one after the other; the sandboxes end with it."""

    def __init__(self) -> None:
        self._begun: Launched | None = None
        self._owner = 0
        self._open_ones = 0
        self._idle = False  # nobody wants more of it
        self._lock = RLock()

    def begin(self) -> None:
        """Start it; it gets ready while we go on."""
        with self._lock:
            self._idle = False
            if self._begun is None or self._owner != os.getpid():
                self._begun = keeper_main.launch(_PROGRAM)
                self._owner = os.getpid()
                self._open_ones = 0

    def open(self, plan: "MountPlan") -> "Opened":
        """A sandbox, ready, with nothing running in it."""
        with self._lock:
            try:
                opened = self._open(plan)
            except (BrokenPipeError, ConnectionResetError):
                self._let_go()  # something killed it since the last time
                opened = self._open(plan)
            self._open_ones += 1
            return opened

    def _open(self, plan: "MountPlan") -> "Opened":
        self.begin()
        assert self._begun is not None
        ours, theirs = keeper_main.link_pair()
        ours.setsockopt(SOL_SOCKET, SO_PASSCRED, 1)
        link = socket(fileno=self._begun.link)
        try:
            keeper_main.send(link, ("open", dict(plan)), [theirs.fileno()])
            theirs.close()
            return self._ready(ours)
        except BaseException:
            ours.close()
            raise
        finally:
            link.detach()  # it stays with the one that was launched
            theirs.close()

    def _ready(self, link: socket) -> "Opened":
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
        attached = {kind: memoryview(data).cast("i") for _, kind, data in extra}
        # The kernel says who has sent it, by the number that it has for us.
        keeper = Inner(Launched(attached[_SCM_CREDENTIALS][0], link.detach()))
        return Opened(keeper, rest[0], list(attached[SCM_RIGHTS]), self._forgotten)

    def close(self) -> None:
        """End it, once its last sandbox is closed."""
        with self._lock:
            self._idle = True
            if not self._open_ones or self._owner != os.getpid():
                self._let_go()

    def _forgotten(self) -> None:
        with self._lock:
            self._open_ones = max(0, self._open_ones - 1)
            if self._idle:
                self.close()

    def _let_go(self) -> None:
        begun, self._begun = self._begun, None
        if begun is not None and self._owner == os.getpid():
            begun.let_go()


class Opened:
    """A sandbox as it comes from the launcher: descriptors, and its keeper."""

    def __init__(
        self,
        keeper: "Inner",
        facts: dict[str, Any],
        descriptors: list[int],
        forgotten: Callable[[], None],
    ) -> None:
        self.keeper = keeper
        self._forgotten: Callable[[], None] | None = forgotten
        self.kept: str = facts["kept"]
        self.home: str = facts["home"]  # why there is no layer over it, if one was wanted
        self.upper, self.merged, *self.listeners = descriptors  # the proxy's, then each port's
        self.port: int = facts["port"]  # the proxy's

    def forget(self) -> None:
        """Close what is open still; the layer lives until then. Again it does nothing."""
        forgotten, self._forgotten = self._forgotten, None
        if forgotten is not None:
            for descriptor in (self.upper, self.merged, *self.listeners):
                os.close(descriptor)
            forgotten()


class Inner(Keeper):
    """The keeper in a sandbox, which is its first process: when it ends, everything there ends."""

    def __init__(self, begun: Launched) -> None:
        super().__init__(begun=begun)
        self._process = pidfd_of(begun.pid)
        self.begin()

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
        below = keeper_main.descendants(self.pid)
        return next((pid for pid in below if procfs.number_inside(pid) == inside), 0)
