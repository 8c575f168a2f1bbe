"""The command `ralph`. What must be quick is answered before anything is imported."""

import gc
import os
import signal
import sys

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from ralph.adapters.keeper_process import Launched

# Python's own 700 has it look for garbage forty times while it imports, and finds none.
_NEW_OBJECTS = 50_000
_INTERRUPTED = 130
_NO_RUN = frozenset({"-h", "--help", "-v", "--version", "--dry-run"})


def main() -> None:
    """Run the command line and exit with its code."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-v"]):
        sys.exit(_print_version())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)  # imports take a moment, and a signal may come in it
    gc.set_threshold(_NEW_OBJECTS)
    keeper = _keeper_for(arguments)
    from ralph.cli.main import run_command_line

    code = run_command_line(arguments, keeper)
    if keeper is not None:
        keeper.let_go()
    if code == _INTERRUPTED:
        _leave()
    sys.exit(code)


def _keeper_for(arguments: list[str]) -> "Launched | None":
    """A run needs a keeper, which gets ready while we import (ADR 23)."""
    first = arguments[0] if arguments else ""
    if sys.platform != "linux" or not (first == "run" or first.startswith("-")):
        return None
    if not _NO_RUN.isdisjoint(arguments):
        return None
    from ralph.adapters.keeper_process import launch

    try:
        return launch()
    except OSError:
        return None  # it is tried again when it is needed, and told then


def _leave(*_: object) -> None:
    """`python -m` would turn a Ctrl+C that came within an `exec` into a death by SIGINT, although
    it was caught; so it is not asked. What is said is flushed when it is said."""
    os._exit(_INTERRUPTED)


def _print_version() -> int:
    """Written at once, so that a full or closed stdout is an exit code and no traceback."""
    from ralph import __version__

    try:
        os.write(1, f"ralph {__version__}\n".encode())
    except OSError:
        return 1
    return 0


if __name__ == "__main__":
    main()
