"""Marks for what is not known about a text, and what a shell does to texts.

ANY     any text           from a variable or a command that nobody knows
NET     any text           that came from the network
CODED   any text           that was encoded, packed or printed from the environment
SECRET  any text           from a variable whose name says that it is secret
NAMED   a harmless word    such as a number, a date or a branch: no slash, no leading dash
FREE    a path             below the project or the temporary directory

Traces follow a mark and tell where such a text came from; most rules do not mind.

EACH    after FREE         every file of the project, one after the other
WHO     after NAMED        the name of this user or machine
READ    after ANY          what a file or the repository holds
FOUND   after any mark     processes that were looked up by their name
BOXES   after ANY          every container, image, volume or network there is
ENDLESS after ANY          a text that never ends
VAULT   after ANY          files that hold credentials, as they were listed or found
PARENT  after NAMED        the process that runs the command: the agent
SURE    after ANY          a variable that is set, since `${NAME:?}` would have ended the script
"""

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from typing import TypeVar

    Value = TypeVar("Value")

ANY, NAMED, FREE, NET, SECRET, CODED = "\0", "\1", "\2", "\4", "\5", "\6"
_UNKNOWN = frozenset((ANY, NET, SECRET, CODED))
EACH, WHO, READ, FOUND, BOXES, ENDLESS = "\x17", "\x0e", "\x0f", "\x14", "\x15", "\x16"
VAULT, PARENT, SURE = "\x18", "\x19", "\x1a"
TRACES = f"{EACH}{WHO}{READ}{FOUND}{BOXES}{ENDLESS}{VAULT}{PARENT}{SURE}"
BREAK = "\3"  # between fields
_HIDDEN = {"{": "\x10", ",": "\x11", "}": "\x12", "~": "\x13"}
_SHOWN = {ord(mark): c for c, mark in _HIDDEN.items()}
_HIDE = {ord(c): mark for c, mark in _HIDDEN.items()}
_MOST_FIELDS = 2000
# No command may hold these.
MARKS = f"{ANY}{NAMED}{FREE}{BREAK}{NET}{SECRET}{CODED}{''.join(_HIDDEN.values())}{TRACES}"
_READABLE = {**dict.fromkeys(range(7), "?"), **dict.fromkeys(map(ord, TRACES), "")}


def names(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


def table(text: str) -> dict[str, str]:
    """The rows of a text: by each of the names before the colon, what stands after it."""
    rows = [row.partition(":") for row in text.strip().splitlines()]
    return by_name({before: said.strip() for before, _, said in rows})


def by_name(rows: "dict[str, Value]") -> "dict[str, Value]":
    """The values of a table, each by every one of the names in its row's key."""
    return {name: value for key, value in rows.items() for name in key.split()}


def fits(text: str, *patterns: str) -> bool:
    """True if one of these patterns matches the whole text."""
    from fnmatch import fnmatchcase  # which few commands need

    return any(fnmatchcase(text, pattern) for pattern in patterns)


def unknown(text: str) -> bool:
    """True if the text could be anything."""
    return not _UNKNOWN.isdisjoint(text)


def plain(text: str) -> bool:
    """True if all of it is known."""
    return not (unknown(text) or NAMED in text or FREE in text)


def shown(text: str) -> str:
    """The text for people: what is not known as `?`."""
    return text.translate(_READABLE)


def traces(text: str) -> str:
    """The traces that tell where an unknown text came from."""
    return "".join(trace for trace in TRACES if trace in text)


def without(text: str, some: str) -> str:
    """The text without these traces."""
    return text.translate(dict.fromkeys(map(ord, some)))


def hide(text: str) -> str:
    """The text with braces that shall not be expanded."""
    return text.translate(_HIDE)


def show(text: str) -> str:
    """The text with the braces that were hidden."""
    return text.translate(_SHOWN)


def split(text: str, separators: str) -> str:
    """The text with a break for every run of separators."""
    for separator in separators:
        text = text.replace(separator, BREAK)
    return text


def braces(text: str) -> list[str]:
    """The words that `a{b,c}d` and `{1..3}` become; other braces stay."""
    made, done = [text], list[str]()
    while made:
        current = made.pop(0)
        starts = (place for place, c in enumerate(current) if c == "{")
        expanded = next(filter(None, (_expanded(current, start) for start in starts)), [])
        made = [*expanded, *made]
        done += [] if expanded else [current]
        if len(made) + len(done) > _MOST_FIELDS:
            return [ANY]
    return done


def _expanded(text: str, start: int) -> list[str]:
    """The text with each alternative of the brace that begins here; none if there are none."""
    depth, items, item_start = 0, list[str](), start + 1
    for place in range(start, len(text)):
        c = text[place]
        depth += (c == "{") - (c == "}")
        if (c == "," and depth == 1) or depth == 0:
            items.append(text[item_start:place])
            item_start = place + 1
        if depth == 0:
            items = items if len(items) > 1 else _sequence(items[0])
            return [text[:start] + item + text[place + 1 :] for item in items]
    return []


def _sequence(text: str) -> list[str]:
    """The words of `1..3` or `a..c`."""
    ends = text.split("..")
    if len(ends) not in (2, 3):
        return []
    first, last = ends[:2]  # a step does not matter
    if all(end.removeprefix("-").isdecimal() and end.isascii() for end in (first, last)):
        low, high = sorted((int(first), int(last)))
        many = high - low >= _MOST_FIELDS
        return [NAMED] * _MOST_FIELDS if many else [str(n) for n in range(low, high + 1)]
    if len(first) == len(last) == 1:
        low, high = sorted((ord(first), ord(last)))
        return [chr(n) for n in range(low, high + 1)]
    return []
