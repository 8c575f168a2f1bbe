"""What is asked below a server's root, and the tasks of a backlog."""

import time
from collections.abc import Iterable, Iterator
from typing import Any

from ralph.journal.runs import Run, account_of, runs_of
from ralph.kernel.case import Case
from ralph.kernel.state import NEW
from ralph.kernel.tasks.select import blockers
from ralph.kernel.tasks.task import ENDED, Task
from ralph.kernel.value import value
from ralph.kernel.verdict import Boundary, Reason
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.mcp import tools
from ralph.mcp.pending import ToolAnswer, cut, known
from ralph.mcp.scope import KeptPlace, Scope
from ralph.runner.kept import loop_of
from ralph.text.plain import plain

_MOST_TASKS = 100
_MOST_QUESTIONS = 50


@value
class AskedQuestion:
    """What somebody wants to know. Without a task it is a run's, which has ended with it."""

    place: KeptPlace
    text: str
    task: str = ""
    title: str = ""
    run: str = ""


def asked(scope: Scope) -> Iterator[AskedQuestion]:
    """The open questions below the root: of tasks, and of last runs that have none."""
    for place in scope.places():
        runs = runs_of(place.project)
        elsewhere = scope.outside(place.workspace)
        tasks = () if elsewhere else TaskFile(place.workspace).read().backlog.tasks
        open_ones = list(filter(is_asking, tasks))
        by = next((run.id for run in runs if _has_tasks(run)), "") if open_ones else ""
        for task in open_ones:
            yield AskedQuestion(place, task.question, task.id, task.title, by)
        if not runs or runs[0].live or _has_tasks(runs[0]):
            continue
        stop = account_of(runs[0]).state.stop
        if stop is not None and stop.reason is Reason.BLOCKED:
            yield AskedQuestion(place, stop.why, run=runs[0].id)


def is_asking(task: Task) -> bool:
    """True for a task that waits for an answer."""
    return bool(task.question) and task.status not in ENDED


def _has_tasks(run: Run) -> bool:
    """True for a run whose tasks can be answered."""
    loop, _ = loop_of(run.directory)
    return loop is not None and loop.answer is not None


def questions(scope: Scope, wish: tools.QuestionsInput) -> ToolAnswer:
    found = list(asked(scope))
    told = [
        known(
            {
                "task": each.task,
                "title": each.title,
                "run": each.run,
                "question": cut(each.text),
                "directory": each.place.workspace,
            }
        )
        for each in found[:_MOST_QUESTIONS]
    ]
    after = "`wait` for a run that goes on, or `status`."
    if told:
        after = "`answer` each, or ask the person you work for."
    data = {"questions": told, "more": len(found) - len(told), "next": after}
    lines = [f"{each.task or each.run}: {cut(each.text)}" for each in found[:_MOST_QUESTIONS]]
    lines += [f"and {data['more']} more"] if data["more"] else []
    return ToolAnswer("\n".join([*(lines or ["Nothing is asked."]), f"Next: {after}"]), data)


def tasks_list(scope: Scope, wish: tools.TasksListInput) -> ToolAnswer:
    """The tasks behind one, as many as fit."""
    directory = scope.within(wish.directory)
    file = TaskFile(directory)
    backlog = file.load().backlog
    tasks = list(backlog.tasks)
    if wish.after is not None:
        file.needed(wish.after)
        tasks = tasks[[task.id for task in tasks].index(wish.after) + 1 :]
    tasks = [task for task in tasks if wish.status in (None, task.status.value)]
    case = Case(Boundary.OPENING, NEW, time.time(), backlog=backlog)
    shown, more = tasks[:_MOST_TASKS], max(0, len(tasks) - _MOST_TASKS)
    told = [_task(task, blockers(task, case)) for task in shown]
    after = f'the rest: `tasks_list` with after "{shown[-1].id}".' if more else ""
    after = after or ("`start` with loop." if tasks else "`tasks_add` adds one.")
    data = {"directory": directory, "tasks": told, "more": more, "next": after}
    lines = [f"{task.id} {task.status.value}: {plain(task.title)}" for task in shown]
    return ToolAnswer("\n".join([*lines, f"Next: {after}"]), data)


def _task(task: Task, waits_for: Iterable[str]) -> dict[str, Any]:
    return known(
        {
            "id": task.id,
            "title": cut(task.title),
            "status": task.status.value,
            "priority": task.priority,
            "waits_for": list(waits_for),
            "question": cut(task.question),
            "reason": cut(task.reason),
        }
    )
