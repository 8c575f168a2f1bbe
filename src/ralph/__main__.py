"""The command `ralph`. What must be quick is answered before anything is imported."""

import gc
import os
import signal
import sys

# Python's own 700 has it look for garbage forty times while it imports, and finds none.
_NEW_OBJECTS = 50_000


def main() -> None:
    """Run the command line and exit with its code."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-v"]):
        sys.exit(_print_version())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)  # imports take a moment, and a signal may come in it
    gc.set_threshold(_NEW_OBJECTS)
    from ralph.cli.main import run_command_line

    sys.exit(run_command_line(arguments))


def _leave(*_: object) -> None:
    os._exit(130)


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
