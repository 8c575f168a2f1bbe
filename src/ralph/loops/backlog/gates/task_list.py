"""The law between gates: the task list stays as the turn left it, whatever checks run (ADR 33)."""

from collections.abc import Iterator

from ralph.kernel.case import Case
from ralph.kernel.findings import Finding
from ralph.kernel.proof import undone
from ralph.kernel.value import value
from ralph.loops.backlog.store.watch import TaskWatch

_SHARED = (
    "The project's task list was changed while your checks ran; it was restored. Only Ralph and"
    " people may change it: if your code does, remove that."
)


@value
class TaskListGate:
    """Puts the task list back, and that of the project a worker works for."""

    own: TaskWatch
    shared: TaskWatch | None = None  # other workers' agents may reach it too
    name = "task list"
    always = True

    def check(self, case: Case) -> Iterator[Finding]:
        """Nothing where only people and workers have written."""
        if self.own.put_back():
            yield Finding(self.name, undone("the task list"))
        if self.shared is not None and self.shared.put_back():
            yield Finding(self.name, _SHARED)
