"""Registers the run of a `ralph job`, before anything slow is imported.

When the agent that started us is ended, registered runs are spared, and others have only a moment.
So this module knows no value, no enum and no JSON: each would take longer to import than all that
is done here.
"""

import os
import time
from _json import encode_basestring  # what `json` has its strings from

from ralph.files.safe_open import create
from ralph.journal.run_id import new_run_id, timestamp

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Scalar = str | int | None

FILE = "run-info.yaml"
_INTERRUPTED = 130
_NAMES_TRIED = 100  # sixteen jobs may begin in the same fraction of a second
# As `core.scalars.written` has it, which would take too long to import. JSON lets these stand as
# they are; in YAML they are line breaks, or not allowed.
_UNUSUAL = (*range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)
_ESCAPED = {code: f"\\u{code:04x}" for code in _UNUSUAL}


class Registered:
    """A run that has begun, and that ends once."""

    def __init__(self, directory: str, fields: "dict[str, Scalar]") -> None:
        self.directory = directory
        self.run_id = os.path.basename(directory)
        self.parent_run_id = str(fields["parent_run_id"])  # within which it was started, or ""
        self._fields = fields

    def end(self, status: str, exit_code: int, summary: str = "") -> None:
        """Write how it ended; the first call counts. Raises OSError."""
        if self._fields["end_time"] is None:
            now = timestamp(time.time())
            self._fields |= {"status": status, "exit_code": exit_code}
            self._fields |= {"error_summary": summary, "end_time": now}
            write_fields(self.directory, self._fields)

    def end_anyhow(self, exit_code: int, summary: str = "") -> None:
        """Write that it ended, as a last resort."""
        try:
            self.end("stopped" if exit_code == _INTERRUPTED else "failed", exit_code, summary)
        except OSError:
            pass  # our process is gone in a moment, which tells it too


def wanted(
    arguments: "Sequence[str]", environ: "Mapping[str, str]"
) -> "tuple[str, list[str]] | None":
    """The task's directory and the command of `job ARGUMENTS…`; None if click has to decide."""
    task_dir, base = environ.get("TASK_FOLDER", ""), ""
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "--":
            break
        if option == "--json":
            continue
        if option.startswith("--task-dir="):
            task_dir = option.removeprefix("--task-dir=")
        elif option == "--task-dir" and rest:
            task_dir = rest.pop(0)
        elif option == "-C" and rest:
            base = rest.pop(0)
        else:
            return None
    if not rest or not task_dir or (base and not os.path.isdir(base)):
        return None
    return os.path.join(base, task_dir), rest


def leave_group() -> None:
    """Leave the caller's process group, so that what ends it does not end us."""
    try:
        os.setsid()
    except PermissionError:
        pass  # we lead a group of our own already


def register(task_dir: str, command: "Sequence[str]", environ: "Mapping[str, str]") -> Registered:
    """Make the run's directory and write that it runs. Raises OSError."""
    now = time.time()
    directory = _new_directory(os.path.join(os.path.abspath(task_dir), "runs"), now)
    fields: dict[str, Scalar] = {
        "run_id": os.path.basename(directory),
        "parent_run_id": environ.get("RALPH_RUN", ""),
        "previous_run_id": "",
        "agent": os.path.basename(command[0]),
        "pid": os.getpid(),
        "start_time": timestamp(now),
        "end_time": None,
        "exit_code": None,
        "status": "running",
        "error_summary": "",
    }
    try:
        write_fields(directory, fields)
    except OSError:
        os.rmdir(directory)
        raise
    return Registered(directory, fields)


def _new_directory(runs: str, now: float) -> str:
    if not os.path.isdir(runs):
        try:
            os.mkdir(runs)
        except FileExistsError:
            pass  # another job was quicker
    for _ in range(_NAMES_TRIED):
        directory = os.path.join(runs, new_run_id(now))
        try:
            os.mkdir(directory)
        except FileExistsError:
            now += 1 / 4096  # the next name
            continue
        return directory
    raise FileExistsError(17, os.strerror(17), runs)


def write_fields(directory: str, fields: "Mapping[str, Scalar]") -> None:
    """Replace a directory's run-info: YAML whose scalars are JSON. Readers see all or nothing."""
    path = os.path.join(directory, FILE)
    temporary = f"{path}.{os.getpid()}.tmp"
    text = "".join(f"{name}: {_scalar(value)}\n" for name, value in fields.items())
    data = text.encode("utf-8", "backslashreplace")  # half a character becomes its own escape
    try:
        descriptor = create(temporary)
        try:
            while data:
                data = data[os.write(descriptor, data) :]
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except OSError:
        if os.path.lexists(temporary) and not os.path.isdir(temporary):
            os.unlink(temporary)
        raise


def _scalar(value: "Scalar") -> str:
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(value)
    return encode_basestring(value).translate(_ESCAPED)
