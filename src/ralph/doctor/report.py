"""The report of `ralph doctor`: as lines, one a check, or as one object for programs."""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import TextIO

from ralph.doctor.checks import Area, Check, CheckState, KnownAgent, count
from ralph.text.plain import clean, shorten
from ralph.text.words import counted
from ralph.ui.style import Style, Tone

_TONES = {CheckState.OK: Tone.GOOD, CheckState.WARNING: Tone.NOTICE, CheckState.PROBLEM: Tone.BAD}
_GLYPHS = {CheckState.OK: "✓", CheckState.WARNING: "!", CheckState.PROBLEM: "✗"}
_WORDS_WIDTH = len(CheckState.WARNING)
_NAME_WIDTH = 15
_NARROWEST = 30
_OF_AN_AGENT = ["kind", "path", "version", "tested", "flags", "credential", "withheld", "chosen"]


class HealthLines:
    """Turns areas into lines; a terminal's width is kept to."""

    def __init__(self, style: Style, redact: Callable[[str], str]) -> None:
        self._style = style
        self._redact = redact

    def area(self, area: Area) -> list[str]:
        title = self._style.paint(area.title, Tone.CALL)
        return [title, *(line for check in area.checks for line in self._check(check)), ""]

    def summary(self, areas: tuple[Area, ...]) -> str:
        """The last line: how it stands."""
        problems, warnings = count(areas, CheckState.PROBLEM), count(areas, CheckState.WARNING)
        if not problems and not warnings:
            return self._style.paint("All is well.", Tone.GOOD)
        told = [counted(n, word) for n, word in ((problems, "problem"), (warnings, "warning")) if n]
        tone = Tone.BAD if problems else Tone.NOTICE
        return self._style.paint(f"{', '.join(told)}.", tone)

    def _check(self, check: Check) -> Iterator[str]:
        mark = _GLYPHS[check.state] if self._style.emoji else f"{check.state:<{_WORDS_WIDTH}}"
        indent = " " * (2 + len(mark) + 2 + _NAME_WIDTH)
        painted = self._style.paint(mark, _TONES[check.state])
        body = self._wrapped(check.found, indent)
        yield f"  {painted} {self._tidy(check.name):<{_NAME_WIDTH}} {next(body, '')}".rstrip()
        yield from (indent + line for line in body)
        if check.remedy:
            arrow = "→" if self._style.emoji else "->"
            # Not wrapped: it is to be copied.
            yield from (f"{indent}{arrow} {line}" for line in self._tidy(check.remedy).splitlines())

    def _wrapped(self, text: str, indent: str) -> Iterator[str]:
        """The text in lines that fit; without a terminal they stay as they are."""
        for line in self._tidy(text).splitlines():
            if self._style.width is None:
                yield line
                continue
            room = max(_NARROWEST, self._style.width - len(indent))
            # A path or a command that is too long is left whole, to be copied.
            yield from textwrap.wrap(line, room, break_long_words=False, break_on_hyphens=False)

    def _tidy(self, text: str) -> str:
        return self._redact(clean(text))


def health_dict(areas: Sequence[Area], agents: Sequence[KnownAgent]) -> dict[str, object]:
    """The same for programs."""
    return {
        "ok": not count(tuple(areas), CheckState.PROBLEM),
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
        self._stream = stream
        self._width = width
        self._shown = ""

    def show(self, words: str) -> None:
        """Say this in place of what was said before; "" says nothing."""
        if self._stream is None or words == self._shown:
            return
        self._shown = words
        line = shorten(clean(words), len(words), max(1, (self._width or 80) - 1), "...")
        try:
            self._stream.write(f"\r\x1b[K{line}")
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None  # only display
