"""Which look a stream gets (issue: "plain without a terminal or with NO_COLOR")."""

from collections.abc import Mapping
from io import StringIO

import pytest

from ralph.settings.schema import DisplaySettings
from ralph.ui.style import Style, Tone, style_of

ON, OFF = (dict.fromkeys(("emoji", "color", "timestamps"), on) for on in (True, False))


class Stream(StringIO):
    """A stream that a test describes; what has no descriptor has no width."""

    def __init__(self, terminal: bool, encoding: str) -> None:
        super().__init__()
        self._terminal, self._encoding = terminal, encoding

    def isatty(self) -> bool:
        return self._terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding


def chosen(
    flags: Mapping[str, bool] = {},
    settings: Mapping[str, bool] = {},
    *,
    terminal: bool = True,
    environ: dict[str, str] | None = None,
    encoding: str = "utf-8",
) -> Style:
    return style_of(Stream(terminal, encoding), environ or {}, DisplaySettings(**settings), flags)


def test_a_terminal_gets_emoji_and_colour() -> None:
    assert chosen() == Style(emoji=True, color=True)


def test_without_a_terminal_it_is_plain() -> None:
    assert chosen(terminal=False) == Style()


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_color_and_dumb_terminals_are_plain(environ: dict[str, str]) -> None:
    assert chosen(environ=environ) == Style()


def test_an_empty_no_color_says_nothing() -> None:
    assert chosen(environ={"NO_COLOR": ""}).color


@pytest.mark.parametrize("environ", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
@pytest.mark.parametrize("terminal", [True, False])
def test_flags_force_on_and_off(environ: dict[str, str], terminal: bool) -> None:
    forced = chosen(ON, OFF, terminal=terminal, environ=environ)
    assert (forced.emoji, forced.color, forced.timestamps) == (True, True, True)
    silenced = chosen(OFF, ON, terminal=terminal, environ=environ)
    assert (silenced.emoji, silenced.color, silenced.timestamps) == (False, False, False)


@pytest.mark.parametrize("environ", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_settings_force_on_and_off(environ: dict[str, str]) -> None:
    """H §Formatter, `UseEmoji`, `UseColor`; the issue: "`display.emoji/color: true` force"."""
    assert chosen(settings=OFF) == Style()
    forced = Style(emoji=True, color=True, timestamps=True)
    assert chosen(settings=ON, terminal=False, environ=environ) == forced


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "no-such-encoding"])
def test_emoji_need_an_encoding_that_has_them(encoding: str) -> None:
    style = chosen(encoding=encoding)
    assert (style.emoji, style.color) == (False, True)


def test_paint_colours_only_where_there_are_colours() -> None:
    assert Style(color=True).paint("well", Tone.GOOD) == "\x1b[32mwell\x1b[0m"
    assert Style(color=True).paint("well", Tone.PLAIN) == "well"
    assert Style(color=True).paint("", Tone.GOOD) == ""
    assert Style().paint("well", Tone.GOOD) == "well"
