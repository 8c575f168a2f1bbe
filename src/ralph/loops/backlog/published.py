"""The pull requests of a backlog: whose branch they are, and what they tell."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ralph.git.branch import branch_of
from ralph.kernel.ports import Gates
from ralph.kernel.state import RunState
from ralph.loops.backlog.plan import TaskWork
from ralph.loops.backlog.policy import Publishing
from ralph.loops.backlog.tracker.sync import repository_of
from ralph.runner.plan import Plan
from ralph.runner.wired import RunContext

_MOST_NAMED = 50


def publishing_of(plan: Plan[TaskWork], run: RunContext, law: Gates) -> Publishing:
    """How the tasks of a run, or the one of a worker, are published."""
    if plan.destination is None:
        return Publishing()
    from ralph.runner.publishing.pull_words import Subject
    from ralph.runner.publishing.setup import publication

    file, each, seat = plan.work.backlog.file, plan.settings.pr.mode != "per-run", plan.work.seat

    def about(state: RunState) -> Subject:
        record = file.record(state.task) or {}
        if each:
            title = f"{state.task}: {record.get('title') or ''}".rstrip(": ")
            return Subject(title, str(record.get("description") or ""), _issues_of([record]))
        done = tuple(dict.fromkeys((*(work.task for work in state.delivered), state.task)))
        records = [file.record(task) or {"id": task} for task in done]
        return Subject(*_several(records), _issues_of(records))

    publish = publication(
        plan,
        run,
        about,
        law=law,
        branch=(lambda state: branch_of(state.task)) if each else None,
        below=seat.below if seat else "",
    )
    return Publishing(publish, each, parks=seat is not None)


def _issues_of(records: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The issues at GitHub that tasks came from."""
    found = ((repository_of(dict(record)), record) for record in records)
    keys = ((name, str(record["source"].get("key"))) for name, record in found if name)
    return tuple(f"{name}#{key.rpartition('#')[2]}" for name, key in keys)


def _several(records: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """The title and the text of one pull request for several tasks."""
    lines = [f"{record['id']}: {record.get('title') or ''}".rstrip(": ") for record in records]
    if len(lines) == 1:
        return lines[0], ""
    title = f"{len(lines)} tasks: {', '.join(str(record['id']) for record in records)}"
    return title, "\n".join(lines[:_MOST_NAMED])
