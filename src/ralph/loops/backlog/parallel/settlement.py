"""The bench of a worker: its turns are in a work tree of its own, its records are the project's,
and its commit becomes the project's HEAD."""

import os
import shutil
from contextlib import suppress

from ralph.files.state_dir import ensure_ralph_dir, write_atomically
from ralph.git.checkpoint.commit import RECORDS
from ralph.git.checkpoint.files import content
from ralph.git.checkpoint.work import Checkpoint
from ralph.kernel.ports import Committed, Merge
from ralph.kernel.state import RunState
from ralph.kernel.value import value
from ralph.kernel.verdict import Verdict
from ralph.loops.backlog.parallel.merging import Conflicts, Joining, Merged
from ralph.loops.backlog.settlement import TaskSettlement
from ralph.loops.backlog.store.task_file import NAME
from ralph.loops.backlog.store.watch import TaskWatch
from ralph.text.words import listed

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


@value
class WorkerSettlement:
    """Settles the one task of a worker."""

    bench: TaskSettlement  # its file is the project's, its watch is over the list in the work tree
    joining: Joining
    project_list: TaskWatch
    contained: bool  # an agent cannot reach the project

    def take_up(self, state: RunState) -> str:
        """Mark the task as under work, on files as they were before a turn that was cut off."""
        self._mend()
        saved = self.bench.take_up(state)
        self.project_list.remember(state.iteration)
        return saved

    def undo_edits(self, state: RunState) -> str:
        """Put back what the turn did to its copy of the list, or to the project's, and may not;
        what it added to its copy is the project's too."""
        self._mend()
        undone = self.bench.undo_edits(state)
        if not self.contained:
            theirs = self.project_list.undo(_task(state), state.iteration)
            undone = "; ".join(filter(None, (undone, theirs)))
        self.project_list.take_in(os.path.join(self.joining.work.workspace, NAME))
        self.project_list.let_stand()
        return undone

    def _mend(self) -> None:
        """An agent may have removed what leads git from the work tree to its repository."""
        place = self.joining.work.repository.place
        link, text = place.path(".git"), f"gitdir: {place.git_dir}\n"
        with suppress(OSError):
            if content(link) != text.encode():
                os.makedirs(self.joining.work.workspace, exist_ok=True)
                write_atomically(link, text)

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
        left = conflicts.unresolved(number, work.commit)
        if left:
            return Merge(refusal=_UNRESOLVED.format(_shown(left)))
        links = self.joining.changed_links(work)
        if links:
            return Merge(refusal=_LINKS.format(_shown(links)), hopeless=True)
        merged = self.joining.merge(work, self._lists(state))
        self.bench.watch.let_stand()
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

    def commit(self, state: RunState) -> Committed:
        """Commit the task's work with the project's records, in the work tree. A list that somebody
        is changing in the project is told when the task has landed."""
        task, here = _task(state), self.joining.work.workspace
        ticks = not self.joining.theirs().intersection(self._lists(state))
        if ticks:
            self.bench.telling.tick_off(task, here)
        self.bench.file.compact()
        self._bring_records()
        path = self.bench.telling.list_in(here, task) if ticks else ""
        done = self.bench.commit_work(state, (path,) if path else ())
        if ticks and (not done.ok or done.altered):
            self.bench.telling.tick_off(task, here, done=False)
        return done

    def _lists(self, state: RunState) -> tuple[str, ...]:
        """The list that the task came from, if it is in the project."""
        path = self.bench.telling.list_in(self.joining.work.workspace, _task(state))
        top = self.joining.work.repository.place.top
        return (os.path.relpath(path, top),) if path else ()

    def land(self, state: RunState) -> str:
        """Let the project go on to the commit; why it cannot, "" if it has."""
        return self.joining.land(self.joining.work.head(), _base(state).head)

    def has_landed(self, state: RunState) -> bool:
        """Whether a run that was killed then had come so far."""
        made = self.joining.work.head()
        return made != _base(state).head and self.joining.project.follows(made)

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
        for words in self.joining.keep_links(f"inner-{state.iteration}"):
            self.bench.tell(words)
        return self.bench.restore(state, whole_task=whole_task)

    def reopen(self, tasks: tuple[str, ...]) -> None:
        """What the agent's failures are about is for the foreman to say."""

    def end(self) -> None:
        """The worker is done: nothing of its beginnings is needed any more."""
        self.bench.forget()


def _task(state: RunState) -> str:
    assert state.assignment is not None, "no turn has begun"
    return state.assignment.task


def _base(state: RunState) -> Checkpoint:
    base = Checkpoint.of(state.task_checkpoint)
    assert base is not None, "a turn of a task begins with a checkpoint"
    return base


def _shown(paths: tuple[str, ...]) -> str:
    return listed([path if path.isprintable() else repr(path) for path in paths])
