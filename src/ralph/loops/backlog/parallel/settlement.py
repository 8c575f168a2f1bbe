"""Settles a worker's task: its turns are in a work tree of its own, its records are the project's,
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
from ralph.loops.backlog.parallel.merging import Conflicts, Joining
from ralph.loops.backlog.settlement import TaskSettlement, task_of
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

    inner: TaskSettlement  # its file is the project's, its watch is over the list in the work tree
    joining: Joining
    project_list: TaskWatch
    contained: bool  # an agent cannot reach the project

    def take_up(self, state: RunState) -> str:
        self._relink()
        saved = self.inner.take_up(state)
        self.project_list.remember(state.iteration)
        return saved

    def undo_edits(self, state: RunState) -> str:
        """Put back illegal changes to the worker's copy of the list and to the project's. Tasks
        added to the copy are the project's too."""
        self._relink()
        undone = self.inner.undo_edits(state)
        if not self.contained:
            theirs = self.project_list.undo(task_of(state), state.iteration)
            undone = "; ".join(filter(None, (undone, theirs)))
        self.project_list.take_in(os.path.join(self.joining.work.workspace, NAME))
        self.project_list.let_stand()
        return undone

    def _relink(self) -> None:
        """Restore the link to the repository, which an agent may have removed."""
        place = self.joining.work.repository.place
        link, text = place.path(".git"), f"gitdir: {place.git_dir}\n"
        with suppress(OSError):
            if content(link) != text.encode():
                os.makedirs(self.joining.work.workspace, exist_ok=True)
                write_atomically(link, text)

    def record(self, state: RunState, verdict: Verdict, saved: str = "") -> None:
        self.inner.record(state, verdict, saved)

    def keep(self, state: RunState) -> None:
        self.joining.keep(_base(state), state.iteration)

    def merge(self, state: RunState) -> Merge:
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
        self.inner.watch.let_stand()
        if merged.conflicts:
            conflicts.remember(number, merged.tree, merged.conflicts)
            own = f"{self.joining.work.refs}/work-{number}"
            words = _CONFLICT.format(_shown(merged.conflicts), own)
            return Merge(merged.checkpoint, "\n".join((words, *merged.words)), fresh=True)
        theirs = self.joining.in_the_way()
        if theirs:
            return Merge(merged.checkpoint, _IN_THE_WAY.format(_shown(theirs)), hopeless=True)
        return Merge(merged.checkpoint)

    def is_current(self, state: RunState) -> bool:
        return self.joining.head() == _base(state).head

    def commit(self, state: RunState) -> Committed:
        """Commit the task's work with the project's records, in the work tree. A list that somebody
        is changing in the project is told when the task has landed."""
        task, here = task_of(state), self.joining.work.workspace
        ticks = not self.joining.theirs().intersection(self._lists(state))
        if ticks:
            self.inner.telling.tick_off(task, here)
        self.inner.file.compact()
        records = ensure_ralph_dir(here)
        for name in RECORDS:  # as they stand in the project now
            with suppress(FileNotFoundError):
                source = os.path.join(self.inner.file.workspace, ".ralph", name)
                shutil.copyfile(source, os.path.join(records, name))
        path = self.inner.telling.list_in(here, task) if ticks else ""
        done = self.inner.commit_work(state, (path,) if path else ())
        if ticks and (not done.ok or done.altered):
            self.inner.telling.tick_off(task, here, done=False)
        return done

    def _lists(self, state: RunState) -> tuple[str, ...]:
        """The list that the task came from, if it is in the project."""
        path = self.inner.telling.list_in(self.joining.work.workspace, task_of(state))
        top = self.joining.work.repository.place.top
        return (os.path.relpath(path, top),) if path else ()

    def land(self, state: RunState) -> str:
        return self.joining.land(self.joining.work.head(), _base(state).head)

    def has_landed(self, state: RunState) -> bool:
        made = self.joining.work.head()
        return made != _base(state).head and self.joining.project.follows(made)

    def sync(self, state: RunState) -> tuple[bool, str]:
        return self.inner.sync(state)

    def restore(self, state: RunState, *, whole_task: bool) -> str:
        for words in self.joining.keep_links(f"inner-{state.iteration}"):
            self.inner.tell(words)
        return self.inner.restore(state, whole_task=whole_task)

    def reopen(self, tasks: tuple[str, ...]) -> None:
        """Do nothing: the foreman reopens tasks."""

    def end(self) -> None:
        self.inner.forget()


def _base(state: RunState) -> Checkpoint:
    base = Checkpoint.of(state.task_checkpoint)
    assert base is not None, "a turn of a task begins with a checkpoint"
    return base


def _shown(paths: tuple[str, ...]) -> str:
    return listed([path if path.isprintable() else repr(path) for path in paths])
