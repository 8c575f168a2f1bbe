"""Working through a backlog as a library (B): `from ralph import Hooks, TaskRun`."""

import os
from collections.abc import Iterator, Sequence
from typing import Unpack

from ralph.kernel.state import RunState
from ralph.loops.backlog.hooks import Hooks
from ralph.loops.library import LoopRun, RunOptions, TaskResult
from ralph.text.redact import redact

__all__ = ["Hooks", "TaskRun"]


class TaskOptions(RunOptions, total=False):
    """What a run over tasks may be given: the flags of `ralph tasks run` with `_` for `-`."""

    hooks: Hooks | Sequence[Hooks]  # with several workers they are called from several threads
    task: str | None
    tag: str | Sequence[str]
    allow_dirty: bool
    max_tasks: int | None
    parallel: int | None
    fleet: str | None
    on_failure: str | None


class TaskRun(LoopRun):
    """Works through the tasks of `.ralph/tasks.jsonl` in a project."""

    loop, options = "backlog", TaskOptions.__optional_keys__

    def __init__(
        self, project: str | os.PathLike[str] = ".", **options: Unpack[TaskOptions]
    ) -> None:
        tag, hooks = options.get("tag", ()), options.get("hooks", ())
        tags = (tag,) if isinstance(tag, str) else tuple(tag)
        several = (hooks,) if isinstance(hooks, Hooks) else tuple(hooks)
        super().__init__(project, options, tag=tags, hooks=several)

    def _tasks(self, state: RunState) -> Iterator[TaskResult]:
        """Each task that this run has ended."""
        for each in state.delivered:
            yield TaskResult(each.task, done=True, title=each.what, commit=each.commit)
        for task, why in state.parked:
            yield TaskResult(task, done=False, why=redact(why))
