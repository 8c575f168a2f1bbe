"""`ralph tasks export`: writes the tasks as another tool's list."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import click

from ralph.cli.params import in_directory, option
from ralph.cli.tasks.common import in_json, loaded, task_file, which_tasks
from ralph.errors import ConfigError
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import write_atomically
from ralph.formats.base import Format, Writing
from ralph.formats.catalog import NAMES, by_name
from ralph.kernel.tasks.task import Status
from ralph.runner.arguments import current_directory, shown, warn
from ralph.text.words import counted

_MOST_TOLD = 50
Record = Mapping[str, Any]


@click.command(
    epilog="""\b
Examples:
  ralph tasks export --format prd -o prd.json
  ralph tasks export --format markdown --status pending --status in_progress
  ralph tasks export --format beads > issues.jsonl
\b
Tasks that came from such a list are written as they were there. What the
format cannot hold is named on stderr. An existing file with other content is
not overwritten without --force.
Exit codes: 0, or 2 when nothing was written.
"""
)
@option(
    "--format F", f"One of {', '.join(NAMES)}.", "name", required=True, type=click.Choice(NAMES)
)
@option("-o FILE", "Write this file; without it, standard output.", "output")
@option("--force", "Overwrite FILE, whatever it contains.")
@which_tasks
@in_json
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
    chosen = [
        r
        for r in records
        if (not tags or not set(tags).isdisjoint(r.get("tags") or ()))
        and (not statuses or (r.get("status") or Status.PENDING) in statuses)
    ]
    writing = _written(by_name(name), chosen, records)
    lost = [f"{name} cannot hold {words}" for words in writing.lost[:_MOST_TOLD]]
    if len(writing.lost) > len(lost):
        lost.append(f"and {len(writing.lost) - len(lost)} more such things")
    warn(*lost)
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


def _written(form: Format, chosen: Sequence[Record], records: Sequence[Record]) -> Writing:
    """The list. It says of itself what the first list of this kind did from which tasks came; what
    others said cannot be kept."""
    kin = getattr(form, "kin", (form.name,))
    sources = [r["source"] for r in records if isinstance(r.get("source"), dict)]
    found = [s for s in sources if s.get("format") in kin and isinstance(s.get("root"), dict)]
    root = found[0]["root"] if found else {"project": os.path.basename(current_directory())}
    try:
        writing = form.write(chosen, root)
    except ValueError as error:
        words = f"the tasks cannot be written as {form.name}: {error}"
        raise ConfigError(shown(words), "See: ralph tasks list") from None
    lost = [f"what {s.get('path') or s.get('repo')} says of itself" for s in found[1:]]
    return Writing(writing.text, (*lost, *writing.lost))


def _keep(path: str, text: str, *, force: bool) -> bool:
    """Write the file; False if it says the same already."""
    try:
        if os.path.exists(path):
            with open_regular(path) as file:
                if file.read() == text.encode():
                    return False
            if not force:
                remedy = "Overwrite it by --force, or name another file."
                raise ConfigError(f"{path} is there and says something else", remedy)
        write_atomically(path, text)
    except OSError as error:
        remedy = "Name a file that can be written: -o FILE"
        raise ConfigError(f"cannot write {path}: {error.strerror}", remedy) from error
    return True
