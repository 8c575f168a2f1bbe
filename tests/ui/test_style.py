"""Which look a stream gets (issue: "plain without a terminal or with NO_COLOR")."""

import pytest

from ralph.ui.style import Style, Tone, Wishes, choose_style

NOTHING = Wishes()


def chosen(
    flags: Wishes = NOTHING,
    settings: Wishes = NOTHING,
    *,
    terminal: bool = True,
    environ: dict[str, str] | None = None,
    encoding: str = "utf-8",
) -> Style:
    return choose_style(
        settings, flags, terminal=terminal, environ=environ or {}, encoding=encoding, width=80
    )


def test_a_terminal_gets_emoji_and_colour() -> None:
    assert chosen() == Style(emoji=True, color=True, width=80)


def test_without_a_terminal_it_is_plain_and_no_line_is_cut_to_a_width() -> None:
    assert chosen(terminal=False) == Style()


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_color_and_dumb_terminals_are_plain(environ: dict[str, str]) -> None:
    assert chosen(environ=environ) == Style(width=80)


def test_an_empty_no_color_says_nothing() -> None:
    assert chosen(environ={"NO_COLOR": ""}).color


@pytest.mark.parametrize("environ", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
@pytest.mark.parametrize("terminal", [True, False])
def test_flags_force_on_and_off(environ: dict[str, str], terminal: bool) -> None:
    on, off = Wishes(True, True, True), Wishes(False, False, False)
    forced = chosen(on, off, terminal=terminal, environ=environ)
    assert (forced.emoji, forced.color, forced.timestamps) == (True, True, True)
    silenced = chosen(off, on, terminal=terminal, environ=environ)
    assert (silenced.emoji, silenced.color, silenced.timestamps) == (False, False, False)


@pytest.mark.parametrize("environ", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_settings_force_on_and_off(environ: dict[str, str]) -> None:
    """H §Formatter, `UseEmoji`, `UseColor`; the issue: "`display.emoji/color: true` force"."""
    on, off = Wishes(True, True, True), Wishes(False, False, False)
    assert chosen(settings=off) == Style(width=80)
    forced = Style(emoji=True, color=True, timestamps=True)
    assert chosen(settings=on, terminal=False, environ=environ) == forced


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "no-such-encoding"])
def test_emoji_need_an_encoding_that_has_them(encoding: str) -> None:
    style = chosen(encoding=encoding)
    assert (style.emoji, style.color) == (False, True)


def test_output_limits_are_passed_on() -> None:
    style = choose_style(
        NOTHING, NOTHING, terminal=False, environ={}, max_output_lines=9, max_output_chars=40
    )
    assert (style.max_output_lines, style.max_output_chars) == (9, 40)


def test_paint_colours_only_where_there_are_colours() -> None:
    assert Style(color=True).paint("well", Tone.GOOD) == "\x1b[32mwell\x1b[0m"
    assert Style(color=True).paint("well", Tone.PLAIN) == "well"
    assert Style(color=True).paint("", Tone.GOOD) == ""
    assert Style().paint("well", Tone.GOOD) == "well"
