"""The scripts that prove tasks, protected while a task is worked on."""

import os

from ralph.gates.protect import Protector
from ralph.kernel.facts import Fact, Settled
from ralph.kernel.verdict import Accept, Park
from ralph.loops.backlog.store.selection import TaskBacklog


class Scripts:
    """Protects the scripts that prove tasks: no turn may change what judges it. They are looked for
    when a task begins: one that is not there by then may be the task's own product."""

    def __init__(self, backlog: TaskBacklog, workspace: str, protector: Protector) -> None:
        self._backlog, self._workspace, self._protector = backlog, workspace, protector
        self._protect()
        self._task_is_over = True

    def look(self) -> None:
        """Protect those that are there now, if another task begins."""
        if self._task_is_over:
            self._protect()
            self._task_is_over = False

    def _protect(self) -> None:
        here, scripts = self._workspace, self._backlog.scripts()
        there = tuple(s for s in scripts if os.path.exists(os.path.join(here, s)))
        self._protector.protect_also(there)

    def on_fact(self, fact: Fact) -> None:
        """Done or parked: the next one begins anew."""
        if isinstance(fact, Settled) and isinstance(fact.verdict, Accept | Park):
            self._task_is_over = True

    def on_events(self, events: object) -> None: ...
