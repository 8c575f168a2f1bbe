"""Adds proposed tasks to the list, and says first what the host could not check of them here."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from ralph.errors import ConfigError
from ralph.kernel.tasks import completion
from ralph.kernel.tasks.completion import Kind
from ralph.kernel.tasks.task import Status
from ralph.kernel.value import replace
from ralph.loops.backlog.gates.scripts import Runners
from ralph.loops.backlog.planning.proposal import (
    Proposal,
    Record,
    same,
    titles,
    with_ids,
)
from ralph.loops.backlog.store.task_file import TaskFile, next_id
from ralph.text.timestamps import iso
from ralph.text.words import listed

_WORD = re.compile(r"[A-Za-z0-9_.+-]+")  # a program that is looked for on PATH


def doubts(
    record: Record, workspace: str, environ: Mapping[str, str], test_command: str
) -> tuple[str, ...]:
    """Why the host may not be able to check a task here as it is proposed, or need not."""
    rule = completion.parse(record.get("completion"), record["id"])
    match rule.kind:
        case Kind.FILE_EXISTS:
            there = os.path.lexists(os.path.join(workspace, rule.path))
            found = f"{rule.path} is there already, which proves nothing" if there else ""
        case Kind.VALIDATE:
            found = Runners(environ, workspace).problem(rule.script)
        case Kind.TEST_PASSING if rule.command:
            found = _of_command(rule.command, environ)
        case Kind.TEST_PASSING if not test_command:
            found = "nobody has said how tests are run (loop.testCommand)"
        case _:
            found = ""
    return (found,) if found else ()


def _of_command(command: str, environ: Mapping[str, str]) -> str:
    """What speaks against a command here. A program that is missing may come with the task."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        return f"no line of shell: {error}"
    first = next((word for word in words if "=" not in word), "")
    known = not _WORD.fullmatch(first) or _is_known(first, environ)
    return "" if known else f"{first} is not installed here"


def _is_known(word: str, environ: Mapping[str, str]) -> bool:
    """True for a program on PATH, or a word that a shell knows by itself."""
    asked = ("sh", "-c", 'command -v "$1"', "sh", word)
    return subprocess.run(asked, env=environ, capture_output=True, check=False).returncode == 0


def fitted(file: TaskFile, proposal: Proposal) -> Proposal:
    """The tasks that are not there by now, with ids that are free. ConfigError if none is left."""
    listing = file.load().backlog
    taken = frozenset((*listing.known, *(task.id for task in listing.tasks)))
    left = _fitted(proposal, ((task.id, task.title) for task in listing.tasks), taken)
    if not left.tasks:
        raise ConfigError("these tasks are there already", "See them: ralph tasks list")
    return left


def add(file: TaskFile, proposal: Proposal) -> Proposal:
    """Append the tasks, all or none; as they were added, since the list may have changed after it
    was shown."""
    added = proposal

    def change(records: list[dict[str, Any]], taken: frozenset[str]) -> list[dict[str, Any]]:
        nonlocal added
        there = ((record["id"], str(record.get("title") or "")) for record in records)
        added = _fitted(proposal, there, taken)
        now = iso(datetime.now(UTC))
        times = {"createdAt": now, "updatedAt": now}
        return [
            {"id": r["id"], "title": r["title"], "status": Status.PENDING.value, **r, **times}
            for r in added.tasks
        ]

    file.change_all(change)
    return added


def _fitted(
    proposal: Proposal, there: Iterable[tuple[str, str]], taken: frozenset[str]
) -> Proposal:
    known = titles(there)
    ids = {r["id"]: known[same(r["title"])] for r in proposal.tasks if same(r["title"]) in known}
    left = tuple(record for record in proposal.tasks if record["id"] not in ids)
    used = {*taken, *(record["id"] for record in left)}
    for old in (record["id"] for record in left if record["id"] in taken):
        ids[old] = next_id(used)
        used.add(ids[old])
    return with_ids(replace(proposal, tasks=left), ids)


def words_of(added: Proposal, proposal: Proposal) -> str:
    """`Added T-001 and T-002`, with what has become different since it was shown."""
    words = f"Added {listed([record['id'] for record in added.tasks], 20)}"
    less = len(proposal.tasks) - len(added.tasks)
    return f"{words}; {less} of them are there already" if less else words
