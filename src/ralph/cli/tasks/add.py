"""`ralph tasks add`: a new task, from options or by answering a few questions."""

import os
import re
import sys
from typing import Any

import click

from ralph.cli.asking import ask, dialogue
from ralph.cli.params import in_directory
from ralph.cli.tasks.common import in_json as json_option
from ralph.cli.tasks.common import needed, task_file, tell
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
@click.option("--id", "task_id", metavar="ID", help="Its id; without it the next number.")
@json_option
@in_directory
def add(title: str | None, *, task_id: str | None, in_json: bool, **flags: Any) -> None:  # noqa: ANN401
    """Add a task to the backlog, and print its id.

    Without TITLE, at a terminal, you are asked.
    """
    file = task_file(os.environ, needs_note=False)
    fields = fields_of(flags, file)
    if title is None:
        fields |= _asked(file)
    else:
        fields["title"] = title_of(title)
    if task_id is not None:
        fields["id"] = _named(task_id)
    record = file.add({name: found for name, found in fields.items() if found != ""})
    tell(f"Added {record['id']}: {record['title']}", record, json_wanted=in_json)


def _named(task_id: str) -> str:
    if not task_id:
        raise ConfigError("--id is empty", "Leave it out for the next number.")
    return task_id


# ------------------------------------------------------------------ asking


def _asked(file: TaskFile) -> dict[str, Any]:
    if not is_terminal(sys.stdin):
        raise ConfigError(
            "a task needs a title", 'Say what to do: ralph tasks add "Sort the list by date"'
        )
    with dialogue("no task was added."):
        return _answers(file)


def _answers(file: TaskFile) -> dict[str, Any]:
    """What the person wants; what was left blank is left out."""
    answers = {
        "title": ask("Title: ", title_of),
        "description": ask("Description (optional): ", str),
        "completion": ask(
            "Completion (test:COMMAND, grep:TEXT, file:PATH, validate:SCRIPT) [explicit]: ",
            lambda answer: spelled(answer) if answer else None,
        ),
        "blockedBy": ask(
            "Blocked by (ids, comma-separated, optional): ", lambda answer: _ids(answer, file)
        ),
        "priority": ask("Priority [0]: ", _priority),
    }
    return {name: answer for name, answer in answers.items() if answer}


def _ids(answer: str, file: TaskFile) -> list[str]:
    ids = [word.strip() for word in answer.split(",") if word.strip()]
    for task_id in ids:
        needed(file, task_id)
    return list(dict.fromkeys(ids))


def _priority(answer: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,9}", answer or "0"):
        raise ValueError("This must be a whole number.")
    return int(answer or "0")
