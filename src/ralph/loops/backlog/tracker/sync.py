"""What is done here is told to the list it came from: one checkbox, `passes` or status, or one
issue. If somebody changed what was wanted since, that is told and nothing is written."""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any

from ralph.errors import RalphError
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import write_atomically
from ralph.formats.base import Format, ListedTask
from ralph.formats.catalog import NAMES, by_name
from ralph.kernel.tasks.backlog import ENDED
from ralph.kernel.tasks.task import Status
from ralph.kernel.value import value
from ralph.loops.backlog.tracker import github
from ralph.loops.backlog.tracker.github import Run
from ralph.loops.backlog.tracker.importing import digest, proper
from ralph.text.redact import redact

LARGEST = 64 << 20  # bytes of a list
_LONGEST_COMMENT = 60_000  # characters
_WISH = ("title", "description", "completion")  # what a change of is a change of mind
_DONE = digest(Status.DONE.value)
_TRIES = 3  # where somebody else writes the list at the same time
_BOM = "\ufeff"
_GITHUB_URL = re.compile(r"https?://[^/\s]+/([^/\s]+/[^/\s]+)/(?:issues|pull)/[0-9]+")
_ISSUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9_.][A-Za-z0-9_.-]*#[0-9]{1,12}")
Record = Mapping[str, Any]


class How(StrEnum):
    """What became of it."""

    NOTHING = "nothing"  # there is nobody to tell
    MARKED = "marked"
    ALREADY = "already"  # it says so already
    CONFLICT = "conflict"  # somebody changed the item; nothing was written
    FAILED = "failed"


@value
class Synced:
    """What became of telling a list, in words for people; `path`: the file that was changed."""

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

    `run` runs `gh`. With `write` False it is only seen what would be done.
    """

    def __init__(self, workspace: str, run: Run, *, write: bool = True) -> None:
        self._workspace = workspace
        self._run = run
        self._write = write
        self._last: tuple[str, str, _List] | None = None

    def mark(self, record: Record, *, done: bool, evidence: str) -> Synced:
        """Let the source of a task say that it is done, or that it is not. Never raises."""
        return self.mark_all([(record, evidence)], done=done)[0]

    def mark_all(self, tasks: Sequence[tuple[Record, str]], *, done: bool) -> list[Synced]:
        """The same for many tasks with their evidence: each list is read and written once."""
        found: dict[int, Synced] = {}
        lists: dict[tuple[str, str], dict[int, Record]] = {}
        for number, (record, evidence) in enumerate(tasks):
            source, path = _source(record), str(_source(record).get("path") or "-")
            if not source:
                found[number] = Synced(How.NOTHING, "it came from no list")
            elif repository := repository_of(record):
                found[number] = self._mark_issue(record, repository, done=done, evidence=evidence)
            elif path == "-":
                found[number] = Synced(How.NOTHING, "its list was no file")
            else:
                lists.setdefault((source["format"], path), {})[number] = source
        for (name, path), sources in lists.items():
            marked = self._mark_file(by_name(name), path, list(sources.values()), done=done)
            found |= zip(sources, marked, strict=True)
        return [found[number] for number in range(len(tasks))]

    # -------------------------------------------------------------- files

    def _mark_file(
        self, form: Format, path: str, sources: Sequence[Record], *, done: bool
    ) -> list[Synced]:
        try:
            return self._marked(form, path, sources, done=done)
        except (OSError, RalphError, ValueError) as error:
            if len(sources) > 1:  # it may be one of them
                parts = ([one] for one in sources)
                return [self._mark_file(form, path, part, done=done)[0] for part in parts]
            return [Synced(How.FAILED, f"{path}: {_why(error)}")]

    def _marked(
        self, form: Format, path: str, sources: Sequence[Record], *, done: bool
    ) -> list[Synced]:
        whole = os.path.join(self._workspace, path)
        for _ in range(_TRIES):
            old = self._list(form, whole)
            wrong = _wrong(form, old, {str(source.get("key")) for source in sources}, done=done)
            told = [_judged(source, old, wrong, path, done=done) for source in sources]
            keys = {str(s.get("key")) for s, t in zip(sources, told, strict=True) if t.path}
            if not keys or not self._write:
                return told
            if self._replace(whole, old, form.marked(old.text, keys, done)):
                return told
        raise ValueError("it is being changed by someone else all the time")

    def _list(self, form: Format, whole: str) -> _List:
        """The list as it is now; it is read anew only if it is another."""
        with open_regular(whole) as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise ValueError(f"it is larger than {LARGEST >> 20} MB")
        if self._last and self._last[:2] == (whole, form.name) and self._last[2].data == data:
            return self._last[2]
        text = data.decode("utf-8-sig")
        found = _List(data, text, _items(form, text, os.path.basename(whole)))
        self._last = (whole, form.name, found)
        return found

    def _replace(self, whole: str, old: _List, text: str) -> bool:
        """Whether it could be done: someone else may have changed the list meanwhile."""
        with open_regular(whole) as file:
            if file.read(LARGEST + 1) != old.data:
                return False
        write_atomically(whole, f"{_BOM}{text}" if old.data.startswith(_BOM.encode()) else text)
        return True

    # -------------------------------------------------------------- issues

    def _mark_issue(self, record: Record, repository: str, *, done: bool, evidence: str) -> Synced:
        source, where = record["source"], f"github:{repository}"
        number = str(source.get("key")).rpartition("#")[2]
        if not _ISSUE.fullmatch(f"{repository}#{number}"):  # an option, a path, whatever
            return Synced(How.FAILED, f"{where} {number[:40]}: that is no issue")
        text, trouble = github.issue(self._run, repository, number)
        if trouble:
            return Synced(How.FAILED, f"{where}#{number}: {trouble}")
        try:
            item = proper(by_name("github").read(text, where))[0][0]
        except (ValueError, IndexError) as error:
            return Synced(How.FAILED, f"{where}#{number}: {error}")
        if (item.fields.get("status") in ENDED) is done:
            return Synced(How.ALREADY, f"{where}#{number} says so already")
        if changed := changed_wishes(item, source):
            words = f"{where}#{number} was changed since it was imported ({changed})"
            return Synced(How.CONFLICT, f"{words}; see: ralph tasks import {where} --dry-run")
        comment = redact(evidence)[:_LONGEST_COMMENT]
        if self._write:
            how = github.turn(self._run, repository, number, done=done, comment=comment)
            if how:
                return Synced(How.FAILED, f"{where}#{number}: {how}")
        return Synced(How.MARKED, f"{where}#{number} is {'closed' if done else 'open again'}")


def _items(form: Format, text: str, name: str) -> dict[str, ListedTask]:
    return {item.key: item for item in proper(form.read(text, name))[0]}


def _wrong(form: Format, old: _List, keys: Collection[str], *, done: bool) -> set[str]:
    """Those of the items that do not say what they should: a mark changes them."""
    new = _items(form, form.marked(old.text, keys, done), "")
    ours = [key for key in keys if key in old.items and not (done and _is_done(old.items[key]))]
    return {key for key in ours if key not in new or new[key] != old.items[key]}


def _judged(source: Record, old: _List, wrong: Collection[str], path: str, *, done: bool) -> Synced:
    """What is to be said of one; those with a path are to be marked."""
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


def _source(record: Record) -> Record:
    """Where a task came from, if that is a list that we know."""
    source = record.get("source")
    return source if isinstance(source, dict) and source.get("format") in NAMES else {}


def _why(error: Exception) -> str:
    match error:
        case OSError():
            return error.strerror or str(error)
        case RalphError():
            return f"{error.message}. {error.remedy}"
        case _:
            return str(error)


def repository_of(record: Record) -> str:
    """Where the issue of a task is, `owner/name`; "" where it came from no issue."""
    source = record.get("source")
    if not isinstance(source, dict) or source.get("format") != "github":
        return ""
    found = _GITHUB_URL.fullmatch(str(record.get("externalUrl") or ""))
    return str(source.get("repo") or (found[1] if found else ""))


def changed_wishes(item: ListedTask, source: Record) -> str:
    """What of an item's wish is not what was imported; "" if all is. One that was done there and
    is not any more was opened again by somebody."""
    seen = source.get("seen")
    seen = seen if isinstance(seen, dict) else {}
    changed = [n for n in _WISH if digest(item.fields.get(n)) != seen.get(n, "")]
    opened = seen.get("status") == _DONE and item.fields.get("status") not in ENDED
    return ", ".join([*changed, *(["opened again"] if opened else [])])


def told(record: Record, *, done: bool) -> dict[str, Any]:
    """The fields of a task that change once its list was told: it remembers what the list says, so
    that somebody who opens the item again there is heard."""
    source = record["source"]
    seen = {**(source.get("seen") or {}), "status": _DONE if done else digest("pending")}
    return {"source": {**source, "seen": seen}}


def evidence_words(record: Record) -> str:
    """Why a task is done, for people who read the issue."""
    words = [f"Done by ralph: {record['id']}: {record.get('title') or ''}".rstrip(": ")]
    found = record.get("evidence")
    if isinstance(found, dict):
        if found.get("command"):
            words.append(f"Checked: `{found['command']}` exited with {found.get('exitCode')}")
        elif found.get("kind"):
            words.append(f"Checked: {found['kind']}")
        words += [f"Tree: {found['tree']}"] if found.get("tree") else []
    return "\n".join(words)


def _is_done(item: ListedTask) -> bool:
    return item.fields.get("status") == Status.DONE
