"""A wired run: everything the engine needs, as one value."""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from ralph.adapters.agents import Launch
from ralph.adapters.journal import FileJournal
from ralph.adapters.process import Starter
from ralph.adapters.world import Workspace
from ralph.core.events import AgentEvent
from ralph.core.facts import Launching
from ralph.core.state import RunState
from ralph.core.turn import Order
from ralph.core.value import value
from ralph.core.world import Signals
from ralph.ports import Agent, Policy
from ralph.ui import Reader


@value
class AgentReaders:
    """Hear of an agent's work."""

    on_events: Callable[[Sequence[AgentEvent]], None] = lambda _: None
    on_launch: Callable[[Launch, Order], None] = lambda _launch, _order: None
    record: Callable[[Launching], None] = lambda _: None


@value
class RunContext:
    """What a run has before it is wired. `tell` is for people, `cleanup` is closed at the end."""

    directory: str
    before: RunState  # where it goes on
    journal: FileJournal
    attention: Callable[[], Signals]
    start: Starter
    tell: Callable[[str], None]
    cleanup: ExitStack

    @property
    def name(self) -> str:
        """The run's id."""
        return os.path.basename(self.directory)


@value
class Wired:
    """A loop joined to the world."""

    policy: Policy
    agent: Callable[[AgentReaders], Agent]
    world: Workspace
    readers: tuple[Reader, ...] = ()  # beside the display
    notes: tuple[str, ...] = ()  # for people, before the first turn
