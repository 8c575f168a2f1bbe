"""One catch, one exit-code table: every way a command can end becomes a message and a code. Only
the standard library stands behind it."""

import errno
import io
import os
import sys
import time
from collections.abc import Callable

from ralph.errors import RalphError
from ralph.kernel.verdict import Reason
from ralph.text.redact import redact
from ralph.ui.safe_stream import Channel, discard

_UNWRITABLE = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EIO)


def ending(work: Callable[[], int], arguments: list[str], last: str = "") -> int:
    """Do the work of a command; the exit code of README §Exit codes. `last` is what is printed for
    programs when it fails: "", "stop" or "error"."""
    try:
        return work()
    except KeyboardInterrupt:
        return report("interrupted", "", Reason.INTERRUPTED, last=last)
    except RalphError as error:
        reason = Reason(error.reason)
        return report(error.message, error.remedy, reason, last="" if error.told else last)
    except Exception as error:  # noqa: BLE001  the one place that catches everything
        # Every other file is named by its error.
        named = getattr(error, "filename", None) is not None
        if named or not isinstance(error, OSError) or error.errno not in _UNWRITABLE:
            return _bug(error, arguments, last=last)
        # Whoever read our output has seen enough, which is fine; or a disk is full.
        discard(sys.stdout)
        if error.errno == errno.EPIPE:
            return 0
        message = f"stdout cannot be written: {error.strerror}"
        return report(message, "Send the output elsewhere.", Reason.CONFIG, last="")


def print_anything() -> None:
    """Replace what a terminal's encoding cannot show, so that it is never an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def report(message: str, remedy: str, reason: Reason, *, last: str) -> int:
    """Tell people, and programs that asked; the exit code."""
    lines = [f"[ralph] {redact(line)}" for line in f"{message}\n{remedy}".splitlines() if line]
    Channel(sys.stderr).write(lines)  # where it is closed the exit code has to do
    if last:
        from ralph.ui.jsonlines import error_line, stop_line

        line = stop_line(reason, time=time.time())
        if last == "error":
            line = error_line(reason, error=redact(message), remedy=redact(remedy))
        Channel(sys.stdout).write([line])
    return reason.exit_code


def _bug(error: Exception, arguments: list[str], *, last: str) -> int:
    """Save a report of a bug of ours that can be pasted, with nothing secret in it."""
    import platform
    import traceback

    from ralph import __version__
    from ralph.files.state_dir import state_root, write_atomically

    details = "".join(traceback.format_exception(error))
    text = redact(
        f"ralph {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"arguments: {arguments}\n\n{details}"
    )
    try:
        directory = state_root(os.environ)
        path = os.path.join(directory, time.strftime("bug-%Y%m%d-%H%M%S.txt"))
        os.makedirs(directory, mode=0o700, exist_ok=True)
        write_atomically(path, text, mode=0o600)
        where = f"Please report it with this file: {path}"
    except (OSError, RalphError):
        Channel(sys.stderr).write([text])
        where = "Please report the above."
    return report(f"This is a bug in ralph: {error!r}", where, Reason.BUG, last=last)
