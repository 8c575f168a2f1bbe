"""The process that makes sandboxes: namespaces, an overlay on the project, a host to be read only.

It runs as `python -I -S maker.py` and serves one Ralph. For each sandbox it forks a process
that leaves the host's namespaces, whose child is process 1 in there. That one makes its mounts,
gives up every capability that could undo it, and then is a keeper (ADR 23): whatever runs in the
sandbox is below it. When any of the three ends, the kernel ends everything after it; when the
last process is gone, so are the mounts.

Messages are marshalled tuples over SEQPACKET sockets. Ralph sends `("open", plan)` with a socket
for the new sandbox to descriptor 3. On the new socket comes `("ready", facts)` with descriptors,
or `("failed", what was tried, errno)`; from then on it speaks as a keeper does.
"""

import fcntl
import os
import select
import signal
import sys
from _collections_abc import Callable
from _socket import AF_INET, SHUT_WR, SOCK_DGRAM, SOCK_STREAM, socket, socketpair

TYPE_CHECKING = False  # as typing has it; importing that would cost more than all the rest
if TYPE_CHECKING:
    from ralph.sandbox.namespace.inside import MountPlan

LINK = 3
_SIOCSIFFLAGS = 0x8914
_IFF_UP_RUNNING = 0x41
_QUEUE = 64


def main() -> None:
    """Make sandboxes until Ralph is gone; they end with us."""
    # What we inherited leads to the host, past every mount, and nothing of it may get into a
    # sandbox. Not by numbers up to the limit, which may have been lowered since.
    os.set_inheritable(LINK, False)
    os.closerange(LINK + 1, max(map(int, os.listdir("/proc/self/fd"))) + 1)
    sys.path.append(os.path.abspath(__file__).rsplit("/", 4)[0])  # for Ralph's own modules
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    from ralph.processes import keeper_main
    from ralph.sandbox.namespace import inside, syscalls  # noqa: F401  once, for all we fork

    link = socket(fileno=LINK)
    poller = select.poll()
    poller.register(LINK, select.POLLIN)
    while True:
        poller.poll(1000)
        keeper_main.reap(lambda *_: None)
        if not poller.poll(0):
            continue
        received = keeper_main.receive(link, 1)
        if received is None:
            os._exit(0)
        (_, plan), descriptors = received
        answer = socket(fileno=descriptors[0])
        try:
            _fork_sandbox(plan, answer)
        except OSError as error:
            keeper_main.say(answer, "failed", "start a process", error.errno or 0)
        answer.close()


def _fork_sandbox(plan: "MountPlan", answer: socket) -> None:
    """Start the process that leaves; root's is told who is who by us, since only we may."""
    ours, theirs = socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _in_child(lambda: _leave(plan, answer, theirs), answer)
    theirs.close()
    if ours.recv(1):
        ours.send(b"y" if _map_everybody(pid) else b"n")
    ours.close()


def _in_child(act: Callable[[], None], answer: socket) -> None:
    """Do something, tell what went wrong, and never return."""
    from ralph.processes.keeper_main import say
    from ralph.sandbox.namespace.inside import StepError

    try:
        act()
    except StepError as error:
        say(answer, "failed", *error.args)
    except OSError as error:
        say(answer, "failed", "prepare", error.errno or 0)
    except BaseException as error:  # noqa: BLE001  nobody else could tell
        say(answer, "failed", f"prepare ({error!r})", 0)
    os._exit(1)


def _leave(plan: "MountPlan", answer: socket, above: socket) -> None:
    from ralph.sandbox.namespace import syscalls
    from ralph.sandbox.namespace.inside import doing

    syscalls.die_with_parent(signal.SIGKILL)
    os.close(LINK)
    kinds = syscalls.CLONE_NEWNS | syscalls.CLONE_NEWPID | syscalls.CLONE_NEWIPC
    if plan["network"] != "on":
        kinds |= syscalls.CLONE_NEWNET
    user, group = os.geteuid(), os.getegid()
    with doing("make a user namespace"):
        syscalls.unshare(syscalls.CLONE_NEWUSER)
    if user == 0:  # have everybody mapped; a closed socket says that we do not want that
        above.send(b"?")
    above.shutdown(SHUT_WR)
    if user != 0 or above.recv(1) != b"y":
        with doing("say who we are in it"):
            _write("/proc/self/setgroups", "deny")
            _write("/proc/self/uid_map", f"{user} {user} 1")
            _write("/proc/self/gid_map", f"{group} {group} 1")
    above.close()
    with doing("make namespaces"):
        syscalls.unshare(kinds)
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
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _be_first(plan: "MountPlan", answer: socket) -> None:
    """Furnish the place and keep it."""
    from ralph.processes.keeper_main import say
    from ralph.sandbox.namespace import inside, syscalls

    syscalls.die_with_parent(signal.SIGKILL)
    os.chdir("/")
    if plan["network"] != "on":
        with inside.doing("bring up loopback"):
            control = socket(AF_INET, SOCK_DGRAM)
            request = b"lo".ljust(16, b"\0") + _IFF_UP_RUNNING.to_bytes(2, sys.byteorder)
            fcntl.ioctl(control.fileno(), _SIOCSIFFLAGS, request.ljust(40, b"\0"))
            control.close()
    listeners: list[socket] = []
    if plan["network"] == "proxy":
        for port in (*plan["ports"], 0):  # the proxy's is made last, so that it takes nobody's
            listener = socket(AF_INET, SOCK_STREAM)
            with inside.doing(f"listen on port {port} in the sandbox"):
                listener.bind(("127.0.0.1", port))
            listener.listen(_QUEUE)
            listeners.append(listener)
        listeners.insert(0, listeners.pop())
    made = inside.make_mounts(plan)
    with inside.doing("give up privileges"):
        syscalls.keep_capabilities(syscalls.OF_ROOT if plan["root"] else frozenset())
        syscalls.forbid_keys()
        syscalls.die_with_parent(signal.SIGKILL)  # a change of privileges takes the wish back
        syscalls.be_untouchable()  # we are ours as long as nobody speaks to Ralph in our name
    given = [made.upper, made.merged, *(listener.fileno() for listener in listeners)]
    port = listeners[0].getsockname()[1] if listeners else 0
    facts = {"kept": made.kept, "home": made.home, "port": port}
    say(answer, "ready", facts, given=given)
    for descriptor in given:
        os.close(descriptor)
    inside.First(answer).serve()
    os._exit(0)


if __name__ == "__main__":
    main()
