"""The terminal: what Ralph's display can rely on."""

import os
from collections.abc import Iterator, Mapping
from typing import TextIO

from ralph.core.health import Check, ok, warning
from ralph.core.value import value


@value
class Screen:
    """One stream: whether a person sees it, and how much of it at once."""

    terminal: bool
    columns: int = 0
    rows: int = 0
    encoding: str = ""


def screen_of(stream: TextIO | None) -> Screen:
    """What a stream is; None is one that was closed from the beginning."""
    if stream is None:
        return Screen(terminal=False)
    encoding = getattr(stream, "encoding", None) or ""
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return Screen(stream.isatty(), encoding=encoding)
    return Screen(stream.isatty(), size.columns, size.lines, encoding)


def terminal_checks(
    out: Screen, err: Screen, environ: Mapping[str, str], *, color: bool
) -> Iterator[Check]:
    """The streams, the colours and the characters."""
    yield ok("stdout", _words(out))
    yield ok("stderr", _words(err))
    yield ok("TERM", environ.get("TERM") or "not set")
    yield ok("colours", "on" if color else f"off: {_why_plain(out, environ)}")
    yield _encoding(out.encoding)


def _words(screen: Screen) -> str:
    if not screen.terminal:
        return "no terminal: lines are plain"
    return f"a terminal of {screen.columns} x {screen.rows}"


def _why_plain(out: Screen, environ: Mapping[str, str]) -> str:
    if environ.get("NO_COLOR"):
        return "NO_COLOR is set"
    if environ.get("TERM") == "dumb":
        return "TERM is dumb"
    return "the settings say so" if out.terminal else "stdout is no terminal"


def _encoding(encoding: str) -> Check:
    if encoding.lower().replace("-", "").replace("_", "") == "utf8":
        return ok("encoding", "UTF-8")
    found = f"{encoding or 'unknown'}: what it cannot show is shown as ?"
    return warning("encoding", found, "export PYTHONIOENCODING=utf-8 or LANG=C.UTF-8")
