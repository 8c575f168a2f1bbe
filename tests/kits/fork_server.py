"""Starts `ralph` as a process of its own without starting Python anew for it, which takes most of
the time of a short command.

A server has imported the program. For each command it forks, and the child has the descriptors,
the directory and the environment that it was given, then calls what `python -m ralph` calls.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache

MODULES = (
    *("ralph.cli.main", "ralph.cli.commands", "ralph.cli.run", "ralph.runner.carry_out"),
    *("ralph.loops.prompt.loop", "ralph.loops.backlog.loop", "ralph.loops.stories.loop"),
    *("ralph.loops.supervise.loop", "ralph.ui.console", "ralph.git.checkpoint.checkpoint"),
    *("ralph.settings.load", "ralph.journal.runs", "ralph.sandbox.catalog"),
)
# Python looks at these before it runs anything, so a fork has them as the server had.
EARLY = ("PYTHON", "LC_", "LANG", "MALLOC_", "LD_", "COVERAGE_")


def early(environ: dict[str, str]) -> dict[str, str]:
    """What of an environment has its effect before `main`."""
    return {name: text for name, text in environ.items() if name.startswith(EARLY)}


class Server:
    """The server of this process."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._early = early(dict(os.environ))
        argv = (sys.executable, __file__, str(theirs.fileno()))
        self._process = subprocess.Popen(argv, pass_fds=[theirs.fileno()], cwd="/")
        theirs.close()
        self._socket = ours

    def can(self, environ: dict[str, str]) -> bool:
        """True if a fork with this environment is as good as a new Python."""
        return early(environ) == self._early

    def run(
        self, arguments: tuple[str, ...], environ: dict[str, str], seconds: float
    ) -> tuple[int, bytes, bytes]:
        """The exit code of a command, and what it printed. Whoever keeps its descriptors is waited
        for, as `subprocess.run` does."""
        pipes = [os.pipe() for _ in range(3)]
        null = os.open(os.devnull, os.O_RDONLY)
        request = json.dumps([os.getcwd(), arguments, environ]).encode("ascii")
        given = [null, *(write for _, write in pipes)]
        large = os.memfd_create("request")
        os.write(large, request)
        try:
            socket.send_fds(self._socket, [b"run"], [large, *given])
        finally:
            for descriptor in (large, *given):
                os.close(descriptor)
        reading = [read for read, _ in pipes]
        try:
            out, err, status = _read(reading, time.monotonic() + seconds)
        finally:
            for descriptor in reading:
                os.close(descriptor)
        return os.waitstatus_to_exitcode(int(status)), out, err


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
                os.write(running[found[0]], str(found[1]).encode())
                os.close(running.pop(found[0]))
        if control.fileno() not in ready:
            continue
        word, given, _, _ = socket.recv_fds(control, 16, 5)
        if not word:
            return
        request, null, out, err, status = given
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            become(request, (null, out, err))
            for descriptor in (*given, control.fileno(), wake, woken, *running.values()):
                os.close(descriptor)
            control.detach()
            from ralph.__main__ import main

            main()
        running[pid] = status
        for descriptor in (request, null, out, err):
            os.close(descriptor)


def become(request: int, streams: tuple[int, ...]) -> None:
    """Take on the descriptors, the directory and the environment of a command."""
    data = os.pread(request, os.fstat(request).st_size, 0)
    directory, arguments, environ = json.loads(data)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    was = sys.stdout.encoding
    sys.stdin, sys.stdout = open(0, encoding=was), open(1, "w", encoding=was)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding=was, errors="backslashreplace")  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(directory)
    time.tzset()
    sys.argv = ["ralph", *arguments]


if __name__ == "__main__":
    for name in MODULES:
        __import__(name)
    serve(socket.socket(fileno=int(sys.argv[1])))
