"""Checks that what was committed before a task stays committed, and that nothing is left half
merged."""

import re
from collections.abc import Iterator

from ralph.files.safe_open import open_regular
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.work import Checkpoint
from ralph.kernel.case import Case
from ralph.kernel.findings import Finding
from ralph.kernel.value import value
from ralph.text.words import listed

_MARKER = re.compile(rb"^>{7} (?:ralph/|[0-9a-f]{40})", re.MULTILINE)  # as Ralph writes them
_LARGEST = 4 << 20  # bytes of a file


@value
class HistoryGate:
    """Objects to a turn that took commits off its branch, which are other tasks' and people's, and
    to one that left git in the middle of something."""

    work: WorkTree
    name = "history"
    always = False

    def executes(self, case: Case) -> bool:
        return False

    def check(self, case: Case) -> Iterator[Finding]:
        """Nothing as long as HEAD goes on from where the task began, and no merge is under way."""
        before = Checkpoint.of(case.state.task_checkpoint)
        if before is None:
            return
        doing = self.work.under_way()
        if doing:
            yield Finding(self.name, f"Git is in the middle of {doing}. End it, or abort it.")
        # A merge that Ralph made for the agent may have come back from a run that was killed.
        seen = self.work.trees.seen  # the gates have just been shown it
        changed, path_of = sorted({*seen.there, *seen.staged}), self.work.repository.place.path
        left = [path for path in changed if _has_markers(path_of(path))]
        if left:
            yield Finding(self.name, f"conflicts are left in {listed(left)}: resolve them.")
        if before.head and not self.work.repository.follows(before.head):
            back = f"git reset --soft {before.head}"
            text = f"Commits of before the task are gone from the branch. Go back: {back}"
            yield Finding(self.name, text)


def _has_markers(path: str) -> bool:
    try:
        with open_regular(path) as file:
            return _MARKER.search(file.read(_LARGEST)) is not None
    except OSError:
        return False
