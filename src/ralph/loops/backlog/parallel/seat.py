"""A worker's place among the others."""

from ralph.git.repository import Repository
from ralph.kernel.value import value
from ralph.loops.backlog.parallel.budget import Budget
from ralph.loops.backlog.parallel.policy import WorkerContext
from ralph.loops.backlog.parallel.worktrees import TaskWorktree
from ralph.loops.backlog.store.edits import note
from ralph.loops.backlog.store.task_file import TaskFile


@value
class Seat:
    """A worker's tree, the branch it merges into, and what it shares with the others."""

    tree: TaskWorktree
    repository: Repository  # of the project
    onto: str  # its branch when the run began, which gets the work; "" for none
    purse: Budget
    place: WorkerContext
    told: set[str]  # what one of them has told for all


def noted_file(workspace: str, project: str) -> TaskFile:
    """The project's list. What one worker writes is remembered, lest another takes it for its
    agent's."""
    return TaskFile(workspace, witness=lambda task, line: note(project, task, line))
