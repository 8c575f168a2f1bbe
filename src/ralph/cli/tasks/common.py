"""What the commands of `ralph tasks` have in common: the file, its problems, ids and output."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, TextIO, TypeVar

import click

from ralph.errors import ConfigError, StateError
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import project_dir, state_root
from ralph.kernel.tasks.task import Status
from ralph.loops.backlog.store.edits import note
from ralph.loops.backlog.store.task_file import NAME, Listing, TaskFile
from ralph.runner.arguments import current_directory, is_agents, shown
from ralph.ui.safe_stream import Channel

_MOST_PROBLEMS = 20
_MOST_IDS = 200
_LARGEST = 2 << 20  # bytes of a text from a file: half a line of the task file
_Function = TypeVar("_Function", bound=Callable[..., Any])
in_json = click.option("--json", "in_json", is_flag=True, help="Print JSON.")


def _task_ids(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """For a shell that completes: the ids there are."""
    ids = (task.id for task in TaskFile(os.getcwd()).read().backlog.tasks)
    return [i for i in ids if i.startswith(incomplete)][:_MOST_IDS]


def task_argument(function: _Function) -> _Function:
    """The argument ID."""
    return click.argument("task_id", metavar="ID", shell_complete=_task_ids)(function)


def task_option(flag: str, help_text: str, *, multiple: bool = False) -> Callable[..., Any]:
    """An option that names a task."""
    return click.option(
        flag, metavar="ID", multiple=multiple, shell_complete=_task_ids, help=help_text
    )


def which_tasks(function: _Function) -> _Function:
    """The options that choose some of the tasks: `statuses` and `tags`."""
    for option in (
        click.option(
            "--tag", "tags", metavar="T", multiple=True, help="Only those with any such tag."
        ),
        click.option(
            "--status",
            "statuses",
            metavar="S",
            multiple=True,
            type=click.Choice(list(map(str, Status))),
            help=f"Only these: {', '.join(Status)}.",
        ),
    ):
        function = option(function)
    return function


# ------------------------------------------------------------------ the file


def task_file(environ: Mapping[str, str], *, needs_note: bool = True) -> TaskFile:
    """The task file of this directory. What a person writes is remembered, so that a run which is
    under way does not take it for its agent's."""
    workspace = current_directory()

    def witness(task_id: str, line: bytes) -> None:
        if is_agents(environ):
            return
        try:
            note(project_dir(state_root(environ), workspace), task_id, line)
        except StateError:
            if needs_note:
                raise

    return TaskFile(workspace, witness=witness)


def loaded(file: TaskFile) -> Listing:
    """What the file says; what is wrong with it is told on stderr."""
    listing = file.load()
    told = [f"[ralph] {NAME} {problem}" for problem in listing.problems[:_MOST_PROBLEMS]]
    if len(listing.problems) > len(told):
        told.append(f"[ralph] {NAME}: {len(listing.problems) - len(told)} more such lines")
    Channel(sys.stderr, lambda _: None).write([shown(line) for line in told])
    return listing


def needed(file: TaskFile, task_id: str) -> dict[str, Any]:
    """The task with this id, or an error that names those like it."""
    record = file.record(task_id)
    if record is None:
        raise file.refusal(task_id)
    return record


# ------------------------------------------------------------------ texts


def read_text(path: str, what: str, stdin: TextIO | None) -> str:
    """The text of a file, or of standard input for `-`."""
    try:
        if path == "-":
            data = stdin.buffer.read(_LARGEST + 1) if stdin is not None else b""
        else:
            with open_regular(path) as file:
                data = file.read(_LARGEST + 1)
    except OSError as error:
        raise ConfigError(f"cannot read {what} {path}: {error.strerror}", "") from error
    if len(data) > _LARGEST:
        raise ConfigError(f"{what} is larger than {_LARGEST >> 20} MB", "Name a file in it.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        remedy = "Convert it: iconv -f latin1 -t utf-8"
        raise ConfigError(f"{what} is not UTF-8 text (byte {error.start})", remedy) from error
    if "\0" in text:
        raise ConfigError(f"{what} contains a NUL byte: it is not text", "")
    return text


def tell(words: str, record: object, *, json_wanted: bool) -> None:
    """One line for people, or an object for programs."""
    click.echo(json.dumps(record) if json_wanted else shown(words))
