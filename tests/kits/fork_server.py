"""Starts `ralph`, and tests' own programs that import it, as processes of their own without
starting Python anew for each, which takes most of the time of a short command.

A server has imported the program. For each command it forks, and the child has the descriptors,
the directory and the environment that it was given, then does what Python would do with its words.
"""

import atexit
import gc
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from io import TextIOWrapper
from types import ModuleType
from typing import NoReturn, Protocol

# Rooms that few commands want, and what those stand on takes long to import.
HEAVY = ("ralph.web", "ralph.watch", "ralph.notify", "ralph.testing")
# Python looks at these before it runs anything, so a fork has them as the server had.
EARLY = ("PYTHON", "LC_", "LANG", "MALLOC_", "LD_", "COVERAGE_")

NUMBER = struct.Struct("i")
LONGEST = 60  # seconds that a command may take


def early(environ: Mapping[str, str]) -> dict[str, str]:
    """What of an environment has its effect before `main`."""
    return {name: text for name, text in environ.items() if name.startswith(EARLY)}


class Process(Protocol):
    """What tests want of a process, as `subprocess.Popen` has it."""

    pid: int

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...
    def kill(self) -> None: ...


class Forked:
    """A process that the server has forked."""

    def __init__(self, status: int) -> None:
        self._status = status
        (self.pid,) = NUMBER.unpack(os.read(status, NUMBER.size))
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        return self._code if self._code is not None else self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code."""
        code = self._code if self._code is not None else self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return code

    def _look(self, timeout: float | None) -> int | None:
        if not select.select([self._status], (), (), timeout)[0]:
            return None
        (status,) = NUMBER.unpack(os.read(self._status, NUMBER.size))
        self._code = os.waitstatus_to_exitcode(status)
        os.close(self._status)
        return self._code

    def send_signal(self, sig: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Server:
    """The server of this process."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._early = early(os.environ)
        argv = (sys.executable, __file__, str(theirs.fileno()))
        self._process = subprocess.Popen(argv, pass_fds=[theirs.fileno()], cwd="/")
        theirs.close()
        self._socket = ours

    def can(self, words: Sequence[str], environ: Mapping[str, str]) -> bool:
        """True if a fork is as good as a new Python for these words and this environment."""
        if words[0] != sys.executable or early(environ) != self._early:
            return False
        return list(words[1:3]) == ["-m", "ralph"] or words[1] == "-c" or words[1].endswith(".py")

    def fork(
        self, words: Sequence[str], environ: Mapping[str, str], cwd: str, streams: tuple[int, ...]
    ) -> Forked:
        """Start a command on these three descriptors."""
        request = json.dumps([cwd, list(words), dict(environ)]).encode("ascii")
        reading, status = os.pipe()
        large = os.memfd_create("request")
        os.write(large, request)
        try:
            socket.send_fds(self._socket, [b"run"], [large, *streams, status])
        finally:
            os.close(large)
            os.close(status)
        return Forked(reading)


def started(
    words: Sequence[str],
    stdout: int,
    stderr: int,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
) -> Process:
    """Start a command that reads nothing, by a fork if that is as good."""
    environ = os.environ if env is None else env
    forks = server(os.getpid())
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        if forks.can(words, environ):
            return forks.fork(words, environ, os.path.abspath(cwd or "."), (null, stdout, stderr))
        return subprocess.Popen(
            words, stdin=null, stdout=stdout, stderr=stderr, env=environ, cwd=cwd
        )
    finally:
        os.close(null)


def run(
    words: Sequence[str],
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
) -> tuple[int, bytes, bytes]:
    """The exit code of a command, and what it printed. Whoever keeps its descriptors is waited
    for, as `subprocess.run` does."""
    pipes = [os.pipe() for _ in range(2)]
    try:
        process = started(words, pipes[0][1], pipes[1][1], env=env, cwd=cwd)
    finally:
        for _, write in pipes:
            os.close(write)
    reading = [read for read, _ in pipes]
    try:
        out, err = _read(reading, time.monotonic() + LONGEST)
    except TimeoutError:
        process.kill()
        raise
    finally:
        for descriptor in reading:
            os.close(descriptor)
    return process.wait(LONGEST), out, err


def _read(descriptors: list[int], deadline: float) -> list[bytes]:
    """All that comes from these, until each is closed."""
    found = dict.fromkeys(descriptors, b"")
    left = set(descriptors)
    while left:
        ready = select.select(left, (), (), max(0.0, deadline - time.monotonic()))[0]
        if not ready:
            raise TimeoutError("the command did not end")
        for descriptor in ready:
            data = os.read(descriptor, 1 << 16)
            found[descriptor] += data
            left -= set() if data else {descriptor}
    return list(found.values())


@cache
def server(_process: int) -> Server:
    """The server of a process, which ends with it."""
    return Server()


def serve(control: socket.socket) -> None:
    """Fork for each request, until nobody can send another."""
    running: dict[int, int] = {}  # by pid, where its status goes
    wake, woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready = select.select([control.fileno(), wake], (), ())[0]
        if wake in ready:
            with suppress(BlockingIOError):
                os.read(wake, 4096)
        with suppress(ChildProcessError):
            while found := os.waitpid(-1, os.WNOHANG)[0:2]:
                if not found[0]:
                    break
                _tell(running[found[0]], found[1])
                os.close(running.pop(found[0]))
        if control.fileno() not in ready:
            continue
        word, given, _, _ = socket.recv_fds(control, 16, 5)
        if not word:
            return
        request, stdin, stdout, stderr, status = given
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            words = become(request, (stdin, stdout, stderr))
            for descriptor in (*given, control.fileno(), wake, woken, *running.values()):
                os.close(descriptor)
            control.detach()
            do(words)
        _tell(status, pid)
        running[pid] = status
        for descriptor in (request, stdin, stdout, stderr):
            os.close(descriptor)


def _tell(status: int, number: int) -> None:
    with suppress(BrokenPipeError):  # nobody wants to know
        os.write(status, NUMBER.pack(number))


def become(request: int, streams: tuple[int, ...]) -> list[str]:
    """Take on the descriptors, the directory and the environment of a command; its words."""
    data = os.pread(request, os.fstat(request).st_size, 0)
    directory, words, environ = json.loads(data)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    os.environ.clear()
    os.environ.update(environ)
    at_once = bool(environ.get("PYTHONUNBUFFERED"))
    was, out = sys.stdout.encoding, open(1, "wb", 0 if at_once else -1)  # noqa: SIM115
    sys.stdin, sys.stdout = open(0, encoding=was), TextIOWrapper(out, was, write_through=at_once)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding=was, errors="backslashreplace")  # noqa: SIM115
    os.chdir(directory)
    time.tzset()
    return list(words)


def do(words: list[str]) -> NoReturn:
    """Do what Python does with these words, and end."""
    _, first, *rest = words
    gc.enable()
    try:
        if first == "-c":
            sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
            main = sys.modules["__main__"] = ModuleType("__main__")
            exec(compile(rest[0], "<string>", "exec"), vars(main))
        elif first == "-m":
            sys.argv, sys.path[0] = words[2:], os.getcwd()
            from ralph.__main__ import main as ralph

            ralph()
        else:
            sys.argv, sys.path[0] = words[1:], os.path.dirname(os.path.realpath(first))
            runpy.run_path(first, run_name="__main__")
        sys.exit(0)
    except SystemExit as end:
        if not isinstance(end.code, (int, type(None))):
            raise
        leave(end.code or 0)
        raise


def leave(code: int) -> None:
    """End as Python does, but take nothing apart: that would copy all the memory that is shared.
    What cannot be written Python itself may tell."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code & 0xFF)


def import_all() -> None:
    """Import what commands import."""
    import ralph

    for found in pkgutil.walk_packages(ralph.__path__, "ralph."):
        if not found.name.startswith(HEAVY) and not found.name.endswith("__main__"):
            __import__(found.name)


if __name__ == "__main__":
    import_all()
    gc.disable()
    gc.freeze()  # a look at each object would copy the page it is on
    serve(socket.socket(fileno=int(sys.argv[1])))
