"""What was committed before a task stays committed, and nothing is left half merged."""

from collections.abc import Iterator

from ralph.adapters.checkpoint import Checkpoint, WorkTree
from ralph.core.case import Case
from ralph.core.gates import Finding
from ralph.core.value import value


@value
class HistoryGate:
    """Objects to a turn that took commits off its branch, which are other tasks' and people's, and
    to one that left git in the middle of something."""

    work: WorkTree
    name = "history"
    always = False

    def check(self, case: Case) -> Iterator[Finding]:
        """Nothing as long as HEAD goes on from where the task began, and no merge is under way."""
        if case.state.task_checkpoint and (doing := self.work.under_way()):
            yield Finding(self.name, f"Git is in the middle of {doing}. End it, or abort it.")
        before = Checkpoint.of(case.state.task_checkpoint)
        if before is not None and before.head and not self.work.holds(before.head):
            back = f"git reset --soft {before.head}"
            text = f"Commits of before the task are gone from the branch. Go back: {back}"
            yield Finding(self.name, text)
