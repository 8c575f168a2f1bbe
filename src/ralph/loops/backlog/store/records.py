"""The records of a backlog: `.ralph/progress.jsonl` and `.ralph/learning.jsonl` (B §Logs).

They are only ever appended to, and never rolled back. What goes wrong with them is told once and
never ends a run.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from ralph.agents.streams.dialects import parser_for
from ralph.agents.streams.framing import Framer
from ralph.errors import ConfigError
from ralph.files.jsonl import append, newest_first
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import ensure_ralph_dir
from ralph.journal.run_id import timestamp
from ralph.kernel.events import AgentEvent, ToolStart
from ralph.loops.backlog.actions import KINDS, action_of
from ralph.loops.backlog.learning import lessons_of
from ralph.text.plain import plain

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
    a step of settling can be taken twice. Who takes the same iteration of a task twice in a run
    gives a key of their own.
    """

    def __init__(
        self,
        workspace: str,
        run: str,
        tell: Callable[[str], None] = lambda _: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._workspace = workspace
        self._run = run
        self._tell = tell
        self._now = now
        self._keys: dict[str, set[str]] = {}  # by file, those of this run
        self._lost: set[str] = set()  # files that could not be written, and this was told

    def iteration(self, entry: Mapping[str, Any]) -> None:
        """An iteration was judged. Long lists and texts are cut short."""
        status = entry.get("status")
        again = f"/{entry.get('time')}" if status == "waiting" else ""  # it may wait many times
        self._write(PROGRESS, "iteration", _shortened(entry), f"iteration/{status}{again}")

    def status(
        self,
        task_id: str,
        iteration: int,
        old: str,
        new: str,
        reason: str = "",
        **more: object,
    ) -> None:
        """A task's status changed."""
        entry = {"taskId": task_id, "iteration": iteration, "from": old, "to": new}
        entry |= {"status": new, "reason": plain(reason, _LONGEST_REASON), "cost": None, **more}
        self._write(PROGRESS, "status", entry, f"status/{old}/{new}")

    def anomaly(self, task_id: str, iteration: int, kind: str, detail: str, **more: object) -> None:
        """Something happened that a person should look at."""
        detail = plain(detail, _LONGEST_REASON)
        entry = {"taskId": task_id, "iteration": iteration, "kind": kind, "detail": detail}
        entry |= {"status": None, "reason": detail, "cost": None, **more}
        self._write(PROGRESS, "anomaly", entry, f"anomaly/{kind}/{detail}")

    def lesson(self, entry: Mapping[str, Any]) -> None:
        """A task ended; what it took against its `estimate` is the `ratio`."""
        status = entry.get("status")
        ratios = [lesson.ratio for lesson in lessons_of([entry]) if lesson.ratio is not None]
        ratio = round(ratios[0], 3) if ratios else None
        made = {"ratio": ratio, "iteration": entry.get("iterations"), **_shortened(entry)}
        self._write(LEARNING, "task", made, f"task/{status}")

    def progress_of(self, task_id: str, most: int = 20) -> list[Entry]:
        """The last entries about a task, the newest last."""
        found = newest_first(self._path(PROGRESS), _FAR, task_id)
        return _last((entry for entry in found if entry.get("taskId") == task_id), most)

    def lessons(self, most: int = 2000) -> list[Entry]:
        """The last lessons about all tasks, the newest last."""
        return _last(newest_first(self._path(LEARNING), _FAR), most)

    def _path(self, name: str) -> str:
        return os.path.join(self._workspace, ".ralph", name)

    def _write(self, name: str, kind: str, entry: Mapping[str, Any], what: str) -> None:
        moment = entry.get("time", self._now())
        stamp = timestamp(moment) if isinstance(moment, int | float) else moment
        key = f"{self._run}/{entry.get('taskId')}/{entry.get('iteration')}/{what}"
        record = {"type": kind, "run": self._run, "key": key, **entry, "time": stamp}
        known = self._known(name)
        if record["key"] in known:
            return
        try:
            ensure_ralph_dir(self._workspace)
            append(self._path(name), record)
        except (OSError, ConfigError) as error:
            self._say_once(name, error)
        else:
            known.add(record["key"])

    def _known(self, name: str) -> set[str]:
        """The keys of this run; those of before a kill stand near the end of the file."""
        if name not in self._keys:
            found = newest_first(self._path(name), _NEAR, self._run)
            keys = (entry.get("key") for entry in found if entry.get("run") == self._run)
            self._keys[name] = {key for key in keys if isinstance(key, str)}
        return self._keys[name]

    def _say_once(self, name: str, error: OSError | ConfigError) -> None:
        if name not in self._lost:
            self._lost.add(name)
            why = error.strerror if isinstance(error, OSError) else error.message
            self._tell(f".ralph/{name} cannot be written: {why or error}. The run goes on.")


def _last(newest_first: Iterable[Entry], most: int) -> list[Entry]:
    return list(islice(newest_first, most))[::-1]


def _shortened(entry: Mapping[str, Any]) -> Entry:
    """A line stays a line: an iteration may change a hundred thousand files."""
    short = dict(entry)
    if isinstance(reason := entry.get("reason"), str):
        short["reason"] = plain(reason, _LONGEST_REASON)
    if isinstance(delta := entry.get("filesystemDelta"), list | tuple):
        short["filesystemDelta"] = list(delta[:_MOST_FILES])
        short |= {"moreFiles": len(delta) - _MOST_FILES} if len(delta) > _MOST_FILES else {}
    if isinstance(findings := entry.get("findings"), list | tuple):
        short["findings"] = [_finding(finding) for finding in findings[:_MOST_FINDINGS]]
    return short


def _finding(finding: Mapping[str, Any]) -> Entry:
    first = str(finding.get("text", "")).strip().partition("\n")[0]
    return {"gate": finding.get("gate"), "text": plain(first)}


def actions_in(stream: str, dialect: str) -> dict[str, int]:
    """How many actions of each kind a saved stream tells of; none if it cannot be read."""
    counts: Counter[str] = Counter()
    try:
        with open_regular(stream) as file:
            for events in _understood(iter(lambda: file.read(_BLOCK), b""), dialect):
                counts.update(_actions(events))
    except OSError:
        pass
    return {kind: counts[kind] for kind in KINDS}


def _actions(events: Iterable[AgentEvent]) -> list[str]:
    calls = (action_of(event) for event in events if isinstance(event, ToolStart))
    return [kind for kind in calls if kind is not None]


def _understood(blocks: Iterable[bytes], dialect: str) -> Iterable[list[AgentEvent]]:
    parser, framer = parser_for(dialect), Framer()
    for block in blocks:
        if whole := framer.feed(block):
            yield parser.feed(whole)
    if rest := framer.rest():
        yield parser.feed(rest)
    yield parser.end()
