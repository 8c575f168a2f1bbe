"""One iteration, folded: its verdict first, then what it was told, did and changed."""

from collections.abc import Iterator

from ralph.kernel.value import value
from ralph.text.words import counted, duration, number
from ralph.ui.paper.diffs import diff_part, diff_words
from ralph.ui.paper.looks import ACCEPTED, DISBELIEVED, PARKED, STOPPED, Look, look_of
from ralph.ui.paper.markup import (
    EMPTY,
    Content,
    Markup,
    clock,
    folded,
    foreign,
    joined,
    several,
    tag,
)
from ralph.ui.paper.words import (
    cost,
    counts_by_task,
    cut,
    disbelief,
    fair,
    mark,
    quoted,
    row_words,
    words_of,
)
from ralph.ui.recap.values import Check, Item, ItemKind, Iteration, Judgement, Recap, Settling

_MOST = 12  # entries of a list
_OVERHEAD = 300  # bytes of the elements around an item
_LABELS = {
    ItemKind.THINKING: "thinks",
    ItemKind.OTHER: "others",
    ItemKind.TODO: "plan",
    ItemKind.QUESTION: "asks",
    ItemKind.TROUBLE: "trouble",
    ItemKind.UNREAD: "not read",
}
_MATTERS = (DISBELIEVED, PARKED, STOPPED)  # printed open


@value
class Room:
    """Bytes that the parts of an iteration may take, and entries that a list may have."""

    verdict: int
    told: int
    prompt: int
    log: int
    checks: int
    patch: int
    entries: int
    is_bare: bool = False  # there is room for the verdict alone


def room_of(total: int) -> Room:
    """The shares of so many bytes. Where they are few lists are short: elements take room too."""
    tenth = total // 10
    patch, log = total * 23 // 100, total * 35 // 100
    return Room(
        tenth, tenth, tenth, log, tenth, patch, max(2, min(_MOST, total // 800)), total == 0
    )


def iteration_part(recap: Recap, iteration: Iteration, id_: str, room: Room) -> Markup:
    """The fold of an iteration; `id_` is where links lead to."""
    look = look_of(iteration)
    sections = [("verdict", "Verdict", _verdict(iteration, look, room))]
    if not room.is_bare:
        changes = diff_part(iteration.diff, room.patch, 2 * room.entries)
        sections += [
            ("told", "What it was told", _told(iteration, room)),
            ("did", "What it said and did", _did(iteration, room)),
            ("checked", "Checks", _checks(iteration.checks, room)),
            ("changed", "Changes", changes),
        ]
    inside = (
        tag("section", tag("h4", title), part, class_=class_)
        for class_, title, part in sections
        if part
    )
    more = " matters" if look in _MATTERS else ""
    return folded(
        _summary(recap, iteration, look),
        tag("div", *inside, class_="inside"),
        class_=f"turn {look.name}{more}",
        id=id_,
    )


def _summary(recap: Recap, iteration: Iteration, look: Look) -> Markup:
    judged = iteration.judgement
    verdict: Content = look.words
    if judged is not None:
        is_doubted = look is DISBELIEVED
        verdict = disbelief(judged) if is_doubted else foreign(cut(words_of(judged), 140))
    elif iteration.trouble:
        verdict = foreign(cut(iteration.trouble, 140))
    seconds = iteration.agent_seconds + iteration.gate_seconds
    figures = (
        tag("span", duration(seconds), class_="took"),
        tag("span", cost(iteration.cost_usd), class_="cost"),
        tag("span", diff_words(iteration.diff), class_="size"),
    )
    by_task = counts_by_task(recap) and bool(iteration.task)
    name = row_words(recap, iteration) if by_task else cut(iteration.task, 40)
    task = joined((tag("b", foreign(name)), " ")) if name else EMPTY
    return joined(
        (
            mark(look),
            tag("span", "" if by_task else iteration.number, class_="number"),
            tag("span", task, foreign(cut(iteration.title, 90)), class_="what"),
            tag("span", *figures, class_="figures"),
            tag("span", verdict, class_="words"),
        )
    )


def _verdict(iteration: Iteration, look: Look, room: Room) -> Markup:
    """The verdict, the rule that gave it, and what speaks for and against it."""
    judged = iteration.judgement
    if judged is None:
        return tag("p", look.words.capitalize(), ".", class_="card")
    head = disbelief(judged) if look is DISBELIEVED else foreign(cut(words_of(judged), 400))
    lists = (
        ("Evidence", judged.evidence, "for"),
        ("Objections", judged.objections, "against"),
        ("Almost a claim", judged.notes, "notes"),
        ("Told to the next turn", judged.feedback, "next"),
    )
    return tag(
        "div",
        tag("p", mark(look), " ", head, class_="head"),
        _rule(judged),
        *_lists(lists, room.verdict, room),
        *_steps(iteration.settled, room),
        class_=f"card {look.name}",
    )


def _rule(judged: Judgement) -> Markup:
    if not judged.rule:
        return EMPTY
    words = joined((": ", foreign(cut(judged.rule_words, 300)))) if judged.rule_words else EMPTY
    return tag(
        "p", judged.verdict, ", by the rule ", tag("code", judged.rule), words, class_="rule"
    )


def _lists(
    lists: tuple[tuple[str, tuple[str, ...], str], ...], most: int, room: Room
) -> Iterator[Markup]:
    """Lists with their titles, which share so many bytes."""
    sizes = (len(text) for _, texts, _ in lists for text in texts[: room.entries])
    each = fair(sizes, most)
    for title, texts, class_ in lists:
        if texts:
            entries = several(texts, lambda text: tag("li", _long(text, each)), room.entries)
            yield joined((tag("h5", title), tag("ul", *entries, class_=class_)))


def _long(text: str, most: int) -> Markup:
    is_line = "\n" not in text.strip() and len(text) <= min(300, most)
    return foreign(text.strip()) if is_line else quoted(text.rstrip(), most)


def _steps(steps: tuple[Settling, ...], room: Room) -> Iterator[Markup]:
    """The steps that carried out the verdict."""

    def entry(step: Settling) -> Markup:
        name = cut(step.key, 60) if step.ok else f"{cut(step.key, 60)} failed"
        commit = tag("code", cut(step.commit, 12)) if step.commit else EMPTY
        words = foreign(cut(step.detail, 200))
        return tag("li", name, " ", commit, " ", words, class_=None if step.ok else "failed")

    if steps:
        entries = several(steps, entry, room.entries)
        yield joined((tag("h5", "Carried out"), tag("ul", *entries, class_="steps")))


def _told(iteration: Iteration, room: Room) -> Markup:
    """The prompt: the words of people, of the iteration before, and all of it."""
    lists = (
        ("By a person", iteration.person_notes, "person"),
        ("Of the iteration before", iteration.fed_back, "next"),
    )
    parts = [*_lists(lists, room.told, room)]
    if iteration.prompt:
        where = iteration.stream.removesuffix(".stream") + ".prompt" if iteration.stream else ""
        size = f"The whole prompt, {counted(len(iteration.prompt), 'character')}"
        parts.append(folded(size, quoted(iteration.prompt, room.prompt, where)))
    return joined(parts)


def _did(iteration: Iteration, room: Room) -> Markup:
    """The agent's words and deeds in order, with a gap in the middle of a long turn."""
    items = iteration.items
    keep = min(len(items), max(4, room.log // 700))
    is_whole = keep == len(items) and not iteration.items_left_out
    first = keep if is_whole else (keep + 1) // 2
    shown = (*items[:first], *items[len(items) - keep + first :])
    sizes = (size for item in shown for size in (len(item.text), len(item.output)) if size)
    most = fair(sizes, room.log - _OVERHEAD * keep)
    rows = [_item(item, most) for item in shown]
    if missing := len(items) - keep + iteration.items_left_out:
        stream = tag("code", iteration.stream)
        where = joined((". All of it: ", stream)) if iteration.stream else EMPTY
        rows.insert(first, tag("li", f"… {missing:,} more left out", where, class_="gap"))
    if iteration.trouble:
        words = foreign(cut(iteration.trouble, 400))
        rows.append(tag("li", tag("b", "trouble"), " ", words, class_="trouble"))
    about = tag("p", *_figures(iteration, room), class_="quiet")
    return joined((about, tag("ol", *rows, class_="log") if rows else EMPTY))


def _figures(iteration: Iteration, room: Room) -> Iterator[Content]:
    """Its beginning, its tools and its tokens."""
    yield clock(iteration.began or None, "%H:%M:%S")
    if iteration.wait_seconds >= 1:
        yield f" · {duration(iteration.wait_seconds)} of waiting"
    if iteration.tries > 1:
        yield f" · {iteration.tries} turns"
    if iteration.machines:
        yield f" · on {', '.join(iteration.machines[: room.entries])}"
    for name, calls, failed in iteration.tools[: room.entries]:
        yield joined((" · ", foreign(cut(name, 40)), f" ×{calls}"))
        yield f", {failed} failed" if failed else None
    if iteration.usage.all_input:
        usage = iteration.usage
        yield f" · {number(usage.all_input)} tokens read, {number(usage.output)} written"


def _item(item: Item, most: int) -> Markup:
    if item.kind is ItemKind.TOOL:
        return _tool(item, most)
    label = _LABELS.get(item.kind)
    word = tag("b", label) if label else EMPTY
    return tag("li", word, quoted(item.text, most, of="div"), class_=item.kind.value)


def _tool(item: Item, most: int) -> Markup:
    asked = cut(item.text, min(160, max(20, most)))
    bad = tag("span", " error", class_="error") if item.is_error else EMPTY
    line = joined((tag("b", foreign(cut(item.name, 60))), " ", tag("code", asked), bad))
    whole = quoted(item.text, most) if asked != item.text.strip() else EMPTY
    output = quoted(item.output, most) if item.output.strip() else EMPTY
    inner = folded(line, whole, output) if whole or output else line
    return tag("li", inner, class_="tool wrong" if item.is_error else "tool")


def _checks(checks: tuple[Check, ...], room: Room) -> Markup:
    """The gates that ran, each with its end and its output; those that only passed in a line."""
    at_once = [check.gate for check in checks if _is_quick(check)]
    slow = tuple(check for check in checks if not _is_quick(check))
    told = [text for check in slow[: room.entries] for text in (check.output, *check.objections)]
    most = fair(map(len, told), room.checks - _OVERHEAD * len(told))
    rows = several(slow, lambda check: _check(check, most, room), room.entries)
    if at_once:
        names = foreign(cut(", ".join(at_once), 400))
        word = tag("span", " passed", class_="ending")
        rows.append(tag("li", mark(ACCEPTED, "passed"), " ", names, word, class_="passed"))
    return tag("ul", *rows, class_="checks") if rows else EMPTY


def _is_quick(check: Check) -> bool:
    return check.seconds < 0.05 and not (check.objections or check.output)


def _check(check: Check, most: int, room: Room) -> Markup:
    code = f"exit code {check.code}" if check.code is not None else "failed"
    ending = code if check.objections else "passed"
    line = joined(
        (
            mark(DISBELIEVED if check.objections else ACCEPTED, ending),
            " ",
            tag("code", cut(check.gate, 120)),
            tag("span", f" {ending}", class_="ending"),
            tag("span", f" {duration(check.seconds)}", class_="quiet"),
        )
    )
    said = (text for text in check.objections if text.strip() and text not in check.output)
    told = [text for text in said if check.code is None or "\n" in text or code not in text]
    texts = joined(tag("div", _long(text, most)) for text in told[: room.entries])
    output = quoted(check.output, most, check.log) if check.output.strip() else EMPTY
    fold = folded(line, texts, output, open=bool(check.objections), class_="check")
    class_ = "failed" if check.objections else "passed"
    return tag("li", fold if texts or output else line, class_=class_)
