"""The tables of a recap: tasks, workers, reviews, and what was spent over time. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from ralph.kernel.events import Usage
from ralph.kernel.facts import Asked, Assigned, Returned
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import ENDED, Mode, ReviewStatus, Status, Task
from ralph.kernel.value import replace
from ralph.kernel.verdict import Accept, Park, Stop
from ralph.kernel.world import Request
from ralph.ui.recap.chapter import AgentTurn, Change, Chapter
from ralph.ui.recap.values import (
    AgentRow,
    Diff,
    Iteration,
    Lane,
    Point,
    PullRow,
    ReviewRow,
    Steered,
    TaskRow,
    TaskState,
)
from ralph.ui.recap.words import shown

_MOST_POINTS = 500
_MOST_SAID = 500  # characters of a title, a reason
_STATES = {
    Status.PENDING: TaskState.PENDING,
    Status.IN_PROGRESS: TaskState.PENDING,  # unless somebody is at it now
    Status.BLOCKED: TaskState.BLOCKED,
    Status.REVIEW: TaskState.REVIEW,
    Status.DONE: TaskState.DONE,
    Status.CANCELLED: TaskState.CANCELLED,
}


class TaskTable:
    """The tasks that the run has taken up, and those of its list that are open."""

    def __init__(
        self,
        lead: Chapter,
        asking: Mapping[str, str],
        evidence: Mapping[str, tuple[str, ...]],
        at_work: Mapping[str, Mode],
    ) -> None:
        self._done, self._parked = lead.state.done, dict(lead.state.parked)
        self._approved = lead.approved
        self._asking, self._evidence, self._at_work = asking, evidence, at_work
        self._commits = {made.task: made.commit for made in lead.state.delivered}

    def rows(
        self,
        iterations: Iterable[Iteration],
        listed: Iterable[Task],
        diff_of: Mapping[str, Diff],
    ) -> Iterator[TaskRow]:
        """A row for each; `diff_of` are those of commits."""
        known = {task.id: task for task in listed}
        taken: dict[str, list[Iteration]] = {}
        for each in iterations:
            if each.number:
                taken.setdefault(each.task, []).append(each)
        touched = {*taken, *self._done, *self._parked, *self._at_work}
        names = [t.id for t in known.values() if t.id in touched or _is_open(t)]
        for name in dict.fromkeys((*names, *sorted(touched.difference(known)))):
            row = self._row(name, known.get(name), taken.get(name, []))
            diff = diff_of.get(row.commit, Diff())
            yield replace(
                row, added=diff.added, removed=diff.removed, files=len(diff.files) + diff.left_out
            )

    def _row(self, name: str, task: Task | None, taken: Sequence[Iteration]) -> TaskRow:
        why = (task.reason if task else "") or self._parked.get(name, "")
        question = (task.question if task else "") or self._asking.get(name, "")
        state = self._state(name, task)
        is_blocked = state is TaskState.BLOCKED
        costs = [each.cost_usd for each in taken if each.cost_usd is not None]
        commits = [each.commit for each in taken if each.commit]
        title = (task.title if task else "") or next((e.title for e in taken if e.title), "")
        return TaskRow(
            shown(name, _MOST_SAID),
            shown(title, _MOST_SAID),
            state,
            shown(why, _MOST_SAID) if is_blocked else "",
            shown(question, _MOST_SAID) if is_blocked else "",
            len(taken),
            sum(each.agent_seconds + each.gate_seconds for each in taken),
            sum(costs) if costs else None,
            shown(self._commits.get(name, "")) or next(reversed(commits), ""),
            evidence=tuple(map(shown, self._evidence.get(name, ()))),
            worker=taken[-1].worker if taken else "",
        )

    def _state(self, name: str, task: Task | None) -> TaskState:
        if name in self._at_work:
            reviews = self._at_work[name] is Mode.REVIEW
            return TaskState.REVIEW if reviews else TaskState.ACTIVE
        if name in self._done or name in self._approved:
            return TaskState.DONE
        if task is not None and task.review is ReviewStatus.NEEDS_REVIEW:
            return TaskState.REVIEW
        if task is not None:  # people may have settled since what was left to them
            return _STATES[task.status]
        return TaskState.BLOCKED if name in self._parked else TaskState.PENDING


def _is_open(task: Task) -> bool:
    return not task.aside and task.status not in ENDED and not task.passes


def agent_rows(chapters: Iterable[Chapter]) -> Iterator[AgentRow]:
    """The agents that took turns, in the order in which they first did."""
    turns: dict[str, list[AgentTurn]] = {}
    for turn in (turn for each in chapters for turn in each.turns):
        turns.setdefault(turn.agent, []).append(turn)
    for agent, of in turns.items():
        costs = [turn.cost_usd for turn in of if turn.cost_usd is not None]
        usage = sum((turn.usage for turn in of), Usage())
        yield AgentRow(shown(agent), len(of), sum(costs) if costs else None, usage)


def pull_rows(state: RunState) -> Iterator[PullRow]:
    """The pull requests of the run and its workers; an address that is no web page is left out."""
    for pull in state.pulls:
        url = pull.url if pull.url.startswith(("https://", "http://")) else ""
        yield PullRow(pull.number, url, pull.branch, pull.base, pull.task, pull.merged)


def review_rows(lead: Chapter) -> Iterator[ReviewRow]:
    for time, review in lead.reviews:
        yield ReviewRow(time, shown(review.story), review.outcome, shown(review.feedback))


def lanes(
    sent: Iterable[Assigned], back: Mapping[str, Returned], until: float | None
) -> Iterator[Lane]:
    """The workers by when they were sent. Those of a run that is gone were at work `until` then."""
    for fact in sent:
        returned = back.get(fact.worker)
        ended = until if returned is None else returned.time
        outcome = "" if returned is None else _outcome(returned)
        yield Lane(shown(fact.worker), shown(fact.assignment.task), fact.time, ended, outcome)


def _outcome(returned: Returned) -> str:
    match returned.verdict:
        case Accept():
            return "done"
        case Park():
            return "parked"
        case Stop(reason=reason):
            return reason.value
        case _:
            return ""


def points(changes: Iterable[Change], total: int | None) -> Iterator[Point]:
    """Spending and progress up to each change; `total` is how many tasks there are. Of very many
    points the last and some in between are shown."""
    dollars, usage, done, all_of_them = 0.0, Usage(), 0, list[Point]()
    for change in sorted(changes, key=attrgetter("time")):
        dollars, usage, done = dollars + change.dollars, usage + change.usage, done + change.done
        left = None if total is None else max(0, total - done)
        all_of_them.append(Point(change.time, dollars, usage.all_input, usage.output, done, left))
    step = 1 + len(all_of_them) // _MOST_POINTS
    yield from reversed(all_of_them[::-1][::step])


def steered(asked: Iterable[Asked], waiting: Iterable[Request]) -> Iterator[Steered]:
    """The requests that the run has heard, and those that it has not."""
    heard = {fact.request.id: fact.request for fact in asked}
    new = {request.id: request for request in waiting if request.id not in heard}
    for request in sorted((*heard.values(), *new.values()), key=attrgetter("time")):
        yield Steered(
            request.time,
            shown(request.request),
            request.origin.value,
            shown(request.text),
            shown(request.task),
            heard=request.id in heard,
        )
