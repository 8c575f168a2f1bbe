"""Marks done tasks in the list or issue that they came from. If somebody changed what was wanted
since, it says so and writes nothing."""

import os
import re
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any

from ralph.errors import ForgeError, RalphError
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import is_inside, write_atomically
from ralph.formats.base import Format, ListedTask
from ralph.formats.catalog import NAMES, by_name
from ralph.formats.records import Record, source_of
from ralph.kernel.tasks.completion import Kind
from ralph.kernel.tasks.task import ENDED, Status
from ralph.kernel.value import value
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.loops.backlog.tracker.github import Open
from ralph.loops.backlog.tracker.importing import digest, proper
from ralph.text.redact import redact
from ralph.text.words import listed

LARGEST = 64 << 20  # bytes of a list
_LONGEST_COMMENT = 60_000  # characters
_WISH = ("title", "description", "completion")  # what a change of is a change of mind
_DONE = digest(Status.DONE.value)
_MOST_NAMED = 5  # files with tests
_TRIES = 3  # where somebody else writes the list at the same time
_MARKING = threading.Lock()  # workers whose tasks came from one list
_BOM = "\ufeff"
_GITHUB_URL = re.compile(r"https?://[^/\s]+/([^/\s]+/[^/\s]+)/(?:issues|pull)/[0-9]+")
_ISSUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9_.][A-Za-z0-9_.-]*#[0-9]{1,12}")


class How(StrEnum):
    """The result of marking a task."""

    NOTHING = "nothing"  # there is nobody to tell
    MARKED = "marked"
    ALREADY = "already"  # it says so already
    CONFLICT = "conflict"  # somebody changed the item; nothing was written
    FAILED = "failed"


@value
class Synced:
    """The result in words for people; `path` is the file that was changed."""

    how: How
    words: str
    path: str = ""


@value
class _List:
    """A list as it was read."""

    data: bytes
    text: str  # without a byte order mark
    items: Mapping[str, ListedTask]


class Trackers:
    """The lists and issues that the tasks of a workspace came from.

    `open_issues` opens GitHub. With `write` False it is only seen what would be done.
    """

    def __init__(self, workspace: str, open_issues: Open, *, write: bool = True) -> None:
        self._workspace, self._open, self._write = workspace, open_issues, write
        self._away = ""  # why GitHub is not asked again

    def mark(self, tasks: Sequence[Record], *, done: bool) -> list[Synced]:
        """Let the sources of tasks say that they are done, or that they are not. Never raises.
        Each list is read and written once."""
        found: dict[int, Synced] = {}
        lists: dict[tuple[str, str], dict[int, Record]] = {}
        for number, record in enumerate(tasks):
            source = source_of(record, *NAMES)
            path = str(source.get("path") or "-")
            if not source:
                found[number] = Synced(How.NOTHING, "it came from no list")
            elif repository := repository_of(record):
                found[number] = self._mark_issue(record, repository, done=done)
            elif path == "-":
                found[number] = Synced(How.NOTHING, "its list was no file")
            else:
                lists.setdefault((source["format"], path), {})[number] = source
        for (name, path), sources in lists.items():
            marked = self._mark_file(by_name(name), path, list(sources.values()), done=done)
            found |= zip(sources, marked, strict=True)
        return [found[number] for number in range(len(tasks))]

    def _mark_file(
        self, form: Format, path: str, sources: Sequence[Record], *, done: bool
    ) -> list[Synced]:
        try:
            with _MARKING:
                return self._marked(form, path, sources, done=done)
        except (OSError, RalphError, ValueError) as error:
            if len(sources) > 1:  # it may be one of them
                parts = ([one] for one in sources)
                return [self._mark_file(form, path, part, done=done)[0] for part in parts]
            why = getattr(error, "strerror", None) or str(error)
            if isinstance(error, RalphError):
                why = error.words
            return [Synced(How.FAILED, f"{path}: {why}")]

    def _marked(
        self, form: Format, path: str, sources: Sequence[Record], *, done: bool
    ) -> list[Synced]:
        whole = os.path.join(self._workspace, path)
        for _ in range(_TRIES):
            old = _list(form, whole)
            wrong = _wrong(form, old, {str(source.get("key")) for source in sources}, done=done)
            told = [_judged(source, old, wrong, path, done=done) for source in sources]
            keys = {str(s.get("key")) for s, t in zip(sources, told, strict=True) if t.path}
            if not keys or not self._write:
                return told
            text = form.marked(old.text, keys, done)
            with open_regular(whole) as file:
                changed = file.read(LARGEST + 1) != old.data  # by somebody else, meanwhile
            if not changed:
                bom = _BOM if old.data.startswith(_BOM.encode()) else ""
                write_atomically(whole, bom + text)
                return told
        raise ValueError("it is being changed by someone else all the time")

    def _mark_issue(self, record: Record, repository: str, *, done: bool) -> Synced:
        where = f"github:{repository}"
        number = str(record["source"].get("key")).rpartition("#")[2]
        if not _ISSUE.fullmatch(f"{repository}#{number}"):  # an option, a path, whatever
            return Synced(How.FAILED, f"{where} {number[:40]}: that is no issue")
        try:
            if self._away:
                raise ForgeError(self._away)
            return self._turned(record, repository, number, done=done)
        except RalphError as error:
            if isinstance(error, ForgeError) and error.retry_after is not None:
                self._away = error.words  # the next one would wait as long, and for nothing
            return Synced(How.FAILED, f"{where}#{number}: {error.words}")
        except (ValueError, IndexError) as error:
            return Synced(How.FAILED, f"{where}#{number}: {error}")

    def _turned(self, record: Record, repository: str, number: str, *, done: bool) -> Synced:
        source, where = record["source"], f"github:{repository}"
        forge = self._open()
        item = proper(by_name("github").read(forge.issue(repository, number), where))[0][0]
        if (item.fields.get("status") in ENDED) is done:
            return Synced(How.ALREADY, f"{where}#{number} says so already")
        if changed := changed_wishes(item, source):
            words = f"{where}#{number} was changed since it was imported ({changed})"
            return Synced(How.CONFLICT, f"{words}; see: ralph tasks import {where} --dry-run")
        if self._write:
            comment = redact(evidence_words(record))[:_LONGEST_COMMENT]
            forge.turn(repository, number, done=done, comment=comment)
        return Synced(How.MARKED, f"{where}#{number} is {'closed' if done else 'open again'}")


@value
class Telling:
    """Tells lists and issues what a run has done with their tasks (ADR 32)."""

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
        """The path in a work tree of the list that a task came from; "" if it is not there."""
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

        def change(now: dict[str, Any]) -> dict[str, Any] | None:
            known = told(now, done=done)
            return None if known["source"] == now.get("source") else known

        synced = self.trackers(workspace).mark([record], done=done)[0]
        if synced.how in (How.MARKED, How.ALREADY):
            self.file.update(task, change)
        return synced


def _list(form: Format, whole: str) -> _List:
    with open_regular(whole) as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ValueError(f"it is larger than {LARGEST >> 20} MB")
    text = data.decode("utf-8-sig")
    return _List(data, text, _items(form, text, os.path.basename(whole)))


def _items(form: Format, text: str, name: str) -> dict[str, ListedTask]:
    return {item.key: item for item in proper(form.read(text, name))[0]}


def _wrong(form: Format, old: _List, keys: Collection[str], *, done: bool) -> set[str]:
    """The items that do not say what they should: a mark changes them."""
    new, items = _items(form, form.marked(old.text, keys, done), ""), old.items
    ours = [key for key in keys if key in items]
    if done:
        ours = [key for key in ours if items[key].fields.get("status") != Status.DONE]
    return {key for key in ours if key not in new or new[key] != items[key]}


def _judged(source: Record, old: _List, wrong: Collection[str], path: str, *, done: bool) -> Synced:
    """The result for one task; one with a path is still to be marked."""
    key = str(source.get("key"))
    item = old.items.get(key)
    if item is None:
        return Synced(How.CONFLICT, f"{key} is not in {path} any more")
    if key not in wrong:
        return Synced(How.ALREADY, f"{path} says so already")
    if changed := changed_wishes(item, source):
        words = f"{key} was changed in {path} since it was imported ({changed})"
        return Synced(How.CONFLICT, f"{words}; see: ralph tasks import {path} --dry-run")
    return Synced(How.MARKED, f"{path}: {key} is {'done' if done else 'open again'}", path)


def repository_of(record: Record) -> str:
    """The repository of a task's issue, `owner/name`; "" if it came from no issue."""
    source = source_of(record, "github")
    if not source:
        return ""
    found = _GITHUB_URL.fullmatch(str(record.get("externalUrl") or ""))
    return str(source.get("repo") or (found[1] if found else ""))


def changed_wishes(item: ListedTask, source: Record) -> str:
    """The fields of an item that are not what was imported, in words. One that was done there and
    is not any more was opened again."""
    seen = source.get("seen")
    seen = seen if isinstance(seen, dict) else {}
    changed = [n for n in _WISH if digest(item.fields.get(n)) != seen.get(n, "")]
    opened = seen.get("status") == _DONE and item.fields.get("status") not in ENDED
    return ", ".join([*changed, *(["opened again"] if opened else [])])


def told(record: Record, *, done: bool) -> dict[str, Any]:
    """The fields of a task once its list was marked: it remembers what the list says, so that it is
    noticed when somebody opens the item again."""
    source = record["source"]
    seen = {**(source.get("seen") or {}), "status": _DONE if done else digest("pending")}
    return {"source": {**source, "seen": seen}}


def checked_words(evidence: Record) -> str:
    """How a task was found to be done; "" if its evidence does not say."""
    kind, code = evidence.get("kind"), evidence.get("exitCode")
    artifacts = evidence.get("artifacts")
    if evidence.get("command"):
        written = evidence.get("written")
        names = listed([*map(str, written)], _MOST_NAMED) if isinstance(written, list) else ""
        also = f"; tests written or changed in this task: {names}" if names else ""
        return f"`{evidence['command']}` exited with {code}{also}"
    if kind == Kind.EXPLICIT:
        return "the agent said so"
    if kind == Kind.FILE_EXISTS and isinstance(artifacts, list) and artifacts:
        return f"{artifacts[0]} is there"
    return "" if kind is None else f"{kind}" if code is None else f"{kind}, exit code {code}"


def evidence_words(record: Record) -> str:
    """The proof of a task, for people who read the issue."""
    words = [f"Done by ralph: {record['id']}: {record.get('title') or ''}".rstrip(": ")]
    found = record.get("evidence")
    if isinstance(found, dict):
        words += [f"Checked: {checked}"] if (checked := checked_words(found)) else []
        words += [f"Tree: {found['tree']}"] if found.get("tree") else []
    return "\n".join(words)
