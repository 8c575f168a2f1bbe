"""Shared by the commands of `ralph tasks`: options, the file and its problems, texts, output."""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TextIO

import click

from ralph.cli.params import option, together
from ralph.errors import StateError, failing
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import project_dir, state_root
from ralph.kernel.tasks.task import Status
from ralph.loops.backlog.store.task_file import NAME, Listing, Noted, TaskFile
from ralph.loops.backlog.store.watch import note
from ralph.runner.arguments import current_directory, is_agents, shown, text_of, warn

_MOST_PROBLEMS = 20
_MOST_IDS = 200
LARGEST = 2 << 20  # bytes of a text from a file: half a line of the task file


def _task_ids(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """For a shell that completes: the ids there are."""
    ids = (task.id for task in TaskFile(os.getcwd()).read().backlog.tasks)
    return [i for i in ids if i.startswith(incomplete)][:_MOST_IDS]


task_argument = click.argument("task_id", metavar="ID", shell_complete=_task_ids)
only_tags = option("--tag T", "Only tasks with one of these tags.", "tags", multiple=True)
a_status = click.Choice(list(map(str, Status)))
which_tasks = together(
    option(
        "--status S", f"Only these: {', '.join(Status)}.", "statuses", multiple=True, type=a_status
    ),
    only_tags,
)


def task_option(shown: str, words: str, *, multiple: bool = False) -> Callable[..., Any]:
    return option(f"{shown} ID", words, multiple=multiple, shell_complete=_task_ids)


def task_file(environ: Mapping[str, str], *, needs_note: bool = True) -> TaskFile:
    """The task file of this directory. What a person writes is remembered, so that a run which is
    under way does not take it for its agent's."""
    workspace = current_directory()

    def witness(lines: Iterable[Noted]) -> None:
        if is_agents(environ):
            return
        try:
            note(project_dir(state_root(environ), workspace), lines)
        except StateError:
            if needs_note:
                raise

    return TaskFile(workspace, witness=witness)


def loaded(file: TaskFile) -> Listing:
    """The tasks in the file; what is wrong with it is told on stderr."""
    listing = file.load()
    told = [f"{NAME} {problem}" for problem in listing.problems[:_MOST_PROBLEMS]]
    if len(listing.problems) > len(told):
        told.append(f"{NAME}: {len(listing.problems) - len(told)} more such lines")
    warn(*told)
    return listing


def read_text(path: str, what: str, stdin: TextIO | None, most: int = LARGEST) -> str:
    """The text of a file, or of standard input for `-`."""
    with failing(f"cannot read {what} {path}", "Name a file with a text."):
        if path == "-":
            data = stdin.buffer.read(most + 1) if stdin is not None else b""
        else:
            with open_regular(path) as file:
                data = file.read(most + 1)
    return text_of(data, what, most, f"Name a text of {most >> 20} MB at most.")


def tell(words: str, record: object, *, json_wanted: bool) -> None:
    """One line for people, or an object for programs."""
    click.echo(json.dumps(record) if json_wanted else shown(words))
