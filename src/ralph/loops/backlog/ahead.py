"""The tasks that are ahead of a run, for those who only look at it."""

from ralph.journal.runs import Run
from ralph.runner.kept import work_of


def ahead_of(run: Run, workspace: str) -> frozenset[str] | None:
    """The tasks that the run is for and that are not done; None where nobody can tell."""
    from ralph.loops.backlog.store.selection import TaskBacklog
    from ralph.loops.backlog.store.task_file import TaskFile

    work = work_of(run.directory, "backlog") or {}
    try:
        backlog = TaskBacklog(TaskFile(workspace), work["task"], tuple(work["tags"]))()
    except (OSError, KeyError, TypeError):
        return None
    return None if backlog.problem else frozenset(task.id for task in backlog.tasks if task.open)
