"""Signals, counted (ADR 7, H §Signal Handling)."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from ralph.kernel.world import Signals
from ralph.processes.clock import SystemClock
from ralph.processes.signals import SignalCounter


@pytest.fixture
def send(capfd: pytest.CaptureFixture[str]) -> Callable[[int], None]:
    return lambda number: os.kill(os.getpid(), number)


def test_nobody_asked() -> None:
    with SignalCounter() as counter:
        assert counter.signals() == Signals()


@pytest.mark.parametrize(
    ("number", "cancels"), [(signal.SIGINT, 1), (signal.SIGTERM, 1), (signal.SIGHUP, 2)]
)
def test_how_much_a_signal_counts(send: Callable[[int], None], number: int, cancels: int) -> None:
    """ "Second, or SIGHUP: end the tree now"."""
    with SignalCounter() as counter:
        send(number)
        asked = counter.signals()
    assert asked.cancels == cancels
    assert asked.cancelled_at is not None


def test_the_first_time_is_remembered_and_said_once(
    send: Callable[[int], None], capfd: pytest.CaptureFixture[str]
) -> None:
    """H §Signal Handling 4: the message, and how to end at once (issue 22)."""
    with SignalCounter() as counter:
        send(signal.SIGINT)
        first = counter.signals().cancelled_at
        send(signal.SIGTERM)
        assert counter.signals() == Signals(2, first)
    said = capfd.readouterr().err
    assert said.startswith("[ralph] Received signal, shutting down after this turn. Press Ctrl+C")
    assert said.count("\n") == 1


def test_afterwards_signals_do_what_they_did_before() -> None:
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    with SignalCounter():
        pass
    assert before == [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]


def test_under_nohup_the_terminal_may_go() -> None:
    script = (
        "import os, signal; from ralph.processes.signals import SignalCounter\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "with SignalCounter() as counter:\n"
        "    os.kill(os.getpid(), signal.SIGHUP); print(counter.signals().cancels)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    assert (done.stdout, done.stderr) == (b"0\n", b"")


def test_a_signal_ends_a_rest(send: Callable[[int], None]) -> None:
    """ADR 7: "during a wait: stop at once"."""
    with SignalCounter() as counter:

        def stirred() -> bool:
            if not counter.signals().cancels:
                send(signal.SIGINT)
                return False
            return True

        SystemClock().rest(None, stirred)
        assert counter.signals().cancels == 1


def test_a_rest_ends_by_itself_at_its_time() -> None:
    clock = SystemClock()
    until = clock.now() + 0.05
    clock.rest(until, lambda: False)
    assert clock.now() >= until


def test_a_rest_until_a_time_that_is_past_is_none() -> None:
    looks = iter([False])
    SystemClock().rest(1.0, lambda: next(looks))
    assert list(looks) == []
