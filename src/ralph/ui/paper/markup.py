"""Elements of HTML and SVG: a text is escaped unless it is `Markup`."""

import html
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TypeVar

# What moves or hides other text, or may stand in no XML: control characters, those that turn the
# direction of writing, halves of surrogate pairs, noncharacters.
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_VOID = frozenset({"meta", "br", "hr"})
_NONE = "–"


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


EMPTY = Markup("")
Content = str | int | None  # what an element may hold
_Item = TypeVar("_Item")


def fit(text: str) -> str:
    """The text without characters that no page should hold."""
    return _UNFIT.sub("\ufffd", text)


def escaped(text: str) -> Markup:
    return Markup(html.escape(fit(text)))


def joined(parts: Iterable[Content]) -> Markup:
    """The parts in a row; what is no markup is escaped."""
    return Markup("".join([_inner(part) for part in parts]))


def tag(name: str, /, *inside: Content, **attributes: object) -> Markup:
    """An element. Of attributes, `class_` is class, `view_box` viewBox, and `x_y` x-y; None and
    False are left out."""
    given = "".join([_attribute(name, value) for name, value in attributes.items()])
    if name in _VOID:
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{''.join([_inner(part) for part in inside])}</{name}>")


def _inner(part: Content) -> str:
    if isinstance(part, Markup):
        return part
    return "" if part is None else html.escape(fit(str(part)))


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = "viewBox" if name == "view_box" else name.rstrip("_").replace("_", "-")
    if isinstance(value, float):
        value = short(value)
    return f' {name}="{"" if value is True else html.escape(fit(str(value)))}"'


def short(number: float) -> str:
    """A coordinate: two digits behind the point are more than a screen shows."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


def foreign(text: str) -> Markup:
    """Words that others wrote, in a line of ours: their direction of writing stays theirs."""
    return tag("bdi", text)


def table(
    head: Iterable[Content], rows: Iterable[Iterable[Content]], **attributes: object
) -> Markup:
    """A table that scrolls in a box of its own."""
    top = tag("tr", *(tag("th", each, scope="col") for each in head))
    body = joined(
        tag("tr", *(each if is_cell(each) else tag("td", each) for each in row)) for row in rows
    )
    inner = tag("table", tag("thead", top), tag("tbody", body), **attributes)
    return tag("div", inner, class_="wide", tabindex="0")


def is_cell(part: Content) -> bool:
    return isinstance(part, Markup) and part.startswith(("<td", "<th"))


def folded(summary: Content, *inside: Content, **attributes: object) -> Markup:
    """A fold: its summary, and what it hides."""
    return tag("details", tag("summary", summary), *inside, **attributes)


def clock(time: float | None, form: str = "%H:%M") -> Markup:
    """A moment, in this machine's time zone."""
    if time is None:
        return Markup(_NONE)
    try:
        moment = datetime.fromtimestamp(time).astimezone()
    except (OverflowError, ValueError, OSError):  # a journal that somebody has edited
        return Markup(_NONE)
    return tag("time", moment.strftime(form), datetime=moment.isoformat(timespec="seconds"))


def several(items: Sequence[_Item], draw: Callable[[_Item], Markup], most: int) -> list[Markup]:
    """An entry of a list for each, and one that counts those that are too many."""
    shown = [draw(item) for item in items[:most]]
    if rest := len(items) - len(shown):
        shown.append(tag("li", f"and {rest:,} more", class_="gap"))
    return shown
