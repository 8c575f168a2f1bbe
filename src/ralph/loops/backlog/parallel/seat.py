"""A worker's place among the others."""

from ralph.adapters.git_work import Repository
from ralph.adapters.purse import Budget
from ralph.adapters.task_edits import note
from ralph.adapters.task_file import TaskFile
from ralph.adapters.worktrees import TaskWorktree
from ralph.core.value import value
from ralph.profiles.parallel import WorkerContext


@value
class Seat:
    """Where a worker works, what it merges into, and what it shares with the others."""

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
