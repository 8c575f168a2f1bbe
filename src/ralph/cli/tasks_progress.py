"""The last lines that `.ralph/progress.jsonl` has of a task."""

import json
import os
from typing import Any

from ralph.adapters.safe_open import open_regular

_TAIL = 4 << 20  # bytes at the end that are looked at: the file grows for ever
_MOST = 10


def progress_of(workspace: str, task_id: str) -> list[dict[str, Any]]:
    """What is known of its last iterations, the newest last; nothing where nothing can be read."""
    try:
        with open_regular(os.path.join(workspace, ".ralph", "progress.jsonl")) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            lines = file.read(_TAIL).split(b"\n")
    except OSError:
        return []
    name = task_id.encode()
    found: list[dict[str, Any]] = []
    for line in reversed(lines):
        entry = _entry(line) if name in line or b"\\u" in line else {}
        if entry.get("taskId") == task_id:
            found.append(entry)
            if len(found) == _MOST:
                break
    return found[::-1]


def _entry(line: bytes) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
