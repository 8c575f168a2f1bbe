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
        return self.ask_signals()

    def backlog(self) -> Backlog:
        return self.read_backlog()

    def snapshot(self) -> Snapshot:
        try:
            stand = self.trees.look()
        except StateError:
            stand = Stand()  # whoever has to prove something says so
        work = ""  # else it changes with every commit and every changed file
        if self.progress is not None:
            work = f"{stand.tree} {stand.head}" if stand.tree else self.progress()
        return Snapshot(work, self.protector.digests(), stand)

    def checkpoint(self) -> str:
        return self.keep()
