"""The achievements of a run: its tasks with commit, size and evidence, or its lines of work."""

from collections.abc import Sequence

from ralph.text.words import counted, duration
from ralph.ui.paper.diffs import counts
from ralph.ui.paper.looks import ACCEPTED, AT_WORK, FAILED, PARKED, WAITED, WENT_ON
from ralph.ui.paper.markup import EMPTY, Markup, foreign, joined, several, table, tag
from ralph.ui.paper.words import TASK_WORDS, cost, cut, mark, telling
from ralph.ui.recap.values import PullRow, Recap, TaskRow, TaskState

SHORT_ID = 12  # characters of a commit
_MOST = 30
_MOST_TASKS = 400
_LOOKS = {
    TaskState.PENDING: WENT_ON,
    TaskState.ACTIVE: AT_WORK,
    TaskState.REVIEW: WAITED,
    TaskState.BLOCKED: PARKED,
    TaskState.DONE: ACCEPTED,
    TaskState.CANCELLED: FAILED,
}
_HEAD = ("", "Task", "Commit", "Lines", "Iterations", "Time", "Cost", "Evidence")


def achieved(recap: Recap) -> Markup:
    """Tasks as a table; of a prompt its commits and the evidence."""
    pulls = _pulls(recap)
    if recap.tasks:
        shown = recap.tasks[:_MOST_TASKS]
        rest = len(recap.tasks) - len(shown)
        parts = (
            table(_HEAD, map(_row, shown), class_="tasks"),
            tag("p", f"and {counted(rest, 'task')} more") if rest else EMPTY,
        )
    else:
        lines = [*recap.done, *recap.evidence]
        if not lines and not pulls:
            return EMPTY
        parts = (
            _list("good", recap.done),
            joined((tag("h3", "Evidence"), _list("for", telling(recap.evidence))))
            if recap.evidence
            else EMPTY,
        )
    return tag("section", tag("h2", "What was achieved"), *parts, pulls, class_="achieved")


def _pulls(recap: Recap) -> Markup:
    """Links to the pull requests."""

    def entry(pull: PullRow) -> Markup:
        name, merged = f"#{pull.number}", ", merged" if pull.merged else ""
        link = tag("a", name, href=pull.url) if pull.url else name
        return tag("li", link, " ", foreign(f"{pull.branch} \u2192 {pull.base}{merged}"))

    if not recap.pulls:
        return EMPTY
    return joined((tag("h3", "Pull requests"), tag("ul", *several(recap.pulls, entry, _MOST))))


def _list(class_: str, lines: Sequence[str]) -> Markup:
    entries = several(lines, lambda line: tag("li", foreign(cut(line, 300))), _MOST)
    return tag("ul", *entries, class_=class_) if entries else EMPTY


def _row(task: TaskRow) -> list[Markup]:
    look, state = _LOOKS[task.state], TASK_WORDS[task.state]
    name = joined((tag("b", foreign(cut(task.id, 60))), " ", foreign(cut(task.title, 120))))
    why = cut(task.question or task.why, 240)
    told = tag(
        "div", f"{state}: " if task.state is TaskState.BLOCKED else "", foreign(why), class_="why"
    )
    commit = (
        tag("code", task.commit[:SHORT_ID]) if task.commit else tag("span", state, class_="quiet")
    )
    size = counts(task.added, task.removed) if task.files else "–"
    evidence = [cut(each, 80) for each in telling(task.evidence)]
    return [
        tag("td", mark(look, state), class_="mark"),
        tag("td", name, told if why else None, class_="name"),
        tag("td", commit),
        tag("td", size, class_="n"),
        tag("td", task.iterations or "–", class_="n"),
        tag("td", duration(task.seconds) if task.seconds else "–", class_="n"),
        tag("td", cost(task.cost_usd), class_="n"),
        tag(
            "td", tag("ul", *(tag("li", foreign(each)) for each in evidence[:6])), class_="evidence"
        ),
    ]
