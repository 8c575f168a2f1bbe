"""The world of a run in a workspace."""

from collections.abc import Callable

from ralph.adapters.protect import Protector
from ralph.core.task import Backlog
from ralph.core.value import value
from ralph.core.world import Signals, Snapshot


@value
class Workspace:
    """Surveys by asking whoever knows. `progress` is left out where nobody watches for stalls."""

    ask_signals: Callable[[], Signals]
    read_backlog: Callable[[], Backlog]
    protector: Protector
    progress: Callable[[], str] = lambda: ""
    keep: Callable[[], str] = lambda: ""  # makes a checkpoint

    def signals(self) -> Signals:
        """What people ask for, now."""
        return self.ask_signals()

    def backlog(self) -> Backlog:
        """The tasks as they stand now."""
        return self.read_backlog()

    def snapshot(self) -> Snapshot:
        """The workspace as it is now."""
        return Snapshot(self.progress(), self.protector.digests())

    def checkpoint(self) -> str:
        """The work as it is now, where it can be had back."""
        return self.keep()
