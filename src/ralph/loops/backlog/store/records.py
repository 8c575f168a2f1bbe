"""The records of a backlog: `.ralph/progress.jsonl` and `.ralph/learning.jsonl` (B §Logs).

They are only ever appended to, and never rolled back. What goes wrong with them is told once and
never ends a run.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from ralph.agents.streams.dialects import parser_for
from ralph.errors import ConfigError
from ralph.files.jsonl import append, json_object, newest_first
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import ensure_ralph_dir, lstat
from ralph.journal.run_id import timestamp
from ralph.kernel.events import AgentEvent, ToolStart
from ralph.loops.backlog.actions import KINDS, action_of
from ralph.loops.backlog.learning import Lesson, efforts_of, lessons_of
from ralph.text.plain import first_line, plain

if TYPE_CHECKING:
    from ralph.journal.forecast import Effort

PROGRESS = "progress.jsonl"
LEARNING = "learning.jsonl"
_FAR = 64 * 1024 * 1024  # bytes from the end in which a task's progress is looked for
_NEAR = 1024 * 1024  # and in which a line that a killed run wrote is looked for
_LONGEST_REASON = 2000
_MOST_FILES = 500
_MOST_FINDINGS = 20
_BLOCK = 128 * 1024
Entry = dict[str, Any]


class Records:
    """Writes and reads the records of a workspace, for one run.

    Each entry has a `key`; one with a key that this run has written is not written again, so that
    a step of settling can be taken twice.
    """

    def __init__(
        self,
        workspace: str,
        run: str,
        tell: Callable[[str], None] = lambda _: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._workspace, self._run, self._tell, self._now = workspace, run, tell, now
        self._keys: dict[str, set[str]] = {}  # by file, those of this run
        self._learned: list[Lesson] = []
        self._newest = b""  # the line of the file that was read last
        self._about: tuple[str, int, list[bytes]] = ("", 0, [])  # a task's progress, as far as read
        self._lost: set[str] = set()  # files that could not be written, and this was told

    def iteration(self, entry: Mapping[str, Any]) -> None:
        """An iteration was judged. Long lists and texts are cut short."""
        self._write(PROGRESS, "iteration", _shortened(entry))

    def status(self, entry: Mapping[str, Any], old: str, new: str, reason: str = "") -> None:
        """The status of the entry's task changed."""
        told = {"from": old, "to": new, "status": new, "reason": plain(reason, _LONGEST_REASON)}
        self._write(PROGRESS, "status", {**entry, **told, "cost": None})

    def anomaly(self, entry: Mapping[str, Any], kind: str, detail: str) -> None:
        """Something happened in the entry's iteration that a person should look at."""
        detail = plain(detail, _LONGEST_REASON)
        told = {"kind": kind, "detail": detail, "status": None, "reason": detail, "cost": None}
        self._write(PROGRESS, "anomaly", {**entry, **told})

    def lesson(self, entry: Mapping[str, Any]) -> None:
        """A task ended; what it took against its `estimate` is the `ratio`."""
        ratios = [lesson.ratio for lesson in lessons_of([entry]) if lesson.ratio is not None]
        ratio = round(ratios[0], 3) if ratios else None
        made = {"ratio": ratio, "iteration": entry.get("iterations"), **_shortened(entry)}
        self._write(LEARNING, "task", made)

    def progress_of(self, task_id: str, most: int = 20) -> list[Entry]:
        """The last entries about a task, the newest last."""
        path = self._path(PROGRESS)
        found = lstat(path)
        size = found.st_size if found else 0
        task, end, lines = self._about
        if task != task_id or size < end:
            end, lines = 0, []
        # A task is asked about several times, and the file may be long.
        new = newest_first(path, _FAR, task_id, end)
        lines = list(dict.fromkeys((*new, *lines)))
        self._about = task_id, size, lines
        about = (e for e in map(json_object, lines) if e and e.get("taskId") == task_id)
        return list(islice(about, most))[::-1]

    def lessons(self, most: int = 2000) -> tuple[Lesson, ...]:
        """The last lessons about all tasks, the newest last; each line is read once in a run."""
        known, new, newest = list[Lesson](), list[Lesson](), b""
        for line in newest_first(self._path(LEARNING), _FAR):
            newest = newest or line
            if line == self._newest:
                known = self._learned
                break
            if len(new) == most:
                break
            data = json_object(line)
            new += lessons_of([data] if data else [])
        self._newest, self._learned = newest, [*known, *reversed(new)]
        return tuple(self._learned[-most:])

    def efforts(self) -> "tuple[Effort, ...]":
        """What the newest tasks took."""
        return efforts_at(self._path(LEARNING))

    def _objects(self, name: str, far: int, word: str) -> Iterator[Entry]:
        found = map(json_object, newest_first(self._path(name), far, word))
        return (entry for entry in found if entry)

    def _path(self, name: str) -> str:
        return os.path.join(self._workspace, ".ralph", name)

    def _write(self, name: str, kind: str, entry: Mapping[str, Any]) -> None:
        stamp = timestamp(entry.get("time", self._now()))
        record = {"type": kind, "run": self._run, "key": entry["key"], **entry, "time": stamp}
        if name not in self._keys:  # those of before a kill stand near the end of the file
            found = self._objects(name, _NEAR, self._run)
            keys = (old.get("key") for old in found if old.get("run") == self._run)
            self._keys[name] = {key for key in keys if isinstance(key, str)}
        if record["key"] in self._keys[name]:
            return
        try:
            ensure_ralph_dir(self._workspace)
            append(self._path(name), record)
            self._keys[name].add(record["key"])
        except (OSError, ConfigError) as error:
            if name not in self._lost:
                self._lost.add(name)
                why = error.strerror if isinstance(error, OSError) else error.message
                self._tell(f".ralph/{name} cannot be written: {why or error}. The run goes on.")


def _shortened(entry: Mapping[str, Any]) -> Entry:
    """A line stays a line: an iteration may change a hundred thousand files."""
    short = dict(entry)
    if isinstance(reason := entry.get("reason"), str):
        short["reason"] = plain(reason, _LONGEST_REASON)
    if isinstance(delta := entry.get("filesystemDelta"), list | tuple):
        short["filesystemDelta"] = list(delta[:_MOST_FILES])
        short |= {"moreFiles": len(delta) - _MOST_FILES} if len(delta) > _MOST_FILES else {}
    if isinstance(findings := entry.get("findings"), list | tuple):
        short["findings"] = [
            {"gate": found.get("gate"), "text": plain(first_line(str(found.get("text", ""))))}
            for found in findings[:_MOST_FINDINGS]
        ]
    return short


def efforts_at(path: str) -> "tuple[Effort, ...]":
    """What the newest tasks took, by a `learning.jsonl`."""
    objects = map(json_object, newest_first(path, _NEAR))
    return efforts_of(data for data in objects if data)


def actions_in(stream: str, dialect: str) -> dict[str, int]:
    """The number of actions of each kind in a saved stream; 0 if it cannot be read."""
    counts: Counter[str | None] = Counter()
    parser = parser_for(dialect)

    def count(events: Iterable[AgentEvent]) -> None:
        counts.update(action_of(event) for event in events if isinstance(event, ToolStart))

    with suppress(OSError), open_regular(stream) as file:
        for block in iter(lambda: file.read(_BLOCK), b""):
            count(parser.feed(block))
        count(parser.end())
    return {kind: counts[kind] for kind in KINDS}
