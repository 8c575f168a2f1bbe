"""`.ralph/tasks.jsonl`: the backlog in the workspace, which people and git keep (ADR 21).

Many processes may write it at the same time. An update appends a line; nothing is ever rewritten
but by `compact`, which takes the place of the file at once.
"""

import errno
import fcntl
import os
import re
import stat
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from io import BufferedReader
from typing import Any

from ralph.errors import ConfigError
from ralph.files.append import append_line, is_at, lock
from ralph.files.safe_open import create, open_regular, refuse_irregular, regular
from ralph.files.state_dir import ensure_ralph_dir
from ralph.kernel.tasks.task import ENDED, Backlog, Status, Task, cycle
from ralph.kernel.value import value
from ralph.loops.backlog.store.lines import Lines, Problem, decoded, encoded, read_line
from ralph.text.timestamps import iso

NAME = ".ralph/tasks.jsonl"
_LARGEST = 1 << 30  # bytes
_SUPERSEDED = 100  # one line of so many: to write a list anew takes longer, the longer it is
_OPEN = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PATIENCE = 30.0  # seconds for others to finish writing
_MOMENT = 1.0  # seconds for a line that may be written just now
_TICK = 0.05  # seconds within which two changes may leave a file with the same time
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})", re.DOTALL)
_FIRST = ("T-", "001")
_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])")
_CLOSE_ENOUGH = 0.4  # ids are short
_MOST_COMPARED = 5000  # to compare more takes longer than a person waits for an error
Change = Callable[[dict[str, Any]], Mapping[str, Any] | None]
# All tasks and the ids that are taken, to those that are new or another.
ChangeAll = Callable[[list[dict[str, Any]], frozenset[str]], Sequence[Mapping[str, Any]]]
Noted = tuple[str, bytes]  # a task's id, and a line about it
Witness = Callable[[Sequence[Noted]], None]


@value
class Listing:
    """The tasks in the order in which they first appear, the lines that cannot be used, and one
    circle of tasks that wait for each other."""

    backlog: Backlog = Backlog()
    problems: tuple[Problem, ...] = ()
    cycle: tuple[str, ...] = ()


class TaskFile:
    """The task file of a workspace, kept in memory as long as nobody changes it.

    `witness` hears of lines, without their ends, before they are written. If it raises, none is.
    """

    def __init__(
        self,
        workspace: str,
        now: Callable[[], float] = time.time,
        witness: Witness = lambda _: None,
    ) -> None:
        self.workspace = workspace
        self.path = os.path.join(workspace, NAME)
        self._now = now
        self._witness = witness
        self._held: int | None = None  # the file, while the lock is ours
        self._lines = Lines()
        self._seen: tuple[int, ...] | None = None  # the file as we know it
        self._listing: Listing | None = None
        self._room = bytearray()  # to read it again, where new memory would take as long

    def read(self) -> Listing:
        """The listing; if the file cannot be read, the backlog's `problem` says why."""
        try:
            return self.load()
        except ConfigError as error:
            return Listing(Backlog(problem=error.words))

    def load(self) -> Listing:
        """The listing; ConfigError if the file cannot be read. Without one there are no tasks."""
        with _told("read"):
            try:
                self._look()
            except FileNotFoundError:
                self._lines, self._seen, self._listing = Lines(), None, None
        if self._listing is None:
            tasks = tuple(self._lines.tasks.values())
            broken = {
                name: Task(name, status=Status.BLOCKED, reason=str(problem), aside=True)
                for name, problem in self._lines.broken.items()
                if name not in self._lines.tasks
            }
            backlog = Backlog(tasks, known={**broken, **self._lines.tasks})
            self._listing = Listing(backlog, tuple(self._lines.problems), cycle(tasks))
        return self._listing

    def record(self, task_id: str) -> dict[str, Any] | None:
        """All that the file says of a task, as a copy."""
        self.load()
        return decoded(self._lines.raw(task_id)) if task_id in self._lines.places else None

    def records(self) -> list[dict[str, Any]]:
        """All that the file says of each task."""
        self.load()
        return [decoded(self._lines.raw(task_id)) for task_id in self._lines.tasks]

    def lines(self) -> dict[str, bytes]:
        """The line that counts for each task, without its end."""
        self.load()
        return self._lines.rows()

    def needed(self, task_id: str) -> dict[str, Any]:
        """The task with this id, or an error that names those like it."""
        record = self.record(task_id)
        if record is None:
            raise self.refusal(task_id)
        return record

    def refusal(self, task_id: str) -> ConfigError:
        """The error for an id that is not there."""
        self.load()
        broken = self._lines.broken.get(task_id)
        if broken is None:
            return unknown(task_id, self._lines.tasks)
        return ConfigError(f"{NAME} {broken}", "Fix that line and try again.")

    def add(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Append a new, pending task, with an id of its own where none is given."""
        with self._locked(os.O_CREAT) as file:
            self.load()
            task_id = fields.get("id") or next_id((*self._lines.tasks, *self._lines.broken))
            if task_id in self._lines.tasks or task_id in self._lines.broken:
                remedy = f"Take another, or change it: ralph tasks edit {task_id}"
                raise ConfigError(f"there is a task {task_id} already", remedy)
            first = {"id": task_id, "title": fields.get("title", ""), "status": "pending"}
            more = {name: held for name, held in fields.items() if name not in first}
            new = {**first, **more, **dict.fromkeys(("createdAt", "updatedAt"), self._stamp())}
            self._write(file, {}, new)
        return new

    def update(self, task_id: str, change: Change) -> dict[str, Any]:
        """Append a changed task, and return it. `change` gets it as it is now, under the lock, and
        returns the fields that change: a field that becomes None goes, and None instead of fields
        is no change at all."""
        if not os.path.lexists(self.path):
            raise self.refusal(task_id)
        with self._locked() as file:
            old = self.needed(task_id)
            changes = change(dict(old))
            if changes is None:
                return old
            # Its id and its beginning stay: by them an update is known.
            new = {**old, **changes, "updatedAt": self._stamp()}
            new |= {name: old[name] for name in ("id", "createdAt") if name in old}
            gone = [n for n, v in new.items() if v is None and old.get(n, "") is not None]
            new = {name: new[name] for name in new if name not in gone}
            self._write(file, old, new)
        return new

    def reopen(self, tasks: Iterable[str]) -> None:
        """Reopen blocked tasks that nothing is wrong with: they are for the next run."""

        def change(record: dict[str, Any]) -> dict[str, Any] | None:
            blocked = record.get("status") == Status.BLOCKED
            return {"status": Status.PENDING.value, "reason": None} if blocked else None

        for task in tasks:
            self.update(task, change)

    def put_aside(self, task: str, why: str) -> None:
        """Leave a task that cannot begin to a person."""
        self.update(task, lambda _: {"status": Status.BLOCKED.value, "reason": why})

    def put(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Append a task as it shall be, whatever the file says of it now or does not say."""
        with self._locked(os.O_CREAT) as file:
            old = self.record(record["id"]) or {}
            new = {**record, "updatedAt": self._stamp()}
            self._write(file, old, new, judge=False)
        return new

    def change_all(self, change: ChangeAll, *, write: bool = True) -> None:
        """Write all tasks that `change` returns at once, or none. It gets the tasks and the taken
        ids, under the lock. Without `write` it is only checked."""
        if not write:
            self._judged(change(self.records(), self._taken()))
            return
        with self._locked(os.O_CREAT) as file:
            lines = self._judged(change(self.records(), self._taken()))
            if lines:
                self._witness(lines)
                self._replace(file, self._lines.data, [line for _, line in lines])

    def data(self) -> bytes:
        """All that the file holds now."""
        self.load()
        return self._lines.data

    @contextmanager
    def held(self) -> Iterator[None]:
        """The list, which nobody else changes meanwhile: what is written follows from what is
        read. `put_back` comes last in it."""
        with self._locked() if os.path.lexists(self.path) else nullcontext():
            yield

    def put_back(self, data: bytes, theirs: Sequence[bytes] = ()) -> None:
        """Let the file hold this, and after it lines that somebody may add to it."""
        with self._locked(os.O_CREAT) as file:
            self.load()
            self._replace(file, data, theirs)

    def _taken(self) -> frozenset[str]:
        return frozenset((*self._lines.tasks, *self._lines.broken))

    def compact(self) -> None:
        """Remove superseded lines, in a long list once they are several. Broken lines and ids that
        were used twice stay as they are."""
        if not os.path.lexists(self.path):
            return
        with self._locked() as file:
            self.load()
            old, all_tasks = len(self._lines.superseded), len(self._lines.tasks)
            if old and old * _SUPERSEDED >= all_tasks:
                compacted = self._lines.compacted()
                self._replace(file, compacted.data)
                self._lines, self._seen, self._listing = compacted, None, None

    def _look(self) -> None:
        """Read what has changed, if anything has."""
        found = os.lstat(self.path)
        _refuse_odd(found, self.path)
        if self._seen == _identity(found):
            return
        with open_regular(self.path) as file:
            data = self._same(file) or file.read(_LARGEST + 1)
            torn = data[-1:] not in (b"", b"\n")
            # Somebody may have been writing the last line just now; then that is finished.
            if torn and self._held is None and _lock(file.fileno(), fcntl.LOCK_SH, _MOMENT):
                file.seek(0)
                data = file.read(_LARGEST + 1)
            found = os.fstat(file.fileno())
        if len(data) > _LARGEST:
            raise OSError(errno.EFBIG, f"it is larger than {_LARGEST >> 30} GB", self.path)
        if data != self._lines.data:
            if not self._lines.goes_on_in(data):
                self._lines = Lines()
            self._lines.feed(data)
            self._listing = None
        settled = found.st_size == len(data) and self._now() - found.st_mtime > _TICK
        self._seen = _identity(found) if settled else None

    def _same(self, file: BufferedReader) -> bytes:
        """What is known, if the file holds just that; else nothing is read of it. The next changes
        may follow within a tick, so a run looks often."""
        known = self._lines.data
        if os.fstat(file.fileno()).st_size != len(known):
            return b""
        if len(self._room) != len(known):
            self._room = bytearray(len(known))
        read = file.readinto(self._room)
        file.seek(0)
        return known if read == len(known) and self._room == known else b""

    def _stamp(self) -> str:
        return iso(datetime.fromtimestamp(self._now(), UTC))

    @contextmanager
    def _locked(self, more: int = 0) -> Iterator[int]:
        """The file, open to append and locked. The lock is on the file itself: where `compact` has
        replaced it, the new one is locked."""
        if self._held is not None:
            yield self._held
            return
        with _told("write"):
            if more:
                ensure_ralph_dir(self.workspace)
            while True:
                with suppress(FileNotFoundError):
                    _refuse_odd(os.lstat(self.path), self.path)
                file = regular(os.open(self.path, _OPEN | more, 0o644), self.path)
                try:
                    if not _lock(file, fcntl.LOCK_EX, _PATIENCE):
                        raise OSError(
                            errno.EWOULDBLOCK, "another process holds its lock", self.path
                        )
                    if is_at(file, self.path):
                        self._held = file
                        yield file
                        return
                finally:
                    self._held = None
                    os.close(file)

    def _write(
        self, file: int, old: dict[str, Any], new: dict[str, Any], *, judge: bool = True
    ) -> None:
        line, task = _line_of(new, "this")
        if judge:
            self._refuse_strangers(old, task)
        self._witness([(task.id, line)])
        append_line(file, line + b"\n", alone=True)

    def _judged(self, records: Sequence[Mapping[str, Any]]) -> list[tuple[str, bytes]]:
        """Lines for these tasks, which must not wait for each other in a circle."""
        lines, tasks = [], dict(self._lines.tasks)
        for record in records:
            line, task = _line_of(dict(record), record["id"])
            tasks[task.id] = task
            lines.append((task.id, line))
        circle = cycle(tasks.values())
        if not {task_id for task_id, _ in lines}.isdisjoint(circle):
            shown = " → ".join((*circle, circle[0]))
            raise ConfigError(f"these would wait for each other: {shown}", "Nothing was written.")
        return lines

    def _refuse_strangers(self, old: dict[str, Any], task: Task) -> None:
        """A new blocker must be there, and must not wait for this very task. What was so before
        is told elsewhere, and does not stand in the way."""
        tasks = self._lines.tasks
        for blocker in set(task.blocked_by) - {task.id, *(old.get("blockedBy") or ())}:
            if blocker not in tasks:
                raise self.refusal(blocker)
        was = tasks.get(task.id)
        if was and was.blocked_by == task.blocked_by and was.status not in ENDED:
            return
        circle = cycle((task, *(t for t in tasks.values() if t.id != task.id)))
        if task.id in circle:
            shown = " → ".join((*circle, circle[0]))
            raise ConfigError(f"{task.id} would wait for itself: {shown}", "Nothing was written.")

    def _replace(self, file: int, data: bytes, more: Sequence[bytes] = ()) -> None:
        """Replace the file by this and more lines, at once. A line that is appended meanwhile
        without a lock goes into the new one."""
        torn = b"\n" if more and data and not data.endswith(b"\n") else b""
        data += torn + b"".join(line + b"\n" for line in more)
        temporary = f"{self.path}.{os.getpid()}.tmp"
        found = os.fstat(file)
        try:
            with os.fdopen(create(temporary), "wb") as new:
                with suppress(PermissionError):  # someone else's file, which we may only write
                    os.fchown(new.fileno(), found.st_uid, found.st_gid)
                os.fchmod(new.fileno(), stat.S_IMODE(found.st_mode))
                new.write(data)
                new.flush()
                os.fsync(new.fileno())
                os.replace(temporary, self.path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        late = os.pread(file, _LARGEST, len(self._lines.data))
        if late:
            new_file = regular(os.open(self.path, _OPEN), self.path)
            try:
                os.write(new_file, late)
            finally:
                os.close(new_file)


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _refuse_odd(found: os.stat_result, path: str) -> None:
    """A link would lead what we write to somewhere else, a pipe would keep us waiting."""
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, "it is a link", path)
    refuse_irregular(found, path)


def _lock(file: int, kind: int, patience: float) -> bool:
    """Wait for a lock; whoever keeps it for ever does not keep us. True where there are none."""
    try:
        return lock(file, kind, patience)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return True


def _line_of(record: dict[str, Any], subject: str) -> tuple[bytes, Task]:
    """The line of a task, and what it will be read as; ConfigError for what would be no task."""
    line = encoded(record)
    try:
        return line, read_line(line)[1]
    except ValueError as error:
        remedy = "Nothing was written. Fix it and try again."
        raise ConfigError(f"{subject} would be no task: {error}", remedy) from None


@contextmanager
def _told(verb: str) -> Iterator[None]:
    """Turn an OSError into a ConfigError that says what to do."""
    try:
        yield
    except OSError as error:
        match error.errno:
            case errno.ELOOP:
                remedy = f'Put the file itself there: mv "$(readlink -f {NAME})" {NAME}'
            case errno.EWOULDBLOCK:
                remedy = f"See who: fuser -v {NAME}"
            case errno.EFBIG if verb == "read":
                remedy = f"Look at it: ls -l {NAME}"
            case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
                remedy = "Free some space (df -h .), then try again. Nothing was written."
            case errno.EACCES | errno.EPERM | errno.EROFS:
                remedy = f"See who may do that: ls -ld .ralph {NAME}"
            case _:
                remedy = f"Look at it: ls -ld {NAME}"
        raise ConfigError(f"cannot {verb} {NAME}: {error.strerror}", remedy) from error


def next_id(ids: Iterable[str]) -> str:
    """The number after the highest of the commonest prefix, as wide as that: RALPH-013 after
    RALPH-012. T-001 where no id ends in a number."""
    found = [(m[1], m[2]) for m in map(_NUMBERED.fullmatch, ids) if m]
    if not found:
        return "".join(_FIRST)
    prefix = Counter(p for p, _ in found).most_common(1)[0][0]
    highest = max((n for p, n in found if p == prefix), key=int)
    return f"{prefix}{int(highest) + 1:0{len(highest)}}"


def unknown(wanted: str, ids: Collection[str]) -> ConfigError:
    """The error for an id that is not there; it names at most three that look like it."""
    import difflib

    def bare(task_id: str) -> str:
        """Without capitals and the zeros in front of a number."""
        return _ZEROS.sub("", task_id.casefold())

    near = [i for i in ids if bare(i) == bare(wanted)][:3]
    if not near:
        some = ids
        if len(ids) > _MOST_COMPARED:  # those with one other letter at most, roughly
            ends = (wanted[-3:], wanted[:-2])
            alike = (i for i in ids if i[-3:] == ends[0] or i[:-2] == ends[1])
            some = [i for i in alike if abs(len(i) - len(wanted)) < 2][:_MOST_COMPARED]
        near = difflib.get_close_matches(wanted, list(some), 3, _CLOSE_ENOUGH)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    shown = wanted if len(wanted) <= 80 else f"{wanted[:79]}…"
    return ConfigError(f"there is no task {shown}", f"{hint}All of them: ralph tasks list")
