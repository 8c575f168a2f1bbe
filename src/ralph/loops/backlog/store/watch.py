"""Undoes illegal edits of the task list. A turn may add tasks, but change neither its own line nor
the proof of another task. `ralph tasks edit` notes what people change."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from ralph.files.append import append_line
from ralph.files.safe_open import open_regular, read_or_nothing, regular
from ralph.files.state_dir import ensure_state_root, write_atomically, writing_state
from ralph.kernel.case import Case
from ralph.kernel.findings import Finding, undone
from ralph.kernel.tasks.task import Status
from ralph.kernel.value import value
from ralph.loops.backlog.store.lines import Lines, decoded
from ralph.loops.backlog.store.task_file import Noted, TaskFile
from ralph.text.words import listed

EDITS = "edits.jsonl"
_OPEN = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BEFORE = "tasks.before"  # in the run's directory: the list as it was before the turn
_FINAL = (Status.DONE, Status.CANCELLED)
_GIVEN = ("evidence", "completedAt")  # by the host alone
_BORN_WITH = ("title", "createdAt")  # two agents may add one in the same millisecond
_PROOF = ("completion", "limits", "evidence", "completedAt", "source")  # only people's to change
_SHARED = (
    "The project's task list was changed while your checks ran; it was restored. Only Ralph and"
    " people may change it: if your code does, remove that."
)


class TaskWatch:
    """Knows the task list as it was before the turn, also after a crash."""

    def __init__(self, file: TaskFile, run_dir: str, project: str, memo: str = _BEFORE) -> None:
        self._file = file
        self._before = os.path.join(run_dir, memo)
        self._project = project
        self._standing: tuple[int, bytes] | None = None  # what the law let stand, and since when

    def remember(self, iteration: int) -> None:
        """The list is right as it is now, before this iteration."""
        head = f"{iteration} {moment(self._project)}".encode()
        lines = (head, *self._file.lines().values())
        temporary = f"{self._before}.tmp"
        with writing_state(self._before):
            with open(temporary, "wb") as file:
                file.write(b"\n".join(lines))
            os.replace(temporary, self._before)

    def undo(self, task: str, iteration: int) -> str:
        """Put back the illegal changes of a turn; returns them in words."""
        since, before = self._remembered(iteration)
        undone = []
        with self._file.held():  # else what others write after we looked would be put back too
            noted, now = known(self._project, since), self._file.lines()
            for line, found in _differing(before, now):
                old = decoded(line)
                name = old["id"]
                if found is not None and (name, _sha256(found)) in noted:
                    continue
                right, words = _judged(old, found, own=name == task)
                if words:
                    self._file.put(right)
                    undone.append(f"{name} {words}")
            undone += self._tame(before, noted)
        return f"edited by the turn, and put back: {listed(undone, 5)}" if undone else ""

    def begun_with(self, iteration: int) -> frozenset[str]:
        """The tasks that were in the list before this iteration."""
        return frozenset(decoded(line)["id"] for line in self._remembered(iteration)[1])

    def _remembered(self, iteration: int) -> tuple[int, list[bytes]]:
        """The list before this iteration, and since when people's changes count."""
        with suppress(FileNotFoundError), open(self._before, "rb") as file:
            first, *before = file.read().split(b"\n")
            number, since = map(int, first.split())
            return since, before if number == iteration else []
        return 0, []

    def let_stand(self) -> None:
        """The list is right as it is now, after the turn. From here on it is changed by people, by
        our workers, or by code that a check runs."""
        self.stand(moment(self._project), self._file.data())

    def stand(self, since: int, data: bytes) -> None:
        """The list was right when it held this."""
        self._standing = since, data

    def put_back(self) -> bool:
        """Undo the agent's changes since `let_stand`. True if there were any."""
        if self._standing is None:
            return False
        since, data = self._standing
        self._clear_the_way()
        if self._file.data() == data:
            return False
        old = Lines()
        old.feed(data)
        with self._file.held():
            noted, now = known(self._project, since), self._file.lines()
            theirs = {name: line for name, line in now.items() if (name, _sha256(line)) in noted}
            if now == {name: old.raw(name) for name in old.tasks} | theirs:
                return False
            self._file.put_back(data, (*theirs.values(),))
        return True

    def put_all_back(self) -> bool:
        """Undo everything that was written since `stand`, but by people. True if there was any."""
        assert self._standing is not None, "nobody said what is right"
        since, data = self._standing
        self._clear_the_way()
        if self._file.data() == data:
            return False
        with self._file.held():
            noted, before = {digest for _, digest in known(self._project, since)}, data.split(b"\n")
            new = [line for line in self._file.data().split(b"\n") if line not in before]
            theirs = tuple(line for line in new if _sha256(line) in noted)
            if self._file.data() == data + b"".join(line + b"\n" for line in theirs):
                return False
            self._file.put_back(data, theirs)
        return True

    def _clear_the_way(self) -> None:
        """Move away or remove what stands in the place of the list and is no file."""
        path = self._file.path
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.move(path, tempfile.mkdtemp(prefix="list-", dir=os.path.dirname(self._before)))
        elif os.path.lexists(path) and (os.path.islink(path) or not os.path.isfile(path)):
            os.unlink(path)

    def _tame(self, before: list[bytes], noted: set[tuple[str, str]]) -> Iterator[str]:
        """A turn may add tasks: open ones without proof, which wait for nobody in a circle."""
        if not before:
            return
        circle, now = self._file.read().cycle, self._file.lines()
        known = {decoded(line)["id"] for line, _ in _differing(before, now)}
        same = frozenset(before)
        for name, line in now.items():
            if line in same or name in known or (name, _sha256(line)) in noted:
                continue
            task = decoded(line)
            right = {field: held for field, held in task.items() if field not in _GIVEN}
            right |= {"status": "pending"} if task.get("status") in _FINAL else {}
            right |= {"blockedBy": []} if name in circle else {}
            if not _is_list_in_project(task.get("source")):
                right.pop("source", None)
            if right != task:
                self._file.put(right)
                yield f"{name} was added as it may not be"

    def take_in(self, path: str, begun_with: frozenset[str]) -> None:
        """Add the tasks that a turn had added to another list: in a sandbox, or a work tree. It
        began with these there."""
        lines = Lines()
        lines.feed(read_or_nothing(path))
        added = [name for name in lines.tasks if name not in begun_with]
        if not added:
            return
        with self._file.held():
            known = {name: decoded(line) for name, line in self._file.lines().items()}
            for name in added:
                line = lines.raw(name)
                task, same = decoded(line), known.get(name)
                if same is None:
                    self._file.put(task)
                elif any(task.get(field) != same.get(field) for field in _BORN_WITH):
                    # Somebody else has added one under the same id meanwhile: this one gets the
                    # next, if a run that was killed has not given it that.
                    origin = f"{task.pop('id')} {_sha256(line)[:12]}"
                    if all(other.get("addedAs") != origin for other in known.values()):
                        self._file.add({**task, "addedAs": origin})


@value
class TaskListGate:
    """The law between gates: the task list stays as the turn left it, whatever checks run (ADR 33),
    and so does that of the project a worker works for."""

    own: TaskWatch
    shared: TaskWatch | None = None  # other workers' agents may reach it too
    name = "task list"
    always = True

    def check(self, case: Case) -> Iterator[Finding]:
        """An objection to each list that was put back."""
        if self.own.put_back():
            yield Finding(self.name, undone("the task list"))
        if self.shared is not None and self.shared.put_back():
            yield Finding(self.name, _SHARED)


def _differing(before: list[bytes], now: dict[str, bytes]) -> Iterator[tuple[bytes, bytes | None]]:
    """Lines that have changed, and what stands there now. Others, nearly all, are not parsed."""
    same = frozenset(now.values())
    for line in before:
        if line not in same:
            yield line, now.get(decoded(line)["id"])


def _judged(old: dict[str, Any], found: bytes | None, *, own: bool) -> tuple[dict[str, Any], str]:
    """The task as it must be, and what was wrong with it; "" if nothing was."""
    if found is None:
        return old, "was taken out"
    new = decoded(found)
    names = sorted({*old, *new} - {"updatedAt"}) if own else _PROOF
    changed = [name for name in names if old.get(name) != new.get(name)]
    words = f"was changed ({', '.join(changed)})" if changed else ""
    if own:
        return old, words
    before, after = (fields.get("status", Status.PENDING) for fields in (old, new))
    if before != after and (before in _FINAL or after in _FINAL):
        changed.append("status")
        words = f"was called {after}"
    kept = {name: held for name, held in new.items() if name not in changed}
    return {**kept, **{name: old[name] for name in changed if name in old}}, words


def _is_list_in_project(source: object) -> bool:
    """True if a task came from a file in the project. The host marks done tasks in their source, so
    a turn may name none that it could not change itself."""
    if not isinstance(source, dict) or "repo" in source or source.get("format") == "github":
        return False
    path = source.get("path")
    if not isinstance(path, str) or os.path.isabs(path):
        return False
    return os.path.normpath(path).split(os.sep)[0] != os.pardir


def _sha256(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def note(project: str, lines: Iterable[Noted]) -> None:
    """Remember lines, given without their ends, in the project's state directory."""
    told = [json.dumps({"id": name, "sha256": _sha256(line)}) for name, line in lines]
    ensure_state_root(os.path.dirname(project))
    with writing_state(project):
        os.makedirs(project, mode=0o700, exist_ok=True)
        ignore = os.path.join(project, ".gitignore")  # the state directory may lie in a workspace
        if not os.path.exists(ignore):
            write_atomically(ignore, "*\n")
        path = os.path.join(project, EDITS)
        file = regular(os.open(path, _OPEN, 0o600), path)
        try:
            append_line(file, "\n".join((*told, "")).encode(), alone=False)
        finally:
            os.close(file)


def moment(project: str) -> int:
    """A mark for `known`: what is remembered from now on."""
    try:
        return os.stat(os.path.join(project, EDITS)).st_size
    except OSError:
        return 0


def known(project: str, since: int = 0) -> set[tuple[str, str]]:
    """The id and the hash of each line that was noted since then."""
    found = set()
    with suppress(OSError), open_regular(os.path.join(project, EDITS)) as file:
        file.seek(since)
        for line in file:
            with suppress(ValueError, KeyError, TypeError, RecursionError):
                data = json.loads(line)
                found.add((str(data["id"]), str(data["sha256"])))
    return found
