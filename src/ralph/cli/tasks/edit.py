"""`ralph tasks edit` and `answer`: change a task, and let one go on that asked something."""

import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click

from ralph.cli.params import in_directory, option
from ralph.cli.tasks.common import (
    a_status,
    in_json,
    read_text,
    task_argument,
    task_file,
    task_option,
    tell,
)
from ralph.cli.tasks.fields import GUARDED, described, fields_of, title_of
from ralph.errors import ConfigError
from ralph.journal.write_access import refuse_own_backlog
from ralph.kernel.tasks.backlog import ENDED, TRANSITIONS, legal
from ralph.kernel.tasks.task import Status
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.runner.arguments import current_directory, proper, refuse_agents, shown
from ralph.text.timestamps import iso

# Of another status. What a person brings back has its limits anew.
_NO_LONGER = dict.fromkeys(("reason", "question", "completedAt", "spent"))
Record = Mapping[str, Any]


@click.command(
    epilog="""\b
Examples:
  ralph tasks edit T-003 --priority 5 --tag parser
  ralph tasks edit T-003 --blocked-by T-001 --unblock T-002
  ralph tasks edit T-003 --status cancelled --note "not needed any more"
  ralph tasks edit T-003 --reopen
\b
Exit codes: 0, or 2 when nothing was changed.
"""
)
@task_argument
@option("--title TEXT", "Change the title.")
@described
@option("--status S", f"One of {', '.join(Status)}.", type=a_status)
@option("--reopen", "Reopen a task that is done or cancelled.")
@option("--note TEXT", "Add a note.")
@task_option("--unblock", "Stop waiting for this task; repeat for more.", multiple=True)
@option("--untag T", "Remove a tag; repeat for more.", multiple=True)
@in_json
@in_directory
def edit(task_id: str, *, in_json: bool, **flags: Any) -> None:  # noqa: ANN401  see described
    """Change a task. Tags and blockers are added to those there are.

    An empty text removes a field: --parent "". A status that cannot follow is refused.
    """
    if all(given is None or given is False or given == () for given in flags.values()):
        raise ConfigError("nothing to change", "See what can be: ralph tasks edit --help")
    if flags["status"] and flags["reopen"]:
        raise click.UsageError("--status and --reopen exclude each other.")
    if flags["status"] in ENDED or flags["reopen"]:
        what = "--reopen" if flags["reopen"] else f"--status {flags['status']}"
        refuse_agents(os.environ, f"say {what}")
    for guarded in (name for name in GUARDED if flags[name] is not None):
        refuse_agents(os.environ, f"change its own task by --{guarded.replace('_', '-')}")
    refuse_own_backlog(os.environ, current_directory())
    file = task_file(os.environ)
    fields = fields_of(flags, file)
    if flags["title"] is not None:
        fields["title"] = title_of(flags["title"])
    before: dict[str, Any] = {}

    def change(old: dict[str, Any]) -> Record | None:
        before.update(old)
        changes = _changes(old, fields, flags)
        return {n: found for n, found in changes.items() if found != old.get(n)} or None

    record = file.update(task_id, change)
    both = {**before, **record}
    names = [n for n in both if before.get(n) != record.get(n) and n != "updatedAt"]
    changed = ", ".join(f"status {record['status']}" if n == "status" else n for n in names)
    words = f"Changed {task_id}: {changed}" if names else f"{task_id} was so already"
    tell(words, record, json_wanted=in_json)


def _changes(old: Record, fields: Record, flags: Mapping[str, Any]) -> Record:
    """The fields that change; an empty one goes."""
    new: dict[str, Any] = {**fields, **_status(old, flags)}
    for name, taken in (("tags", flags["untag"]), ("blockedBy", flags["unblock"])):
        there = old.get(name) or []
        for item in (item for item in taken if item not in there):
            what = "has no tag" if name == "tags" else "does not wait for"
            has = f"It has: {', '.join(there)}" if there else "It has none."
            raise ConfigError(f"{old['id']} {what} {item}", has)
        if taken or name in fields:
            both = (*there, *fields.get(name, ()))
            new[name] = [item for item in dict.fromkeys(both) if item not in taken] or None
    if "limits" in fields:
        new["limits"] = {**(old.get("limits") or {}), **fields["limits"]}
    if flags["note"] is not None:
        new["notes"] = _noted(old.get("notes"), flags["note"])
    return {name: None if found == "" else found for name, found in new.items()}


def _noted(notes: object, text: str) -> object:
    """Notes are a text, or a list where someone made them one."""
    note = proper(text, "--note").strip()
    if not note:
        raise ConfigError("--note is blank", "Say what is to be noted: --note TEXT")
    if isinstance(notes, list):
        return [*notes, note]
    return f"{notes}\n{note}" if notes else note


def _status(old: Record, flags: Mapping[str, Any]) -> Record:
    """The fields that another status changes."""
    status, task = Status(old.get("status", Status.PENDING)), old["id"]
    if flags["reopen"]:
        if status not in ENDED:
            only = "Only what is done or cancelled can be reopened."
            raise ConfigError(f"{task} is {status.value}", f"{only} See: ralph tasks show {task}")
        return {**_NO_LONGER, "evidence": None, "status": Status.PENDING.value}
    if flags["status"] is None or flags["status"] == status:
        return {}
    new = Status(flags["status"])
    if not legal(status, new):
        following = ", ".join(s.value for s in Status if s in TRANSITIONS[status])
        remedy = f"It can become {following}."
        if status in ENDED:
            remedy = f"Bring it back first: ralph tasks edit {task} --reopen"
        raise ConfigError(f"{task} is {status.value} and cannot become {new.value}", remedy)
    at = iso(datetime.now(UTC)) if new is Status.DONE else None
    return {**_NO_LONGER, "completedAt": at, "status": new.value}


@click.command(
    epilog="""\b
Examples:
  ralph tasks answer T-003 "Use SQLite."
  ralph tasks answer T-003 - < answer.md
  ralph tasks list --status blocked         who asks what
\b
Exit codes: 0, or 2 when that task asked nothing.
"""
)
@task_argument
@click.argument("text")
@in_json
@in_directory
def answer(task_id: str, text: str, *, in_json: bool) -> None:
    """Answer a task's question, and make it pending again.

    Its next prompt contains the answer. TEXT - is read from standard input.
    """
    refuse_agents(os.environ, "answer a question")
    refuse_own_backlog(os.environ, current_directory())
    words = read_text("-", "the answer", sys.stdin) if text == "-" else proper(text, "the answer")
    words = words.strip()
    if not words:
        remedy = f'Say something: ralph tasks answer {task_id} "..."'
        raise ConfigError("the answer is blank", remedy)
    file = task_file(os.environ)

    def change(old: dict[str, Any]) -> Record:
        if not old.get("question") or Status(old.get("status", "pending")) in ENDED:
            raise _asked_nothing(file, task_id)
        answers = [*(old.get("answers") or ()), words]
        return {**_NO_LONGER, "answers": answers, "status": Status.PENDING.value}

    record = file.update(task_id, change)
    tell(f"{task_id} is pending again, with your answer.", record, json_wanted=in_json)


def _asked_nothing(file: TaskFile, task_id: str) -> ConfigError:
    tasks = file.load().backlog.tasks
    waiting = [f"{t.id}: {t.question}" for t in tasks if t.question and t.status not in ENDED]
    some = f"These wait for an answer: {shown('; '.join(waiting[:10]))}"
    return ConfigError(
        f"{task_id} asked nothing", some if waiting else "No task waits for an answer."
    )
