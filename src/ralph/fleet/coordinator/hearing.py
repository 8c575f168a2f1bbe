"""What is heard of a turn while another machine takes it."""

import time
from collections.abc import Callable
from functools import partial
from io import FileIO

from ralph.agents.streams.dialects import Parser, parser_for
from ralph.agents.turn_files import SavedStream, TurnFiles, private
from ralph.fleet.port import LAST, Away, Beat, Event, Executor, Handle, Launched, Placed, Said
from ralph.kernel.facts import Launching
from ralph.kernel.ports import Watch
from ralph.kernel.turn import Order, Pulse
from ralph.kernel.value import replace
from ralph.kernel.verdict import Cut
from ralph.runner.wired import AgentReaders
from ralph.text.words import elapsed

_LOOK = 0.25  # seconds
_ALONE = 5.0  # without any machine, after which people are told
_SLACK = 180.0  # in which a machine may send off the result of a turn that has ended


class Hearing:
    """Follows one attempt to its end: shows and saves what its agent prints, and hands on cuts."""

    def __init__(
        self,
        executor: Executor,
        readers: AgentReaders,
        files: TurnFiles,
        order: Order,
        *,
        placed: Callable[[str], None],
        tell: Callable[[str], None],
        spent: float = 0.0,
        queued: float = 0.0,
    ) -> None:
        """In other attempts this turn has cost so many dollars, and waited so many seconds for
        machines."""
        self._executor, self._readers = executor, readers
        self._files, self._order = files, order
        self._placed, self._tell = placed, tell
        self.host = ""
        self.cut: Cut | None = None
        self._queued, self._waits = queued, 0.0  # since when it waits; 0: it does not
        self._since: float | None = None  # by our clock, since when its agent is at work
        self._pulse = Pulse(0.0, 0.0, dollars=spent)
        self._spent = spent
        self._parser: Parser | None = None
        self._saved = SavedStream(partial(_opened, files.stream))
        self._away = self._alone = False

    @property
    def queued(self) -> float:
        """The seconds in which no machine had it."""
        return self._queued + (max(0.0, time.time() - self._waits) if self._waits else 0.0)

    def follow(self, handle: Handle, watch: Watch, check: Callable[[], None]) -> Event:
        """Hear it to its end; the last event. `check` raises what would make it useless."""
        self._waits = time.time()
        try:
            while True:
                for event in self._executor.events(handle, _LOOK):
                    if isinstance(event, LAST):
                        return event
                    self._hear(event)
                self._look_for_machines()
                self._end(handle, watch(self._now()))
                check()
        except BaseException:
            self._executor.cancel(handle, Cut("the run ends", 0.0))
            raise
        finally:
            if self._parser is not None:
                self._readers.on_events(self._parser.end())
            self._saved.end()
            self._saved.close()

    @property
    def dollars(self) -> float:
        """What this attempt and those before it have cost, as far as was heard."""
        return self._pulse.dollars

    def _look_for_machines(self) -> None:
        """Say once that there is none: nobody knows when one comes."""
        if self._alone or not self._waits or time.time() < self._waits + _ALONE:
            return
        self._alone = not self._executor.slots()
        if self._alone:
            self._tell("The fleet has no machine now, or is not reached. It is waited for.")

    def _now(self) -> Pulse:
        """The turn as it was told, but for its time: an agent can stop whoever tells it."""
        ours = 0.0 if self._since is None else time.monotonic() - self._since - _SLACK
        seconds = max(ours, self._pulse.seconds)
        placed = not self._waits
        return replace(self._pulse, seconds=seconds, queued=self.queued, placed=placed)

    def _end(self, handle: Handle, cut: Cut | None) -> None:
        """A cut begins the end; one with less grace only hastens it."""
        if cut is not None and (self.cut is None or cut.grace < self.cut.grace):
            self.cut = cut
            self._executor.cancel(handle, cut)

    def _hear(self, event: Event) -> None:
        match event:
            case Placed(host=host):
                self.host = host
                self._queued, self._waits = self.queued, 0.0
                self._placed(host)
            case Launched():
                self._launched(event)
            case Said(data=data):
                self._saved.write(data)
                if self._parser is not None and (events := self._parser.feed(data)):
                    self._readers.on_events(events)
            case Beat(pulse=pulse):
                self._pulse = replace(pulse, dollars=self._spent + pulse.dollars)
            case Away(seconds=seconds):
                self._missed(seconds)

    def _launched(self, event: Launched) -> None:
        order = self._order
        self._since = time.monotonic()
        self._parser = parser_for(event.dialect, order.prompt)
        who = order.place, event.agent, event.model
        files = self._files.stream
        self._readers.record(Launching(time.time(), order.role, event.dialect, files, *who))

    def _missed(self, seconds: float) -> None:
        where = self.host or "its machine"
        if bool(seconds) != self._away:
            heard = f"Nothing was heard of {where} for {elapsed(seconds)}"
            self._tell(heard if seconds else f"{where} is heard again")
        self._away = bool(seconds)


def _opened(path: str) -> FileIO:
    return open(path, "w+b", 0, opener=private)
