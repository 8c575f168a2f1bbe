"""`ralph tasks import`: takes in the tasks of another list, or brings them up to date."""

import json
import os
import stat
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

import click

from ralph.cli.params import completed_by, in_directory, option
from ralph.cli.tasks.common import in_json, task_file
from ralph.errors import ConfigError
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import is_inside
from ralph.formats.base import Format, TaskList
from ralph.formats.catalog import NAMES, by_name, detect
from ralph.journal.write_access import goes_on_unseen
from ralph.kernel.tasks import completion
from ralph.kernel.tasks.backlog import ENDED
from ralph.kernel.value import replace, value
from ralph.loops.backlog.tracker.importing import Import, Merge, Origin, same_place
from ralph.loops.backlog.tracker.sync import LARGEST, repository_of
from ralph.runner.arguments import current_directory, is_agents, shown
from ralph.text.timestamps import iso
from ralph.text.words import counted, listed

_GITHUB = "github:"
_MOST_TOLD = 20
_LONGEST_TITLE = 200  # characters, of one that is told


@value
class ForeignList:
    """A list that is to be imported."""

    text: str
    name: str  # as people call it
    place: Mapping[str, str]  # as a task's `source` has it
    format: str | None = None
    lost: str = ""  # what is not in the text, in words


@click.command(
    "import",
    epilog="""\b
Examples:
  ralph tasks import prd.json --dry-run         what would happen
  ralph tasks import prd.json
  ralph tasks import IMPLEMENTATION_PLAN.md
  ralph tasks import .beads/issues.jsonl --json | jq .added
  bd ready --json | ralph tasks import -
  ralph tasks import github:owner/name --label bug
  ralph tasks import ralph.yml                  another loop's settings
\b
Importing a list again updates its tasks. Fields that changed on both sides
are reported, and stay as they are here. Commands that a list names to prove
its tasks are marked with $: a run executes them.
Exit codes: 0, or 2 when nothing was imported.
""",
)
@click.argument("source", metavar="FILE|-|github:OWNER/NAME", shell_complete=completed_by("files"))
@option("--format F", f"One of {', '.join(NAMES)}.", "name", type=click.Choice(NAMES))
@option("--dry-run", "Say what would happen, and write nothing.")
@option("--label L", "Only issues with this label.", "labels", multiple=True)
@option("--state open|all", "Which issues [open].", type=click.Choice(["open", "all"]))
@in_json
@in_directory
def import_list(
    source: str,
    *,
    name: str | None,
    dry_run: bool,
    labels: tuple[str, ...],
    state: str | None,
    in_json: bool,
) -> None:
    """Import the tasks of another list: prd.json, a checklist, beads, GitHub issues.

    The kind of list is recognized by its name and content.
    """
    if source.startswith(_GITHUB):
        given = _issues(source, state or "open", labels)
    elif labels or state:
        raise click.UsageError("--label and --state are for github:OWNER/NAME.")
    else:
        given = _file(source, sys.stdin)
    if name is None and _settings(given, dry_run=dry_run, in_json=in_json):
        return
    form = _format(given, name)
    reading = _read(form, given)
    # Issues are at home in their repository, also those from a file.
    repositories = {
        repository_of({**item.fields, "source": {"format": form.name}}) for item in reading.items
    }
    repository = repositories.pop() if len(repositories) == 1 else ""
    origin = Origin(form.name, {"repo": repository} if repository else given.place, given.name)
    by_agent = is_agents(os.environ) or goes_on_unseen(os.environ, current_directory())
    merge = Merge(reading, origin, iso(datetime.now(UTC)), by_agent=by_agent)
    try:
        task_file(os.environ).change_all(merge, write=not dry_run)
    except ConfigError as error:
        raise ConfigError(f"{given.name} is not taken in: {error.message}", error.remedy) from error
    tell = _as_json if in_json else _in_words
    click.echo(tell(merge.result, origin, dry_run=dry_run))


def _settings(given: ForeignList, *, dry_run: bool, in_json: bool) -> bool:
    """Take over another loop's settings; False if it is a list rather than settings."""
    from ralph.settings.from_others.catalog import fits
    from ralph.settings.from_others.merge import report, take_over

    path = given.place.get("path", "-")
    if path == "-" or fits(os.path.abspath(given.name), given.text) is None:
        return False
    outcome = take_over(current_directory(), given.name, given.text, dry_run=dry_run)
    click.echo(report(outcome, given.name, in_json=in_json))
    return True


# ------------------------------------------------------------------ the list


def _file(path: str, stdin: TextIO | None) -> ForeignList:
    """The list in a file, on standard input, or from a pipe such as <(command)."""
    name = "standard input" if path == "-" else path
    place = "-"
    try:
        if path == "-":
            data = stdin.buffer.read(LARGEST + 1) if stdin is not None else b""
        elif stat.S_ISFIFO(os.stat(path).st_mode):
            with open(path, "rb") as pipe:
                data = pipe.read(LARGEST + 1)
        else:
            with open_regular(path) as file:
                data = file.read(LARGEST + 1)
            here = current_directory()  # a path in it is kept relative, wherever that will be
            place = os.path.abspath(path)
            place = os.path.relpath(place, here) if is_inside(path, here) else place
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"cannot read {name}: {why}", "Name a file with a task list.") from error
    return ForeignList(_text(data, name), name, {"path": place})


def _text(data: bytes, name: str) -> str:
    if len(data) > LARGEST:
        raise ConfigError(f"{name} is larger than {LARGEST >> 20} MB", "Split it, then try again.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        code = "utf-16" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "latin1"
        remedy = f"If it is text, convert it: iconv -f {code} -t utf-8"
        raise ConfigError(f"{name} is not UTF-8 text (byte {error.start})", remedy) from error
    if "\0" in text:
        raise ConfigError(f"{name} contains a NUL byte: it is not text", "Name a task list.")
    if not text.strip():
        raise ConfigError(f"{name} is empty", "Name a file with a task list.")
    return text


def _issues(source: str, state: str, labels: Sequence[str]) -> ForeignList:
    from ralph.loops.backlog.tracker import github

    repository = source.removeprefix(_GITHUB)
    place = {"repo": repository}
    run = github.runner(current_directory(), os.environ)
    here = [record for record in task_file(os.environ).records() if same_place(record, place)]
    open_here = [record for record in here if record.get("status") not in ENDED]
    known = [str(r["source"].get("key")).rpartition("#")[2] for r in open_here]
    text, lost = github.issues(run, repository, state, labels, filter(str.isdecimal, known))
    return ForeignList(text, source, place, "github", lost)


def _format(given: ForeignList, name: str | None) -> Format:
    if given.format and name not in (None, given.format):
        raise click.UsageError(f"{given.name} has the format {given.format}.")
    wanted = name or given.format
    return by_name(wanted) if wanted else detect(given.name, given.text)


def _read(form: Format, given: ForeignList) -> TaskList:
    try:
        reading = form.read(given.text, given.name)
        return replace(reading, lost=(given.lost, *reading.lost)) if given.lost else reading
    except ValueError as error:
        remedy = f"Fix it, or name another format: --format {'|'.join(NAMES)}"
        words = f"{given.name} cannot be read as {form.name}: {error}"
        raise ConfigError(shown(words), remedy) from None


# ------------------------------------------------------------------ what happened


def _as_json(done: Import, origin: Origin, *, dry_run: bool) -> str:
    told = {
        "source": origin.shown,
        "format": origin.format,
        "dryRun": dry_run,
        "added": list(done.added),
        "updated": [{"id": record["id"], "fields": list(f)} for record, f in done.updated],
        "unchanged": list(done.unchanged),
        "conflicts": [
            {"id": c.task, "field": c.field, "ours": c.ours, "theirs": c.theirs}
            for c in done.conflicts
        ],
        "missing": list(done.missing),
        "checks": [{"check": words, "tasks": tasks} for words, tasks in _checks(done).items()],
        "kept": list(done.kept),
        "lost": list(done.lost),
    }
    return json.dumps(told)


def _in_words(done: Import, origin: Origin, *, dry_run: bool) -> str:
    """The number of each kind, and which; at most so many lines of a kind, but all when nothing is
    written."""
    counts = [f"{len(done.added)} {'to add' if dry_run else 'added'}"]
    counts += [f"{len(done.updated)} {'to update' if dry_run else 'updated'}"]
    counts += [f"{len(done.unchanged)} unchanged"]
    counts += [counted(len(done.conflicts), "conflict")] if done.conflicts else []
    lines = [shown(f"{origin.shown} ({origin.format}): {', '.join(counts)}")]
    both = f"was changed here and in {origin.shown}; it stays as it is here"
    for kind in (
        [_added(record) for record in done.added],
        [
            f"~ {record['id']}: {', '.join(fields) or 'what only its list knows'}"
            for record, fields in done.updated
        ],
        [f"! {c.task}: {c.field} {both}" for c in done.conflicts],
        [f"! {words}" for words in done.kept],
        [f"? {task} is not in {origin.shown} any more; it stays" for task in done.missing],
        [f"- cannot be held: {words}" for words in done.lost],
    ):
        told = kind if dry_run else kind[:_MOST_TOLD]
        lines += [f"  {shown(line)}" for line in told]
        lines += [f"  and {len(kind) - len(told)} more"] if len(told) < len(kind) else []
    for words, ids in _checks(done).items():
        lines.append(shown(f"  $ {listed(ids)}: done when {words}"))
    return "\n".join([*lines, *(["Nothing was written."] if dry_run else [])])


def _checks(done: Import) -> dict[str, list[str]]:
    """Everything that will be run or looked for to prove tasks, as the list says, with these tasks:
    nobody should be surprised by that."""
    found: dict[str, list[str]] = {}
    changed = [record for record, fields in done.updated if "completion" in fields]
    for record in (*done.added, *changed):
        rule = completion.parse(record.get("completion"), record["id"])
        if words := completion.words(rule, record["id"]):
            found.setdefault(words, []).append(record["id"])
    return found


def _added(record: Mapping[str, Any]) -> str:
    status = "" if record["status"] == "pending" else f" ({record['status']})"
    waits = record.get("blockedBy")
    after = f" (waits for {listed(waits, 5)})" if waits else ""
    return f"+ {record['id']}: {record['title'][:_LONGEST_TITLE]}{status}{after}"
