"""Working through a backlog as a library (B): `from ralph import Hooks, TaskRun`.

It is `ralph tasks run` without its signals: the same file, the same lock, the same records. It
prints nothing, takes no signal, and adopts none of the host program's processes.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from ralph.kernel.value import replace
from ralph.kernel.world import Signals
from ralph.loops.backlog.hooks import Hooks

__all__ = ["Hooks", "TaskRun"]

_FLAGS = (
    *("max_iterations", "max_tasks", "parallel", "max_time", "max_cost", "max_wait", "on_failure"),
    *("agent", "model", "timeout", "idle_timeout", "stop_grace", "network", "guard"),
    *("sandbox_show", "emoji", "color", "timestamps", "stream_agent_output", "notify"),
)


class TaskRun:
    """Works through the tasks of `.ralph/tasks.jsonl` in a project.

    `task` or `tags` choose some of them. `sandbox` is None for what the settings say, False to
    work in place, or a backend's name. `settings` are the flags of `ralph tasks run` with `_` for
    `-`: `max_tasks=3, on_failure="stop"`; TypeError for one that there is not. The hooks are
    called in the thread that calls run(); what one of them raises is told to nobody, and never ends
    the run.
    """

    def __init__(
        self,
        project: str | os.PathLike[str] = ".",
        *,
        hooks: Hooks | Sequence[Hooks] = (),
        task: str | None = None,
        tags: Sequence[str] = (),
        sandbox: str | bool | None = None,
        allow_dirty: bool = False,
        environ: Mapping[str, str] | None = None,
        **settings: Any,  # noqa: ANN401  what each may be is for the settings to say
    ) -> None:
        unknown = settings.keys() - set(_FLAGS)
        if unknown:
            raise TypeError(f"TaskRun() got an unexpected keyword argument {min(unknown)!r}")
        self._project = os.path.abspath(os.fspath(project))
        if isinstance(sandbox, bool):
            sandbox = "auto" if sandbox else "direct"
        self._environ = dict(os.environ if environ is None else environ)
        self._flags = {
            **dict.fromkeys(_FLAGS),
            **settings,
            "task": task,
            "tag": tuple(tags),
            "sandbox": sandbox,
            "allow_dirty": allow_dirty,
            "verbose": False,
            "in_json": False,
            "hooks": (hooks,) if isinstance(hooks, Hooks) else tuple(hooks),
        }
        self._cancels = 0
        self._under_way = threading.Lock()

    def run(self) -> int:
        """Work until nothing is left, or a limit or a person ends it: the exit code that `ralph
        tasks run` would have. RalphError, with `message` and `remedy`, for what it would refuse, or
        if it was cancelled twice within a commit; RuntimeError while another thread is in here."""
        from ralph.runner.carry_out import execute
        from ralph.runner.invocation import Invocation

        if not self._under_way.acquire(blocking=False):
            raise RuntimeError("this TaskRun is running already")
        try:
            invocation = Invocation(self._project, self._environ, self._flags, None, None, None)
            asked = replace(invocation, asked=lambda: Signals(cancels=self._cancels))
            return execute("backlog", asked)
        finally:
            self._cancels = 0
            self._under_way.release()

    def cancel(self) -> None:
        """End the run after its current operation; called twice, at once. From any thread."""
        self._cancels += 1
