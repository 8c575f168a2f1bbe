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
    return {name: said.strip() for before, _, said in rows for name in before.split()}


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
    made = [text]
    done: list[str] = []
    while made:
        current = made.pop(0)
        expanded = _first_brace(current)
        if expanded is None:
            done.append(current)
        else:
            made = expanded + made
        if len(made) + len(done) > _MOST_FIELDS:
            return [ANY]
    return done


def _first_brace(text: str) -> list[str] | None:
    """The text with its first brace expanded; None if there is none to expand."""
    start = text.find("{")
    while start >= 0:
        found = _alternatives(text, start)
        if found is not None:
            items, end = found
            return [text[:start] + item + text[end:] for item in items]
        start = text.find("{", start + 1)
    return None


def _alternatives(text: str, start: int) -> tuple[list[str], int] | None:
    """The alternatives of the brace that begins here and the place after it."""
    depth, items, item_start = 0, [], start + 1
    for place in range(start, len(text)):
        c = text[place]
        depth += (c == "{") - (c == "}")
        if c == "," and depth == 1:
            items.append(text[item_start:place])
            item_start = place + 1
        elif depth == 0:
            items.append(text[item_start:place])
            if len(items) > 1:
                return items, place + 1
            made = _sequence(items[0])
            return (made, place + 1) if made else None
    return None


def _sequence(text: str) -> list[str]:
    """The words of `1..3` or `a..c`."""
    ends = text.split("..")
    if len(ends) not in (2, 3):
        return []
    first, last = ends[0], ends[1]
    if _is_number(first) and _is_number(last):
        low, high = sorted((int(first), int(last)))
        return (
            [str(n) for n in range(low, high + 1)]
            if high - low < _MOST_FIELDS
            else [NAMED] * _MOST_FIELDS
        )
    if len(first) == len(last) == 1:
        low, high = sorted((ord(first), ord(last)))
        return [chr(n) for n in range(low, high + 1)]
    return []


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and text.isascii()
