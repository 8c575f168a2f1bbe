"""The signals that a run hears, and the keeper that starts its children."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from ralph.errors import StateError, failing
from ralph.kernel.world import Signals
from ralph.processes.child import UNBOUND, Starter, start
from ralph.processes.signals import SignalCounter
from ralph.runner.invocation import Invocation

if TYPE_CHECKING:
    from ralph.processes.keeper_main import Launched


@contextmanager
def hearing(invocation: Invocation) -> Iterator[Callable[[], Signals]]:
    """Requests to this process: by signals, unless another program asks in its own way."""
    if invocation.asked is not None:
        yield invocation.asked
        return
    with SignalCounter() as counter:
        yield counter.signals


@contextmanager
def keeping(
    begun: "Launched | None",
    end_grace: float = UNBOUND,
    jobs: Callable[[int], tuple[int, ...]] = lambda _: (),
    *,
    adopts: bool = True,
    run: str = "",
) -> Iterator[Starter]:
    """Start the run's children by a keeper, where the system can have one. A program that is not
    ours must not adopt: its own children would be ended with the run's."""
    if sys.platform == "linux":
        from ralph.processes.keeper import Keeper
        from ralph.processes.keeper_main import is_possible
    if sys.platform != "linux" or not is_possible():
        yield partial(start, most_grace=end_grace)
        return
    keeper = Keeper(adopts=adopts, begun=begun, most_grace=end_grace, jobs=jobs, run=run)
    with failing("the machine cannot start a process now", "Try again later.", StateError):
        keeper.begin()
    try:
        yield keeper
    finally:
        keeper.close()
