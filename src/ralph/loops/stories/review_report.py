"""The worth of reviews, for people, for programs and for an archive (R §10)."""

from collections.abc import Iterator
from typing import Any

from ralph.review.stats import Analytics, StoryStats
from ralph.text.plain import one_line, safe
from ralph.text.words import counted
from ralph.ui.style import aligned

HOW_TO_READ = (
    "Mostly 1: the reviews cost little. Many 3 or 4: they catch real issues. At the cap: look at "
    "those stories yourself."
)
_HEAD = ("STORY", "REVIEWS", "OUTCOME", "TITLE")
_OF_A_STORY = ("id", "title", "reviews", "recorded", "outcome", "done", "cap_hit")
_OF_ALL = ("done", "reviews", "recorded", "average", "first_time", "cap_hits")
_LONGEST_TITLE = 60
_LONGEST_FINDING = 500


def stats_lines(found: Analytics) -> list[str]:
    """A table of the stories, the whole in a sentence, and what reviews caught."""
    rows = [_HEAD, *(_row(story) for story in found.stories)]
    reviews = counted(found.reviews, "review")
    missing = f"The stories count {reviews}, the journals here {found.recorded}."
    caught = [f"  {name}, review {n}: {text}" for name, n, text in _caught(found)]
    return [
        *(line.rstrip() for line in aligned(rows, numbers=(1,))),
        "",
        sentence(found),
        *([missing] if found.recorded not in (0, found.reviews) else []),
        *(["", "What reviews caught:", *caught] if caught else []),
        *(["", HOW_TO_READ] if found.reviews else []),
    ]


def _row(story: StoryStats) -> tuple[str, ...]:
    return _line(story.id), str(story.reviews), story.outcome, _line(story.title, _LONGEST_TITLE)


def _line(text: str, most: int = _LONGEST_FINDING) -> str:
    line = " ".join(one_line(safe(text)).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def done_of(found: Analytics) -> str:
    """The stories that are done, out of all."""
    noun = "story" if len(found.stories) == 1 else "stories"
    return f"{found.done} of {len(found.stories)} {noun} done"


def sentence(found: Analytics) -> str:
    """All of it in one sentence."""
    if not found.reviews:
        return f"{done_of(found)}, no reviews yet."
    return (
        f"{done_of(found)}; {counted(found.reviews, 'review')}, {found.average:.3g} a story; "
        f"{found.first_time} approved by the first review, {found.cap_hits} at the cap."
    )


def _caught(found: Analytics) -> Iterator[tuple[str, int, str]]:
    for story in found.stories:
        for number, text in story.caught:
            yield _line(story.id), number, _line(text)


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
        **{name: getattr(found, name) for name in _OF_ALL},
        "average": round(found.average, 2),
    }


def summary_text(found: Analytics, title: str, archived: str, dates: tuple[str, str]) -> str:
    """`summary.md` of an archive. `archived` is the moment, `dates` from when to when."""
    cells = [[cell.replace("|", "\\|") for cell in _row(story)] for story in found.stories]
    rows = [f"| {name} | {text} | {n} | {outcome} |" for name, n, outcome, text in cells]
    caught = [f"- {name}, review {n}: {text}" for name, n, text in _caught(found)]
    lines = [
        *(f"# {_line(title)}", "", f"Archived: {archived}"),
        *(f"Dates: {dates[0] or '?'} to {dates[1]}", ""),
        *(f"Stories: {found.done} of {len(found.stories)} done", ""),
        *("| story | title | reviews | outcome |", "| --- | --- | --- | --- |", *rows),
        *("", "## Reviews", "", sentence(found)),
        *(["", HOW_TO_READ] if found.reviews else []),
        *(["", "## What reviews caught", "", *caught] if caught else []),
    ]
    return "\n".join(lines) + "\n"
