"""Ralph runs AI coding agents in a loop until the work is done, and proves that it is done."""

__version__ = "0.2.0"

__all__ = [
    "Cancelled",
    "DoneIsDirectory",
    "Hooks",
    "MaxRestartsExceeded",
    "PromptRun",
    "RalphError",
    "RunResult",
    "Sandbox",
    "StoryRun",
    "Supervisor",
    "SupervisorError",
    "TaskResult",
    "TaskRun",
    "__version__",
    "run_prompt",
]

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from ralph.errors import RalphError
    from ralph.loops.backlog.library import Hooks, TaskRun
    from ralph.loops.library import RunResult, TaskResult
    from ralph.loops.prompt.library import PromptRun, run_prompt
    from ralph.loops.stories.library import StoryRun
    from ralph.loops.supervise.library import (
        Cancelled,
        DoneIsDirectory,
        MaxRestartsExceeded,
        Supervisor,
        SupervisorError,
    )
    from ralph.sandbox.library import Sandbox
else:
    _MODULES = {
        "RalphError": "errors",
        "Sandbox": "sandbox.library",
        **dict.fromkeys(("Hooks", "TaskRun"), "loops.backlog.library"),
        **dict.fromkeys(("PromptRun", "run_prompt"), "loops.prompt.library"),
        "StoryRun": "loops.stories.library",
        **dict.fromkeys(("RunResult", "TaskResult"), "loops.library"),
    }

    def __getattr__(name):  # noqa: ANN001, ANN202  the type checker knows the names above
        """The library, which is imported when it is first asked for: `ralph` must start fast."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        module = import_module(f"ralph.{_MODULES.get(name, 'loops.supervise.library')}")
        return getattr(module, name)
