"""`ralph tasks list`, `show` and `next`: what there is to do, and what comes first."""

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from ralph.cli.params import in_directory, print_lines
from ralph.cli.tasks.common import in_json as json_option
from ralph.cli.tasks.common import (
    loaded,
    needed,
    task_argument,
    task_file,
    task_option,
    which_tasks,
)
from ralph.cli.tasks.lines import nothing_ready, one_task, table, tree
from ralph.errors import ConfigError
from ralph.git.checkpoint.commit import commit_of
from ralph.kernel.case import Case
from ralph.kernel.state import NEW
from ralph.kernel.tasks.backlog import chosen, unknown_blockers
from ralph.kernel.tasks.select import blockers, next_task
from ralph.kernel.tasks.task import Backlog, Status, Task
from ralph.kernel.verdict import Boundary
from ralph.loops.backlog.store.records import Records
from ralph.loops.backlog.store.task_file import NAME, Listing
from ralph.runner.arguments import shown
from ralph.ui.safe_stream import Channel
from ralph.ui.terminal import style_here

_EMPTY = 'No tasks yet. Add one: ralph tasks add "What to do"'
_MOST_TOLD = 20
_ITERATIONS = 10  # the last ones of a task


@click.command(
    "list",
    epilog="""\b
Examples:
  ralph tasks list
  ralph tasks list --ready --tag parser
  ralph tasks list --status blocked --status review
  ralph tasks list --tree
  ralph tasks list --json | jq -r '.[].title'
\b
Lines of the file that cannot be used are named on stderr.
Exit codes: 0, or 2 when the file cannot be read.
""",
)
@which_tasks
@click.option("--type", "kind", metavar="T", help="Only this type.")
@click.option("--ready", is_flag=True, help="Only those that could be taken now.")
@click.option("--search", metavar="TEXT", help="Only those that hold this text.")
@click.option("--tree", "as_tree", is_flag=True, help="Each below what it waits for.")
@json_option
@in_directory
def list_tasks(*, in_json: bool, as_tree: bool, **which: Any) -> None:  # noqa: ANN401  see _wanted
    """List the tasks: status, id, priority, title, and what keeps them."""
    file = task_file(os.environ)
    listing = loaded(file)
    _warn(listing)
    waits = _waits(listing.backlog)
    tasks = [t for t in listing.backlog.tasks if _wanted(t, waits, **which)]
    if in_json:
        ids = {t.id for t in tasks}
        click.echo(json.dumps([r for r in file.records() if r["id"] in ids]))
    elif not listing.backlog.tasks:
        click.echo(_EMPTY)
    else:
        lines = tree if as_tree else table
        print_lines(lines(tasks, waits, style_here()))


def _waits(backlog: Backlog) -> dict[str, tuple[str, ...]]:
    """Who waits for whom."""
    case = _opening(backlog)
    return {t.id: found for t in backlog.tasks if t.blocked_by and (found := blockers(t, case))}


def _opening(backlog: Backlog) -> Case:
    """As a run that begins now would see it."""
    return Case(Boundary.OPENING, NEW, time.time(), backlog=backlog)


def _wanted(
    task: Task,
    waits: Mapping[str, tuple[str, ...]],
    *,
    statuses: tuple[str, ...],
    tags: tuple[str, ...],
    kind: str | None,
    ready: bool,
    search: str | None,
) -> bool:
    """Whether a task passes all filters."""
    text = (search or "").casefold()
    return (
        (not statuses or task.status in statuses)
        and (not tags or not set(tags).isdisjoint(task.tags))
        and (kind is None or task.kind == kind)
        and (not ready or (task.open and task.id not in waits))
        and (not text or any(text in part.casefold() for part in _parts(task)))
    )


def _parts(task: Task) -> tuple[str, ...]:
    return (task.id, task.title, task.text, task.reason, task.question, *task.tags)


def _warn(listing: Listing) -> None:
    """What the lines say together, and cannot be meant so."""
    strangers = unknown_blockers(listing.backlog)
    told = [f"{task} waits for {b}, which is not there" for task, b in strangers[:_MOST_TOLD]]
    if len(strangers) > _MOST_TOLD:
        told.append(f"{len(strangers) - _MOST_TOLD} more blockers are not there")
    if listing.cycle:
        told.append(_circle_words(listing.cycle))
    lines = [shown(f"[ralph] {NAME}: {words}") for words in told]
    Channel(sys.stderr, lambda _: None).write(lines)


def _circle_words(circle: tuple[str, ...]) -> str:
    return f"these tasks wait for each other: {' → '.join((*circle, circle[0]))}"


# ------------------------------------------------------------------ one task


@click.command(
    epilog="""\b
Examples:
  ralph tasks show T-003
  ralph tasks show T-003 --json | jq .evidence
\b
Exit codes: 0, or 2 when there is no such task.
"""
)
@task_argument
@json_option
@in_directory
def show(task_id: str, *, in_json: bool) -> None:
    """Show all that is known of a task: its fields, what it waits for, its last iterations.

    --json prints the task, with `blockers` ({id, status} each) and `progress` beside its fields; of
    one that is done also the `tree` that was proven and its `commit`.
    """
    file = task_file(os.environ)
    record = needed(file, task_id)
    backlog = file.load().backlog
    known = {t.id: t for t in backlog.tasks}
    progress = Records(file.workspace, "").progress_of(task_id, _ITERATIONS)
    proof = _proof(record, file.workspace, progress)
    if in_json:
        named = [_state(b, known) for b in known[task_id].blocked_by]
        click.echo(json.dumps({**record, **proof, "blockers": named, "progress": progress}))
    else:
        style = style_here()
        print_lines(one_task({**record, **proof}, known, progress, style))


def _proof(
    record: Mapping[str, Any], workspace: str, progress: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Of a task that is done: the tree that was proven, and the commit that holds it (ADR 33)."""
    evidence = record.get("evidence")
    if not isinstance(evidence, dict) or record.get("status") != Status.DONE:
        return {}
    runs = [str(entry["run"]) for entry in progress if entry.get("run")]
    commit = commit_of(workspace, os.environ, runs[-1] if runs else "", record["id"])
    return {"tree": evidence.get("tree"), "commit": commit or None}


def _state(task_id: str, known: Mapping[str, Task]) -> dict[str, str | None]:
    task = known.get(task_id)
    return {"id": task_id, "status": task.status.value if task else None}


# ------------------------------------------------------------------ the next


@click.command(
    "next",
    epilog="""\b
Examples:
  ralph tasks next
  ralph tasks next --tag parser --json | jq -r .id
\b
Exit codes: 0, also when there is none (null); 2 for an unknown id, or tasks
that wait for each other.
""",
)
@task_option("--task", "Only this one.")
@click.option("--tag", "tags", metavar="T", multiple=True, help="Only those with any such tag.")
@json_option
@in_directory
def next_one(*, task: str | None, tags: tuple[str, ...], in_json: bool) -> None:
    """Say which task would be taken next.

    One that is in progress comes first, then the highest priority, then the oldest.
    """
    file = task_file(os.environ)
    listing = loaded(file)
    if listing.cycle:
        remedy = f"Let one go: ralph tasks edit {listing.cycle[0]} --unblock {_second(listing)}"
        raise ConfigError(_circle_words(listing.cycle), remedy)
    if task is not None:
        needed(file, task)
    backlog = chosen(listing.backlog, task, tags)
    found = next_task(_opening(backlog))
    if in_json:
        click.echo(json.dumps(needed(file, found.task) if found else None))
    elif found is None:
        asked_for = [t for t in backlog.tasks if not t.aside]
        click.echo(nothing_ready(asked_for, _waits(backlog)) if backlog.tasks else _EMPTY)
    else:
        click.echo(shown(f"{found.task}: {found.title}"))


def _second(listing: Listing) -> str:
    return (listing.cycle * 2)[1]
