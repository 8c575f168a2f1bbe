"""Work trees that a killed run has left, and that nobody goes on with: what is in them is kept."""

import os
from collections.abc import Collection, Iterator, Mapping

from ralph.adapters.checkpoint import WorkTree
from ralph.adapters.git_look import look, tree_of
from ralph.adapters.joining import Joining, on_branch
from ralph.adapters.task_commit import in_one_line
from ralph.adapters.task_file import TaskFile
from ralph.adapters.worktrees import NOT_MERGED, Worktree, Worktrees
from ralph.core.task import Status
from ralph.core.value import value


def unmerged(task: str, title: str) -> str:
    """The message of a commit that only shows what was done."""
    return f"{in_one_line(f'{task}: {title}')}\n\n{NOT_MERGED}\n"


@value
class Leftovers:
    """Puts them away for a new run."""

    trees: Worktrees
    file: TaskFile
    environ: Mapping[str, str]
    run_dir: str  # the new run's

    def put_away(self, but: Collection[str] = ()) -> Iterator[str]:
        """Keep and remove all but those of tasks that go on; what was done, in words."""
        for tree in [tree for tree in self.trees.left() if tree.task not in but]:
            words = self._put_away(tree) if os.path.isdir(tree.workspace) else ""
            if words:
                yield words
            else:
                self.trees.closed(tree)

    def _put_away(self, tree: Worktree) -> str:
        """ "" if there is nothing of its own in it."""
        work = WorkTree(tree.workspace, self.environ, self.run_dir, shared=True)
        project = WorkTree(self.file.workspace, self.environ, self.run_dir).repository
        head, inner = work.head(), Joining(work, project, tree.branch).keep_links("inner")
        if not work.dirty() and project.follows(head) and not inner:
            return ""
        ref = f"{work.refs}/left-{os.path.basename(tree.top)}"
        found = tree_of(work.repository, look(work.repository), self.run_dir)
        saved = work.save(found, [head], f"what was done for {tree.task}")
        project.ask("update-ref", ref, saved)
        title = self._hand_over(tree.task, ref)
        message = unmerged(tree.task, title)
        self.trees.closed(tree, keep=on_branch(project, self.run_dir, ref, head, message))
        branch = tree.branch.removeprefix("refs/heads/")
        left = f"{tree.task} was left in the middle by an earlier run; its work is on {branch}"
        return ". ".join((left, *inner))

    def _hand_over(self, task: str, ref: str) -> str:
        """Whoever takes the task up again goes on with what was done. One that was proven, and was
        not merged, is not done. Its title."""
        record = self.file.record(task) or {}
        proven = record.get("status") == Status.DONE and record.get("evidence")
        if proven or record.get("status") == Status.IN_PROGRESS:
            again = {"status": Status.IN_PROGRESS.value, "evidence": None, "completedAt": None}
            self.file.update(task, lambda _: {**again, "saved": ref})
        return str(record.get("title") or "")
