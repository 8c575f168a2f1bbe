"""The terminal: what Ralph's display can rely on."""

from collections.abc import Iterator, Mapping

from ralph.core.health import Check, ok, warning
from ralph.core.value import value


@value
class Screen:
    """One stream: whether a person sees it, and how much of it at once, if it is known."""

    terminal: bool
    columns: int | None = None
    rows: int | None = None
    encoding: str = ""


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
    if screen.columns is None or screen.rows is None:
        return "a terminal that does not tell its size"
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
