"""A large backlog: which task is next, in a command of its own and in process, and one edit."""

import json
import os
import time

from bench.place import BenchError
from bench.processes import Weight, weigh

_LINE = 300  # bytes, with its end
_EDITED = "T-1"


class Many:
    """So many tasks in a workspace: half of them done, others waiting for one another."""

    def __init__(self, workspace: str, environ: dict[str, str], tasks: int) -> None:
        self._workspace = workspace
        self._environ = environ
        self._path = os.path.join(workspace, ".ralph", "tasks.jsonl")
        self._edits = 0
        os.makedirs(os.path.dirname(self._path))
        with open(self._path, "wb") as file:
            file.writelines(map(_line, range(tasks)))

    def command(self, argv: tuple[str, ...]) -> float:
        """Milliseconds of a command that runs there."""
        return self._done(argv).milliseconds

    def pick(self) -> float:
        """Milliseconds in which a new process's Ralph, once imported, reads the file and picks."""
        from ralph.kernel.case import Case
        from ralph.kernel.state import NEW
        from ralph.kernel.tasks.select import next_task
        from ralph.kernel.verdict import Boundary
        from ralph.loops.backlog.store.selection import TaskBacklog
        from ralph.loops.backlog.store.task_file import TaskFile

        began = time.perf_counter()
        backlog = TaskBacklog(TaskFile(self._workspace))()
        found = next_task(Case(Boundary.OPENING, NEW, time.time(), backlog=backlog))
        took = 1000 * (time.perf_counter() - began)
        if found is None:
            raise BenchError("a backlog with open tasks, and none was picked")
        return took

    def edit(self, argv: tuple[str, ...]) -> tuple[float, int]:
        """Milliseconds of an edit, and the bytes that the file grew by."""
        self._edits += 1
        before = os.stat(self._path)
        took = self._done((*argv, _EDITED, "--priority", str(self._edits))).milliseconds
        after = os.stat(self._path)
        if after.st_ino != before.st_ino or after.st_size <= before.st_size:
            raise BenchError("an edit has rewritten the whole file, or written nothing")
        return took, after.st_size - before.st_size

    def _done(self, argv: tuple[str, ...]) -> Weight:
        weight = weigh(argv, self._environ)
        if weight.code:
            raise BenchError(f"{' '.join(argv)} exited with code {weight.code}")
        return weight


def _line(number: int) -> bytes:
    fields = {
        "id": f"T-{number}",
        "title": f"Build part {number}",
        "status": "done" if number % 2 else "pending",
        "priority": number * 7919 % 10,
        "createdAt": f"2026-01-01T00:00:00.{number:06}Z",
        "blockedBy": [f"T-{number - 2}"] if number % 10 == 4 else [],
        "description": "",
    }
    room = _LINE - 1 - len(json.dumps(fields))
    return json.dumps({**fields, "description": ("All of it. " * _LINE)[:room]}).encode() + b"\n"
