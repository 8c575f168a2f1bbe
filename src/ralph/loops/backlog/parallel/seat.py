"""The seat of a worker among others."""

from ralph.git.repository import Repository
from ralph.kernel.value import value
from ralph.loops.backlog.parallel.policy import WorkerContext
from ralph.loops.backlog.parallel.ride import Load, Order
from ralph.loops.backlog.parallel.station import Station
from ralph.loops.backlog.parallel.worktrees import TaskWorktree


@value
class Seat:
    """A worker's tree, the branch it merges into, and what it shares with the others."""

    tree: TaskWorktree
    repository: Repository  # of the project
    onto: str  # its branch when the run began, which gets the work; "" for none
    context: WorkerContext
    station: Station[Load, Order]
    told: set[str]  # what one of them has told for all
    below: str = ""  # the branch that its pull request stands on; "" for the base
