"""What is done here is told to the list it came from: one checkbox, `passes` or status, or one
issue. If somebody changed what was wanted since, that is told and nothing is written."""

import os
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from ralph.adapters import github_cli
from ralph.adapters.files import write_atomically
from ralph.adapters.formats.base import Format, Item
from ralph.adapters.formats.registry import NAMES, by_name
from ralph.adapters.github_cli import Run
from ralph.adapters.safe_open import open_regular
from ralph.adapters.task_import import digest, proper
from ralph.core.backlog import ENDED
from ralph.core.redact import redact
from ralph.core.task import Status
from ralph.core.value import value
from ralph.errors import RalphError

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
    text: str
    items: Mapping[str, Item]


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
        source = record.get("source")
        if not isinstance(source, dict) or source.get("format") not in NAMES:
            return Synced(How.NOTHING, "it came from no list")
        form, key = by_name(source["format"]), str(source.get("key") or "")
        repository = repository_of(record)
        if repository:
            return self._mark_issue(form, record, repository, done=done, evidence=evidence)
        path = source.get("path")
        if not isinstance(path, str) or path in ("", "-"):
            return Synced(How.NOTHING, "its list was no file")
        try:
            return self._mark_file(form, source, path, key, done=done)
        except OSError as error:
            return Synced(How.FAILED, f"{path}: {error.strerror}")
        except RalphError as error:
            return Synced(How.FAILED, f"{path}: {error.message}. {error.remedy}")
        except ValueError as error:
            return Synced(How.FAILED, f"{path}: {error}")

    # -------------------------------------------------------------- files

    def _mark_file(
        self, form: Format, source: Record, path: str, key: str, *, done: bool
    ) -> Synced:
        whole = os.path.join(self._workspace, path)
        for _ in range(_TRIES):
            found = self._list(form, whole, path)
            answer, new = self._judged(form, found, source, path, key, done=done)
            if new is None:
                return answer
            if not self._write or self._replace(whole, found.data, new):
                return answer
        return Synced(How.FAILED, f"{path}: it is being changed by someone else all the time")

    def _judged(
        self, form: Format, found: _List, source: Record, path: str, key: str, *, done: bool
    ) -> tuple[Synced, str | None]:
        """What is to be said, and the new text, if there is one."""
        item = found.items.get(key)
        if item is None:
            return Synced(How.CONFLICT, f"{key} is not in {path} any more"), None
        bare = found.text.removeprefix(_BOM)
        new = bare if done and _is_done(item) else form.marked(bare, key, done)
        if new == bare:
            return Synced(How.ALREADY, f"{path} says so already"), None
        changed = changed_wishes(item, source)
        if changed or new is None:
            words = f"{key} was changed in {path} since it was imported ({changed or 'its place'})"
            return Synced(How.CONFLICT, f"{words}; see: ralph tasks import {path} --dry-run"), None
        words = f"{path}: {key} is {'done' if done else 'open again'}"
        begin = _BOM if found.text.startswith(_BOM) else ""
        return Synced(How.MARKED, words, path), begin + new

    def _list(self, form: Format, whole: str, path: str) -> _List:
        """The list as it is now; it is read anew only if it is another."""
        with open_regular(whole) as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise ValueError(f"it is larger than {LARGEST >> 20} MB")
        if self._last and self._last[:2] == (whole, form.name) and self._last[2].data == data:
            return self._last[2]
        text = data.decode()
        items, _ = proper(form.read(text.removeprefix(_BOM), os.path.basename(path)))
        found = _List(data, text, {item.key: item for item in items})
        self._last = (whole, form.name, found)
        return found

    def _replace(self, whole: str, before: bytes, text: str) -> bool:
        """Whether it could be done: someone else may have changed the list meanwhile."""
        with open_regular(whole) as file:
            if file.read(LARGEST + 1) != before:
                return False
        write_atomically(whole, text)
        return True

    # -------------------------------------------------------------- issues

    def _mark_issue(
        self, form: Format, record: Record, repository: str, *, done: bool, evidence: str
    ) -> Synced:
        source, where = record["source"], f"github:{repository}"
        number = str(source.get("key")).rpartition("#")[2]
        if not _ISSUE.fullmatch(f"{repository}#{number}"):  # an option, a path, whatever
            return Synced(How.FAILED, f"{where} {number[:40]}: that is no issue")
        text, trouble = github_cli.issue(self._run, repository, number)
        if trouble:
            return Synced(How.FAILED, f"{where}#{number}: {trouble}")
        try:
            item = proper(form.read(text, where))[0][0]
        except (ValueError, IndexError) as error:
            return Synced(How.FAILED, f"{where}#{number}: {error}")
        if (item.fields.get("status") in ENDED) is done:
            return Synced(How.ALREADY, f"{where}#{number} says so already")
        if changed := changed_wishes(item, source):
            words = f"{where}#{number} was changed since it was imported ({changed})"
            return Synced(How.CONFLICT, f"{words}; see: ralph tasks import {where} --dry-run")
        comment = redact(evidence)[:_LONGEST_COMMENT]
        if self._write:
            how = github_cli.turn(self._run, repository, number, done=done, comment=comment)
            if how:
                return Synced(How.FAILED, f"{where}#{number}: {how}")
        return Synced(How.MARKED, f"{where}#{number} is {'closed' if done else 'open again'}")


def repository_of(record: Record) -> str:
    """Where the issue of a task is, `owner/name`; "" where it came from no issue."""
    source = record.get("source")
    if not isinstance(source, dict) or source.get("format") != "github":
        return ""
    found = _GITHUB_URL.fullmatch(str(record.get("externalUrl") or ""))
    return str(source.get("repo") or (found[1] if found else ""))


def changed_wishes(item: Item, source: Record) -> str:
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


def _is_done(item: Item) -> bool:
    return item.fields.get("status") == Status.DONE
