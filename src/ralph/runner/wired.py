"""A wired run: everything the engine needs, as one value."""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from ralph.agents.clis import Launch
from ralph.journal.journal import FileJournal
from ralph.kernel.events import AgentEvent
from ralph.kernel.facts import Fared, Launching, Sent
from ralph.kernel.ports import Agent, Policy, Workspace
from ralph.kernel.state import RunState
from ralph.kernel.turn import Order
from ralph.kernel.value import value
from ralph.processes.child import Starter
from ralph.runner.keeping import Attention
from ralph.ui.lines import Reader


@value
class AgentReaders:
    on_events: Callable[[Sequence[AgentEvent]], None] = lambda _: None
    on_launch: Callable[[Launch, Order], None] = lambda _launch, _order: None
    record: Callable[[Launching | Sent | Fared], None] = lambda _: None


@value
class RunContext:
    """A run before it is wired. `tell` speaks to people, `cleanup` is closed at the end."""

    directory: str
    before: RunState  # where it goes on
    journal: FileJournal
    attention: Attention
    readers: AgentReaders
    start: Starter
    tell: Callable[[str], None]
    cleanup: ExitStack

    @property
    def name(self) -> str:
        return os.path.basename(self.directory)


@value
class Wired:
    """A loop joined to the world."""

    policy: Policy
    agent: Agent
    world: Workspace
    readers: tuple[Reader, ...] = ()  # beside the display
    notes: tuple[str, ...] = ()  # for people, before the first turn
