"""`ralph tasks add`, `edit` and `answer`: a new task, a changed one, one that asked something."""

import os
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click

from ralph.cli.asking import ask, dialogue
from ralph.cli.base import command
from ralph.cli.params import option, the_usual, together
from ralph.cli.tasks.common import (
    a_status,
    read_text,
    task_argument,
    task_file,
    task_option,
    tell,
)
from ralph.errors import ConfigError
from ralph.files.state_dir import project_dir, state_root
from ralph.journal.write_access import refuse_own_backlog
from ralph.kernel.tasks.completion import spelled
from ralph.kernel.tasks.task import ENDED, TRANSITIONS, Status, legal
from ralph.kernel.world import Origin
from ralph.loops.backlog.store.answering import NO_LONGER
from ralph.loops.backlog.store.answering import answer as answered
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.runner.arguments import current_directory, proper, refuse_agents
from ralph.runner.steering import told_of
from ralph.text.timestamps import iso
from ralph.ui.style import is_terminal

_LONGEST_TITLE = 500
# What an agent must not loosen for itself.
_GUARDED = ("completion", "max_iterations", "max_time", "max_cost")
Record = Mapping[str, Any]


def _estimate(text: str) -> float | str:
    """Iterations, also parts of one, or a time, which stays as it is written."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhd]?)", text)
    if found is None:
        raise click.BadParameter(f"{text!r} is neither iterations such as 3 nor a time such as 2h.")
    return text if found[2] else float(text)


def _rule(text: str) -> dict[str, object]:
    try:
        return spelled(proper(text, "--completion"))
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from None


_described = together(  # everything that says what a task is, but its title and status
    option("-d, --description TEXT", "What the agent is told."),
    option("-f FILE", "The description from a file; - is standard input.", "description_file"),
    option("--type T", "feature, bug, docs, anything.", "kind"),
    option("--priority N", "A whole number; higher comes first.  [default: 0]"),
    option("--tag T", "A tag; repeat for more.", "tags", multiple=True),
    task_option("--blocked-by", "A task that must be done first; repeat for more.", multiple=True),
    task_option("--parent", "The task that this one is a part of."),
    option("--estimate N", "What it may take: iterations, or a time: 3, 2h.", type=_estimate),
    option(
        "--completion RULE",
        "What proves it: explicit (the agent's word), test:COMMAND, grep:TEXT, file:PATH, "
        "validate:SCRIPT.  [default: explicit]",
        type=_rule,
    ),
    option("--max-iterations N", "Maximum number of iterations.  [default: the run's, 10]"),
    option("--max-time DURATION", "Maximum time of work.  [default: the run's, 30m]"),
    option("--max-cost USD", "Maximum cost in dollars.  [default: the run's, 5]"),
)


def _title(text: str) -> str:
    """A title on one line."""
    title = _one_line(text, "the title")
    if not title:
        raise ConfigError("the title is blank", 'Say what to do: ralph tasks add "Sort the list"')
    if len(title) > _LONGEST_TITLE:
        remedy = "Put the rest into the description: -d TEXT or -f FILE"
        raise ConfigError(f"the title is longer than {_LONGEST_TITLE} characters", remedy)
    return title


def _fields(flags: Mapping[str, Any], file: TaskFile) -> dict[str, Any]:
    """The fields that the options say; lists and limits hold what was asked for, not more."""
    text, path = flags["description"], flags["description_file"]
    if text is not None and path is not None:
        raise click.UsageError("--description and -f exclude each other.")
    if path is not None:
        text = read_text(path, "the description", sys.stdin)
    elif text is not None:
        text = proper(text, "the description")
    limits = {
        "maxIterations": flags["max_iterations"],
        "maxTime": _whole(flags["max_time"]),
        "maxCost": _whole(flags["max_cost"]),
    }
    fields = {
        "description": text,
        "type": None if flags["kind"] is None else _one_line(flags["kind"], "--type"),
        "priority": flags["priority"],
        "tags": [_one_line(tag, "--tag") for tag in dict.fromkeys(flags["tags"])] or None,
        "blockedBy": list(dict.fromkeys(flags["blocked_by"])) or None,
        "parent": flags["parent"],
        "estimate": _whole(flags["estimate"]),
        "completion": flags["completion"],
        "limits": {name: most for name, most in limits.items() if most is not None} or None,
    }
    if "" in (fields["tags"] or ()):
        raise ConfigError("--tag is blank", "Name a tag: --tag parser")
    if flags["parent"]:
        file.needed(flags["parent"])
    return {name: found for name, found in fields.items() if found is not None}


def _one_line(text: str, what: str) -> str:
    return " ".join(proper(text, what).split())


def _whole(number: float | str | None) -> float | str | None:
    """A number as people write it: 5, not 5.0."""
    return int(number) if isinstance(number, float) and number == int(number) else number


@command()
@click.argument("title", required=False)
@_described
@option("--id ID", "The task's id.  [default: the next number]", "task_id")
@the_usual
def add(title: str | None, *, task_id: str | None, in_json: bool, **flags: Any) -> None:  # noqa: ANN401
    """Add a task to the backlog, and print its id.

    Without TITLE, at a terminal, it asks.

    Examples:
      ralph tasks add "Sort the list by date"          done when the agent says so
      ralph tasks add "Fix the parser" --completion "test:make test" --priority 2
      ralph tasks add "Write it up" -f wish.md --completion file:NEWS.md \\
          --blocked-by T-001 --tag docs --max-iterations 5
      ralph tasks add                                  asks

    Exit codes: 0, or 2 when nothing was added.
    """
    file = task_file(os.environ, needs_note=False)
    fields = _fields(flags, file)
    if title is None:
        fields |= _asked(file)
    else:
        fields["title"] = _title(title)
    if task_id == "":
        raise ConfigError("--id is empty", "Leave it out for the next number.")
    if task_id is not None:
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
            file.needed(task_id)
        return list(dict.fromkeys(found))

    def priority(answer: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,9}", answer or "0"):
            raise ValueError("This must be a whole number.")
        return int(answer or "0")

    with dialogue("no task was added."):
        answers = {
            "title": ask("Title: ", _title),
            "description": ask("Description (optional): ", str),
            "completion": ask(
                "Completion (test:COMMAND, grep:TEXT, file:PATH, validate:SCRIPT) [explicit]: ",
                lambda answer: spelled(answer) if answer else None,
            ),
            "blockedBy": ask("Blocked by (ids, comma-separated, optional): ", ids),
            "priority": ask("Priority [0]: ", priority),
        }
    return {name: answer for name, answer in answers.items() if answer}


@command()
@task_argument
@option("--title TEXT", "Change the title.")
@_described
@option("--status S", f"One of {', '.join(Status)}.", type=a_status)
@option("--reopen", "Reopen a task that is done or cancelled.")
@option("--note TEXT", "Add a note.")
@task_option("--unblock", "Stop waiting for this task; repeat for more.", multiple=True)
@option("--untag T", "Remove a tag; repeat for more.", multiple=True)
@the_usual
def edit(task_id: str, *, in_json: bool, **flags: Any) -> None:  # noqa: ANN401  see _described
    """Change a task. Tags and blockers are added to those there are.

    An empty text removes a field: --parent "". A status that cannot follow is refused.

    Examples:
      ralph tasks edit T-003 --priority 5 --tag parser
      ralph tasks edit T-003 --blocked-by T-001 --unblock T-002
      ralph tasks edit T-003 --status cancelled --note "not needed any more"
      ralph tasks edit T-003 --reopen

    Exit codes: 0, or 2 when nothing was changed.
    """
    if all(given is None or given is False or given == () for given in flags.values()):
        raise ConfigError("nothing to change", "See what can be: ralph tasks edit --help")
    if flags["status"] and flags["reopen"]:
        raise click.UsageError("--status and --reopen exclude each other.")
    if flags["status"] in ENDED or flags["reopen"]:
        what = "--reopen" if flags["reopen"] else f"--status {flags['status']}"
        refuse_agents(os.environ, f"say {what}")
    for guarded in (name for name in _GUARDED if flags[name] is not None):
        refuse_agents(os.environ, f"change its own task by --{guarded.replace('_', '-')}")
    refuse_own_backlog(os.environ, current_directory())
    file = task_file(os.environ)
    fields = _fields(flags, file)
    if flags["title"] is not None:
        fields["title"] = _title(flags["title"])
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
        note, notes = proper(flags["note"], "--note").strip(), old.get("notes")
        if not note:
            raise ConfigError("--note is blank", "Say what to note: --note TEXT")
        # Notes are a text, or a list where someone made them one.
        more = f"{notes}\n{note}" if notes else note
        new["notes"] = [*notes, note] if isinstance(notes, list) else more
    return {name: None if found == "" else found for name, found in new.items()}


def _status(old: Record, flags: Mapping[str, Any]) -> Record:
    """The fields that another status changes."""
    status, task = Status(old.get("status", Status.PENDING)), old["id"]
    if flags["reopen"]:
        if status not in ENDED:
            only = "Only what is done or cancelled can be reopened."
            raise ConfigError(f"{task} is {status.value}", f"{only} See: ralph tasks show {task}")
        return {**NO_LONGER, "evidence": None, "status": Status.PENDING.value}
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
    return {**NO_LONGER, "completedAt": at, "status": new.value}


@command()
@task_argument
@click.argument("text")
@the_usual
def answer(task_id: str, text: str, *, in_json: bool) -> None:
    """Answer a task's question, and make it pending again.

    Its next prompt contains the answer. TEXT - is read from standard input.

    Examples:
      ralph tasks answer T-003 "Use SQLite."
      ralph tasks answer T-003 - < answer.md
      ralph tasks list --status blocked         who asks what

    Exit codes: 0, or 2 when that task asked nothing.
    """
    refuse_agents(os.environ, "answer a question")
    refuse_own_backlog(os.environ, current_directory())
    words = read_text("-", "the answer", sys.stdin) if text == "-" else text
    file, here = task_file(os.environ), current_directory()
    record = answered(file, task_id, words)
    told_of(project_dir(state_root(os.environ), here), task_id, words, Origin.CLI)
    tell(f"{task_id} is pending again, with your answer.", record, json_wanted=in_json)
