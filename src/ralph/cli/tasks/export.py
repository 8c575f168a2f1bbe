"""`ralph tasks export`: the tasks as another tool's list."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from ralph.cli.params import completed_by, in_directory
from ralph.cli.tasks.common import in_json as json_option
from ralph.cli.tasks.common import loaded, task_file, which_tasks
from ralph.errors import ConfigError
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import write_atomically
from ralph.formats.base import Format, Writing
from ralph.formats.catalog import NAMES, by_name
from ralph.kernel.tasks.task import Status
from ralph.runner.arguments import current_directory, shown
from ralph.text.words import counted
from ralph.ui.safe_stream import Channel

_MOST_TOLD = 50
Record = Mapping[str, Any]


@click.command(
    epilog="""\b
Examples:
  ralph tasks export --format prd -o prd.json
  ralph tasks export --format markdown --status pending --status in_progress
  ralph tasks export --format beads > issues.jsonl
\b
What came from such a list is written as it was there. What the format cannot
hold is named on stderr. A file that is there and says something else is not
overwritten without --force.
Exit codes: 0, or 2 when nothing was written.
"""
)
@click.option(
    "--format",
    "name",
    metavar="F",
    required=True,
    type=click.Choice(NAMES),
    help=f"One of {', '.join(NAMES)}.",
)
@click.option(
    "-o",
    "output",
    metavar="FILE",
    shell_complete=completed_by("files"),
    help="Write this file; without it, standard output.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE, whatever it says.")
@which_tasks
@json_option
@in_directory
def export(
    *,
    name: str,
    output: str | None,
    force: bool,
    statuses: tuple[str, ...],
    tags: tuple[str, ...],
    in_json: bool,
) -> None:
    """Write the tasks as a list that another tool reads."""
    file = task_file(os.environ)
    loaded(file)
    records = file.records()
    chosen = [r for r in records if _is_wanted(r, statuses, tags)]
    form = by_name(name)
    writing = _written(form, chosen, records)
    _tell_lost(name, writing.lost)
    path = None if output in (None, "-") else output
    if path is not None:
        changed = _keep(path, writing.text, force=force)
        words = f"{path}: {counted(len(chosen), 'task')}{'' if changed else ', as before'}"
    if in_json:
        facts = {"format": name, "tasks": len(chosen), "lost": list(writing.lost)}
        click.echo(json.dumps({**facts, **({"path": path} if path else {"text": writing.text})}))
    elif path is not None:
        click.echo(shown(words))
    else:
        click.echo(writing.text, nl=False)


def _is_wanted(record: Record, statuses: Sequence[str], tags: Sequence[str]) -> bool:
    status = record.get("status") or Status.PENDING
    tagged = not tags or not set(tags).isdisjoint(record.get("tags") or ())
    return tagged and (not statuses or status in statuses)


def _written(form: Format, chosen: Sequence[Record], records: Sequence[Record]) -> Writing:
    root, others = _root(form, records)
    try:
        writing = form.write(chosen, root)
    except ValueError as error:
        words = f"the tasks cannot be written as {form.name}: {error}"
        raise ConfigError(shown(words), "See: ralph tasks list") from None
    lost = [f"what {place} says of itself" for place in others]
    return Writing(writing.text, (*lost, *writing.lost))


def _root(form: Format, records: Sequence[Record]) -> tuple[Mapping[str, Any], list[str]]:
    """What the list says of itself: as the first list of this kind did from which tasks came. And
    the others, of which that cannot be kept."""
    kin = getattr(form, "kin", (form.name,))
    sources = [r["source"] for r in records if isinstance(r.get("source"), dict)]
    found = [s for s in sources if s.get("format") in kin and isinstance(s.get("root"), dict)]
    if not found:
        return {"project": os.path.basename(current_directory())}, []
    return found[0]["root"], [str(s.get("path") or s.get("repo")) for s in found[1:]]


def _tell_lost(name: str, lost: Sequence[str]) -> None:
    told = [f"[ralph] {name} cannot hold {words}" for words in lost[:_MOST_TOLD]]
    if len(lost) > len(told):
        told.append(f"[ralph] and {len(lost) - len(told)} more such things")
    Channel(sys.stderr, lambda _: None).write([shown(line) for line in told])


def _keep(path: str, text: str, *, force: bool) -> bool:
    """Write the file, if it is another; whether it was."""
    try:
        if os.path.exists(path):
            with open_regular(path) as file:
                same = file.read() == text.encode()
            if same:
                return False
            if not force:
                remedy = "Overwrite it by --force, or name another file."
                raise ConfigError(f"{path} is there and says something else", remedy)
        write_atomically(path, text)
    except OSError as error:
        remedy = "Name a file that can be written: -o FILE"
        raise ConfigError(f"cannot write {path}: {error.strerror}", remedy) from error
    return True
