"""What the fakes of sandbox tools run commands in: a world of its own, made of namespaces.

It looks as the tool's real sandbox does: other files at the same paths, no network or a proxy.
"""

import fcntl
import os
import signal
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress

from ralph.kernel.value import value
from ralph.sandbox.namespace import syscalls
from ralph.sandbox.namespace.proxy import Proxy

_SIOCSIFFLAGS, _UP_AND_RUNNING = 0x8914, 0x41
_PORT = 3128
_MARK = "RALPH_FAKE_MACHINE"  # in the environment of everything that runs in one


@value
class World:
    """What a command sees. Binds are a directory and the path where it appears, in order."""

    mark: str
    binds: tuple[tuple[str, str], ...] = ()
    hidden: tuple[str, ...] = ()  # these are empty, and private
    writable: tuple[str, ...] | None = None  # None: everything
    hosts: tuple[str, ...] | None = None  # whom it may call; None: everybody


def run(world: World, argv: list[str], cwd: str, env: Mapping[str, str]) -> int:
    """Run a program in it to its end; its exit code, as shells have it."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _be(world, argv, cwd, {**env, _MARK: world.mark}, theirs)
    theirs.close()
    proxy = None
    try:
        _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
        if descriptors:
            proxy = Proxy(descriptors[:1], world.hosts or (), ())
        ours.close()
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        if proxy is not None:
            proxy.close()
    return code if code >= 0 else 128 - code


def _be(world: World, argv: list[str], cwd: str, env: dict[str, str], link: socket.socket) -> None:
    """The child: never returns."""
    try:
        os.setsid()  # who ends the tool does not end what runs in the machine
        enter(world)
        listener = _network(world.hosts)
        socket.send_fds(link, [b"x"], [] if listener is None else [listener.fileno()])
        if listener is not None:
            address = f"http://127.0.0.1:{_PORT}"
            env |= {"HTTP_PROXY": address, "HTTPS_PROXY": address}
            listener.close()
        link.close()
        os.chdir(cwd)
        os.execvpe(argv[0], argv, env)
    except FileNotFoundError:
        os.write(2, f"{argv[0]}: executable file not found in $PATH\n".encode())
        os._exit(127)
    except BaseException as error:  # noqa: BLE001  nothing of ours may run on
        os.write(2, f"fake: {error!r}\n".encode())
        os._exit(126)


def enter(world: World) -> None:
    """Leave for namespaces that look as the world says."""
    user, group = os.geteuid(), os.getegid()
    alone = 0 if world.hosts is None else syscalls.CLONE_NEWNET
    syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNS | alone)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    syscalls.mount(b"", b"/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
    wanted = (*world.binds, *((path, path) for path in world.writable or ()))
    handles = [(os.open(source, os.O_PATH), target) for source, target in wanted]
    private = []
    for path in world.hidden:
        if os.path.isdir(path):
            syscalls.mount(b"tmpfs", os.fsencode(path), b"tmpfs", 0, b"mode=1777")
            private.append(path)
        elif os.path.isfile(path):
            syscalls.mount(b"/dev/null", os.fsencode(path), flags=syscalls.MS_BIND)
    for handle, target in handles:
        os.makedirs(target, exist_ok=True)
        source = b"/proc/self/fd/%d" % handle
        syscalls.mount(source, os.fsencode(target), flags=syscalls.MS_BIND | syscalls.MS_REC)
        os.close(handle)
    if world.writable is not None:
        syscalls.set_mount(b"/", put=syscalls.ATTR_RDONLY, recursive=True)
        for path in (*private, *world.writable):
            syscalls.set_mount(os.fsencode(path), clear=syscalls.ATTR_RDONLY)


def _network(hosts: tuple[str, ...] | None) -> socket.socket | None:
    """Loopback, and on it the proxy's socket where there is somebody to call."""
    if hosts is None:
        return None
    with socket.socket() as any_one:
        request = struct.pack("16sH14s", b"lo", _UP_AND_RUNNING, b"")
        fcntl.ioctl(any_one, _SIOCSIFFLAGS, request)
    return socket.create_server(("127.0.0.1", _PORT)) if hosts else None


def running(mark: str) -> Iterator[int]:
    """What runs in a machine."""
    wanted = f"{_MARK}={mark}".encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                found = wanted in file.read().split(b"\0")
        except OSError:
            continue  # it is gone, or not ours
        if found:
            yield int(pid)


def end(mark: str) -> None:
    """Kill whatever still runs in a machine."""
    for pid in running(mark):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
