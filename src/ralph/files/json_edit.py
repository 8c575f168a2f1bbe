"""JSON text that is edited in place: what an edit does not name keeps every byte it had.

People's settings have an order, an indentation and comments, which writing values would lose.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, NoReturn, Self

from ralph.kernel.value import value

_BLANKS = " \t\r\n"
_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_INDENT = re.compile(r"\{[ \t]*\r?\n([ \t]+)\S")
_HOLLOW = re.compile(r"\r?\n[ \t]+\r?\n[ \t]*")


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


DECODER = json.JSONDecoder(parse_constant=_refuse)


class JsonTextError(ValueError):
    """The text cannot be edited: it is not JSON, or not an object."""


@value
class Item:
    """A value in a list or an object: where it begins, its key included, and ends."""

    key: str
    start: int
    at: int  # where the value itself begins
    end: int
    content: Any


@value
class JsonText:
    """A text with a JSON object in it. Each edit gives another one."""

    raw: str
    clear: str  # the same with blanks for comments, so that it is JSON
    indent: str
    newline: str

    @classmethod
    def of(cls, raw: str, *, comments: bool = False) -> Self:
        """Parse the text. Raises JsonTextError, with the place, if it is no JSON object."""
        clear = f" {raw[1:]}" if raw.startswith("\ufeff") else raw
        if comments:
            clear = _COMMENT.sub(lambda m: m[1] or re.sub(r"[^\r\n]", " ", m[0]), clear)
        try:
            content, end = DECODER.raw_decode(clear, _after_blanks(clear, 0))
        except json.JSONDecodeError as error:
            raise _at(clear, error.pos, error.msg) from None
        except RecursionError:
            raise JsonTextError("it is nested too deeply") from None
        except ValueError as error:
            raise JsonTextError(str(error)) from None
        if clear[end:].strip(_BLANKS):
            raise _at(clear, _after_blanks(clear, end), "Extra data")
        if not isinstance(content, dict):
            raise JsonTextError("it holds no JSON object")
        found = _INDENT.match(clear, _after_blanks(clear, 0))  # deeper ones may be ours
        newline = "\r\n" if "\r\n" in clear else "\n"
        return cls(raw, clear, found[1] if found else "  ", newline)

    @property
    def top(self) -> int:
        return _after_blanks(self.clear, 0)

    def items(self, at: int) -> list[Item]:
        """The contents of the list or object that begins here, in order."""
        found: list[Item] = []
        position = _after_blanks(self.clear, at + 1)
        while self.clear[position] not in "]}":
            found.append(self._item(position, keyed=self.clear[at] == "{"))
            position = _after_blanks(self.clear, found[-1].end)
            if self.clear[position] == ",":
                position = _after_blanks(self.clear, position + 1)
        return found

    def _item(self, start: int, *, keyed: bool) -> Item:
        key, at = "", start
        if keyed:
            key, end = DECODER.raw_decode(self.clear, start)
            at = _after_blanks(self.clear, _after_blanks(self.clear, end) + 1)
        content, end = DECODER.raw_decode(self.clear, at)
        return Item(key, start, at, end, content)

    def member(self, at: int, key: str) -> Item | None:
        """The value of a key; the last one counts, as for every reader of JSON."""
        return next((item for item in reversed(self.items(at)) if item.key == key), None)

    def appended(self, at: int, depth: int, content: object, key: str = "") -> Self:
        """With one item more, as the last; `depth` is how deep the list or object is nested."""
        words = json.dumps(content, indent=self.indent, ensure_ascii=False)
        margin = self.newline + self.indent * (depth + 1)
        named = f"{json.dumps(key)}: {words}" if key else words
        piece = named.replace("\n", margin)
        items = self.items(at)
        if items:
            return self.replaced(items[-1].end, items[-1].end, f",{margin}{piece}")
        return self.replaced(at + 1, at + 1, piece)  # so that `removed` leaves what was there

    def removed(self, at: int, start: int) -> Self:
        """Without the item that begins at `start`, and its comma; comments around it stay."""
        items = self.items(at)
        index = [item.start for item in items].index(start)
        item = items[index]
        if len(items) == 1:
            return self.replaced(item.start, item.end)
        is_last = index + 1 == len(items)
        gap = (items[-2].end, item.start) if is_last else (item.end, items[index + 1].start)
        if self.raw[slice(*gap)].strip(_BLANKS) == ",":
            return self.replaced(min(item.start, gap[0]), max(item.end, gap[1]))
        comma = self.clear.index(",", gap[0])
        first, second = sorted(((comma, comma + 1), (item.start, item.end)))
        return self.replaced(*second).replaced(*first)

    def is_hollow(self, at: int) -> bool:
        """True if nothing but an empty line is left in it: it was written for what was removed."""
        _, end = DECODER.raw_decode(self.clear, at)
        return _HOLLOW.fullmatch(self.raw[at + 1 : end - 1]) is not None

    def replaced(self, start: int, end: int, piece: str = "") -> Self:
        """With this piece in place of what stands from here to there."""
        raw = self.raw[:start] + piece + self.raw[end:]
        clear = self.clear[:start] + piece + self.clear[end:]
        return type(self)(raw, clear, self.indent, self.newline)


def fresh(content: Iterable[tuple[str, object]]) -> str:
    """A new text with these members, as `removed` knows it again."""
    return f"{json.dumps(dict(content), indent=2, ensure_ascii=False)}\n"


def _after_blanks(text: str, position: int) -> int:
    while text[position : position + 1] in tuple(_BLANKS):
        position += 1
    return position


def _at(text: str, position: int, why: str) -> JsonTextError:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return JsonTextError(f"line {line}, column {column}: {why}")
