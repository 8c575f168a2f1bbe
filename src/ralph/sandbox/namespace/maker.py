"""The process that makes sandboxes: namespaces, an overlay on the project, a host to be read only.

It runs as `python -I -S maker.py` and serves one Ralph. For each sandbox it forks a process
that leaves the host's namespaces, whose child is process 1 in there. That one furnishes the place,
gives up every capability that could undo it, and then is a keeper (ADR 23): whatever runs in the
sandbox is below it. When any of the three ends, the kernel ends everything after it; when the
last process is gone, so are the mounts.

Messages are marshalled tuples over SEQPACKET sockets. Ralph sends `("open", plan)` with a socket
for the new sandbox to descriptor 3. On the new socket comes `("ready", facts)` with descriptors,
or `("failed", what was tried, errno)`; from then on it speaks as a keeper does.
"""

import errno
import fcntl
import marshal
import os
import select
import signal
import sys
from _socket import (
    AF_INET,
    CMSG_SPACE,
    MSG_CMSG_CLOEXEC,
    SCM_RIGHTS,
    SOCK_DGRAM,
    SOCK_STREAM,
    SOL_SOCKET,
    socket,
)

TYPE_CHECKING = False  # as typing has it; importing that would cost more than all the rest
if TYPE_CHECKING:
    from typing import Any

    from ralph.sandbox.namespace.mounts import MountPlan

LINK = 3
_LARGEST = 65536
_SIOCSIFFLAGS = 0x8914
_IFF_UP_RUNNING = 0x41
_QUEUE = 64


class StepError(Exception):
    """A step that failed, in words for people, and the kernel's reason."""

    def __init__(self, step: str, number: int) -> None:
        super().__init__(step, number)
        self.step = step
        self.number = number


def main() -> None:
    """Make sandboxes until Ralph is gone; they end with us."""
    # What we inherited leads to the host, past every mount, and nothing of it may get into a
    # sandbox. Not by numbers up to the limit, which may have been lowered since.
    os.set_inheritable(LINK, False)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > LINK:
            try:
                os.close(int(name))
            except OSError:
                pass  # the one that was listed with
    here = os.path.abspath(__file__)
    for _ in range(4):
        here = os.path.dirname(here)
    sys.path.append(here)  # for Ralph's own modules
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    from ralph.processes import keeper_main
    from ralph.sandbox.namespace import init_process, mounts, syscalls  # noqa: F401  once, for all we fork

    link = socket(fileno=LINK)
    poller = select.poll()
    poller.register(LINK, select.POLLIN)
    while True:
        poller.poll(1000)
        keeper_main.reap(lambda *_: None)
        if poller.poll(0) and not _serve(link):
            os._exit(0)


def _serve(link: socket) -> bool:
    try:
        message, extra, _, _ = link.recvmsg(_LARGEST, CMSG_SPACE(4), MSG_CMSG_CLOEXEC)
    except OSError:
        return False
    if not message:
        return False
    rights = [d for level, kind, d in extra if (level, kind) == (SOL_SOCKET, SCM_RIGHTS)]
    answer = socket(fileno=int.from_bytes(rights[0], sys.byteorder))
    _, plan = marshal.loads(message)  # noqa: S302  ours is the other end
    try:
        _fork_sandbox(plan, answer)
    except OSError as error:
        _say(answer, "failed", "start a process", error.errno or 0)
    answer.close()
    return True


def _fork_sandbox(plan: "MountPlan", answer: socket) -> None:
    """Start the process that leaves; root's is told who is who by us, since only we may."""
    asks, asked = os.pipe()
    told, tells = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(asks)
        os.close(tells)
        _in_child(lambda: _leave(plan, answer, asked, told), answer)
    for descriptor in (asked, told):
        os.close(descriptor)
    if os.read(asks, 1):
        os.write(tells, b"y" if _map_everybody(pid) else b"n")
    for descriptor in (asks, tells):
        os.close(descriptor)


def _in_child(act: "Any", answer: socket) -> None:  # noqa: ANN401  no typing at run time
    """Do something, tell what went wrong, and never return."""
    try:
        act()
    except StepError as error:
        _say(answer, "failed", error.step, error.number)
    except OSError as error:
        _say(answer, "failed", "prepare", error.errno or 0)
    except BaseException as error:  # noqa: BLE001  nobody else could tell
        _say(answer, "failed", f"prepare ({error!r})", 0)
    os._exit(1)


def _leave(plan: "MountPlan", answer: socket, asked: int, told: int) -> None:
    from ralph.sandbox.namespace import syscalls as kernel

    kernel.die_with_parent(signal.SIGKILL)
    os.close(LINK)
    kinds = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWIPC
    if plan["network"] != "on":
        kinds |= kernel.CLONE_NEWNET
    user, group = os.geteuid(), os.getegid()
    _step("make a user namespace", lambda: kernel.unshare(kernel.CLONE_NEWUSER))
    if user == 0:  # have everybody mapped; the closed pipe says that we do not want that
        os.write(asked, b"?")
    os.close(asked)

    def map_ourselves() -> None:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")

    if user != 0 or os.read(told, 1) != b"y":
        _step("say who we are in it", map_ourselves)
    _step("make namespaces", lambda: kernel.unshare(kinds))
    pid = os.fork()
    if pid == 0:
        _in_child(lambda: _be_first(plan, answer), answer)
    answer.close()
    _, status = os.waitpid(pid, 0)
    os._exit(0 if status == 0 else 1)


def _map_everybody(pid: int) -> bool:
    """Let every user be the same in there; False where we may not."""
    try:
        for kind in ("uid_map", "gid_map"):
            with open(f"/proc/self/{kind}", encoding="ascii") as file:
                rows = [line.split() for line in file]
            same = "".join(f"{inside} {inside} {count}\n" for inside, _, count in rows)
            _write(f"/proc/{pid}/{kind}", same)
    except OSError:
        return False
    return True


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode("ascii"))
    finally:
        os.close(descriptor)


def _be_first(plan: "MountPlan", answer: socket) -> None:
    """Furnish the place and keep it."""
    from ralph.sandbox.namespace import init_process as first
    from ralph.sandbox.namespace import mounts as furnish
    from ralph.sandbox.namespace import syscalls as kernel

    def lower_ourselves() -> None:
        kernel.keep_capabilities(kernel.OF_ROOT if plan["root"] else frozenset())
        kernel.forbid_keys()
        kernel.die_with_parent(signal.SIGKILL)  # a change of privileges takes the wish back
        kernel.be_untouchable()  # we are ours as long as nobody speaks to Ralph in our name

    kernel.die_with_parent(signal.SIGKILL)
    os.chdir("/")
    if plan["network"] != "on":
        _step("bring up loopback", _loopback)
    listeners: list[socket] = []
    if plan["network"] == "proxy":
        listeners = [_listener(port) for port in plan["ports"]]
        listeners.insert(0, _listener(0))  # the proxy's, made last, so that it takes nobody's port
    made = furnish.furnish(plan, _step)
    _step("give up privileges", lower_ourselves)
    given = [made.upper, made.merged, *(listener.fileno() for listener in listeners)]
    ports = [listener.getsockname()[1] for listener in listeners]
    facts = {"kept": made.kept, "home": made.home, "ports": ports}
    _say(answer, "ready", facts, given=given)
    for descriptor in given:
        os.close(descriptor)
    first.First(answer).serve()
    os._exit(0)


def _loopback() -> None:
    control = socket(AF_INET, SOCK_DGRAM)
    request = b"lo".ljust(16, b"\0") + _IFF_UP_RUNNING.to_bytes(2, sys.byteorder)
    fcntl.ioctl(control.fileno(), _SIOCSIFFLAGS, request.ljust(40, b"\0"))
    control.close()


def _listener(port: int) -> socket:
    listener = socket(AF_INET, SOCK_STREAM)
    _step(f"listen on port {port} in the sandbox", lambda: listener.bind(("127.0.0.1", port)))
    listener.listen(_QUEUE)
    return listener


def _step(what: str, act: "Any") -> None:  # noqa: ANN401
    """Do one thing; if it fails, say which it was."""
    try:
        act()
    except OSError as error:
        raise StepError(what, error.errno or errno.EINVAL) from error


def _say(to: socket, *message: object, given: "list[int] | None" = None) -> None:
    numbers = b"".join(number.to_bytes(4, sys.byteorder) for number in given or ())
    rights = [(SOL_SOCKET, SCM_RIGHTS, numbers)] if given else []
    try:
        to.sendmsg([marshal.dumps(message)], rights)  # type: ignore[arg-type]  # simple values
    except OSError:
        pass  # nobody waits for it any more


if __name__ == "__main__":
    main()
