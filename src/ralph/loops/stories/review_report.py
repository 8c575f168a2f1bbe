"""The worth of reviews, for people, for programs and for an archive (R §10)."""

from collections.abc import Iterator
from typing import Any

from ralph.review.stats import Analytics, StoryStats
from ralph.text.plain import Redact, clean, columns, one_line
from ralph.text.words import counted

HOW_TO_READ = (
    "Mostly 1: the reviews cost little. Many 3 or 4: they catch real issues. At the cap: look at "
    "those stories yourself."
)
_HEAD = ("STORY", "REVIEWS", "OUTCOME", "TITLE")
_OF_A_STORY = ("id", "title", "reviews", "recorded", "outcome", "done", "cap_hit")
_LONGEST_TITLE = 60
_LONGEST_FINDING = 500


def stats_lines(found: Analytics, redact: Redact) -> list[str]:
    """A table of the stories, the whole in a sentence, and what reviews caught."""
    rows = [_HEAD, *(_row(story, redact) for story in found.stories)]
    widths = [max(columns(row[i]) for row in rows) for i in range(3)]
    caught = [f"  {name}, review {n}: {text}" for name, n, text in _caught(found, redact)]
    return [
        *(_aligned(row, widths) for row in rows),
        "",
        sentence(found),
        *_missing(found),
        *(["", "What reviews caught:", *caught] if caught else []),
        *(["", HOW_TO_READ] if found.reviews else []),
    ]


def _row(story: StoryStats, redact: Redact) -> tuple[str, ...]:
    title = _line(story.title, redact, _LONGEST_TITLE)
    return _line(story.id, redact), str(story.reviews), story.outcome, title


def _aligned(row: tuple[str, ...], widths: list[int]) -> str:
    name, count, outcome, title = row
    name += " " * (widths[0] - columns(name))
    return f"{name}  {count.rjust(widths[1])}  {outcome.ljust(widths[2])}  {title}".rstrip()


def _line(text: str, redact: Redact, most: int = _LONGEST_FINDING) -> str:
    line = " ".join(one_line(redact(clean(text))).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def sentence(found: Analytics) -> str:
    """All of it in one sentence."""
    total = len(found.stories)
    stories = f"{found.done} of {total} {'story' if total == 1 else 'stories'} done"
    if not found.reviews:
        return f"{stories}, no reviews yet."
    reviews = "1 review" if found.reviews == 1 else f"{found.reviews} reviews"
    return (
        f"{stories}; {reviews}, {found.average:.3g} a story; {found.first_time} approved by the "
        f"first review, {found.cap_hits} at the cap."
    )


def _missing(found: Analytics) -> list[str]:
    if found.recorded in (0, found.reviews):
        return []
    reviews = counted(found.reviews, "review")
    return [f"The stories count {reviews}, the journals here {found.recorded}."]


def _caught(found: Analytics, redact: Redact) -> Iterator[tuple[str, int, str]]:
    for story in found.stories:
        for number, text in story.caught:
            yield _line(story.id, redact), number, _line(text, redact)


def stats_dict(found: Analytics) -> dict[str, Any]:
    """The same for programs."""
    return {
        "stories": [
            {
                **{name: getattr(story, name) for name in _OF_A_STORY},
                "caught": [{"review": number, "text": text} for number, text in story.caught],
            }
            for story in found.stories
        ],
        "total": len(found.stories),
        "done": found.done,
        "reviews": found.reviews,
        "recorded": found.recorded,
        "average": round(found.average, 2),
        "first_time": found.first_time,
        "cap_hits": found.cap_hits,
    }


def summary_text(
    found: Analytics, title: str, archived: str, dates: tuple[str, str], redact: Redact
) -> str:
    """`summary.md` of an archive. `archived` is the moment, `dates` from when to when."""
    rows = [
        f"| {name} | {text} | {count} | {outcome} |"
        for name, count, outcome, text in (
            tuple(cell.replace("|", "\\|") for cell in _row(story, redact))
            for story in found.stories
        )
    ]
    caught = [f"- {name}, review {n}: {text}" for name, n, text in _caught(found, redact)]
    lines = [
        *(f"# {_line(title, redact)}", "", f"Archived: {archived}"),
        *(f"Dates: {dates[0] or '?'} to {dates[1]}", ""),
        *(f"Stories: {found.done} of {len(found.stories)} done", ""),
        *("| story | title | reviews | outcome |", "| --- | --- | --- | --- |", *rows),
        *("", "## Reviews", "", sentence(found)),
        *(["", HOW_TO_READ] if found.reviews else []),
        *(["", "## What reviews caught", "", *caught] if caught else []),
    ]
    return "\n".join(lines) + "\n"
