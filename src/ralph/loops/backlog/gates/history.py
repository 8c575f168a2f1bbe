"""The gate that checks git's history and the state of merges after a turn."""

import re
from collections.abc import Iterator

from ralph.files.safe_open import read_or_nothing
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.work import Checkpoint
from ralph.git.under_way import under_way
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
        """Objections, unless HEAD goes on from where the task began and no merge is under way."""
        before = Checkpoint.of(case.state.task_checkpoint)
        if before is None:
            return
        place = self.work.repository.place
        if doing := ", ".join(operation.name for operation in under_way(place.git_dir)):
            yield Finding(self.name, f"Git is in the middle of {doing}. End it, or abort it.")
        # A merge that Ralph made for the agent may have come back from a run that was killed.
        seen = self.work.trees.seen  # the gates have just been shown it
        changed = sorted({*seen.there, *seen.staged})
        left = [p for p in changed if _MARKER.search(read_or_nothing(place.path(p), _LARGEST))]
        if left:
            yield Finding(self.name, f"conflicts are left in {listed(left)}: resolve them.")
        if before.head not in ("", seen.head) and not self.work.repository.follows(before.head):
            back = f"git reset --soft {before.head}"
            text = f"Commits of before the task are gone from the branch. Go back: {back}"
            yield Finding(self.name, text)
