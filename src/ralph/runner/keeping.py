"""The signals that a run hears, and the keeper that starts its children."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from ralph.errors import StateError, failing
from ralph.kernel.events import AgentEvent
from ralph.kernel.facts import Asked, Fact
from ralph.kernel.state import RunState
from ralph.kernel.value import value
from ralph.kernel.world import NOTE, Request, Signals, together
from ralph.processes.child import UNBOUND, Starter, start
from ralph.processes.signals import SignalCounter, SignalFiles
from ralph.runner.invocation import Invocation
from ralph.ui.console import Console
from ralph.ui.narration import note_words

if TYPE_CHECKING:
    from ralph.processes.keeper_main import Launched


@value
class Attention:
    """Requests to a run: signals, files that other terminals leave, and its loop's own marks.

    Whatever waits asks at least four times a second, so this is the display's heartbeat too.
    """

    own: Callable[[], Signals]
    files: SignalFiles
    console: Console
    marks: Callable[[], Signals] = Signals
    lead: SignalFiles | None = None  # of the run that a worker works for

    def __call__(self) -> Signals:
        own, asked = self.own(), together(self.files.signals(), self.marks())
        self.console.beat(asked, own)
        return together(own, asked)

    def quietly(self) -> Signals:
        """The same for those who show nothing themselves."""
        return together(self.own(), together(self.files.signals(), self.marks()))

    def take(self, note: Request) -> bool:
        """Take a note for the next turn; False if another worker was faster."""
        return self.lead is None or self.lead.take(note, self.files)

    def say_untold(self, state: RunState) -> None:
        """Say which notes no turn was told before the run ended."""
        left = (each for each in self.files.signals().requests if each.request == NOTE)
        for note in {each.id: each for each in (*state.notes, *left)}.values():
            self.console.note(f"Not told to any turn: {note_words(note)}")

    def on_fact(self, fact: Fact) -> None:
        """A request that is journaled need not lie about any longer."""
        if isinstance(fact, Asked):
            self.files.drop(fact.request)

    def on_events(self, events: Sequence[AgentEvent]) -> None:
        """Nothing: they ask for nothing."""


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
    person: bool = False,
) -> Iterator[Starter]:
    """Start the run's children by a keeper, where the system can have one. A program that is not
    ours must not adopt: its own children would be ended with the run's. What is started for a
    `person` is nobody's turn (ADR 10)."""
    if sys.platform == "linux":
        from ralph.processes.keeper import Keeper
        from ralph.processes.keeper_main import is_possible
    if sys.platform != "linux" or not is_possible():
        yield partial(start, most_grace=end_grace)
        return
    keeper = Keeper(
        adopts=adopts, begun=begun, most_grace=end_grace, jobs=jobs, run=run, person=person
    )
    with failing("the machine cannot start a process now", "Try again later.", StateError):
        keeper.begin()
    try:
        yield keeper
    finally:
        keeper.close()


class Lasting(ExitStack):
    """The ears and the keeper of a run. They last as long as its process, however often the run is
    wired anew: a signal is not missed, and no child run is ended."""

    def __init__(self, invocation: Invocation, run: str) -> None:
        super().__init__()
        self.notes: tuple[str, ...] = ()  # for people, when the run is wired the next time
        self._invocation, self._run = invocation, run
        self._heard: Callable[[], Signals] | None = None
        self._start: Starter | None = None

    def heard(self) -> Callable[[], Signals]:
        """Requests to this process."""
        self._heard = self._heard or self.enter_context(hearing(self._invocation))
        return self._heard

    def keeper(
        self,
        end_grace: float = UNBOUND,
        jobs: Callable[[int], tuple[int, ...]] = lambda _: (),
    ) -> Starter:
        """The keeper, whose children have that much time to end from now on."""
        invocation = self._invocation
        if self._start is None:
            adopts = invocation.asked is None
            kept = keeping(invocation.keeper, end_grace, jobs, adopts=adopts, run=self._run)
            self._start = self.enter_context(kept)
        elif isinstance(self._start, partial):
            self._start = partial(start, most_grace=end_grace)
        else:
            from ralph.processes.keeper import Keeper

            assert isinstance(self._start, Keeper)
            self._start.most_grace = end_grace
        return self._start
