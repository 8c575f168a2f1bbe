"""`ralph tasks import`, `export` and `sync`: exchanges tasks with the lists of other tools."""

import json
import os
import stat
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

import click

from ralph.cli.base import command
from ralph.cli.params import a_file, option, the_usual
from ralph.cli.tasks.common import loaded, task_file, which_tasks
from ralph.errors import ConfigError, failing
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import is_inside, write_atomically
from ralph.formats.base import Format, TaskList, Writing
from ralph.formats.catalog import NAMES, by_name, detect
from ralph.journal.write_access import goes_on_unseen
from ralph.kernel.tasks import completion
from ralph.kernel.tasks.task import ENDED, Status
from ralph.kernel.value import replace, value
from ralph.loops.backlog.tracker import github
from ralph.loops.backlog.tracker.importing import Import, Merge, Origin, same_place
from ralph.loops.backlog.tracker.sync import LARGEST, How, Synced, Trackers, repository_of, told
from ralph.runner.arguments import current_directory, is_agents, refuse_agents, shown, text_of, warn
from ralph.text.timestamps import iso
from ralph.text.words import counted, listed

_GITHUB = "github:"
_LISTS = ("added", "unchanged", "missing", "kept", "lost")  # of what an import did
_MOST_TOLD = 20
_MOST_LOST = 50
_LONGEST_TITLE = 200  # characters, of one that is told
_SYNC_WORDS = {
    How.NOTHING: "with nobody to tell",
    How.MARKED: "marked",
    How.ALREADY: "marked before",
    How.CONFLICT: "in conflict",
    How.FAILED: "failed",
}
_SYNC_MARKS = {How.MARKED: "+", How.CONFLICT: "!", How.FAILED: "!"}
Record = Mapping[str, Any]


@value
class ForeignList:
    text: str
    name: str  # as people call it
    place: Mapping[str, str]  # as a task's `source` has it
    format: str | None = None
    lost: str = ""  # what is not in the text, in words


@command("import")
@click.argument("source", metavar="FILE|-|github:OWNER/NAME", shell_complete=a_file)
@option(
    "--format F",
    f"One of {', '.join(NAMES)}.  [default: told by the list itself]",
    "name",
    type=click.Choice(NAMES),
)
@option("--dry-run", "Say what would happen, and write nothing.")
@option("--label L", "Only issues with this label.", "labels", multiple=True)
@option(
    "--state open|all",
    "Which issues of GitHub.  [default: open]",
    type=click.Choice(["open", "all"]),
)
@the_usual
def import_list(
    source: str,
    *,
    name: str | None,
    dry_run: bool,
    labels: tuple[str, ...],
    state: str | None,
    in_json: bool,
) -> int:
    """Import the tasks of another list: prd.json, a checklist, beads, GitHub issues.

    The kind of list is recognized by its name and content.

    Examples:
      ralph tasks import prd.json --dry-run         what would happen
      ralph tasks import prd.json
      ralph tasks import IMPLEMENTATION_PLAN.md
      ralph tasks import .beads/issues.jsonl --json | jq .added
      bd ready --json | ralph tasks import -
      ralph tasks import github:owner/name --label bug
      ralph tasks import ralph.yml                  another loop's settings

    Importing a list again updates its tasks. Fields that changed on both sides
    are reported, and stay as they are here. Commands that a list names to prove
    its tasks are marked with $: a run executes them.
    Exit codes: 0; 1 when there is nothing to do in the list, and it says why;
    2 when the list cannot be read.
    """
    if source.startswith(_GITHUB):
        if name not in {None, "github"}:
            raise click.UsageError(f"--format {name} is for files; leave it out for {source}.")
        given = _issues(source, state or "open", labels)
    elif labels or state:
        raise click.UsageError("--label and --state are for github:OWNER/NAME.")
    else:
        given = _file(source, sys.stdin)
    if not given.text.strip():
        return _nothing(given, "it is empty", in_json=in_json)
    if name is None and _settings(given, dry_run=dry_run, in_json=in_json):
        return 0
    form, reading = _read(given, name)
    origin = _origin(form, reading, given)
    done = _merged(reading, origin, dry_run=dry_run)
    why = _why_nothing(reading, done)
    if why and not done.added and not done.missing:
        return _nothing(given, why, in_json=in_json)
    tell = _as_json if in_json else _in_words
    click.echo(tell(done, origin, dry_run=dry_run))
    warn(*([f"nothing to do in {given.name}: {why}"] if why else []))
    return int(bool(why))


def _origin(form: Format, reading: TaskList, given: ForeignList) -> Origin:
    """Issues are at home in their repository, also those from a file."""
    repositories = {
        repository_of({**item.fields, "source": {"format": form.name}}) for item in reading.items
    }
    repository = repositories.pop() if len(repositories) == 1 else ""
    return Origin(form.name, {"repo": repository} if repository else given.place, given.name)


def _merged(reading: TaskList, origin: Origin, *, dry_run: bool) -> Import:
    """Write the list's tasks into ours; what that changes."""
    by_agent = is_agents(os.environ) or goes_on_unseen(os.environ, current_directory())
    merge = Merge(reading, origin, iso(datetime.now(UTC)), by_agent=by_agent)
    file = task_file(os.environ)
    anything = bool(reading.items) or os.path.exists(file.path)
    try:
        file.change_all(merge, write=anything and not dry_run)
    except ConfigError as error:
        words = f"{origin.shown} is not imported: {error.message}"
        raise ConfigError(words, error.remedy) from error
    return merge.result


def _why_nothing(reading: TaskList, done: Import) -> str:
    """Why a list gives nothing to do; "" if it does, or did before."""
    if not reading.items:
        return "; ".join(reading.lost) or reading.nothing or "there are no tasks in it"
    if done.updated or done.unchanged or done.conflicts or done.kept:
        return ""
    over = all(record["status"] in ENDED for record in done.added)
    return f"all of its {counted(len(done.added), 'task')} are over already" if over else ""


def _nothing(given: ForeignList, why: str, *, in_json: bool) -> int:
    """Say that there is nothing to import, and why; the exit code."""
    words = f"nothing to import from {given.name}: {why}"
    if in_json:
        click.echo(json.dumps({"source": given.name, **dict.fromkeys(_LISTS, ()), "nothing": why}))
    warn(words)
    return 1


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


def _read(given: ForeignList, name: str | None) -> tuple[Format, TaskList]:
    """The tasks of the list, and its format: the named one, else what it looks like."""
    if given.format and name not in (None, given.format):
        raise click.UsageError(f"{given.name} has the format {given.format}.")
    wanted = name or given.format
    form = by_name(wanted) if wanted else detect(given.name, given.text)
    try:
        reading = form.read(given.text, given.name)
    except ValueError as error:
        remedy = f"Fix it, or name another format: --format {'|'.join(NAMES)}"
        words = f"{given.name} cannot be read as {form.name}: {error}"
        raise ConfigError(shown(words), remedy) from None
    if given.lost:
        reading = replace(reading, lost=(given.lost, *reading.lost))
    return form, reading


def _file(path: str, stdin: TextIO | None) -> ForeignList:
    """The list in a file, on standard input, or from a pipe such as <(command)."""
    name, place = "standard input" if path == "-" else path, "-"
    remedy = "Name a file with a task list."
    try:
        if path == "-":
            data = stdin.buffer.read(LARGEST + 1) if stdin is not None else b""
        else:
            is_pipe = stat.S_ISFIFO(os.stat(path).st_mode)
            with open(path, "rb") if is_pipe else open_regular(path) as file:
                data = file.read(LARGEST + 1)
            if not is_pipe:  # a path within is kept relative, wherever the project will be
                here, place = current_directory(), os.path.abspath(path)
                place = os.path.relpath(place, here) if is_inside(path, here) else place
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"cannot read {name}: {why}", remedy) from error
    text = text_of(data, name, LARGEST, remedy)
    return ForeignList(text, name, {"path": place})


def _issues(source: str, state: str, labels: Sequence[str]) -> ForeignList:
    repository = source.removeprefix(_GITHUB)
    place = {"repo": repository}
    forge = github.opener(current_directory(), os.environ)()
    here = [record for record in task_file(os.environ).records() if same_place(record, place)]
    open_here = [record for record in here if record.get("status") not in ENDED]
    known = [str(r["source"].get("key")).rpartition("#")[2] for r in open_here]
    text, lost = github.listed(forge, repository, state, labels, filter(str.isdecimal, known))
    return ForeignList(text, source, place, "github", lost)


def _as_json(done: Import, origin: Origin, *, dry_run: bool) -> str:
    told = {
        "source": origin.shown,
        "format": origin.format,
        "dryRun": dry_run,
        **{name: list(getattr(done, name)) for name in _LISTS},
        "updated": [{"id": record["id"], "fields": list(f)} for record, f in done.updated],
        "conflicts": [
            {"id": c.task, "field": c.field, "ours": c.ours, "theirs": c.theirs}
            for c in done.conflicts
        ],
        "checks": [{"check": words, "tasks": tasks} for words, tasks in _checks(done).items()],
    }
    return json.dumps(told)


def _in_words(done: Import, origin: Origin, *, dry_run: bool) -> str:
    """The number of each kind, and which: a few lines of a kind, or all when nothing is written."""
    counts = [f"{len(done.added)} {'to add' if dry_run else 'added'}"]
    counts += [f"{len(done.updated)} {'to update' if dry_run else 'updated'}"]
    counts += [f"{len(done.unchanged)} unchanged"]
    counts += [counted(len(done.conflicts), "conflict")] if done.conflicts else []
    lines = [f"{origin.shown} ({origin.format}): {', '.join(counts)}"]
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
        lines += [f"  {line}" for line in told]
        lines += [f"  and {len(kind) - len(told)} more"] if len(told) < len(kind) else []
    lines += [f"  $ {listed(ids)}: done when {words}" for words, ids in _checks(done).items()]
    return "\n".join([*map(shown, lines), *(["Nothing was written."] if dry_run else [])])


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


def _added(record: Record) -> str:
    status = "" if record["status"] == "pending" else f" ({record['status']})"
    waits = record.get("blockedBy")
    after = f" (waits for {listed(waits, 5)})" if waits else ""
    return f"+ {record['id']}: {record['title'][:_LONGEST_TITLE]}{status}{after}"


# ------------------------------------------------------------------ export


@command()
@option(
    "--format F", f"One of {', '.join(NAMES)}.", "name", required=True, type=click.Choice(NAMES)
)
@option("-o FILE", "Write this file; without it, standard output.", "output")
@option("--force", "Overwrite FILE, whatever it contains.")
@which_tasks
@the_usual
def export(
    *,
    name: str,
    output: str | None,
    force: bool,
    statuses: tuple[str, ...],
    tags: tuple[str, ...],
    in_json: bool,
) -> None:
    """Write the tasks as a list that another tool reads.

    Examples:
      ralph tasks export --format prd -o prd.json
      ralph tasks export --format markdown --status pending --status in_progress
      ralph tasks export --format beads > issues.jsonl

    Tasks that came from such a list are written as they were there. What the
    format cannot hold is named on stderr. An existing file with other content is
    not overwritten without --force.
    Exit codes: 0, or 2 when nothing was written.
    """
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
    lost = [f"{name} cannot hold {words}" for words in writing.lost[:_MOST_LOST]]
    if len(writing.lost) > len(lost):
        lost.append(f"and {len(writing.lost) - len(lost)} more such things")
    warn(*lost)
    path = None if output in (None, "-") else output
    changed = path is not None and _keep(path, writing.text, force=force)
    if in_json:
        facts = {"format": name, "tasks": len(chosen), "lost": list(writing.lost)}
        click.echo(json.dumps({**facts, **({"path": path} if path else {"text": writing.text})}))
    elif path is not None:
        as_before = "" if changed else ", as before"
        click.echo(shown(f"{path}: {counted(len(chosen), 'task')}{as_before}"))
    else:
        click.echo(writing.text, nl=False)


def _written(form: Format, chosen: Sequence[Record], records: Sequence[Record]) -> Writing:
    """The list. It says of itself what the first list of this kind did from which tasks came; what
    others said cannot be kept."""
    kin = getattr(form, "kin", (form.name,))
    sources = [r["source"] for r in records if isinstance(r.get("source"), dict)]
    found = [s for s in sources if s.get("format") in kin and isinstance(s.get("root"), dict)]
    root = found[0]["root"] if found else {"project": os.path.basename(current_directory())}
    if getattr(form, "nests", False):
        chosen = _without_children(chosen)
    try:
        writing = form.write(chosen, root)
    except ValueError as error:
        words = f"the tasks cannot be written as {form.name}: {error}"
        raise ConfigError(shown(words), "See: ralph tasks list") from None
    lost = [f"what {s.get('path') or s.get('repo')} says of itself" for s in found[1:]]
    return Writing(writing.text, (*lost, *writing.lost))


def _without_children(records: Sequence[Record]) -> list[Record]:
    """Tasks that do not say that they wait for those below them: their place says it."""
    above = {record["id"]: record.get("parent") for record in records}
    new = []
    for record in records:
        waits = record.get("blockedBy") or []
        others = [one for one in waits if above.get(one) != record["id"]]
        new.append(record if others == waits else {**record, "blockedBy": others})
    return new


def _keep(path: str, text: str, *, force: bool) -> bool:
    """Write the file; False if it says the same already."""
    with failing(f"cannot write {path}", "Name a file that can be written: -o FILE"):
        if os.path.exists(path):
            with open_regular(path) as file:
                if file.read() == text.encode():
                    return False
            if not force:
                remedy = "Overwrite it by --force, or name another file."
                raise ConfigError(f"{path} is there and says something else", remedy)
        write_atomically(path, text)
    return True


@command()
@option("--dry-run", "Say what would happen, and write nothing.")
@the_usual
def sync(*, dry_run: bool, in_json: bool) -> int:
    """Mark done tasks in the lists they came from: a box, `passes`, an issue.

    Examples:
      ralph tasks sync --dry-run
      ralph tasks sync

    A run does this for each task; this command is for what a run could not do.
    An item that somebody changed meanwhile is named, and left as it is.
    Exit codes: 0; 1 when some list could not be updated.
    """
    refuse_agents(os.environ, "tell other lists what is done")
    file, workspace = task_file(os.environ), current_directory()
    loaded(file)
    done = [r for r in file.records() if r.get("status") == Status.DONE and r.get("source")]
    # To ask for an issue takes a while: one that knows it is not asked again.
    known = {r["id"] for r in done if repository_of(r) and not _is_news(r)}
    new = [r for r in done if r["id"] not in known]
    trackers = Trackers(workspace, github.opener(workspace, os.environ), write=not dry_run)
    said = trackers.mark(new, done=True)
    heard = {r["id"]: synced for r, synced in zip(new, said, strict=True)}
    before = Synced(How.ALREADY, "told before")
    found = [(r, heard.get(r["id"], before)) for r in done]
    marked = {r["id"]: r for r, synced in found if synced.how in (How.MARKED, How.ALREADY)}

    def remember(records: list[dict[str, Any]], _: frozenset[str]) -> list[dict[str, Any]]:
        """Keep that the lists say so: then somebody who opens an item again there is heard."""
        new = [r for r in records if r["id"] in marked and r.get("source") and _is_news(r)]
        now = iso(datetime.now(UTC))
        return [{**r, **told(r, done=True), "updatedAt": now} for r in new]

    if not dry_run and any(map(_is_news, marked.values())):
        file.change_all(remember)
    if in_json:
        rows = [{"id": r["id"], "how": s.how.value, "words": s.words} for r, s in found]
        click.echo(json.dumps(rows))
    else:
        click.echo("\n".join(_sync_lines(found, dry_run=dry_run)))
    return int(any(synced.how in (How.CONFLICT, How.FAILED) for _, synced in found))


def _is_news(record: Record) -> bool:
    """True if the task does not have it yet that its list says it is done."""
    return bool(told(record, done=True)["source"] != record["source"])


def _sync_lines(found: Sequence[tuple[Record, Synced]], *, dry_run: bool) -> list[str]:
    words = {**_SYNC_WORDS, How.MARKED: "to mark"} if dry_run else _SYNC_WORDS
    count = Counter(synced.how for _, synced in found)
    parts = [f"{count[how]} {words[how]}" for how in How if count[how]]
    lines = [", ".join(parts) or "Nothing to tell: no task that is done came from a list."]
    for record, synced in found:
        if synced.how in _SYNC_MARKS:
            lines.append(shown(f"  {_SYNC_MARKS[synced.how]} {record['id']}: {synced.words}"))
    return [*lines, *(["Nothing was written."] if dry_run else [])]
