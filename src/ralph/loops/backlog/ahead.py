"""The tasks of a run's list as they are now, for those who look at them or answer them."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from ralph.journal.runs import Run
from ralph.kernel.tasks.task import Task
from ralph.runner.kept import work_of


def listed(kept: Mapping[str, Any], workspace: str) -> tuple[Task, ...] | None:
    """The tasks of the list that were chosen for a run, by what was kept of its plan; None where
    nobody can tell."""
    from ralph.loops.backlog.store.selection import TaskBacklog
    from ralph.loops.backlog.store.task_file import TaskFile

    try:
        backlog = TaskBacklog(TaskFile(workspace), kept["task"], tuple(kept["tags"]))()
    except (OSError, KeyError, TypeError):
        return None
    return None if backlog.problem else backlog.tasks


def ahead_of(run: Run, workspace: str) -> frozenset[str] | None:
    """The tasks that the run is for and that are not done; None where nobody can tell."""
    found = listed(work_of(run.directory, "backlog") or {}, workspace)
    return None if found is None else frozenset(task.id for task in found if task.open)


def answered(workspace: str, project: str, task: str, text: str) -> object:
    """Answer a task, as a person: no run shall take it for its agent's change."""
    from ralph.loops.backlog.store.answering import answer
    from ralph.loops.backlog.store.task_file import TaskFile
    from ralph.loops.backlog.store.watch import note

    return answer(TaskFile(workspace, witness=partial(note, project)), task, text)
