"""The bench of a worker: its turns are in a work tree of its own, its records are the project's,
and its commit becomes the project's HEAD."""

import os
import shutil
from contextlib import suppress

from ralph.adapters.checkpoint import Checkpoint
from ralph.adapters.conflicts import Conflicts
from ralph.adapters.files import ensure_ralph_dir
from ralph.adapters.joining import Joining, Merged
from ralph.adapters.task_commit import RECORDS
from ralph.adapters.task_file import NAME
from ralph.adapters.task_watch import TaskWatch
from ralph.adapters.workbench import Bench
from ralph.core.state import RunState
from ralph.core.value import replace, value
from ralph.core.verdict import Verdict
from ralph.core.words import listed
from ralph.errors import StateError
from ralph.ports import Merge

# The first line of a refusal is for people, who read no more of it.
_CONFLICT = (
    "conflicts in {0}\n"
    "Other tasks were merged while you worked, and your changes conflict with theirs in {0}. Your"
    " work stands on top of theirs now. Where a file can hold both versions it does, between"
    " conflict markers (<<<<<<<, =======, >>>>>>>); your own of any is in: git show {1}:PATH."
    " Resolve all of them so that both tasks hold, and complete the task again. A file that is left"
    " as it is now counts as not resolved."
)
_UNRESOLVED = "conflicts are left in {}"
_LINKS = "it changes the submodule {}, which only works with --parallel 1"
_IN_THE_WAY = "uncommitted changes in the project are in the way: {}"
_MOST_MOVES = 5


@value
class WorkerBench:
    """Settles the one task of a worker."""

    bench: Bench  # its file is the project's, its watch is over the list in the work tree
    joining: Joining
    taking: TaskWatch  # over the project's list, for tasks that the agent has added

    def take_up(self, state: RunState) -> str:
        """Mark the task as under work, on files as they were before a turn that was cut off."""
        return self.bench.take_up(state)

    def undo_edits(self, state: RunState) -> str:
        """Put back what the turn did to its copy of the list and may not; what it added there is
        the project's too."""
        undone = self.bench.undo_edits(state)
        self.taking.take_in(os.path.join(self.joining.work.workspace, NAME))
        return undone

    def record(self, state: RunState, verdict: Verdict, saved: str = "") -> None:
        """Write status, progress and learning, where the project has them."""
        self.bench.record(state, verdict, saved)

    def keep(self, state: RunState) -> None:
        """Save the work as it is, before anything is merged."""
        self.joining.keep(_base(state), state.iteration)

    def merge(self, state: RunState) -> Merge:
        """Put the task's work on top of what others have merged."""
        elsewhere = self.joining.elsewhere()
        if elsewhere:
            return Merge(refusal=elsewhere, hopeless=True)
        base, number, conflicts = _base(state), state.iteration, Conflicts(self.joining.work)
        work = self.joining.keep(base, number)
        left = conflicts.unresolved(number, work)
        if left:
            return Merge(refusal=_UNRESOLVED.format(_shown(left)))
        links = self.joining.changed_links(work)
        if links:
            self.joining.keep_links(links)
            return Merge(refusal=_LINKS.format(_shown(links)), hopeless=True)
        merged = self.joining.merge(work)
        if merged.conflicts:
            conflicts.remember(number, merged.tree, merged.conflicts)
            return Merge(merged.checkpoint, self._told(merged, number), fresh=True)
        theirs = self.joining.in_the_way()
        if theirs:
            return Merge(merged.checkpoint, _IN_THE_WAY.format(_shown(theirs)), hopeless=True)
        return Merge(merged.checkpoint)

    def _told(self, merged: Merged, iteration: int) -> str:
        own = f"{self.joining.work.refs}/work-{iteration}"
        words = _CONFLICT.format(_shown(merged.conflicts), own)
        return "\n".join((words, *merged.words))

    def is_current(self, state: RunState) -> bool:
        """Whether nobody has merged or committed anything since."""
        return self.joining.head() == _base(state).head

    def commit(self, state: RunState) -> tuple[bool, str]:
        """Commit the task's work with the project's records, and let the project go on to it."""
        for _ in range(_MOST_MOVES):
            if not self.is_current(state):  # since the gates have passed: somebody commits here
                merge = self.merge(state)
                if merge.refusal:
                    return False, merge.refusal
                state = replace(state, task_checkpoint=merge.checkpoint)
            done, said = self._commit(state)
            if not done or self.is_landed(state):
                return done, said
        raise StateError("others commit here at the same time", "Go on: ralph resume")

    def is_landed(self, state: RunState) -> bool:
        """Whether the project has the commit, by now."""
        head = self.joining.head()
        refusal = self.joining.land(self.joining.work.head())
        if refusal and self.joining.head() == head == _base(state).head:
            raise StateError(f"the task cannot be merged: {refusal}", "Mend that: ralph resume")
        return not refusal

    def _commit(self, state: RunState) -> tuple[bool, str]:
        self.bench.tick_off(state)
        self.bench.file.compact()
        self._bring_records()
        return self.bench.commit(state)

    def _bring_records(self) -> None:
        """They are committed as they stand in the project now."""
        there = ensure_ralph_dir(self.joining.work.workspace)
        for name in RECORDS:
            with suppress(FileNotFoundError):
                source = os.path.join(self.bench.file.workspace, ".ralph", name)
                shutil.copyfile(source, os.path.join(there, name))

    def sync(self, state: RunState) -> tuple[bool, str]:
        """Tell the tracker the task came from."""
        return self.bench.sync(state)

    def restore(self, state: RunState, *, whole_task: bool) -> str:
        """Discard this turn's changes, or all of the task's."""
        return self.bench.restore(state, whole_task=whole_task)

    def end(self) -> None:
        """The worker is done: nothing of its beginnings is needed any more."""
        self.bench.end()


def _base(state: RunState) -> Checkpoint:
    base = Checkpoint.of(state.task_checkpoint)
    assert base is not None, "a turn of a task begins with a checkpoint"
    return base


def _shown(paths: tuple[str, ...]) -> str:
    return listed([path if path.isprintable() else repr(path) for path in paths])
