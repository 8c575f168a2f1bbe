"""The lines of `tasks.jsonl`: one full task each; the last line for an id counts (ADR 21).

A line that cannot be used is a `Problem` with its number; it takes nothing from the others.
"""

import gc
import json
import re
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec

from ralph.errors import ConfigError
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.tasks import completion
from ralph.kernel.tasks.task import Status, Task
from ralph.kernel.value import value
from ralph.loops.backlog.learning import size_of
from ralph.text.timestamps import iso

LARGEST_LINE = 4 << 20  # bytes
_LONGEST_ID = 200
_BOM = b"\xef\xbb\xbf"
_NO_LIMITS = Limits()
_BEGUN = (Status.IN_PROGRESS, Status.PENDING)  # some run has left it in the middle, perhaps
_UNUSED = Spent()
_WANTED = {  # where it is not a text
    "priority": "a whole number",
    **dict.fromkeys(("blockedBy", "tags", "answers"), "a list of texts"),
    **dict.fromkeys(("limits", "completion", "spent"), "an object"),
    "notes": "a text or a list",
}


@value
class Problem:
    """The error in a line, counted from 1, in words for people."""

    line: int
    why: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.why}"


class TaskLine(msgspec.Struct, rename="camel", gc=False):
    """The fields of a line that are used; everything else stays in the line."""

    id: str
    title: str | None = None
    description: str | None = None
    type: str | None = None
    status: Status = Status.PENDING
    priority: int | None = None
    created_at: str | None = None
    updated_at: str | None = None
    completed_at: str | None = None
    parent: str | None = None
    blocked_by: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    limits: dict[str, Any] | None = None
    completion: dict[str, Any] | None = None
    question: str | None = None
    answers: tuple[str, ...] | None = None
    reason: str | None = None
    saved: str | None = None
    external_id: str | None = None
    external_url: str | None = None
    notes: str | list[Any] | None = None  # a list of what people wrote, in other tools
    spent: dict[str, Any] | None = None
    estimate: Any = None


# Where a task's line stands: its number, its first byte and the one behind its last, its createdAt.
Place = tuple[int, int, int, str | None]


_decode = msgspec.json.Decoder(TaskLine).decode


class Lines:
    """The lines of a task file, as far as it was fed."""

    def __init__(self) -> None:
        self.data = b""
        self.tasks: dict[str, Task] = {}  # in the order in which they first appeared
        self.places: dict[str, Place] = {}
        self.broken: dict[str, Problem] = {}  # lines with an id that cannot be used, by that id
        self.problems: list[Problem] = []
        self.superseded: dict[int, str] = {}  # lines that an update of ours took the place of
        self._clashing: dict[str, set[int]] = {}  # ids used by two, and the lines that do
        self._count = 0

    def feed(self, data: bytes) -> None:
        """Take in all of a file that begins with what was fed before, up to a line's end."""
        begin = len(self.data)
        if begin == len(data):
            return
        self.data = data
        tasks, places = self.tasks, self.places  # this loop is what a large backlog waits for
        # Hundreds of thousands of new values, and no garbage: looking for it takes twice as long.
        was = gc.isenabled()
        gc.disable()
        try:
            for raw in (data[begin:] if begin else data).removesuffix(b"\n").split(b"\n"):
                self._count += 1
                end = begin + len(raw)
                try:
                    line, task = read_line(raw)
                except ValueError as error:
                    self._refuse(raw, Problem(self._count, str(error)))
                else:
                    if task.id in places:
                        self._follow(places[task.id], line, self._count)
                    tasks[task.id] = task
                    places[task.id] = (self._count, begin, end, line.created_at)
                begin = end + 1
        finally:
            if was:
                gc.enable()

    def goes_on_in(self, data: bytes) -> bool:
        """True if the data begins with what was fed, and more lines follow."""
        return self.data[-1:] in (b"", b"\n") and data.startswith(self.data)

    def raw(self, task_id: str) -> bytes:
        """The line of a task that is there."""
        _, begin, end, _ = self.places[task_id]
        return self.data[begin:end]

    def rows(self) -> dict[str, bytes]:
        """The line of each task, in their order."""
        data, places = self.data, self.places
        return {task_id: data[places[task_id][1] : places[task_id][2]] for task_id in self.tasks}

    def compacted(self) -> "Lines":
        """The lines without superseded ones. Each task keeps the place where it first appeared:
        among tasks without a date that is their order."""
        new = Lines()
        if self.problems:
            new.feed(self._without_superseded())
            return new
        # Every line is one of a task, and what they say is known: none is parsed again.
        rows, end = [*self.rows().values()], -1
        new.data, new.tasks, new._count = b"\n".join((*rows, b"")), dict(self.tasks), len(rows)
        for number, (task_id, row) in enumerate(zip(self.tasks, rows, strict=True), 1):
            begin, end = end + 1, end + 1 + len(row)
            new.places[task_id] = (number, begin, end, self.places[task_id][3])
        return new

    def _without_superseded(self) -> bytes:
        lines = self.data.split(b"\n")
        gone, moved = set(self.superseded), set[str]()
        for first, task_id in self.superseded.items():
            if task_id in moved:
                continue
            moved.add(task_id)
            clashing = self._clashing.get(task_id)
            if clashing is None:
                last = self.places[task_id][0]
                lines[first - 1] = lines[last - 1]
                gone ^= {first, last}
            elif first < min(clashing):  # these stay where they are, and so does it
                gone.remove(first)
        kept = (raw for number, raw in enumerate(lines, 1) if number not in gone)
        return b"".join(raw + b"\n" for raw in kept if raw.strip())

    def _follow(self, old: Place, line: TaskLine, number: int) -> None:
        """The id is there already: by an update of ours, or by someone else's oversight."""
        before, _, _, created = old
        if line.updated_at is None or line.created_at != created:
            why = f"the id {line.id} was used in line {before} already; this one counts"
            self.problems.append(Problem(number, why))
            self._clashing.setdefault(line.id, set()).update((before, number))
        elif before not in self._clashing.get(line.id, ()):
            self.superseded[before] = line.id

    def _refuse(self, raw: bytes, problem: Problem) -> None:
        if not raw.strip():
            return
        self.problems.append(problem)
        if len(raw) <= LARGEST_LINE:
            with suppress(ValueError, RecursionError):
                data = json.loads(raw.removeprefix(_BOM))
                if isinstance(data, dict) and isinstance(data.get("id"), str):
                    self.broken[data["id"]] = problem


def read_line(raw: bytes) -> tuple[TaskLine, Task]:
    """A line, and the task that it says; ValueError with the reason why it says none."""
    if len(raw) > LARGEST_LINE:
        raise ValueError(f"longer than {LARGEST_LINE >> 20} MB")
    try:
        if not raw.isascii():
            raw = raw.removeprefix(_BOM)
            raw.decode()
        line = _decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(_why(raw, error)) from None
    if not usable(line.id):
        rule = f"1 to {_LONGEST_ID} characters, none of them / or a control character"
        raise ValueError(f"the id {line.id[:40]!r} cannot be used: {rule}, no - in front")
    return line, _task(line)


def _task(line: TaskLine) -> Task:
    own, rule, notes = line.limits, line.completion, line.notes
    check = script = ""
    if rule is not None:
        parsed = completion.parse(rule, line.id)
        check, script = completion.words(parsed, line.id), parsed.script
    return Task(
        line.id,
        line.title or "",
        line.description or "",
        line.status,
        line.priority or 0,
        _moment(line.created_at),
        line.blocked_by or (),
        _NO_LIMITS if own is None else completion.parse_limits(own),
        check,
        script,
        kind=line.type or "",
        tags=line.tags or (),
        question=line.question or "",
        answers=line.answers or (),
        reason=line.reason or "",
        used=_used(line.spent) if line.spent and line.status in _BEGUN else _UNUSED,
        notes="\n".join(map(str, notes)) if isinstance(notes, list) else notes or "",
        saved=line.saved or "",
        size=0.0 if line.estimate is None else size_of(line.estimate),
    )


def _used(spent: dict[str, Any]) -> Spent:
    """The sum of what earlier runs have used that left the task in the middle."""
    runs = [used for used in spent.values() if isinstance(used, dict)]
    iterations, seconds, cost = (
        sum(n for used in runs if isinstance(n := used.get(name), int | float) and n > 0)
        for name in ("iterations", "seconds", "cost")
    )
    return Spent(int(iterations), float(seconds), float(cost))


def _moment(text: str | None) -> str:
    """A time that sorts as text; others' zones and precisions are brought to ours."""
    if not text:
        return ""
    if text[-1] == "Z" and text[10:11] == "T":  # nearly always; the rest takes long for so many
        if len(text) == 24:
            return text
        if len(text) == 27:
            return f"{text[:23]}Z"
    try:
        return iso(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise ValueError(f"createdAt is no ISO time: {text[:40]!r}") from None


def usable(task_id: str) -> bool:
    """True if people, file names and command lines can cope with this id."""
    return (
        0 < len(task_id) <= _LONGEST_ID
        and task_id.isprintable()
        and not task_id.isspace()
        and task_id[0] != "-"
        and "/" not in task_id
    )


def decoded(raw: bytes) -> dict[str, Any]:
    """All that a line says."""
    try:
        data = json.loads(raw.removeprefix(_BOM).decode())
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"a line of tasks.jsonl cannot be read: {error}") from None
    assert isinstance(data, dict), "a line without an object is a problem, and no task"
    return data


def encoded(record: dict[str, Any]) -> bytes:
    """A task as a line without its end; always the same for the same task."""
    try:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise ConfigError(f"{record.get('id')} cannot be written as JSON: {error}") from None


def _why(raw: bytes, error: Exception) -> str:
    """The reason in words; msgspec's own where nothing better is known."""
    if isinstance(error, RecursionError):
        return "not JSON that anybody reads: it is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 text (byte {error.start + 1})"
    try:
        data = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as bad:
        return f"not JSON: {bad}"
    if not isinstance(data, dict):
        return "not an object: a line is one task, in braces"
    if not isinstance(data.get("id"), str):
        return "there is no id" if data.get("id") is None else "the id is not a text"
    found = re.search(r" - at `\$\.(\w+)", str(error))
    if found is None:
        return str(error)
    name, shown = found[1], f"{data[found[1]]!r:.60}"
    if name == "status":
        return f"the status must be one of {', '.join(Status)}, not {shown}"
    shown_name = "the priority" if name == "priority" else name
    return f"{shown_name} must be {_WANTED.get(name, 'a text')}, not {shown}"
