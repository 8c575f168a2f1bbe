"""Which lines of the task file were written by `ralph tasks`: the host of a run undoes what an
agent writes there by itself, and must not undo what a person asked for."""

import hashlib
import json
import os

from ralph.files.append import append_line
from ralph.files.safe_open import open_regular, regular
from ralph.files.state_dir import ensure_state_root, unwritable_state, write_atomically

FILE = "edits.jsonl"
_OPEN = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def note(project: str, task_id: str, line: bytes) -> None:
    """Remember a line, given without its end, in the project's state directory."""
    entry = {"id": task_id, "sha256": hashlib.sha256(line).hexdigest()}
    ensure_state_root(os.path.dirname(project))
    try:
        os.makedirs(project, mode=0o700, exist_ok=True)
        ignore = os.path.join(project, ".gitignore")  # the state directory may lie in a workspace
        if not os.path.exists(ignore):
            write_atomically(ignore, "*\n")
        path = os.path.join(project, FILE)
        file = regular(os.open(path, _OPEN, 0o600), path)
        try:
            append_line(file, json.dumps(entry).encode() + b"\n", alone=False)
        finally:
            os.close(file)
    except OSError as error:
        raise unwritable_state(project, error) from error


def moment(project: str) -> int:
    """A mark for `known`: what is remembered from now on."""
    try:
        return os.stat(os.path.join(project, FILE)).st_size
    except OSError:
        return 0


def known(project: str, since: int = 0) -> set[tuple[str, str]]:
    """The id and the hash of each line that was remembered since then; what cannot be read is
    not."""
    try:
        with open_regular(os.path.join(project, FILE)) as file:
            file.seek(since)
            return {entry for line in file if (entry := _entry(line)) is not None}
    except OSError:
        return set()


def _entry(line: bytes) -> tuple[str, str] | None:
    try:
        data = json.loads(line)
        return str(data["id"]), str(data["sha256"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
