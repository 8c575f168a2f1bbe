"""`ralph tasks list`, `show`, `next` and `learn`: shows tasks, the next one, and past ones."""

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any

import click

from ralph.cli.base import command
from ralph.cli.params import option, print_lines, the_usual
from ralph.cli.tasks.common import (
    loaded,
    only_tags,
    task_argument,
    task_file,
    task_option,
    which_tasks,
)
from ralph.errors import ConfigError, RalphError
from ralph.git.checkpoint.commit import commit_of, patch_of
from ralph.kernel.case import Case
from ralph.kernel.state import NEW
from ralph.kernel.tasks import completion
from ralph.kernel.tasks.select import blockers, next_task
from ralph.kernel.tasks.task import ENDED, Backlog, Status, Task, chosen, unknown_blockers
from ralph.kernel.verdict import Boundary
from ralph.loops.backlog.learning import Figures, Summary, TypeSummary, summary
from ralph.loops.backlog.store.records import Records
from ralph.loops.backlog.store.selection import TaskBacklog, test_command_of
from ralph.loops.backlog.store.task_file import NAME, TaskFile
from ralph.loops.backlog.tracker.sync import checked_words
from ralph.runner.arguments import current_directory, shown, warn
from ralph.settings.load import load
from ralph.text.plain import clean, columns, safe, shorten
from ralph.text.words import counted, duration, listed, money
from ralph.ui.style import Style, Tone, aligned, style_here

_EMPTY = 'No tasks yet. Add one: ralph tasks add "What to do"'
_MOST_TOLD = 20
_ITERATIONS = 10  # the last ones of a task
_MOST_LESSONS = 100_000
_TONES = {
    Status.IN_PROGRESS: Tone.CALL,
    Status.BLOCKED: Tone.BAD,
    Status.REVIEW: Tone.NOTICE,
    Status.DONE: Tone.GOOD,
    Status.CANCELLED: Tone.FAINT,
}
_DEEPEST = 30  # levels that are shown by their indentation
_NARROWEST = 20  # columns of a title
_MOST_NAMED = 5
_TIMES = ("createdAt", "updatedAt", "completedAt")
_ELSEWHERE = {"id", "title", "description", "status", "blockedBy", "completion", "answers"}
_ELSEWHERE |= {"question", "reason", "source"}
_COLUMNS = ("type", "done", "blocked", "iterations", "time", "cost", "of estimate")
_FOOTNOTE = "Iterations, time and cost: mean of a task (median)."
Waits = Mapping[str, tuple[str, ...]]


@command("list")
@which_tasks
@option("--type T", "Only this type.", "kind")
@option("--ready", "Only tasks that could be taken now.")
@option("--search TEXT", "Only tasks that contain this text.")
@option("--tree", "Show each task below its parent, or those it waits for.", "as_tree")
@the_usual
def list_tasks(
    *,
    statuses: tuple[str, ...],
    tags: tuple[str, ...],
    kind: str | None,
    ready: bool,
    search: str | None,
    as_tree: bool,
    in_json: bool,
) -> None:
    """List the tasks: status, id, priority, title, and what blocks them.

    Examples:
      ralph tasks list
      ralph tasks list --ready --tag parser
      ralph tasks list --status blocked --status review
      ralph tasks list --tree
      ralph tasks list --json | jq -r '.[].title'

    Lines of the file that cannot be used are named on stderr.
    Exit codes: 0, or 2 when the file cannot be read.
    """
    file = task_file(os.environ)
    listing = loaded(file)
    strangers = unknown_blockers(listing.backlog)
    told = [f"{task} waits for {b}, which is not there" for task, b in strangers[:_MOST_TOLD]]
    if len(strangers) > _MOST_TOLD:
        told.append(f"{len(strangers) - _MOST_TOLD} more blockers are not there")
    if listing.cycle:
        told.append(_circle_words(listing.cycle))
    warn(*(f"{NAME}: {words}" for words in told))
    waits, text = _waits(listing.backlog), (search or "").casefold()
    tasks = [
        t
        for t in listing.backlog.tasks
        if (not statuses or t.status in statuses)
        and (not tags or not set(tags).isdisjoint(t.tags))
        and (kind is None or t.kind == kind)
        and (not ready or (t.open and t.id not in waits))
        and text in "\0".join((t.id, t.title, t.text, t.reason, t.question, *t.tags)).casefold()
    ]
    if in_json:
        ids = {t.id for t in tasks}
        click.echo(json.dumps([r for r in file.records() if r["id"] in ids]))
    elif not listing.backlog.tasks:
        click.echo(_EMPTY)
    else:
        parents = {r["id"]: str(r["parent"]) for r in file.records() if as_tree and r.get("parent")}
        table = partial(_tree, above=parents) if as_tree else _table
        print_lines(table(tasks, waits, style_here()))


def _waits(backlog: Backlog) -> dict[str, tuple[str, ...]]:
    case = _opening(backlog)
    return {t.id: found for t in backlog.tasks if t.blocked_by and (found := blockers(t, case))}


def _opening(backlog: Backlog) -> Case:
    """The case that a run which begins now would see."""
    return Case(Boundary.OPENING, NEW, time.time(), backlog=backlog)


def _circle_words(circle: tuple[str, ...]) -> str:
    return f"these tasks wait for each other: {' → '.join((*circle, circle[0]))}"


def _table(tasks: Sequence[Task], waits: Waits, style: Style) -> list[str]:
    """A line for each task, and how many there are."""
    rows = [(t.status.value, shown(t.id), str(t.priority)) for t in tasks]
    heading, *heads = aligned([("status", "id", "priority"), *rows], numbers=(2,))
    lines = [style.paint(f"{heading}  title", Tone.FAINT)] if rows else []
    for task, head in zip(tasks, heads, strict=True):
        rest = _fitted(task.title, _kept_by(task, waits), columns(head) + 2, style)
        lines.append(style.paint(f"{head}  ", _TONES.get(task.status, Tone.PLAIN)) + rest)
    return [line.rstrip() for line in (*lines, _summary(tasks))]


def _fitted(title: str, note: str, used: int, style: Style) -> str:
    """Title and note on what is left of the line: the title gives way first."""
    title = shown(title)
    if style.width is None:
        return f"{title}  ({note})" if note else title
    left = max(_NARROWEST, style.width - used)
    room = max(_NARROWEST, left - columns(note) - 4) if note else left
    title = shorten(title, len(title), room, "…")
    whole = f"{title}  ({note})" if note else title
    return shorten(whole, len(whole), left, "…")


def _kept_by(task: Task, waits: Waits) -> str:
    """The words for what keeps a task from being worked on; "" if nothing does."""
    if task.question:
        return shown(f"asks: {task.question}")
    if task.status is Status.BLOCKED and task.reason:
        return shown(task.reason)
    if task.open and task.id in waits:
        return shown(f"waits for {listed(waits[task.id], _MOST_NAMED)}")
    return ""


def _summary(tasks: Sequence[Task]) -> str:
    count = Counter(t.status for t in tasks)
    parts = [f"{count[status]} {status.value}" for status in Status if count[status]]
    return f"{counted(len(tasks), 'task')}{': ' if parts else ''}{', '.join(parts)}"


def _tree(tasks: Sequence[Task], waits: Waits, style: Style, above: Mapping[str, str]) -> list[str]:
    """Each task below what it is a part of, else below every one that it waits for; what waits for
    it is shown below the first."""
    lines = []
    for task, depth, again in _walk(tasks, above):
        title = "(see above)" if again else task.title
        note = "" if again else _kept_by(task, waits)
        head = f"{'  ' * min(depth, _DEEPEST)}{shown(task.id)}: "
        status = f"[{task.status.value}] "
        rest = _fitted(title, note, columns(head + status), style)
        lines.append(head + style.paint(status, _TONES.get(task.status, Tone.PLAIN)) + rest)
    return [*lines, _summary(tasks)]


def _walk(tasks: Sequence[Task], above: Mapping[str, str]) -> Iterator[tuple[Task, int, bool]]:
    """Every task with its depth, and True if it was there before. Circles are cut open."""
    known = {t.id for t in tasks}
    below: dict[str, list[Task]] = {}
    tops = []
    for task in tasks:
        # A task that waits for its own parts stands above them.
        waits = (one for one in task.blocked_by if above.get(one) != task.id)
        places = [above[task.id]] if above.get(task.id) in known else list(dict.fromkeys(waits))
        for place in places:
            below.setdefault(place, []).append(task)
        if known.isdisjoint(places):
            tops.append(task)
    seen: set[str] = set()
    for top in (*tops, *tasks):  # the second time round: those in circles
        stack = [] if top.id in seen else [(top, 0)]
        while stack:
            task, depth = stack.pop()
            yield task, depth, task.id in seen
            if task.id not in seen:
                seen.add(task.id)
                stack += [(t, depth + 1) for t in reversed(below.get(task.id, ()))]


@command()
@task_argument
@option("--diff", "Show the work instead: the task's commit, or what is kept of a try.")
@the_usual
def show(task_id: str, *, diff: bool, in_json: bool) -> None:
    """Show everything about a task: its fields, what it waits for, its last iterations.

    --json prints the task, with `blockers` ({id, status} each) and `progress` beside its fields; of
    one that is done also the `tree` that was proven and its `commit`; with --diff also `diff`.

    Examples:
      ralph tasks show T-003
      ralph tasks show T-003 --diff
      ralph tasks show T-003 --json | jq .evidence

    Exit codes: 0, or 2 when there is no such task, or no work of it to show.
    """
    file = task_file(os.environ)
    record = file.needed(task_id)
    known = {t.id: t for t in file.load().backlog.tasks}
    progress = Records(file.workspace, "").progress_of(task_id, _ITERATIONS)
    evidence = record.get("evidence")
    if isinstance(evidence, dict) and record.get("status") == Status.DONE:  # ADR 33
        runs = [str(entry["run"]) for entry in progress if entry.get("run")]
        commit = commit_of(file.workspace, os.environ, runs[-1] if runs else "", record["id"])
        record = {**record, "tree": evidence.get("tree"), "commit": commit or None}
    patch = _patch(record, file.workspace) if diff else ""
    if diff and not in_json:
        print_lines(_painted(patch, style_here()))
    elif in_json:
        named = [
            {"id": b, "status": known[b].status.value if b in known else None}
            for b in known[task_id].blocked_by
        ]
        more = {"diff": patch} if diff else {}
        click.echo(json.dumps({**record, "blockers": named, "progress": progress, **more}))
    else:
        claim = _claim_words(file, task_id)
        print_lines(_one_task(record, known, progress, style_here(), claim))


def _claim_words(file: TaskFile, task: str) -> str:
    """What completes a task that names no check."""
    said = "the agent says so"
    with suppress(RalphError):  # bad settings are for others to tell
        backlog = TaskBacklog(file, test_command=test_command_of(load(file.workspace)))
        tests = backlog.tests_of(task)
        return f"`{tests}` passes; without such tests, when {said}" if tests else said
    return said


def _patch(record: Mapping[str, Any], workspace: str) -> str:
    """The work of a task as git shows it; a ConfigError where there is none."""
    for commit in filter(None, (record.get("commit"), record.get("saved"))):
        if found := patch_of(workspace, os.environ, str(commit)):
            return safe(found)
    name, status = shown(str(record["id"])), shown(str(record.get("status") or Status.PENDING))
    if commit := record.get("commit"):
        message = f"the commit of {name} changed nothing but Ralph's records"
        raise ConfigError(message, f"Look: git show {commit}")
    if status == Status.DONE:
        why = "it changed nothing, or its branch is not checked out here"
        raise ConfigError(f"no commit of {name} is to be found: {why}", "Look: git branch --list")
    remedy = f"See how far it is: ralph tasks show {name}"
    raise ConfigError(f"there is no work of {name} yet: it is {status}", remedy)


def _painted(patch: str, style: Style) -> list[str]:
    """Each line of a patch in its colour."""
    tones = {"+": Tone.GOOD, "-": Tone.BAD, "@": Tone.CALL}
    heads = ("+++", "---", "diff --git", "index ", "commit ")
    lines = []
    for line in patch.splitlines():
        tone = Tone.HEAD if line.startswith(heads) else tones.get(line[:1], Tone.PLAIN)
        lines.append(style.paint(line, tone))
    return lines


def _one_task(
    record: Mapping[str, Any],
    known: Mapping[str, Task],
    progress: Sequence[Mapping[str, Any]],
    style: Style,
    claim: str,
) -> list[str]:
    task = known[record["id"]]
    head = style.paint(shown(f"{task.id}: {task.title}"), Tone.HEAD)
    status = style.paint(task.status.value, _TONES.get(task.status, Tone.PLAIN))
    lines = [head, f"  status: {status}"]
    told = [("reason", task.reason), ("question", task.question)]
    timeout = completion.parse(record.get("completion"), task.id).timeout
    limit = f" (within {timeout:g} s)" if timeout else ""
    told.append(("complete when", f"{task.check}{limit}" if task.check else claim))
    for blocker in task.blocked_by:
        other = known.get(blocker)
        how = f" ({other.status.value}): {other.title}" if other else " (not there)"
        told.append(("waits for", blocker + how))
    names = [n for n in record if n not in _ELSEWHERE and n not in _TIMES]
    told += [
        (name, _words_of(name, record[name])) for name in (*names, *_TIMES) if record.get(name)
    ]
    if isinstance(source := record.get("source"), dict):
        place = source.get("path") or f"github:{source.get('repo')}"
        told.append(("came from", f"{place} ({source.get('format')}): {source.get('key')}"))
    told += [("answer", answer) for answer in task.answers]
    lines += [f"  {name}: {shown(text)}" for name, text in told if text]
    if task.text.strip():
        paragraphs = clean(task.text).rstrip().split("\n")
        lines += ["", *(f"  {shown(line)}".rstrip() for line in paragraphs)]
    iterations = [entry for entry in progress if entry.get("type", "iteration") == "iteration"]
    lines += ["", "  Last iterations:"] if iterations else []
    for entry in iterations:
        words = [str(entry.get("time", "")), f"iteration {entry.get('iteration', '?')}:"]
        words += [str(entry.get(name) or "") for name in ("status", "reason")]
        lines.append("    " + shown(" ".join(filter(None, words))))
    return lines


def _words_of(name: str, data: object) -> str:
    """A field for people; evidence in words."""
    if name != "evidence" or not isinstance(data, dict):
        return _plain(data)
    lists = {"left out": data.get("leftOut"), "put back": data.get("putBack")}
    lists |= {"hidden from git": data.get("hidden"), "artifacts": data.get("artifacts")}
    words = [checked_words(data)]
    words += [f"{what}: {_plain(paths)}" for what, paths in lists.items() if paths]
    words += [f"{data['outside']} are outside the proof"] if data.get("outside") else []
    return "; ".join(filter(None, words)) or _plain(data)


def _plain(data: object) -> str:
    """A value without JSON's signs where they only disturb."""
    if isinstance(data, str):
        return data
    if isinstance(data, list) and all(isinstance(item, str) for item in data):
        return ", ".join(data)
    return json.dumps(data, ensure_ascii=False)


@command("next")
@task_option("--task", "Only this one.")
@only_tags
@the_usual
def next_one(*, task: str | None, tags: tuple[str, ...], in_json: bool) -> None:
    """Say which task would be taken next.

    One that is in progress comes first, then the highest priority, then the oldest.

    Examples:
      ralph tasks next
      ralph tasks next --tag parser --json | jq -r .id

    Exit codes: 0, also when there is none (null); 2 for an unknown id, or tasks
    that wait for each other.
    """
    file = task_file(os.environ)
    listing = loaded(file)
    if listing.cycle:
        first, second = (listing.cycle * 2)[:2]
        remedy = f"Let one go: ralph tasks edit {first} --unblock {second}"
        raise ConfigError(_circle_words(listing.cycle), remedy)
    if task is not None:
        file.needed(task)
    backlog = chosen(listing.backlog, task, tags)
    found = next_task(_opening(backlog))
    if in_json:
        click.echo(json.dumps(file.needed(found.task) if found else None))
    elif found is None:
        asked_for = [t for t in backlog.tasks if not t.aside]
        click.echo(_nothing_ready(asked_for, _waits(backlog)) if backlog.tasks else _EMPTY)
    else:
        click.echo(shown(f"{found.task}: {found.title}"))


def _nothing_ready(tasks: Sequence[Task], waits: Waits) -> str:
    """The reasons why no task can be taken."""
    kept = [(t, _kept_by(t, waits) or t.status.value) for t in tasks if t.status not in ENDED]
    if not kept:
        return f"Nothing is left to do ({_summary(tasks)})."
    lines = [f"  {shown(t.id)}: {why}" for t, why in kept[:_MOST_TOLD]]
    more = [f"  and {len(kept) - _MOST_TOLD} more"] if len(kept) > _MOST_TOLD else []
    return "\n".join(["No task is ready:", *lines, *more])


@command()
@option("--type TYPE", "Only tasks of this type.", "kind")
@the_usual
def learn(kind: str | None, *, in_json: bool) -> None:
    """Show what tasks took, against their estimates, and what blocked them.

    Examples:
      ralph tasks learn                 all tasks that ended, by type
      ralph tasks learn --type bug      only those of one type
      ralph tasks learn --json | jq .total.ratio.mean

    It reads .ralph/learning.jsonl. A task counts once, with all its tries;
    estimates are iterations or a time (3, 2h), and only tasks that are done are
    held against theirs.
    """
    lessons = Records(current_directory(), "").lessons(_MOST_LESSONS)
    asked = [lesson for lesson in lessons if kind is None or lesson.kind == kind]
    if in_json:
        click.echo(json.dumps(_lessons_as_json(summary(asked)), indent=2))
    elif asked:
        click.echo("\n".join(_lesson_lines(summary(asked))))
    elif lessons:
        known = ", ".join(sorted({lesson.kind or "(no type)" for lesson in lessons}))
        click.echo(f"No task of type {kind} has ended yet. There are: {known}")
    else:
        click.echo("Nothing was learned here yet: no task has ended. Work on some: ralph tasks run")


def _lesson_lines(summary: Summary) -> list[str]:
    """A table of lessons by type, and what blocked and held up those tasks."""
    rows = [_row(kind, kind.kind or "(no type)") for kind in summary.types]
    total = [_row(summary.together, "all")] if len(rows) > 1 else []
    lines = [*aligned([_COLUMNS, *rows, *total], range(1, len(_COLUMNS))), "", _FOOTNOTE]
    for kind in summary.types:
        name = f"Tasks of type {kind.kind}" if kind.kind else "Tasks without a type"
        told = {"were blocked by": kind.blockers, "met most objections from": kind.gates}
        for what, counts in told.items():
            lines += ["", f"{name} {what}:"] if counts else []
            lines += [f"  {count:>3} × {which}" for which, count in counts]
    return lines


def _row(kind: TypeSummary, name: str) -> tuple[str, ...]:
    ratio = f"{kind.ratio.mean * 100:.0f} %" if kind.ratio else "–"
    took: list[tuple[Figures | None, Callable[[float], str]]] = [
        (kind.iterations, "{:.3g}".format),
        (kind.seconds, duration),
        (kind.cost, money),
    ]
    cells = (f"{shown(f.mean)} ({shown(f.median)})" if f else "–" for f, shown in took)
    return (name, str(kind.done), str(kind.blocked), *cells, ratio)


def _lessons_as_json(summary: Summary) -> dict[str, Any]:
    """Lessons as one JSON object."""
    return {
        "types": [{"type": kind.kind, **_as_dict(kind)} for kind in summary.types],
        "total": _as_dict(summary.together),
    }


def _as_dict(kind: TypeSummary) -> dict[str, Any]:
    told: dict[str, Any] = {"done": kind.done, "blocked": kind.blocked}
    for name in ("iterations", "seconds", "cost", "ratio"):
        found: Figures | None = getattr(kind, name)
        told[name] = found and {key: round(number, 6) for key, number in asdict(found).items()}
    told["blockers"] = [{"reason": reason, "count": count} for reason, count in kind.blockers]
    told["gates"] = [{"gate": gate, "count": count} for gate, count in kind.gates]
    return told
