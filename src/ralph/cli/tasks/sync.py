"""`ralph tasks sync`: tells the lists that tasks came from what is done."""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from ralph.cli.params import in_directory, option
from ralph.cli.tasks.common import in_json, loaded, task_file
from ralph.kernel.tasks.task import Status
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.loops.backlog.tracker.github import runner
from ralph.loops.backlog.tracker.sync import (
    How,
    Synced,
    Trackers,
    evidence_words,
    repository_of,
    told,
)
from ralph.runner.arguments import current_directory, refuse_agents, shown
from ralph.text.timestamps import iso

_MARKS = {How.MARKED: "+", How.CONFLICT: "!", How.FAILED: "!"}
_UNTOLD = 1  # exit code: some list could not be told
Record = Mapping[str, Any]


@click.command(
    epilog="""\b
Examples:
  ralph tasks sync --dry-run
  ralph tasks sync
\b
A run does this for each task; this command is for what a run could not do.
An item that somebody changed meanwhile is named, and left as it is.
Exit codes: 0; 1 when some list could not be updated.
"""
)
@option("--dry-run", "Say what would happen, and write nothing.")
@in_json
@in_directory
def sync(*, dry_run: bool, in_json: bool) -> None:
    """Mark done tasks in the lists they came from: a box, `passes`, an issue."""
    refuse_agents(os.environ, "tell other lists what is done")
    file = task_file(os.environ)
    loaded(file)
    workspace = current_directory()
    trackers = Trackers(workspace, runner(workspace, os.environ), write=not dry_run)
    done = [r for r in file.records() if r.get("status") == Status.DONE and r.get("source")]
    found = _told(trackers, done)
    if not dry_run:
        _remember(file, found)
    if in_json:
        click.echo(
            json.dumps([{"id": r["id"], "how": s.how.value, "words": s.words} for r, s in found])
        )
    else:
        click.echo("\n".join(_lines(found, dry_run=dry_run)))
    if any(synced.how in (How.CONFLICT, How.FAILED) for _, synced in found):
        click.get_current_context().exit(_UNTOLD)


def _told(trackers: Trackers, tasks: Sequence[Record]) -> list[tuple[Record, Synced]]:
    """Tell the lists; what became of each task. To ask for an issue takes a while: one that knows
    it is not asked again."""
    known = Synced(How.ALREADY, "told before")
    new = [
        r for r in tasks if not (repository_of(r) and told(r, done=True)["source"] == r["source"])
    ]
    said = trackers.mark_all([(r, evidence_words(r)) for r in new], done=True)
    heard = {r["id"]: synced for r, synced in zip(new, said, strict=True)}
    return [(r, heard.get(r["id"], known)) for r in tasks]


def _remember(file: TaskFile, found: Sequence[tuple[Record, Synced]]) -> None:
    """Keep that the lists say so: then somebody who opens an item again there is heard."""
    heard = {r["id"]: r for r, synced in found if synced.how in (How.MARKED, How.ALREADY)}

    def change(records: list[dict[str, Any]], _: frozenset[str]) -> list[dict[str, Any]]:
        same = [r for r in records if r["id"] in heard and r.get("source")]
        new = [(r, told(r, done=True)) for r in same]
        now = iso(datetime.now(UTC))
        return [{**r, **n, "updatedAt": now} for r, n in new if n["source"] != r["source"]]

    if any(told(r, done=True)["source"] != r["source"] for r in heard.values()):
        file.change_all(change)


def _lines(found: Sequence[tuple[Record, Synced]], *, dry_run: bool) -> list[str]:
    words = {
        How.NOTHING: "with nobody to tell",
        How.MARKED: "to mark" if dry_run else "marked",
        How.ALREADY: "marked before",
        How.CONFLICT: "in conflict",
        How.FAILED: "failed",
    }
    count = Counter(synced.how for _, synced in found)
    parts = [f"{count[how]} {words[how]}" for how in How if count[how]]
    lines = [", ".join(parts) or "Nothing to tell: no task that is done came from a list."]
    for record, synced in found:
        if synced.how in _MARKS:
            lines.append(shown(f"  {_MARKS[synced.how]} {record['id']}: {synced.words}"))
    return [*lines, *(["Nothing was written."] if dry_run else [])]
