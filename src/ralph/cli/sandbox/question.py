"""Asks a person after a command in a sandbox whether to keep its changes."""

import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from ralph.processes.signals import ending_signals
from ralph.sandbox.backends.base import Sandbox
from ralph.sandbox.interface import Change
from ralph.text.plain import clean
from ralph.ui.terminal import is_terminal

_QUESTION = "[ralph] Keep these changes? [y]es, [n]o, [d]iff: "
_ANSWERS = {
    **dict.fromkeys(("y", "yes"), "safe"),
    **dict.fromkeys(("", "n", "no"), "discard"),
    **dict.fromkeys(("d", "diff"), "diff"),
}


def asked(box: Sandbox, changes: tuple[Change, ...]) -> str:
    """`safe`, `discard`, or `interrupted`; "" where nobody can be asked."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return ""
    try:
        with ending_by(signal.default_int_handler):  # at other times signals are only counted
            while (answer := _answer()) == "diff":
                for change in changes:
                    _put(clean(box.diff(change)))
    except KeyboardInterrupt:
        _put("\n")
        return "interrupted"
    except OSError:
        return "interrupted"  # the terminal is gone
    return answer


def _answer() -> str:
    """One that we know; the end of the input is a no."""
    while True:
        _put(_QUESTION)
        line = _line()
        if not line:
            _put("\n")
        meant = _ANSWERS.get(line.decode("utf-8", "replace").strip().lower())
        if meant is not None:
            return meant
        _put("[ralph] Say y, n or d.\n")


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


@contextmanager
def ending_by(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Handle the signals that would end us."""
    numbers = ending_signals()
    before = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, old in zip(numbers, before, strict=True):
            signal.signal(number, old)
