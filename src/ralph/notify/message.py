"""The message of a notification: one JSON object, which a command reads on standard input and finds
again in variables. Every message has every key; null is what does not apply."""

import os
from collections.abc import Mapping
from typing import Any

from ralph.kernel.state import RunState
from ralph.kernel.value import value
from ralph.kernel.verdict import Reason, Stop
from ralph.text.plain import plain

Json = dict[str, Any]

ENDED, QUESTION, BLOCKED, TEST = "ended", "question", "blocked", "test"  # the events
_LONGEST = 4000  # characters of a variable
_VARIABLES = {  # not RALPH_RUN: that would make the command one of the run's own (ADR 10)
    "RALPH_EVENT": "event",
    "RALPH_OUTCOME": "outcome",
    "RALPH_EXIT": "exit",
    "RALPH_REASON": "reason",
    "RALPH_TASK_ID": "taskId",
    "RALPH_TITLE": "title",
    "RALPH_TEXT": "text",
    "RALPH_RUN_ID": "run",
    "RALPH_WORKSPACE": "workspace",
    "RALPH_NEXT": "next",
}


@value
class About:
    """The run that a message is about; none, for a test."""

    workspace: str
    run: str | None = None
    command: str | None = None  # such as `tasks run`
    log: str | None = None  # its journal

    def message(self, event: str, title: str, text: str, **more: object) -> Json:
        """A message of this event; `more` are the keys that apply to it."""
        empty = ("outcome", "exit", "reason", "taskId", "task", "iterations", "seconds")
        return {
            "event": event,
            "title": f"ralph: {title}",
            "text": text,
            "run": self.run,
            "command": self.command,
            "workspace": self.workspace,
            **dict.fromkeys((*empty, "cost_usd", "tasks_done", "tasks_left", "commit", "next")),
            "log": self.log,
            **more,
        }

    def ended(self, stop: Stop, state: RunState, text: str, *, tasks: bool) -> Json:
        """How the run ended, which `text` says in a sentence; `tasks` if it was over several."""
        project = os.path.basename(self.workspace) or self.workspace
        spent = state.spent
        command = "resume" if stop.reason is Reason.INTERRUPTED else "status"
        return self.message(
            ENDED,
            f"{project}: {stop.reason.value}",
            text,
            outcome=stop.reason.value,
            exit=stop.reason.exit_code,
            reason=stop.why or None,
            iterations=spent.iterations,
            seconds=round(spent.seconds, 3),
            cost_usd=spent.dollars or None,
            tasks_done=sorted(state.done) if tasks else None,
            tasks_left=[task for task, _ in state.parked] if tasks else None,
            commit=state.commit or None,
            next=f"ralph {command} {self.run}",
        )

    def of_task(self, event: str, task: str, record: object, why: str) -> Json:
        """A task that asks something, or that was given up."""
        answer = f'ralph tasks answer {task} "..."' if event == QUESTION else None
        more = {"taskId": task, "task": record, "reason": why}
        return self.message(event, f"{task} {event}", why or event, **more, next=answer)


def variables(message: Mapping[str, Any]) -> dict[str, str]:
    """The message in an environment: short words, without a NUL or a secret."""
    words = {name: message.get(key) for name, key in _VARIABLES.items()}
    return {n: "" if word is None else plain(str(word), _LONGEST) for n, word in words.items()}
