"""Ralph runs AI coding agents in a loop until the work is done, and proves that it is done."""

__version__ = "0.2.0"

__all__ = [
    "Cancelled",
    "DoneIsDirectory",
    "Hooks",
    "MaxRestartsExceeded",
    "RalphError",
    "Sandbox",
    "Supervisor",
    "SupervisorError",
    "TaskRun",
    "__version__",
]

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from ralph.errors import RalphError
    from ralph.loops.backlog.library import Hooks, TaskRun
    from ralph.loops.supervise.library import (
        Cancelled,
        DoneIsDirectory,
        MaxRestartsExceeded,
        Supervisor,
        SupervisorError,
    )
    from ralph.sandbox.library import Sandbox
else:

    def __getattr__(name):  # noqa: ANN001, ANN202  the type checker knows the names above
        """The library, which is imported when it is first asked for: `ralph` must start fast."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name == "RalphError":
            from ralph import errors as library
        elif name == "Sandbox":
            from ralph.sandbox import library
        elif name in ("Hooks", "TaskRun"):
            from ralph.loops.backlog import library
        else:
            from ralph.loops.supervise import library
        return getattr(library, name)
