"""What a turn may do to the task list: add tasks, yes; change its own line, or what proves another
task, no. People change what they like with `ralph tasks edit`, which leaves a note."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

from ralph.files.safe_open import open_regular
from ralph.files.state_dir import unwritable_state
from ralph.kernel.tasks.task import Status
from ralph.loops.backlog.store.edits import known, moment
from ralph.loops.backlog.store.lines import Lines, decoded
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.text.words import listed

_BEFORE = "tasks.before"  # in the run's directory: the list as it was before the turn
_FINAL = (Status.DONE, Status.CANCELLED)
_GIVEN = ("evidence", "completedAt")  # by the host alone
_PROOF = ("completion", "limits", "evidence", "completedAt", "source")  # only people's to change


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
        try:
            with open(temporary, "wb") as file:
                file.write(b"\n".join(lines))
            os.replace(temporary, self._before)
        except OSError as error:
            raise unwritable_state(self._before, error) from error

    def undo(self, task: str, iteration: int) -> str:
        """Put back what was not for the turn to change; what that was, in words. A turn that was
        cut off before anything was remembered has changed nothing."""
        since, before = self._remembered(iteration)
        noted, now = known(self._project, since), self._file.lines()
        undone = []
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

    def let_stand(self) -> None:
        """The list is right as it is now, after the turn: whoever changes it from here on is a
        person, a worker of ours, or code that a check runs."""
        self._standing = moment(self._project), self._file.data()

    def put_back(self) -> bool:
        """Undo what was done to the list since it was let stand, without what people and workers
        have written; whether there was anything."""
        if self._standing is None:
            return False
        since, data = self._standing
        self._clear_the_way()
        if self._file.data() == data:
            return False
        noted, now = known(self._project, since), self._file.lines()
        theirs = {name: line for name, line in now.items() if (name, _sha256(line)) in noted}
        old = Lines()
        old.feed(data)
        if now == {name: old.raw(name) for name in old.tasks} | theirs:
            return False
        self._file.put_back(data, (*theirs.values(),))
        return True

    def _clear_the_way(self) -> None:
        """What is no file, in the place of the list, cannot be read or written."""
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

    def take_in(self, path: str) -> None:
        """Add the tasks that a turn had added in a sandbox, whose list could not land since someone
        else had changed it meanwhile."""
        try:
            with open_regular(path) as file:
                lines = Lines()
                lines.feed(file.read())
        except OSError:
            return
        known = self._file.lines()
        for name in lines.tasks:
            task = decoded(lines.raw(name))
            if name not in known:
                self._file.put(task)
            elif task.get("createdAt") != decoded(known[name]).get("createdAt"):
                self._take_in_as_another(task, known)

    def _take_in_as_another(self, task: dict[str, Any], known: dict[str, bytes]) -> None:
        """Somebody else has added a task under the same id meanwhile: this one gets the next."""
        origin = f"{task['id']} {task.get('createdAt', '')}"
        if any(decoded(line).get("addedAs") == origin for line in known.values()):
            return  # by a run that was killed
        fields = {name: held for name, held in task.items() if name != "id"}
        self._file.add({**fields, "addedAs": origin})

    def _remembered(self, iteration: int) -> tuple[int, list[bytes]]:
        try:
            with open(self._before, "rb") as file:
                first, *lines = file.read().split(b"\n")
        except FileNotFoundError:
            return 0, []
        number, since = map(int, first.split())
        return since, lines if number == iteration else []


def _differing(before: list[bytes], now: dict[str, bytes]) -> Iterator[tuple[bytes, bytes | None]]:
    """Lines that are not what they were, and what stands there now. Lines that stand there
    unchanged are nearly all, and are not looked into."""
    same = frozenset(now.values())
    for line in before:
        if line not in same:
            yield line, now.get(decoded(line)["id"])


def _judged(old: dict[str, Any], found: bytes | None, *, own: bool) -> tuple[dict[str, Any], str]:
    """The task as it must be, and what was wrong with it; "" if nothing was."""
    if found is None:
        return old, "was taken out"
    new = decoded(found)
    if own:
        names = {*old, *new} - {"updatedAt"}
        changed = sorted(name for name in names if old.get(name) != new.get(name))
        return old, f"was changed ({', '.join(changed)})" if changed else ""
    changed = [name for name in _PROOF if old.get(name) != new.get(name)]
    before, after = (fields.get("status", Status.PENDING) for fields in (old, new))
    called = before != after and (before in _FINAL or after in _FINAL)
    if called:
        changed.append("status")
    kept = {name: held for name, held in new.items() if name not in changed}
    right = {**kept, **{name: old[name] for name in changed if name in old}}
    if called:
        return right, f"was called {after}"
    return right, f"was changed ({', '.join(changed)})" if changed else ""


def _is_list_in_project(source: object) -> bool:
    """Whether a task came from a file that the turn could have changed itself: what is done is
    told to where it came from, by the host."""
    path = source.get("path") if isinstance(source, dict) and "repo" not in source else None
    if not isinstance(path, str) or os.path.isabs(path):
        return False
    return isinstance(source, dict) and source.get("format") != "github" and _stays(path)


def _stays(path: str) -> bool:
    return os.path.normpath(path).split(os.sep)[0] != os.pardir


def _sha256(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()
