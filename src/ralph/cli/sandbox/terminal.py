"""A person's terminal: runs a command in a sandbox on it, then asks whether to keep its changes.

The command gets a terminal of its own, which we pass on. On the person's own it could neither be a
job that Ctrl+C and Ctrl+Z reach, nor be kept from typing.
"""

import fcntl
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ralph.kernel.value import replace
from ralph.kernel.verdict import Cut
from ralph.processes.child import Exit
from ralph.processes.signals import ending_by
from ralph.sandbox.backends.base import OpenSandbox
from ralph.sandbox.interface import Change
from ralph.sandbox.namespace.streams import write_all
from ralph.text.plain import clean
from ralph.ui.style import is_terminal

_SIZE = 8  # bytes: rows, columns, and both in pixels
_LOCAL, _CHARACTERS = 3, 6  # in what termios tells
_ENDED_BY_KEY = (128 + signal.SIGINT, 128 + signal.SIGQUIT)
INTERRUPTED = "interrupted"
_QUESTION = "[ralph] Keep these changes? [y]es, [n]o, [d]iff: "
_ANSWERS = {
    **dict.fromkeys(("y", "yes"), "safe"),
    **dict.fromkeys(("", "n", "no"), "discard"),
    **dict.fromkeys(("d", "diff"), "diff"),
}


def is_possible() -> bool:
    """True if a person is at both ends."""
    return all(map(os.isatty, (0, 1)))


def carried_out(box: OpenSandbox, argv: tuple[str, ...], watch: Callable[[], Cut | None]) -> Exit:
    """Run a command on a terminal of its own; OSError if that cannot be started.

    One that was ended by Ctrl+C is cut. Whether it was, its end tells: an editor has other uses for
    that key, and a shell goes on.
    """
    ours, theirs = os.openpty()
    try:
        _copy_size(ours)
        child = box.attach(argv, theirs, theirs, theirs if os.isatty(2) else 2)
        # We hold the other end too, so that reading ours never fails.
        keys = _Keys(ours)
        child.readers[os.dup(ours)] = lambda data: write_all(1, data)
        child.readers[os.dup(0)] = keys
        with _raw(), _following(ours):
            ended = child.wait(watch)
    finally:
        os.set_blocking(0, True)  # `wait` reads without waiting, and the terminal is others' too
        os.close(ours)
        os.close(theirs)
    if keys.interrupted and ended.code in _ENDED_BY_KEY and ended.cut is None:
        return replace(ended, cut=Cut(INTERRUPTED, 0.0))
    return ended


class _Keys:
    """Passes typed keys on to the command."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self.interrupted = False  # by the last key

    def __call__(self, data: bytes) -> None:
        settings = termios.tcgetattr(self._terminal)
        keys = [settings[_CHARACTERS][key] for key in (termios.VINTR, termios.VQUIT)]
        if data:
            self.interrupted = bool(settings[_LOCAL] & termios.ISIG) and data[-1:] in keys
        write_all(self._terminal, data)


@contextmanager
def _raw() -> Iterator[None]:
    """Send every key to the command, Ctrl+C too."""
    before = termios.tcgetattr(0)
    try:
        tty.setraw(0, termios.TCSADRAIN)  # what was typed already is for the command
        yield
    finally:
        termios.tcsetattr(0, termios.TCSAFLUSH, before)  # and no answer to what we ask


@contextmanager
def _following(terminal: int) -> Iterator[None]:
    """Keep its size that of the window."""
    before = signal.signal(signal.SIGWINCH, lambda *_: _copy_size(terminal))
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)


def _copy_size(terminal: int) -> None:
    with suppress(OSError):  # a terminal without a size
        size = fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(_SIZE))
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)


def asked(box: OpenSandbox, changes: tuple[Change, ...]) -> str:
    """`safe`, `discard`, or `interrupted`; "" where nobody can be asked."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return ""
    try:
        with ending_by(signal.default_int_handler):  # at other times signals are only counted
            while True:
                _put(_QUESTION)
                line = _line()
                if not line:  # the end of the input is a no
                    _put("\n")
                answer = _ANSWERS.get(line.decode("utf-8", "replace").strip().lower(), "")
                if not answer:
                    _put("[ralph] Say y, n or d.\n")
                elif answer != "diff":
                    return answer
                else:
                    for change in changes:
                        _put(clean(box.diff(change)))
    except KeyboardInterrupt:
        _put("\n")
        return "interrupted"
    except OSError:
        return "interrupted"  # the terminal is gone


def _line() -> bytes:
    """The next line. A signal that comes just before we wait for it is not slept through."""
    waked, wakes = os.pipe()
    os.set_blocking(wakes, False)
    before = signal.set_wakeup_fd(wakes)
    try:
        select.select([sys.stdin, waked], [], [])
        return sys.stdin.buffer.readline()
    finally:
        signal.set_wakeup_fd(before)
        os.close(waked)
        os.close(wakes)


def _put(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)
