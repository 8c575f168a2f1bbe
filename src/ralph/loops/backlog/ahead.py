"""The tasks of a run, for those outside of it who look at them or answer them."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from ralph.journal.runs import Run
from ralph.kernel.tasks.task import Backlog
from ralph.runner.kept import work_of


def ahead_of(run: Run, workspace: str) -> frozenset[str] | None:
    """The tasks that the run is for and that are not done; None where nobody can tell."""
    try:
        backlog = tasks_now(workspace, work_of(run.directory, "backlog") or {})
    except (OSError, KeyError, TypeError):
        return None
    return None if backlog.problem else frozenset(task.id for task in backlog.tasks if task.open)


def tasks_now(workspace: str, kept: Mapping[str, Any]) -> Backlog:
    """The tasks of a run as they are now, by what was kept of its work."""
    from ralph.loops.backlog.store.selection import TaskBacklog
    from ralph.loops.backlog.store.task_file import TaskFile

    return TaskBacklog(TaskFile(workspace), kept["task"], tuple(kept["tags"]))()


def answered(workspace: str, project: str, task: str, text: str) -> object:
    """Answer a task, as a person: no run shall take it for its agent's change."""
    from ralph.loops.backlog.store.answering import answer
    from ralph.loops.backlog.store.task_file import TaskFile
    from ralph.loops.backlog.store.watch import note

    return answer(TaskFile(workspace, witness=partial(note, project)), task, text)
