"""`ralph tasks add`: a new task, from options or by answering a few questions."""

import os
import re
import sys
from typing import Any

import click

from ralph.cli.asking import ask, dialogue
from ralph.cli.params import in_directory, option
from ralph.cli.tasks.common import in_json, needed, task_file, tell
from ralph.cli.tasks.fields import described, fields_of, title_of
from ralph.errors import ConfigError
from ralph.kernel.tasks.completion import spelled
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.ui.terminal import is_terminal


@click.command(
    epilog="""\b
Examples:
  ralph tasks add "Sort the list by date"          done when the agent says so
  ralph tasks add "Fix the parser" --completion "test:make test" --priority 2
  ralph tasks add "Write it up" -f wish.md --completion file:NEWS.md \\
      --blocked-by T-001 --tag docs --max-iterations 5
  ralph tasks add                                  asks
\b
Exit codes: 0, or 2 when nothing was added.
"""
)
@click.argument("title", required=False)
@described
@option("--id ID", "The task's id.  [default: the next number]", "task_id")
@in_json
@in_directory
def add(title: str | None, *, task_id: str | None, in_json: bool, **flags: Any) -> None:  # noqa: ANN401
    """Add a task to the backlog, and print its id.

    Without TITLE, at a terminal, it asks.
    """
    file = task_file(os.environ, needs_note=False)
    fields = fields_of(flags, file)
    if title is None:
        fields |= _asked(file)
    else:
        fields["title"] = title_of(title)
    if task_id is not None:
        if not task_id:
            raise ConfigError("--id is empty", "Leave it out for the next number.")
        fields["id"] = task_id
    record = file.add({name: found for name, found in fields.items() if found != ""})
    tell(f"Added {record['id']}: {record['title']}", record, json_wanted=in_json)


def _asked(file: TaskFile) -> dict[str, Any]:
    """The fields that a person answers; what was left blank is left out."""
    if not is_terminal(sys.stdin):
        raise ConfigError(
            "a task needs a title", 'Say what to do: ralph tasks add "Sort the list by date"'
        )

    def ids(answer: str) -> list[str]:
        found = [word.strip() for word in answer.split(",") if word.strip()]
        for task_id in found:
            needed(file, task_id)
        return list(dict.fromkeys(found))

    def priority(answer: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,9}", answer or "0"):
            raise ValueError("This must be a whole number.")
        return int(answer or "0")

    with dialogue("no task was added."):
        answers = {
            "title": ask("Title: ", title_of),
            "description": ask("Description (optional): ", str),
            "completion": ask(
                "Completion (test:COMMAND, grep:TEXT, file:PATH, validate:SCRIPT) [explicit]: ",
                lambda answer: spelled(answer) if answer else None,
            ),
            "blockedBy": ask("Blocked by (ids, comma-separated, optional): ", ids),
            "priority": ask("Priority [0]: ", priority),
        }
    return {name: answer for name, answer in answers.items() if answer}
