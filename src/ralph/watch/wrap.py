"""Words in rows of so many columns, as terminals count them."""

from collections.abc import Iterator

from ralph.text.plain import columns


def wrapped(text: str, width: int) -> list[str]:
    """The text in rows of at most so many columns, between words where it can be."""
    if columns(text) <= width:
        return [text]
    rows, row, room = list[str](), "", width
    for word in _words(text):
        rest = word
        if row and columns(rest) > room:
            rows.append(row)
            row, room, rest = "", width, rest.lstrip()
        while columns(rest) > room:  # wider than the window
            cut = _fitting(rest, room)
            rows.append(row + rest[:cut])
            row, room, rest = "", width, rest[cut:]
        row, room = row + rest, room - columns(rest)
    return [*rows, row]


def _words(text: str) -> Iterator[str]:
    """Each word with the blanks before it."""
    begin = 0
    for at in range(1, len(text)):
        if text[at] == " " and text[at - 1] != " ":
            yield text[begin:at]
            begin = at
    yield text[begin:]


def _fitting(word: str, room: int) -> int:
    """The number of characters that fit, one at least."""
    size = count = 0
    for character in word:
        size += columns(character)
        if size > room:
            break
        count += 1
    return max(1, count)
