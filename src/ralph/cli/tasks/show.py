"""`ralph tasks list`, `show`, `next` and `learn`: shows tasks, the next one, and past ones."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from ralph.cli.params import in_directory, option, print_lines
from ralph.cli.tasks.common import (
    in_json,
    loaded,
    needed,
    only_tags,
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
from ralph.runner.arguments import current_directory, shown, warn
from ralph.ui.terminal import style_here

_EMPTY = 'No tasks yet. Add one: ralph tasks add "What to do"'
_MOST_TOLD = 20
_ITERATIONS = 10  # the last ones of a task
_MOST_LESSONS = 100_000


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
@option("--type T", "Only this type.", "kind")
@option("--ready", "Only tasks that could be taken now.")
@option("--search TEXT", "Only tasks that contain this text.")
@option("--tree", "Show each task below those it waits for.", "as_tree")
@in_json
@in_directory
def list_tasks(*, in_json: bool, as_tree: bool, **which: Any) -> None:  # noqa: ANN401  see _wanted
    """List the tasks: status, id, priority, title, and what blocks them."""
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
    """The tasks that each task waits for."""
    case = _opening(backlog)
    return {t.id: found for t in backlog.tasks if t.blocked_by and (found := blockers(t, case))}


def _opening(backlog: Backlog) -> Case:
    """The case that a run which begins now would see."""
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
    """True if a task passes all filters."""
    text = (search or "").casefold()
    parts = (task.id, task.title, task.text, task.reason, task.question, *task.tags)
    return (
        (not statuses or task.status in statuses)
        and (not tags or not set(tags).isdisjoint(task.tags))
        and (kind is None or task.kind == kind)
        and (not ready or (task.open and task.id not in waits))
        and (not text or any(text in part.casefold() for part in parts))
    )


def _warn(listing: Listing) -> None:
    """Tell of what the lines say together, and cannot be meant so."""
    strangers = unknown_blockers(listing.backlog)
    told = [f"{task} waits for {b}, which is not there" for task, b in strangers[:_MOST_TOLD]]
    if len(strangers) > _MOST_TOLD:
        told.append(f"{len(strangers) - _MOST_TOLD} more blockers are not there")
    if listing.cycle:
        told.append(_circle_words(listing.cycle))
    warn(*(f"{NAME}: {words}" for words in told))


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
@in_json
@in_directory
def show(task_id: str, *, in_json: bool) -> None:
    """Show everything about a task: its fields, what it waits for, its last iterations.

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
        named = [
            {"id": b, "status": known[b].status.value if b in known else None}
            for b in known[task_id].blocked_by
        ]
        click.echo(json.dumps({**record, **proof, "blockers": named, "progress": progress}))
    else:
        print_lines(one_task({**record, **proof}, known, progress, style_here()))


def _proof(
    record: Mapping[str, Any], workspace: str, progress: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The tree of a done task that was proven, and the commit that holds it (ADR 33)."""
    evidence = record.get("evidence")
    if not isinstance(evidence, dict) or record.get("status") != Status.DONE:
        return {}
    runs = [str(entry["run"]) for entry in progress if entry.get("run")]
    commit = commit_of(workspace, os.environ, runs[-1] if runs else "", record["id"])
    return {"tree": evidence.get("tree"), "commit": commit or None}


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
@only_tags
@in_json
@in_directory
def next_one(*, task: str | None, tags: tuple[str, ...], in_json: bool) -> None:
    """Say which task would be taken next.

    One that is in progress comes first, then the highest priority, then the oldest.
    """
    file = task_file(os.environ)
    listing = loaded(file)
    if listing.cycle:
        first, second = (listing.cycle * 2)[:2]
        remedy = f"Let one go: ralph tasks edit {first} --unblock {second}"
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


# ------------------------------------------------------------------ past tasks


@click.command(
    epilog="""\b
Examples:
  ralph tasks learn                 all tasks that ended, by type
  ralph tasks learn --type bug      only those of one type
  ralph tasks learn --json | jq .total.ratio.mean
\b
It reads .ralph/learning.jsonl. A task counts once, with all its tries;
estimates are iterations or a time (3, 2h), and only tasks that are done are
held against theirs.
"""
)
@option("--type TYPE", "Only tasks of this type.", "kind")
@in_json
@in_directory
def learn(kind: str | None, *, in_json: bool) -> None:
    """Show what tasks took, against their estimates, and what blocked them."""
    from ralph.loops.backlog.learning import lessons_of, summary
    from ralph.loops.backlog.learning_report import learning_dict, learning_lines

    lessons = lessons_of(Records(current_directory(), "").lessons(_MOST_LESSONS))
    asked = [lesson for lesson in lessons if kind is None or lesson.kind == kind]
    if in_json:
        click.echo(json.dumps(learning_dict(summary(asked)), indent=2))
    elif asked:
        click.echo("\n".join(learning_lines(summary(asked))))
    elif lessons:
        known = ", ".join(sorted({lesson.kind or "(no type)" for lesson in lessons}))
        click.echo(f"No task of type {kind} has ended yet. There are: {known}")
    else:
        click.echo("Nothing was learned here yet: no task has ended. Work on some: ralph tasks run")
