"""What a run tells the list or the issue that a task came from (ADR 32)."""

import os
from collections.abc import Callable
from typing import Any

from ralph.files.state_dir import is_inside
from ralph.kernel.value import value
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.loops.backlog.tracker.sync import How, Synced, Trackers, evidence_words, told


@value
class Telling:
    """Tells them for the tasks of a backlog."""

    file: TaskFile
    trackers: Callable[[str], Trackers]  # of the lists in a work tree
    tell: Callable[[str], None]

    def tick_off(self, task: str, workspace: str, *, done: bool = True) -> None:
        """A list in the work tree that the task came from says so in the task's own commit."""
        if self.list_in(workspace, task):
            synced = self._mark(workspace, task, done=done, anew=True)
            if synced.how is How.MARKED:
                self.tell(synced.words)

    def list_in(self, workspace: str, task: str) -> str:
        """Where in a work tree the list is that the task came from; "" if it is not there."""
        source = (self.file.record(task) or {}).get("source")
        path = source.get("path") if isinstance(source, dict) else None
        whole = os.path.join(workspace, path) if isinstance(path, str) else ""
        return whole if whole and is_inside(whole, workspace) else ""

    def sync(self, task: str) -> tuple[bool, str]:
        """Tell whoever does not know yet: whether all know, and what was said or is wrong."""
        synced = self._mark(self.file.workspace, task, done=True)
        ok = synced.how not in (How.CONFLICT, How.FAILED)
        return ok, synced.words if synced.how is How.MARKED or not ok else ""

    def _mark(self, workspace: str, task: str, *, done: bool, anew: bool = False) -> Synced:
        """`anew`: what was told before may have gone with a commit that came to nothing."""
        record = self.file.record(task) or {"id": task}
        if anew and "source" in record:
            record = {**record, **told(record, done=False)}
        evidence = evidence_words(record)
        synced = self.trackers(workspace).mark(record, done=done, evidence=evidence)
        if synced.how in (How.MARKED, How.ALREADY):
            self.file.update(task, lambda now: _told(now, done=done))
        return synced


def _told(record: dict[str, Any], *, done: bool) -> dict[str, Any] | None:
    known = told(record, done=done)
    return None if known["source"] == record.get("source") else known
