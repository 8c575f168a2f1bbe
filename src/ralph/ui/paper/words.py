"""Texts of a run made short enough for a page."""

import re
from collections.abc import Iterable

from ralph.kernel.value import replace, value
from ralph.text.plain import first_line, one_line, shorten
from ralph.text.words import counted, money
from ralph.ui.paper.looks import DISBELIEVED, Look
from ralph.ui.paper.markup import EMPTY, Markup, escaped, foreign, joined, tag
from ralph.ui.recap.values import ItemKind, Iteration, Judgement, Recap, TaskState

_TAG = re.compile(r"<(response|promise|result)>(.*?)</\1>", re.DOTALL | re.IGNORECASE)
_LAWS = frozenset(  # gates that prove nothing about the work
    (
        "protect",
        "secrets",
        "sandbox",
        "history",
        "artifacts",
        "task list",
        "story list",
        "clean tree",
    )
)
_NEAR = 120  # characters in which a text is rather cut between lines
_HEADLINES = {
    "completed": ("good", "Completed"),
    "limit": ("notice", "Stopped at a limit"),
    "blocked": ("notice", "It needs you"),
    "asking": ("notice", "It asks you"),
    "paused": ("notice", "Paused"),
    "interrupted": ("notice", "Interrupted"),
    "stalled": ("bad", "Stalled"),
    "failing": ("bad", "The agent fails"),
    "config": ("bad", "It cannot go on"),
    "crashed": ("bad", "Crashed"),
    "bug": ("bad", "A bug of Ralph’s"),
    "unknown": ("bad", "Nobody knows"),
    "running": ("active", "Running"),
    "waiting": ("active", "Waiting"),
}


TASK_WORDS = {
    TaskState.PENDING: "not begun",
    TaskState.ACTIVE: "in progress",
    TaskState.REVIEW: "in review",
    TaskState.BLOCKED: "blocked",
    TaskState.DONE: "done",
    TaskState.CANCELLED: "cancelled",
}


def headline(recap: Recap) -> tuple[str, str]:
    """The state of a run: the class of a colour, and a word or two."""
    return _HEADLINES.get(recap.state, ("notice", cut(recap.state, 40).capitalize()))


def cut(text: str, most: int) -> str:
    """The first line, in so many characters."""
    return shorten(one_line(first_line(text)), most, None, "…")


def cost(dollars: float | None) -> str:
    return "–" if dollars is None else money(dollars)


def who(recap: Recap) -> str:
    """The agents that took turns, or the one that was to; "" where that is not known."""
    names = [row.agent for row in recap.agents if row.agent]
    return ", ".join(names if len(names) > 1 else filter(None, (recap.agent, recap.model)))


def agents_words(recap: Recap) -> list[str]:
    """What each agent did, where there were several."""
    if len(recap.agents) < 2:
        return []
    return [
        f"{cut(row.agent or 'unknown', 60)}: {counted(row.turns, 'turn')}, {cost(row.cost_usd)}"
        for row in recap.agents
    ]


def said(judgement: Judgement) -> str:
    """The last claim without its tag."""
    last = judgement.claims[-1] if judgement.claims else ""
    return cut(without_tags(last), 60)


def readable(recap: Recap) -> Recap:
    """The run as people read it: the iterations of a prompt are named by the agent's last words."""
    if recap.tasks:
        return recap
    named = (replace(each, task="", title=_last_words(each)) for each in recap.iterations)
    return replace(recap, iterations=tuple(named))


def counts_by_task(recap: Recap) -> bool:
    """True if the iterations of each task begin with 1."""
    return recap.profile == "tasks"


def turn_words(recap: Recap, iteration: Iteration) -> str:
    """`Iteration 2 of T-006`, as everybody else calls it; `Iteration 13` where they are counted
    through."""
    task = cut(iteration.task, 40) if counts_by_task(recap) else ""
    return f"Iteration {iteration.number} of {task}" if task else f"Iteration {iteration.number}"


def row_words(recap: Recap, iteration: Iteration) -> str:
    """The same at the head of a row: `T-006 · 2`."""
    task = cut(iteration.task, 40) if counts_by_task(recap) else ""
    return f"{task} · {iteration.number}" if task else str(iteration.number)


def _last_words(iteration: Iteration) -> str:
    texts = [item.text for item in iteration.items if item.kind is ItemKind.TEXT]
    lines = "\n".join(_TAG.sub("", text) for text in texts).strip().splitlines()
    return lines[-1] if lines else ""


def telling(evidence: Iterable[str]) -> list[str]:
    """The evidence that says something about the work: no laws, and claims without their tags."""
    return [without_tags(each) for each in evidence if each.removeprefix("passed: ") not in _LAWS]


def words_of(judgement: Judgement) -> str:
    """The sentence of a verdict, or its name."""
    return judgement.words or judgement.verdict


def without_tags(text: str) -> str:
    """The text with its claims bare: `DONE` for `<response>DONE</response>`."""
    return _TAG.sub(r"\2", text)


def against(judgement: Judgement) -> str:
    """The first reason why a claim was not believed."""
    reasons = (*judgement.objections, *judgement.feedback, judgement.words)
    return cut(next((each for each in reasons if each.strip()), ""), 160)


@value
class Excerpt:
    """The beginning and the end of a text, and how much is missing between them."""

    head: str
    tail: str = ""
    missing: int = 0  # characters


def excerpt(text: str, most: int) -> Excerpt:
    """As much of a text as fits into so many bytes once it is escaped."""
    if len(text) <= most and _size(text) <= most:
        return Excerpt(text)
    head = _fitting(text[:most], 2 * most // 3)
    tail = _fitting(text[len(head) :][-most:][::-1], most // 3)[::-1]
    if "\n" in head[-_NEAR:]:
        head = head[: head.rindex("\n") + 1]
    if "\n" in tail[:_NEAR]:
        tail = tail[tail.index("\n") + 1 :]
    return Excerpt(head, tail, len(text) - len(head) - len(tail))


def _fitting(text: str, room: int) -> str:
    """The beginning of a text that needs no more than so many bytes."""
    text = text[: max(0, room)]
    while text and (size := _size(text)) > room:
        text = text[: int(len(text) * room / size * 0.97)]
    return text


def _size(text: str) -> int:
    return len(escaped(text).encode())


def fair(sizes: Iterable[int], total: int) -> int:
    """The most that each may have, so that all together stay within the total: what small ones do
    not need is for the large ones."""
    ordered = sorted(sizes)
    for place, size in enumerate(ordered):
        left = len(ordered) - place
        if size * left >= total:
            return max(0, total) // left
        total -= size
    return max(ordered, default=0) + max(0, total)


def quoted(text: str, most: int, where: str = "", of: str = "pre") -> Markup:
    """A text of others in a box that scrolls, shortened in the middle."""
    part = excerpt(text, most)
    look = {"class_": "text", "tabindex": "0" if of == "pre" else None}
    if not part.missing:
        return tag(of, part.head, **look)
    whole = joined((". The whole: ", tag("code", where))) if where else EMPTY
    gap = tag("p", f"… {part.missing:,} characters left out", whole, class_="gap")
    first, last = (tag(of, each, **look) if each else EMPTY for each in (part.head, part.tail))
    return joined((first, gap, last))


def mark(look: Look, title: str = "") -> Markup:
    """The shape of a look; screen readers get its words."""
    use = tag("use", href=f"#look-{look.name}")
    words = tag("title", title or look.words)
    return tag("svg", words, use, class_=f"look {look.name}", view_box="0 0 16 16", role="img")


def disbelief(judgement: Judgement) -> Markup:
    """`said DONE; not believed: make test exit 1`."""
    return joined(
        (
            "said ",
            tag("q", foreign(said(judgement))),
            "; ",
            tag("strong", DISBELIEVED.words),
            ": ",
            foreign(against(judgement)),
        )
    )
