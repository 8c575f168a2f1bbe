"""What was committed before a turn stays committed."""

from collections.abc import Iterator

from ralph.adapters.checkpoint import Checkpoint, WorkTree
from ralph.core.case import Case
from ralph.core.gates import Finding
from ralph.core.value import value


@value
class HistoryGate:
    """Objects to a turn that took commits off its branch: they are other tasks' and people's."""

    work: WorkTree
    name = "history"
    always = False

    def check(self, case: Case) -> Iterator[Finding]:
        """Nothing as long as HEAD goes on from where the task began."""
        before = Checkpoint.of(case.state.task_checkpoint)
        if before is not None and before.head and not self.work.holds(before.head):
            back = f"git reset --soft {before.head}"
            text = f"Commits of before the task are gone from the branch. Go back: {back}"
            yield Finding(self.name, text)
