"""What a turn may do to the task list: add tasks, yes; change its own line, or call others done,
no. People change what they like with `ralph tasks edit`, which leaves a note."""

import hashlib
import os

from ralph.adapters.files import write_atomically
from ralph.adapters.task_edits import known
from ralph.adapters.task_file import TaskFile
from ralph.adapters.task_lines import decoded
from ralph.core.task import Status
from ralph.core.words import listed

_OWN = "task.json"  # in the run's directory
_FINAL = (Status.DONE, Status.CANCELLED)


class TaskWatch:
    """Knows the task list as it was before the turn."""

    def __init__(self, file: TaskFile, run_dir: str, project: str) -> None:
        self._file = file
        self._own = os.path.join(run_dir, _OWN)
        self._project = project
        self._before: dict[str, bytes] = {}  # every task's line

    def remember(self, task: str) -> None:
        """The list is right as it is now. The task's own line outlives a crash."""
        self._before = self._file.lines()
        line = self._before.get(task, b"")
        write_atomically(self._own, line.decode("utf-8"), mode=0o600)

    def undo(self, task: str) -> str:
        """Put back what was not for the turn to change; what that was, in words."""
        noted, now = known(self._project), self._file.lines()
        undone = []
        for name, line in {**self._before, task: self._own_line(task)}.items():
            found = now.get(name)
            if not line or found == line or (found and (name, _sha256(found)) in noted):
                continue
            words = _own_words(line, found) if name == task else _words(line, found)
            if words:
                self._file.put(decoded(line))
                undone.append(f"{name} {words}")
        return f"edited by the turn, and put back: {listed(undone, 5)}" if undone else ""

    def _own_line(self, task: str) -> bytes:
        if task in self._before:
            return self._before[task]
        try:
            with open(self._own, "rb") as file:
                return file.read()
        except OSError:
            return b""


def _own_words(before: bytes, now: bytes | None) -> str:
    """A turn's own task: nothing of it is for the turn to say."""
    if now is None:
        return "was taken out"
    old, new = decoded(before), decoded(now)
    changed = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    return f"was changed ({', '.join(changed)})" if changed else ""


def _words(before: bytes, now: bytes | None) -> str:
    """Another task: it may be edited, but not taken out nor called done."""
    if now is None:
        return "was taken out"
    status = decoded(now).get("status")
    if status in _FINAL and decoded(before).get("status") not in _FINAL:
        return f"was called {status}"
    return ""


def _sha256(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()
