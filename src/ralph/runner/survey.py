"""The world of a run in a workspace."""

from collections.abc import Callable

from ralph.errors import StateError
from ralph.gates.protect import Protector
from ralph.kernel.ports import NoTrees, Trees
from ralph.kernel.proof import Stand
from ralph.kernel.tasks.task import Backlog
from ralph.kernel.value import value
from ralph.kernel.world import Signals, Snapshot


@value
class Workspace:
    """Surveys by asking whoever knows. `progress` is left out where nobody watches for stalls; it
    is asked where there is no tree."""

    ask_signals: Callable[[], Signals]
    read_backlog: Callable[[], Backlog]
    protector: Protector
    progress: Callable[[], str] | None = None
    trees: Trees = NoTrees()
    keep: Callable[[], str] = lambda: ""  # makes a checkpoint

    def signals(self) -> Signals:
        """What people ask for, now."""
        return self.ask_signals()

    def backlog(self) -> Backlog:
        """The tasks as they stand now."""
        return self.read_backlog()

    def snapshot(self) -> Snapshot:
        """The workspace as it is now."""
        try:
            stand = self.trees.look()
        except StateError:
            stand = Stand()  # whoever has to prove something says so
        return Snapshot(self._work(stand), self.protector.digests(), stand)

    def _work(self, stand: Stand) -> str:
        """What changes with every commit and every changed file; "" where nobody watches."""
        if self.progress is None:
            return ""
        return f"{stand.tree} {stand.head}" if stand.tree else self.progress()

    def checkpoint(self) -> str:
        """The work as it is now, where it can be had back."""
        return self.keep()
