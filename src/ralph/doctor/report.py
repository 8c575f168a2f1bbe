"""The report of `ralph doctor`: as lines, one a check, or as one object for programs."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TextIO

from ralph.doctor.checks import Area, Check, CheckState, KnownAgent, count
from ralph.text.plain import clean, safe, shorten
from ralph.text.words import counted
from ralph.ui.safe_stream import Channel
from ralph.ui.style import Style, Tone

_TONES = {CheckState.OK: Tone.GOOD, CheckState.WARNING: Tone.NOTICE, CheckState.PROBLEM: Tone.BAD}
_GLYPHS = {CheckState.OK: "✓", CheckState.WARNING: "!", CheckState.PROBLEM: "✗"}
_WORDS_WIDTH = len(CheckState.WARNING)
_NAME_WIDTH = 15
_NARROWEST = 30
_OF_AN_AGENT = ["kind", "path", "version", "tested", "flags", "credential", "withheld", "chosen"]


def area_lines(area: Area, style: Style) -> Iterator[str]:
    """The title, and what each check found; a terminal's width is kept to."""
    yield style.paint(area.title, Tone.CALL)
    for check in area.checks:
        yield from _check_lines(check, style)
    yield ""


def summary_line(areas: Sequence[Area], style: Style) -> str:
    """The last line: how it stands."""
    problems, warnings = count(areas, CheckState.PROBLEM), count(areas, CheckState.WARNING)
    if not problems and not warnings:
        return style.paint("All is well.", Tone.GOOD)
    told = [counted(n, word) for n, word in ((problems, "problem"), (warnings, "warning")) if n]
    return style.paint(f"{', '.join(told)}.", Tone.BAD if problems else Tone.NOTICE)


def _check_lines(check: Check, style: Style) -> Iterator[str]:
    mark = _GLYPHS[check.state] if style.emoji else f"{check.state:<{_WORDS_WIDTH}}"
    indent = " " * (2 + len(mark) + 2 + _NAME_WIDTH)
    body = safe(check.found).splitlines()
    if style.width is not None:  # without a terminal lines stay as they are
        room = max(_NARROWEST, style.width - len(indent))
        # A path or a command that is too long is left whole, to be copied.
        whole = textwrap.TextWrapper(room, break_long_words=False, break_on_hyphens=False)
        body = [line for text in body for line in whole.wrap(text)]
    painted, first = style.paint(mark, _TONES[check.state]), body[0] if body else ""
    yield f"  {painted} {safe(check.name):<{_NAME_WIDTH}} {first}".rstrip()
    yield from (indent + line for line in body[1:])
    arrow = "→" if style.emoji else "->"
    # Not wrapped: it is to be copied.
    yield from (f"{indent}{arrow} {line}" for line in safe(check.remedy).splitlines())


def health_dict(areas: Sequence[Area], agents: Sequence[KnownAgent]) -> dict[str, object]:
    return {
        "ok": not count(areas, CheckState.PROBLEM),
        "checks": [{"area": area.title, **asdict(c)} for area in areas for c in area.checks],
        "agents": [
            {
                **{name: getattr(agent, name) for name in _OF_AN_AGENT},
                "version": agent.version or None,
                "flags": [{"flag": flag, "why": why} for flag, why in agent.flags],
            }
            for agent in agents
        ],
    }


class Waiting:
    """A line on the terminal that says what is waited for, and leaves nothing behind.

    Without a terminal `stream` is None; one that does not tell its width is taken for 80 columns.
    """

    def __init__(self, stream: TextIO | None, width: int | None) -> None:
        self._channel = Channel(stream)
        self._width = width
        self._shown = ""

    def show(self, words: str) -> None:
        """Say this in place of what was said before; "" says nothing."""
        if words != self._shown:
            self._shown = words
            line = shorten(clean(words), len(words), max(1, (self._width or 80) - 1), "...")
            self._channel.put(f"\r\x1b[K{line}")
