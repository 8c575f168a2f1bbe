"""A command in a sandbox on a person's terminal: it gets one of its own, which we pass on.

On the person's own it could neither be a job that Ctrl+C and Ctrl+Z reach, nor be kept from typing.
"""

import fcntl
import os
import select
import shutil
import signal
import termios
import tty
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from ralph.adapters.process import Exit
from ralph.adapters.sandbox.interface import Sandbox
from ralph.core.verdict import Cut

_SIZE = 8  # bytes: rows, columns, and both in pixels
_LEADER = ("setsid", "--wait", "--ctty")


def is_possible(environ: Mapping[str, str]) -> bool:
    """Whether a person is at both ends, and there is what gives a command its terminal."""
    found = shutil.which(_LEADER[0], path=environ.get("PATH"))
    return found is not None and all(map(os.isatty, (0, 1)))


def carried_out(box: Sandbox, argv: tuple[str, ...], watch: Callable[[], Cut | None]) -> Exit:
    """Run a command on a terminal of its own; OSError if that cannot be started."""
    ours, theirs = os.openpty()
    try:
        _copy_size(ours)
        error = theirs if os.isatty(2) else 2
        child = box.attach((*_LEADER, *argv), theirs, theirs, error)
        # We hold the other end too, so that reading ours never fails.
        child.readers[os.dup(ours)] = lambda data: _write(1, data)
        child.readers[os.dup(0)] = lambda data: _write(ours, data)
        with _raw(), _following(ours):
            return child.wait(watch)
    finally:
        os.set_blocking(0, True)  # `wait` reads without waiting, and the terminal is others' too
        os.close(ours)
        os.close(theirs)


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        select.select([], [descriptor], [])
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            continue


@contextmanager
def _raw() -> Iterator[None]:
    """Every key goes to the command, Ctrl+C too."""
    before = termios.tcgetattr(0)
    try:
        tty.setraw(0, termios.TCSADRAIN)  # what was typed already is for the command
        yield
    finally:
        termios.tcsetattr(0, termios.TCSAFLUSH, before)  # and no answer to what we ask


@contextmanager
def _following(terminal: int) -> Iterator[None]:
    """Its size is that of the window."""
    before = signal.signal(signal.SIGWINCH, lambda *_: _copy_size(terminal))
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)


def _copy_size(terminal: int) -> None:
    try:
        size = fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(_SIZE))
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
    except OSError:
        pass  # a terminal without a size
