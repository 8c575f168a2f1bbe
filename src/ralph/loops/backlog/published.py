"""The pull requests of a backlog: whose branch they are, and what they tell."""

from typing import Any

from ralph.kernel.ports import Gates
from ralph.kernel.state import RunState
from ralph.loops.backlog.parallel.worktrees import branch_of
from ralph.loops.backlog.plan import TaskWork
from ralph.loops.backlog.policy import Publishing
from ralph.loops.backlog.store.task_file import TaskFile
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
            return Subject(title, str(record.get("description") or ""), _issue_of(record))
        done = tuple(dict.fromkeys((*(work.task for work in state.delivered), state.task)))
        return Subject(*_several(file, done), _issue_of(record) if len(done) == 1 else "")

    publish = publication(
        plan,
        run,
        about,
        law=law,
        branch=(lambda state: branch_of(state.task)) if each else None,
        below=seat.below if seat else "",
    )
    return Publishing(publish, each, parks=seat is not None)


def _issue_of(record: dict[str, Any]) -> str:
    repository = repository_of(record)
    number = str(record.get("source", {}).get("key")).rpartition("#")[2] if repository else ""
    return f"{repository}#{number}" if number else ""


def _several(file: TaskFile, tasks: tuple[str, ...]) -> tuple[str, str]:
    """The title and the text of a pull request for several tasks."""
    titles = {task: str((file.record(task) or {}).get("title") or "") for task in tasks}
    lines = [f"{task}: {title}".rstrip(": ") for task, title in titles.items()]
    if len(lines) == 1:
        return lines[0], ""
    return f"{len(lines)} tasks: {', '.join(tasks)}", "\n".join(lines[:_MOST_NAMED])
