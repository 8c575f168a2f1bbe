"""Answers to the questions of tasks."""

from collections.abc import Mapping
from typing import Any

from ralph.errors import ConfigError
from ralph.kernel.tasks.task import ENDED, Status
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.runner.arguments import proper, shown

# Of another status. What a person brings back has its limits anew.
NO_LONGER = dict.fromkeys(("reason", "question", "completedAt", "spent"))
_MOST_SHOWN = 10


def answer(file: TaskFile, task_id: str, text: str) -> dict[str, Any]:
    """Answer what a task has asked: it is pending again, and its next prompt holds the answer."""
    words = proper(text, "the answer").strip()
    if not words:
        remedy = f'Say something: ralph tasks answer {task_id} "..."'
        raise ConfigError("the answer is blank", remedy)

    def change(old: dict[str, Any]) -> Mapping[str, Any]:
        if not old.get("question") or Status(old.get("status", "pending")) in ENDED:
            tasks = file.load().backlog.tasks
            asking = [
                f"{t.id}: {t.question}" for t in tasks if t.question and t.status not in ENDED
            ]
            some = f"These wait for an answer: {shown('; '.join(asking[:_MOST_SHOWN]))}"
            none = "No task waits for an answer."
            raise ConfigError(f"{task_id} asked nothing", some if asking else none)
        answers = [*(old.get("answers") or ()), words]
        return {**NO_LONGER, "answers": answers, "status": Status.PENDING.value}

    return file.update(task_id, change)
