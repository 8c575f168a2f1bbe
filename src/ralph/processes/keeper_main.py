"""The keeper: a small process that holds an agent's process tree (ADR 23).

It runs as `python -I -S keeper_main.py` and imports nothing of Ralph. As a subreaper it inherits
every orphan of what it starts, so that no fork, session or cleared environment leads out of its
reach. When its socket closes, Ralph is gone, even by kill -9: it ends everything, then itself.

Messages are marshalled tuples over a SEQPACKET socket, which is descriptor 3:

    to the keeper                              from the keeper
    ("spawn",) with the descriptors of a       ("spawned", pid) or ("refused", errno, file)
      specification, stdin, stdout, stderr
    ("end", grace)                             ("exited", wait status, whether any are left)
    ("sweep", spared pids)                     ("swept", pids that would not die)
"""

import marshal
import os
import select
import sys
import time
from _socket import (
    AF_UNIX,
    CMSG_SPACE,
    MSG_CMSG_CLOEXEC,
    SCM_RIGHTS,
    SOCK_SEQPACKET,
    SOL_SOCKET,
    socket,
    socketpair,
)

TYPE_CHECKING = False  # as typing has it; importing that would cost more than all the rest
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any
else:
    import _signal as signal  # the other makes enums of it all, which takes most of our start

LINK = 3  # the descriptor that our socket has
ROUTE = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
HURRY = 0.2  # seconds between the signals of a route when nobody is left who could wait
PATIENCE = 30.0  # seconds after which something is said to be unkillable
_TICK = 0.01
_ORPHANS = 0.25  # seconds that an orphan which has ended may wait for us
_DESCRIPTORS = 4  # with a message to us, at most
_SIZE = 4  # bytes of a descriptor in a message
_LARGEST = 65536
_EINVAL = 22
_PR_SET_CHILD_SUBREAPER = 36
_NOT_FOR_US = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# As children expect them, also if `nohup` or a shell's `&` had us ignore some.
_DEFAULTS = (*_NOT_FOR_US, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ)


def is_possible() -> bool:
    """True if this system lets a keeper work: Linux since 5.3, unless a container forbids it."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (OSError, AttributeError):
        return False
    return True


class Launched:
    """A keeper that was started. Whoever takes it closes its socket; else it is let go."""

    def __init__(self, pid: int, link: int) -> None:
        self.pid = pid
        self.link = link
        self.taken = False

    def let_go(self) -> None:
        """Close a keeper that nobody needed."""
        if not self.taken:
            os.close(self.link)
            try:
                os.waitpid(self.pid, 0)
            except ChildProcessError:
                pass  # a program that ignores SIGCHLD has its children reaped by the system


def link_pair() -> tuple[socket, socket]:
    """The two ends of a link, on which messages stay apart."""
    return socketpair(AF_UNIX, SOCK_SEQPACKET)


def launch(program: str = __file__) -> Launched:
    """Start a keeper, or another program of its kind. It gets ready while we go on."""
    ours, theirs = link_pair()
    try:
        pid = spawn_python(program, (), [theirs.fileno()])
    finally:
        theirs.close()
    return Launched(pid, ours.detach())


def spawn_python(program: str, words: "Iterable[str]", given: list[int]) -> int:
    """Start a Python that has these descriptors from LINK on. A terminal's Ctrl+C is not for it."""
    import fcntl

    opened = [os.open(os.devnull, os.O_RDWR)]
    try:
        away = LINK + len(given)  # first out of the way of each other's numbers
        opened.extend(fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, away) for one in given)
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", program, *words],
            os.environ,
            file_actions=[
                *((os.POSIX_SPAWN_DUP2, opened[0], standard) for standard in (0, 1, 2)),
                *((os.POSIX_SPAWN_DUP2, one, LINK + n) for n, one in enumerate(opened[1:])),
            ],
            setsid=True,
        )
    finally:
        for descriptor in opened:
            os.close(descriptor)


def become_subreaper() -> bool:
    """Inherit the orphans of our descendants from now on; False where the system cannot."""
    # Not by ctypes: importing that would cost every start some milliseconds.
    import _ctypes

    try:
        libc = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None: this very program
        prctl = _ctypes.dlsym(libc, "prctl")
        failed: int = _ctypes.call_function(prctl, (_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
    except (OSError, AttributeError):
        return False
    return not failed


def send(link: socket, message: "tuple[object, ...]", given: "Sequence[int]" = ()) -> None:
    """Send a message of simple values, with descriptors."""
    numbers = b"".join(number.to_bytes(_SIZE, sys.byteorder) for number in given)
    rights = [(SOL_SOCKET, SCM_RIGHTS, numbers)] if given else []
    link.sendmsg([marshal.dumps(message)], rights)  # type: ignore[arg-type]  # simple values only


def say(link: socket, *message: object, given: "Sequence[int]" = ()) -> None:
    """The same to whoever listens: if nobody does, the next thing to be heard is the end."""
    try:
        send(link, message, given)
    except OSError:
        pass


def receive(link: socket, most: int) -> "tuple[Any, list[int]] | None":
    """The next message, with at most so many descriptors; None when the other end is closed."""
    try:
        message, extra, _, _ = link.recvmsg(_LARGEST, CMSG_SPACE(most * _SIZE), MSG_CMSG_CLOEXEC)
    except OSError:
        return None
    rights = (data for *kind, data in extra if kind == [SOL_SOCKET, SCM_RIGHTS])
    descriptors = [number for data in rights for number in memoryview(data).cast("i")]
    return (marshal.loads(message), descriptors) if message else None  # noqa: S302  ours


def sweep(spared: "Iterable[int]" = (), patience: float = PATIENCE) -> tuple[int, ...]:
    """End and reap everything below this process, but not the spared; who would not die.

    First by TERM: a git that tidies up in the background leaves its locks behind if it is killed.
    Orphans come to us while we work, so looking once is never enough: only the kernel's word that
    we have no child counts.
    """
    try:
        blind = os.readlink("/proc/self") != str(os.getpid())  # it tells of another namespace
    except OSError:
        blind = True
    if not reap() or blind:
        return ()
    signal_all(descendants(os.getpid(), spared), signal.SIGTERM)
    end = time.monotonic() + HURRY
    while reap() and descendants(os.getpid(), spared) and time.monotonic() < end:
        time.sleep(_TICK)
    end = time.monotonic() + patience
    before: list[int] = []
    while True:
        left = descendants(os.getpid(), spared)
        signal_all(left, signal.SIGKILL)
        if not reap() or (spared and not left and not before):
            return ()
        if time.monotonic() > end:
            return tuple(left)
        if left == before:
            time.sleep(_TICK)  # they only take their time
        before = left


def descendants(root: int, spared: "Iterable[int]" = ()) -> list[int]:
    """Every process below this one, except the spared and what is below them."""
    listed = os.path.exists(f"/proc/{root}/task/{root}/children")
    children = _listed if listed else _scanned()
    left_out = frozenset(spared)
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = [pid for pid in children(waiting.pop()) if pid not in left_out]
        found += below
        waiting += below
    return found


def _listed(pid: int) -> list[int]:
    """The children of a process, as the kernel lists them for each of its threads."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
    except OSError:
        pass  # it is gone; its children are found elsewhere in the next round
    return found


def _scanned() -> "Callable[[int], list[int]]":
    """The same by everybody's parent, where the kernel keeps no lists."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = int(_read(f"/proc/{name}/stat").rpartition(b")")[2].split()[1])
        except (OSError, IndexError):
            continue  # it is gone
        children.setdefault(parent, []).append(int(name))
    return lambda pid: children.get(pid, [])


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, _LARGEST)
    finally:
        os.close(descriptor)


def signal_all(pids: "Iterable[int]", number: int) -> None:
    """Send a signal to each; who is gone is gone."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def reap(ended: "Callable[[int, int], None]" = lambda *_: None) -> bool:
    """Take leave of every child that has ended; True if any other child is left."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if not pid:
            return True
        ended(pid, status)


class KeeperServer:
    """Starts one child at a time, and does what its socket says."""

    def __init__(self, link: socket) -> None:
        self._link = link
        self._child = 0  # the leader of the session that was started last; 0: it has ended
        self._ending = -1  # its pidfd, readable when it has ended
        self._poller = select.poll()
        self._status: int | None = None  # how it ended, until that is told
        self._step: int | None = None  # of the route, if the child is being ended
        self._grace = self._due = 0.0

    def serve(self) -> None:
        """Work until the socket is closed; then end everything."""
        link = self._link.fileno()
        self._poller.register(link, select.POLLIN)
        while True:
            timeout = None  # milliseconds until orphans are to be reaped, or the next step is due
            if self._child:
                due = _ORPHANS if self._step is None else self._due - time.monotonic()
                timeout = max(0.0, due * 1000)
            for descriptor, _ in self._poller.poll(timeout):
                if descriptor == link and not self._obey():
                    return self._finish()
            left = reap(self._ended)
            if self._status is not None:
                say(self._link, "exited", self._status, left)
                self._status = None
            self._advance()

    def _obey(self) -> bool:
        """Do what the next message says; False when the other end is closed."""
        received = receive(self._link, _DESCRIPTORS)
        if received is None:
            return False
        (command, *arguments), descriptors = received
        if command == "spawn":
            self._spawn(descriptors)
        elif command == "end":  # begin to end the child; when that was begun already, make haste
            self._step = self._step or 0
            self._grace, self._due = arguments[0], 0.0
        elif command == "sweep":
            say(self._link, "swept", sweep(arguments[0]))
        return True

    def _spawn(self, descriptors: list[int]) -> None:
        path = b""
        try:
            specification = os.pread(descriptors[0], os.fstat(descriptors[0]).st_size, 0)
            path, argv, cwd, env = marshal.loads(specification)  # noqa: S302
            os.chdir(cwd)
            self._child = os.posix_spawn(
                path,
                argv,
                env,
                file_actions=[
                    *_terminal(descriptors[1]),
                    *((os.POSIX_SPAWN_DUP2, one, to) for to, one in enumerate(descriptors[1:])),
                ],
                setsid=True,
                setsigdef=_DEFAULTS,
            )
        except OSError as error:
            say(self._link, "refused", error.errno, os.fsencode(error.filename or path))
        except ValueError:  # a program without a name
            say(self._link, "refused", _EINVAL, path)
        else:
            say(self._link, "spawned", self._child)
            self._step = None
            self._ending = os.pidfd_open(self._child)
            self._poller.register(self._ending, select.POLLIN)
        for descriptor in descriptors:
            os.close(descriptor)

    def _advance(self) -> None:
        """Take the next step of the route, if one is due. The last is taken again and again."""
        if not self._child or self._step is None or time.monotonic() < self._due:
            return
        # The leader of a session cannot leave its group; whoever else did is swept later.
        signal_group(self._child, ROUTE[self._step])
        is_last = self._step + 1 == len(ROUTE)
        self._step += not is_last
        self._due = time.monotonic() + (_TICK if is_last else self._grace)

    def _ended(self, pid: int, status: int) -> None:
        if pid == self._child:
            self._poller.unregister(self._ending)
            os.close(self._ending)
            self._child, self._status = 0, status

    def _finish(self) -> None:
        """Take the route in a hurry, then end everything that is left."""
        for number in ROUTE:
            if not reap(self._ended):
                return
            if self._child:
                signal_group(self._child, number)
                select.select([self._ending], [], [], HURRY)
                reap(self._ended)
        sweep()


def _terminal(stdin: int) -> "list[tuple[int, int, str, int, int]]":
    """The actions that make a terminal the child's own: the leader of a session gets the first that
    it opens, if that is nobody's yet."""
    again = f"/proc/self/fd/{stdin}"
    try:
        if not os.isatty(stdin):
            return []
        os.close(os.open(again, os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return []  # somebody else's, after `su`
    return [(os.POSIX_SPAWN_OPEN, 0, again, os.O_RDWR, 0)]


def signal_group(leader: int, number: int) -> None:
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        pass  # nobody of it is left


def main() -> None:
    os.set_inheritable(LINK, False)  # a child that held it would keep our end from being seen
    become_subreaper()
    for number in _NOT_FOR_US:
        signal.signal(number, signal.SIG_IGN)
    KeeperServer(socket(fileno=LINK)).serve()
    os._exit(0)  # nothing is left to tidy up, and someone may wait for us


if __name__ == "__main__":
    main()
