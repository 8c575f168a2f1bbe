"""Tasks as people read them: a table, a tree, one in full."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ralph.kernel.tasks import completion
from ralph.kernel.tasks.backlog import ENDED
from ralph.kernel.tasks.task import Status, Task
from ralph.runner.arguments import shown
from ralph.text.plain import clean, columns, shorten
from ralph.text.words import counted, listed
from ralph.ui.style import Style, Tone

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
_FIRST = ("id", "title", "description", "status")
_TIMES = ("createdAt", "updatedAt", "completedAt")
_ELSEWHERE = {*_FIRST, "blockedBy", "completion", "answers", "question", "reason", "source"}
Waits = Mapping[str, tuple[str, ...]]


# ------------------------------------------------------------------ many


def table(tasks: Sequence[Task], waits: Waits, style: Style) -> list[str]:
    """A line for each task, and how many there are."""
    rows = [(t.status.value, shown(t.id), str(t.priority)) for t in tasks]
    heads = ("status", "id", "priority")
    widths = [max([columns(row[i]) for row in (heads, *rows)]) for i in range(3)]
    lines = [style.paint(_cells(heads, widths) + "title", Tone.FAINT)] if rows else []
    for task, row in zip(tasks, rows, strict=True):
        cells = _cells(row, widths)
        rest = _fitted(shown(task.title), kept_by(task, waits), columns(cells), style)
        lines.append(style.paint(cells, _TONES.get(task.status, Tone.PLAIN)) + rest)
    return [line.rstrip() for line in (*lines, summary(tasks))]


def _cells(row: tuple[str, str, str], widths: Sequence[int]) -> str:
    status, task_id, priority = row
    gap = " " * (widths[1] - columns(task_id))
    return f"{status:<{widths[0]}}  {task_id}{gap}  {priority:>{widths[2]}}  "


def _fitted(title: str, note: str, used: int, style: Style) -> str:
    """Title and note on what is left of the line: the title gives way first."""
    if style.width is None:
        return f"{title}  ({note})" if note else title
    left = max(_NARROWEST, style.width - used)
    room = max(_NARROWEST, left - columns(note) - 4) if note else left
    title = shorten(title, len(title), room, "…")
    whole = f"{title}  ({note})" if note else title
    return shorten(whole, len(whole), left, "…")


def kept_by(task: Task, waits: Waits) -> str:
    """The words for what keeps a task from being worked on; "" if nothing does."""
    if task.question:
        return shown(f"asks: {task.question}")
    if task.status is Status.BLOCKED and task.reason:
        return shown(task.reason)
    if task.open and task.id in waits:
        return shown(f"waits for {listed(waits[task.id], _MOST_NAMED)}")
    return ""


def summary(tasks: Sequence[Task]) -> str:
    """The number of tasks of each status."""
    count = Counter(t.status for t in tasks)
    parts = [f"{count[status]} {status.value}" for status in Status if count[status]]
    return f"{counted(len(tasks), 'task')}{': ' if parts else ''}{', '.join(parts)}"


def tree(tasks: Sequence[Task], waits: Waits, style: Style) -> list[str]:
    """Each task below every one that it waits for; what waits for it is shown below the first."""
    lines = []
    for task, depth, again in _walk(tasks):
        mark = "(see above)" if again else shown(task.title)
        note = "" if again else kept_by(task, waits)
        head = f"{'  ' * min(depth, _DEEPEST)}{shown(task.id)}: "
        status = f"[{task.status.value}] "
        rest = _fitted(mark, note, columns(head) + columns(status), style)
        lines.append(head + style.paint(status, _TONES.get(task.status, Tone.PLAIN)) + rest)
    return [*lines, summary(tasks)]


def _walk(tasks: Sequence[Task]) -> Iterator[tuple[Task, int, bool]]:
    """Every task with its depth, and True if it was there before. Circles are cut open."""
    known = {t.id for t in tasks}
    below: dict[str, list[Task]] = {}
    for task in tasks:
        for blocker in dict.fromkeys(task.blocked_by):
            below.setdefault(blocker, []).append(task)
    tops = [t for t in tasks if known.isdisjoint(t.blocked_by)]
    seen: set[str] = set()
    for top in (*tops, *tasks):  # the second time round: those in circles
        stack = [] if top.id in seen else [(top, 0)]
        while stack:
            task, depth = stack.pop()
            yield task, depth, task.id in seen
            if task.id not in seen:
                seen.add(task.id)
                stack += [(t, depth + 1) for t in reversed(below.get(task.id, ()))]


def nothing_ready(tasks: Sequence[Task], waits: Waits) -> str:
    """The reasons why no task can be taken."""
    kept = [(t, kept_by(t, waits) or t.status.value) for t in tasks if t.status not in ENDED]
    if not kept:
        return f"Nothing is left to do ({summary(tasks)})."
    lines = [f"  {shown(t.id)}: {why}" for t, why in kept[:20]]
    more = [f"  and {len(kept) - 20} more"] if len(kept) > 20 else []
    return "\n".join(["No task is ready:", *lines, *more])


# ------------------------------------------------------------------ one


def one_task(
    record: Mapping[str, Any],
    known: Mapping[str, Task],
    progress: Sequence[Mapping[str, Any]],
    style: Style,
) -> list[str]:
    """All that is known of a task."""
    task = known[record["id"]]
    head = style.paint(shown(f"{task.id}: {task.title}"), Tone.HEAD)
    status = style.paint(task.status.value, _TONES.get(task.status, Tone.PLAIN))
    lines = [head, f"  status: {status}"]
    kept = {"reason": task.reason, "question": task.question}
    lines += [_line(name, text) for name, text in kept.items() if text]
    timeout = completion.parse(record.get("completion"), task.id).timeout
    limit = f" (within {timeout:g} s)" if timeout else ""
    lines += [_line("complete when", f"{task.check}{limit}" if task.check else "the agent says so")]
    lines += [_line("waits for", _blocker(b, known)) for b in task.blocked_by]
    names = [n for n in record if n not in _ELSEWHERE and n not in _TIMES]
    lines += [_line(name, _plain(record[name])) for name in (*names, *_TIMES) if record.get(name)]
    if isinstance(source := record.get("source"), dict):
        place = source.get("path") or f"github:{source.get('repo')}"
        lines += [_line("came from", f"{place} ({source.get('format')}): {source.get('key')}")]
    lines += [_line("answer", answer) for answer in task.answers]
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


def _line(name: str, text: str) -> str:
    return f"  {name}: {shown(text)}"


def _blocker(task_id: str, known: Mapping[str, Task]) -> str:
    task = known.get(task_id)
    return f"{task_id} ({task.status.value}): {task.title}" if task else f"{task_id} (not there)"


def _plain(data: object) -> str:
    """A value without JSON's signs where they only disturb."""
    if isinstance(data, str):
        return data
    if isinstance(data, list) and all(isinstance(item, str) for item in data):
        return ", ".join(data)
    return json.dumps(data, ensure_ascii=False)
