"""Ralph's side of the keeper: starts it, asks it, does its work when it is gone (ADR 23)."""

import errno
import marshal
import os
import re
import select
import signal
import time
from _socket import socket  # the socket module costs 4 ms to import
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ralph.processes import ancestry, keeper_main, procfs
from ralph.processes.child import (
    UNBOUND,
    CallerStreams,
    Child,
    Command,
    Reader,
    Streams,
    memory_file,
    pidfd_of,
    shell_code,
)
from ralph.processes.keeper_main import Launched
from ralph.processes.which import which

_ANSWER = 5.0  # seconds after which a keeper that should answer is taken for dead
_TICK = 0.001
_PAUSE = 0.02  # seconds between looks for orphans
_LATE = 1.0  # seconds beyond its route after which one that should have ended its child is
_LARGEST = 65536


class LostError(Exception):
    """The keeper is gone, or does not answer."""


class Keeper:
    """A `Starter` whose children cannot leave: whatever becomes of Ralph, nothing stays behind.

    The process starts with the first child, or before by `begin`. `jobs` knows, of what is below
    the keeper's pid, which processes may outlive the child that started them. When something kills
    the keeper, its children come to us if we adopt them, and are ended here. Only a program of its
    own may adopt: it ends everything below it, and a library would end its host's children.
    Then those are ended that say in their environment that they are of this `run`. What it starts
    for a `person` is not of the run, and may do what an agent may not (ADR 10).
    """

    def __init__(
        self,
        *,
        adopts: bool = False,
        begun: Launched | None = None,
        most_grace: float = UNBOUND,
        jobs: Callable[[int], tuple[int, ...]] = lambda _: (),
        run: str = "",
        person: bool = False,
    ) -> None:
        # What we have inherited from whoever became us by exec is not ours to end.
        strangers = keeper_main.descendants(os.getpid()) if adopts else []
        self._strangers = tuple(pid for pid in strangers if begun is None or pid != begun.pid)
        self._adopts = adopts and keeper_main.become_subreaper()
        self._begun = begun
        self.most_grace = most_grace
        self._jobs = jobs
        self._run = run
        self._link: socket | None = None
        self._person = person
        self._beside: Keeper | None = None
        self._signs = ancestry.adopts() if self._adopts else []  # what others see of us
        self._signs += (sign for pid in self._strangers for sign in ancestry.spares(pid))
        self.pid = 0

    def begin(self) -> None:
        """Start the process, or take the one that was launched before."""
        begun, self._begun = self._begun or keeper_main.launch(), None
        begun.taken = True
        self.pid = begun.pid
        self._signs += ancestry.spares(self.pid) if self._person else []
        self._link = socket(fileno=begun.link)
        self._link.setblocking(False)

    def __call__(
        self, command: Command, on_output: Reader = None, on_error: Reader = None
    ) -> Child:
        """Start a child. A keeper that was lost since the last one is replaced."""
        try:
            return self._start(command, Streams(command, on_output, on_error))
        except LostError:
            self.abandon()
            return self._attached(command, Streams(command, on_output, on_error))

    def attach(self, command: Command, stdin: int, stdout: int, stderr: int) -> Child:
        """Start a child on streams of the caller's."""
        return self._attached(command, CallerStreams(stdin, stdout, stderr))

    def _attached(self, command: Command, streams: Streams) -> Child:
        try:
            return self._start(command, streams)
        except LostError as error:
            self.abandon()
            raise OSError(errno.EAGAIN, f"the keeper was lost: {error}") from error

    def beside(self, command: Command, on_output: Reader = None, on_error: Reader = None) -> Child:
        """Start a person's command: it may run while an agent does, so it has another keeper."""
        if self._beside is None:
            self._beside = Keeper(most_grace=self.most_grace, person=True)
        return self._beside(command, on_output, on_error)

    def close(self) -> None:
        """Let the keeper go: it ends what is left. Something may have killed it before, or have
        stopped it; then we end what has come to us, also what was spared till now."""
        if self._beside is not None:
            self._beside.close()
        if self.pid:
            if self._person:
                self._hide()  # before its number can be another's
            self._close_link()
            if not _has_ended(self.pid):
                keeper_main.signal_all([self.pid], signal.SIGKILL)
                _has_ended(self.pid)
            if self._adopts:
                keeper_main.sweep(self._strangers)
        self._hide()

    def abandon(self) -> tuple[int, ...]:
        """End a keeper that is lost, and what was below it but for jobs; who would not die."""
        self._close_link()
        if self._person:
            self._hide()  # before its number can be another's
        keeper_main.signal_all([self.pid], signal.SIGKILL)
        if self._adopts:
            return keeper_main.sweep((*self._strangers, *self._jobs(os.getpid())))
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        # What was below has gone to somebody who has other children too: only what names our run
        # is ours.
        end_orphans(self._run)
        return ()

    def jobs(self) -> tuple[int, ...]:
        """The processes to spare when a child is gone and what it left behind is ended."""
        return self._jobs(self.pid)

    def _hide(self) -> None:
        for sign in self._signs:
            os.close(sign)
        self._signs = []

    def _close_link(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def tell(self, *message: object, descriptors: tuple[int, ...] = ()) -> None:
        assert self._link is not None
        try:
            keeper_main.send(self._link, message, descriptors)
        except OSError as error:
            raise LostError(str(error)) from error

    def hear(self, wait: float = _ANSWER) -> tuple[Any, ...] | None:
        """The next message, within so many seconds; None where we do not wait and there is none."""
        assert self._link is not None
        if wait and not select.select([self._link], [], [], wait)[0]:
            raise LostError("it does not answer")
        try:
            data = self._link.recv(_LARGEST)
        except BlockingIOError:
            return None
        except OSError as error:
            raise LostError(str(error)) from error
        if not data:
            raise LostError("it has ended")
        message: tuple[Any, ...] = marshal.loads(data)  # noqa: S302  ours is the other end
        return message

    def fileno(self) -> int:
        """The descriptor on which it speaks."""
        assert self._link is not None
        return self._link.fileno()

    def _start(self, command: Command, streams: Streams) -> Child:
        with streams:
            specification = memory_file(self._specification(command))
            try:
                if self._link is None:
                    self.begin()
                given = (specification, streams.stdin, streams.stdout, streams.stderr)
                self.tell("spawn", descriptors=given)
                child = _Kept(self, self._spawned(command))
            finally:
                os.close(specification)
            return Child(child, time.monotonic(), streams.taken(), self.most_grace)

    def _specification(self, command: Command) -> bytes:
        """The command in bytes, as the system will see it."""
        argv = [os.fsencode(word) for word in command.argv]
        env = {os.fsencode(name): os.fsencode(text) for name, text in command.env.items()}
        if any(b"\0" in word for word in (*argv, *env, *env.values())):
            raise ValueError("embedded null byte")
        path = which(command.argv[0], command.env.get("PATH")) or command.argv[0]
        return marshal.dumps((os.fsencode(path), argv, os.fsencode(command.cwd), env))

    def _spawned(self, command: Command) -> int:
        answer = self.hear()
        assert answer is not None
        if answer[0] == "refused":
            _, number, file = answer
            named = os.fsdecode(file)
            # As `subprocess` has it: the program by the name it was given.
            wrong = named if named == command.cwd else command.argv[0]
            raise OSError(number, os.strerror(number), wrong)
        pid: int = answer[1]
        return pid


class _Kept:
    """A child of the keeper."""

    def __init__(self, keeper: Keeper, pid: int) -> None:
        self._keeper = keeper
        self.pid = pid
        self._status: int | None = None  # how it ended
        self._left = True  # whether something of it may still run
        self._lost = False
        self.stubborn: tuple[int, ...] = ()  # who would not die
        self._late = float("inf")  # when a keeper that ends its child is taken for dead
        self._pidfd = pidfd_of(pid)
        self.descriptor: int | None = keeper.fileno()

    def is_gone(self) -> bool:
        """True if it has ended, or nobody is there to tell."""
        if self._status is None and not self._lost:
            try:
                self._take(self._keeper.hear(wait=0))
            except LostError:
                self._lost = True
            if self._status is None:
                # A child that has ended is told of at once; a keeper that does not was stopped.
                watched = [self._pidfd] if self._pidfd is not None else []
                if self._late == float("inf") and select.select(watched, [], [], 0)[0]:
                    self._late = time.monotonic() + _LATE
                self.advance(time.monotonic())
        return self._lost or self._status is not None

    def end(self, grace: float) -> None:
        self._late = time.monotonic() + 2 * grace + _LATE
        try:
            self._keeper.tell("end", grace)
        except LostError:
            self._lost = True

    def advance(self, now: float) -> None:
        """An agent can stop its keeper: one that is late is given up."""
        self._lost = self._lost or now > self._late

    def close(self) -> int:
        try:
            if self._status is None and not self._lost:
                self._keeper.tell("end", 0.1)  # something went wrong on our side: nobody watches
                self._take(self._keeper.hear())
            if self._left and not self._lost:
                self._keeper.tell("sweep", self._keeper.jobs())
                answer = self._keeper.hear(wait=keeper_main.PATIENCE + _ANSWER)
                self.stubborn = answer[1] if answer else ()
        except LostError:
            self._lost = True
        if self._lost:
            self.stubborn = self._keeper.abandon()
        if self._pidfd is not None:
            os.close(self._pidfd)
        if self._status is None:
            return 128 + signal.SIGKILL  # nobody saw its end
        return shell_code(os.waitstatus_to_exitcode(self._status))

    def _take(self, message: tuple[Any, ...] | None) -> None:
        if message is not None and message[0] == "exited":
            _, self._status, self._left = message


def _has_ended(pid: int) -> bool:
    """Wait for a child of ours, as long as an answer may take; False if it still runs."""
    end = time.monotonic() + _ANSWER
    with suppress(ChildProcessError):
        while not os.waitpid(pid, os.WNOHANG)[0]:
            if time.monotonic() > end:
                return False
            time.sleep(_TICK)
    return True


def end_orphans(run: str) -> None:
    """Kill every process that says it belongs to this run, to an attempt of it (`<run>-001`), or
    to a job of such an attempt, or to a job of that, and so on (ADR 10)."""
    end = time.monotonic() + _ANSWER
    while time.monotonic() < end and (left := orphans(run)):
        keeper_main.signal_all(left, signal.SIGKILL)
        time.sleep(_PAUSE)


def orphans(run: str) -> list[int]:
    """The processes that say so. Whoever goes on from within a run is not its orphan, nor is
    anybody above."""
    if not run:
        return []  # a job that was started by hand is of no run: it would fit
    mark = re.compile(rb"RALPH_(?:PARENT_|ROOT_)?RUN=%b(?:-\d+)?" % re.escape(os.fsencode(run)))
    others = set(procfs.pids()) - {*procfs.line_of(os.getpid())}
    return [pid for pid in others if any(map(mark.fullmatch, procfs.environment(pid)))]
