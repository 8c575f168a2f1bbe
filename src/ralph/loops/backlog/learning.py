"""Lessons of earlier tasks, added up by type, and the lines for the next prompt (B §Logs).

Lessons and progress come from files that an agent can write: nonsense in them is left out.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from ralph.kernel.tasks.task import Task
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Cause
from ralph.text.plain import plain
from ralph.text.words import counted

if TYPE_CHECKING:
    from ralph.journal.forecast import Effort

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_LEAST, _MOST = 1e-3, 1e9  # iterations, seconds, dollars: more is nonsense
_COMMONEST = 5  # blockers and gates that are named


@value
class Lesson:
    """The end of a task, and what it took."""

    task: str
    kind: str = ""
    tags: tuple[str, ...] = ()
    done: bool = False
    iterations: int = 0
    seconds: float = 0.0
    cost: float | None = None
    estimate: float | None = None  # iterations
    estimated_time: float | None = None  # seconds, where the estimate is a time
    reason: str = ""
    blockers: tuple[str, ...] = ()
    gates: tuple[tuple[str, int], ...] = ()  # those that objected, and how often
    run: str = ""

    @property
    def ratio(self) -> float | None:
        """Iterations or time used, against the estimate."""
        if self.estimate:
            return self.iterations / self.estimate
        return self.seconds / self.estimated_time if self.estimated_time else None


@value
class Figures:
    """Mean and median of several numbers."""

    count: int
    mean: float
    median: float


Counts = tuple[tuple[str, int], ...]


@value
class TypeSummary:
    """The lessons of one type of tasks, added up."""

    kind: str
    done: int
    blocked: int
    iterations: Figures | None = None
    seconds: Figures | None = None
    cost: Figures | None = None
    ratio: Figures | None = None  # against the estimate
    blockers: Counts = ()  # the commonest first
    gates: Counts = ()


@value
class Summary:
    """The lessons of all tasks: by type, and together."""

    types: tuple[TypeSummary, ...]
    together: TypeSummary


def lessons_of(objects: Iterable[Mapping[str, Any]]) -> tuple[Lesson, ...]:
    """The lessons among JSON objects."""
    return tuple(
        Lesson(
            task=task,
            run=_text(data.get("run")),
            kind=_text(data.get("taskType")),
            tags=_texts(data.get("tags")),
            done=data["status"] == "done",
            iterations=int(_number(data.get("iterations")) or 0),
            seconds=_number(data.get("seconds")) or 0.0,
            cost=_number(data.get("cost")),
            estimate=_number(data.get("estimate")),
            estimated_time=_time(data.get("estimate")),
            reason=_text(data.get("reason")),
            blockers=_texts(data.get("blockers")),
            gates=_counts(data.get("gates")),
        )
        for data in objects
        if data.get("status") in ("done", "blocked") and (task := _text(data.get("taskId")))
    )


def _text(value: object) -> str:
    return plain(value) if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list | tuple) else ()
    return tuple(text for item in items if (text := _text(item)))


def _counts(value: object) -> Counts:
    items = value.items() if isinstance(value, dict) else ()
    numbers = ((_text(name), _number(count)) for name, count in items)
    return tuple((name, int(number)) for name, number in numbers if name and number)


def _number(value: object) -> float | None:
    """A number that can be added up, also one written as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def size_of(estimate: object) -> float:
    """A task's `estimate` as a number, of iterations or seconds; 0 where it is none."""
    size = _number(estimate) or _time(estimate) or 0.0
    return size if _LEAST < size < _MOST else 0.0


def efforts_of(objects: Iterable[Mapping[str, Any]], most: int = 100) -> "tuple[Effort, ...]":
    """What tasks took, each try for itself, for a forecast; given newest first, and as many at
    most. A task that was parked has come to its end, too: the run went on without it; but not one
    whose agent failed turn after turn."""
    from ralph.journal.forecast import Effort

    efforts, later = list[Effort](), set[tuple[object, object]]()
    for data in objects:
        status, try_of = data.get("status"), (data.get("taskId"), data.get("run"))
        iterations, seconds = _number(data.get("iterations")), _number(data.get("seconds"))
        # Of one whose commit was refused the later line counts: that holds this one, too.
        if status not in ("done", "blocked") or (status == "done" and try_of in later):
            continue
        later.add(try_of)
        if not iterations or seconds is None or max(iterations, seconds) > _MOST:
            continue
        kind, cost = data.get("taskType"), _number(data.get("cost"))
        efforts.append(
            Effort(
                int(iterations),
                seconds,
                cost if cost is None or cost < _MOST else None,
                data.get("cause") != Cause.CRASH,
                kind=kind if isinstance(kind, str) else "",
                size=size_of(data.get("estimate")),
            )
        )
        if len(efforts) == most:
            break
    return tuple(efforts)


def _time(value: object) -> float | None:
    """Seconds, of a text such as 90s, 30m or 2h."""
    text = value.strip() if isinstance(value, str) else ""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([smhd])", text)
    return float(found[1]) * _UNITS[found[2]] if found else None


def summary(lessons: Iterable[Lesson]) -> Summary:
    """The lessons by type, those with the most tasks first. A task counts once, with all tries."""
    tasks = by_task(lessons)
    groups: dict[str, list[Lesson]] = {}
    for task in tasks:
        groups.setdefault(task.kind, []).append(task)
    types = [_added_up(kind, group) for kind, group in groups.items()]
    ordered = sorted(types, key=lambda t: (-t.done - t.blocked, t.kind))
    return Summary(tuple(ordered), _added_up("", tasks))


def by_task(lessons: Iterable[Lesson]) -> tuple[Lesson, ...]:
    """One lesson a task: how its last try ended, and what all its tries took."""
    tasks: dict[str, list[Lesson]] = {}
    for lesson in lessons:
        tries = tasks.pop(lesson.task, [])  # the one that was heard of last stands last
        if tries and tries[-1].done and tries[-1].run == lesson.run:
            tries.pop()  # its commit was refused, and what it took is in this one too
        tasks[lesson.task] = [*tries, lesson]
    return tuple(reduce(_joined, tries) for tries in tasks.values())


def _joined(before: Lesson, last: Lesson) -> Lesson:
    costs = [lesson.cost for lesson in (before, last) if lesson.cost is not None]
    return replace(
        last,
        iterations=before.iterations + last.iterations,
        seconds=before.seconds + last.seconds,
        cost=sum(costs) if costs else None,
        blockers=(*before.blockers, *last.blockers),
        gates=_sums((*before.gates, *last.gates)),
    )


def _added_up(kind: str, tasks: Sequence[Lesson]) -> TypeSummary:
    return TypeSummary(
        kind=kind,
        done=sum(task.done for task in tasks),
        blocked=sum(not task.done for task in tasks),
        iterations=figures(task.iterations for task in tasks),
        seconds=figures(task.seconds for task in tasks),
        cost=figures(task.cost for task in tasks),
        ratio=figures(task.ratio for task in tasks if task.done),
        blockers=_sums((why, 1) for task in tasks for why in task.blockers)[:_COMMONEST],
        gates=_sums(gate for task in tasks for gate in task.gates)[:_COMMONEST],
    )


def figures(numbers: Iterable[float | None]) -> Figures | None:
    """Mean and median of the numbers that are known."""
    known = sorted(number for number in numbers if number is not None)
    if not known:
        return None
    middle = len(known) // 2
    median = known[middle] if len(known) % 2 else (known[middle - 1] + known[middle]) / 2
    return Figures(len(known), sum(known) / len(known), median)


def _sums(counts: Iterable[tuple[str, int]]) -> Counts:
    """Each name once, the largest number first."""
    sums: Counter[str] = Counter()
    for name, count in counts:
        sums[name] += count
    return tuple(sums.most_common())


def relevant(
    lessons: Sequence[Lesson], progress: Iterable[Mapping[str, Any]], task: Task, most: int = 12
) -> tuple[str, ...]:
    """Lines for the task's next prompt: its own iterations, the newest last, then lessons of tasks
    of the same type or with a tag in common."""
    told = [t for t in lessons if t.task == task.id or _is_like(task, t)]
    wanted = {t.task for t in told}  # with all their tries: of thousands these are few
    tasks = by_task(t for t in lessons if t.task in wanted) if wanted else ()
    own = [
        f"An earlier try ended blocked after {counted(t.iterations, 'iteration')}: {t.reason}"
        for t in tasks
        if t.task == task.id and not t.done
    ]
    own += (_iteration(entry) for entry in progress if entry.get("type") == "iteration")
    alike = [t for t in tasks if t.task != task.id and _is_like(task, t)]
    others = _others(alike)[: max(1, most // 3)]
    room = max(0, most - len(others))
    return tuple(plain(line) for line in (*own[max(0, len(own) - room) :], *others))[:most]


def _is_like(task: Task, lesson: Lesson) -> bool:
    """True if the lesson is about a task of the same type, or with a tag in common."""
    same = bool(task.kind) and lesson.kind == task.kind
    return same or not set(task.tags).isdisjoint(lesson.tags)


def _iteration(entry: Mapping[str, Any]) -> str:
    number = int(_number(entry.get("iteration")) or 0)
    parts = (f"Iteration {number}", _text(entry.get("status")), _text(entry.get("reason")))
    findings = entry.get("findings")
    found = findings if isinstance(findings, list) else ()
    gates = dict.fromkeys(_text(f.get("gate")) for f in found if isinstance(f, dict))
    objected = ", ".join(filter(None, gates))
    return ": ".join(filter(None, parts)) + (f" (objected: {objected})" if objected else "")


def _others(tasks: Sequence[Lesson]) -> list[str]:
    """The lessons of similar tasks: how long they took, what objected, what blocked the latest."""
    if not tasks:
        return []
    together = _added_up("", tasks)
    assert together.iterations is not None
    mean = together.iterations.mean
    took = f"{mean:.3g} {'iteration' if mean == 1 else 'iterations'} on average"
    ratio = f", {together.ratio.mean:.2g} times the estimate" if together.ratio else ""
    ended = f"{together.done} done, {together.blocked} blocked"
    lines = [f"Tasks like this one: {ended}, {took}{ratio}."]
    if together.gates:
        named = ", ".join(f"{name} ({count})" for name, count in together.gates[:3])
        lines.append(f"What objected most to tasks like this one: {named}.")
    blocked = [task for task in reversed(tasks) if not task.done and task.reason]
    return [*lines, *(f"{task.task} was blocked: {task.reason}" for task in blocked)]
