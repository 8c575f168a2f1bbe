"""The report as Markdown, short enough for a pull request or a chat.

What others wrote cannot become a link, HTML, a mention or a list: every character that means
something is escaped, and bare links, mentions and references are kept apart.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from ralph.text.words import counted, duration, money, number
from ralph.ui.paper.compare import HEAD, row_of
from ralph.ui.paper.markup import fit
from ralph.ui.paper.words import (
    TASK_WORDS,
    against,
    agents_words,
    cost,
    counts_by_task,
    cut,
    headline,
    readable,
    row_words,
    said,
    telling,
    turn_words,
    who,
    words_of,
)
from ralph.ui.recap.values import Iteration, PullRow, Recap, TaskRow, TaskState

# What has a meaning anywhere in a line, and what has one at its beginning. Entities are read by
# every dialect; an escape in front of `<` or `|` is not.
_MEANS = re.compile(r"[\\`*_\[\]~]|\$(?![0-9])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"})
_BEGINS = re.compile(r"^([-+=#]|[0-9]+(?=[.)]))")
# Bare words of which a forge makes links, mentions, references and pictures: kept apart behind
# their first character by a joiner, which nobody sees.
_LINKS = re.compile(
    r"(?i):(?=//|\w+:)|\bw(?=ww\.)|\bm(?=ailto:)|\bG(?=H-[0-9])|[@#!%^](?=\w)"
    r"|\b[0-9a-f](?=[0-9a-f]{6,39}\b)"
)
_APART = "\u2060"
_TICKS = re.compile("`+")
_MOST = 20  # rows of a list
_MOST_TASKS = 100
_SHORT_ID = 12  # characters of a commit
_SYMBOLS = {
    TaskState.PENDING: "◌",
    TaskState.ACTIVE: "◔",
    TaskState.REVIEW: "◑",
    TaskState.BLOCKED: "❓",
    TaskState.DONE: "✅",
    TaskState.CANCELLED: "✖",
}
_TONES = {"good": "✅", "notice": "⚠️", "bad": "❌", "active": "⏳"}


def markdown(recaps: Sequence[Recap]) -> str:
    """The runs one after the other, below a table that compares several."""
    lines: list[str] = []
    if len(recaps) > 1:
        lines += [f"## {len(recaps)} runs", "", *table(HEAD, map(_compared, recaps)), ""]
    for recap in map(readable, recaps):
        lines += _run(recap, "##" if len(recaps) == 1 else "###")
    return "\n".join(lines).rstrip() + "\n"


def plain_words(text: str, most: int = 300) -> str:
    """A text of others in a line of ours, all of it as it was written."""
    line = fit(cut(text, most))
    line = _LINKS.sub(lambda found: found[0] + _APART, line)
    line = _MEANS.sub(r"\\\g<0>", line).translate(_ENTITIES)
    return _BEGINS.sub(
        lambda found: f"\\{found[0]}" if not found[0].isdigit() else found[0] + _APART, line
    )


def code(text: str, most: int = 120) -> str:
    """A text of others as code: in more backticks than it holds."""
    line = fit(cut(text, most)) or " "
    longest = max((len(run) for run in _TICKS.findall(line)), default=0)
    fence = "`" * (longest + 1)
    gap = " " if longest else ""
    return f"{fence}{gap}{line}{gap}{fence}"


def _compared(recap: Recap) -> Iterator[str]:
    run, *others = row_of(recap)
    yield code(run)
    yield from (plain_words(each, 80) for each in others)


def _run(recap: Recap, level: str) -> Iterator[str]:
    tone, words = headline(recap)
    yield f"{level} {_TONES[tone]} {plain_words(words)}: {code(recap.run, 80)}"
    yield ""
    yield plain_words(recap.outcome)
    if recap.problem:
        yield f"\n**{plain_words(recap.problem)}**"
    if recap.asked.strip():
        yield f"\n> {plain_words(recap.asked, 400)}"
    yield ""
    yield from _claims(recap)
    yield from _list("Left to you", (*recap.left, *recap.yours))
    yield from _achieved(recap)
    yield from _list("Pull requests", [_pull(pull) for pull in recap.pulls])
    yield from _figures(recap)
    yield from _iterations(recap)
    if recap.next:
        commands = (code(command, 200) for command in recap.next[:_MOST])
        yield from ("Next:", "", *(f"- {command}" for command in commands), "")


def _claims(recap: Recap) -> Iterator[str]:
    found = []
    for each in recap.iterations:
        judged = each.judgement
        if judged is not None and judged.is_disbelieved:
            name = plain_words(turn_words(recap, each), 80)
            if each.task and not counts_by_task(recap):
                name += f" ({plain_words(each.task, 40)})"
            found.append(
                f"- {name} said **{plain_words(said(judged), 60)}**; "
                f"not believed: {plain_words(against(judged), 160)}"
            )
    if found:
        were = "claim was" if len(found) == 1 else "claims were"
        yield from (f"**{len(found)} {were} not believed**", "", *_some(found), "")


def _some(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:_MOST]
    if (rest := len(lines) - _MOST) > 0:
        yield f"- and {rest} more"


def _list(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield from (f"**{title}**", "", *_some([f"- {plain_words(line)}" for line in lines]), "")


def _achieved(recap: Recap) -> Iterator[str]:
    """The tasks as a table; of a prompt what was done, and the evidence."""
    if not recap.tasks:
        yield from _list("Done", recap.done)
        yield from _list("Evidence", telling(recap.evidence))
        return
    head = ("", "Task", "Commit", "Lines", "Cost", "Evidence")
    yield from table(head, map(_task, recap.tasks[:_MOST_TASKS]))
    if (rest := len(recap.tasks) - _MOST_TASKS) > 0:
        yield f"\nand {counted(rest, 'task')} more"
    yield ""


def _pull(pull: PullRow) -> str:
    merged = ", merged" if pull.merged else ""
    return f"{pull.number}: {pull.branch} \u2192 {pull.base}{merged}"


def _task(task: TaskRow) -> Iterator[str]:
    why = task.question or task.why
    yield f"{_SYMBOLS[task.state]} {TASK_WORDS[task.state]}"
    told = f": {plain_words(why, 160)}" if why else ""
    yield f"**{plain_words(task.id, 60)}** {plain_words(task.title, 100)}{told}"
    yield code(task.commit[:_SHORT_ID]) if task.commit else ""
    yield f"+{task.added} −{task.removed}" if task.files else ""
    yield cost(task.cost_usd)
    yield ", ".join(plain_words(each, 60) for each in telling(task.evidence)[:6])


def _figures(recap: Recap) -> Iterator[str]:
    spent, usage = recap.spent, recap.spent.usage
    told = [counted(spent.iterations, "iteration"), duration(spent.seconds)]
    if spent.dollars is not None:
        limit = f" of {money(spent.max_dollars)}" if spent.max_dollars else ""
        told.append(f"{money(spent.dollars)}{limit}")
    if spent.uncounted:
        told.append(f"{counted(spent.uncounted, 'turn')} of unknown cost")
    if usage.all_input:
        told.append(f"{number(usage.all_input)} tokens read, {number(usage.output)} written")
    agents = plain_words(who(recap), 120)
    yield f"{', '.join(told)}{f'; {agents}' if agents else ''}."
    yield ""
    yield from _list("By agent", agents_words(recap))


def _iterations(recap: Recap) -> Iterator[str]:
    """A fold with a line for each."""
    iterations = recap.iterations
    if not iterations:
        return
    yield f"<details><summary>{counted(len(iterations), 'iteration')}</summary>"
    yield ""
    shown = iterations[-_MOST_TASKS:]
    if len(shown) < len(iterations):
        yield f"The last {len(shown)} of them.\n"
    what = "Task" if any(each.task for each in shown) else "Last words"
    yield from table(
        ("", what, "Verdict", "Rule", "Time", "Cost"), (_iteration(recap, each) for each in shown)
    )
    yield from ("", "</details>", "")


def _iteration(recap: Recap, each: Iteration) -> Iterator[str]:
    judged = each.judgement
    seconds = each.agent_seconds + each.gate_seconds
    yield plain_words(row_words(recap, each), 60)
    task = "" if counts_by_task(recap) else each.task
    yield plain_words(f"{task} {each.title}".strip(), 80)
    if judged is None:
        yield "at work" if each.ended is None else "not judged"
    elif judged.is_disbelieved:
        why = plain_words(against(judged), 100)
        yield f"said {plain_words(said(judged), 40)}; **not believed**: {why}"
    else:
        yield plain_words(words_of(judged), 120)
    # No code in a fold: where that is HTML to its end, what stands in code is HTML too.
    yield plain_words(judged.rule, 40) if judged is not None else ""
    yield duration(seconds)
    yield cost(each.cost_usd)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """A table of cells that are Markdown."""
    titles = tuple(head)
    yield f"| {' | '.join(titles)} |"
    yield f"|{' --- |' * len(titles)}"
    for row in rows:
        cells = (cell.replace("|", "\\|") for cell in row)  # in code, which has no entities
        yield f"| {' | '.join(cells)} |"
