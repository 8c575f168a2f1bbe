"""JSON of other people's lists: read with the place of what is wrong, changed in one member, and
kept for the way back without what our own fields hold already."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from ralph.files.json_edit import Item, JsonText
from ralph.formats.base import Splice, spliced
from ralph.formats.records import Record

_PLAIN_TEXT = ("title", "notes", "description", "externalUrl", "type")
ABSENT = object()  # in place of a value: without this member


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def parsed(text: str) -> Any:  # noqa: ANN401  any JSON
    """The content of a text in JSON; ValueError with the place where it is none."""
    try:
        return _DECODER.decode(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def all_are(text: str, is_one: Callable[[Record], bool]) -> bool:
    """True if the text is one such object in JSON, or a list of them."""
    if text.removeprefix("\ufeff").lstrip()[:1] not in ("[", "{"):
        return False
    try:
        found = parsed(text)
    except ValueError:
        return False
    objects = found if isinstance(found, list) else [found]
    return bool(objects) and all(isinstance(one, dict) and is_one(one) for one in objects)


def dumped(content: object, *, compact: bool = False) -> str:
    """JSON as most tools write it, in one line or with an indentation of 2."""
    if compact:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return json.dumps(content, ensure_ascii=False, indent=2)


# ------------------------------------------------------------------ one member of a text


def first_place(text: str) -> int:
    """The place where the JSON begins."""
    return len(text) - len(text.removeprefix("\ufeff").lstrip(" \t\r\n"))


def items(text: str, at: int) -> list[Item]:
    """The items of the list or object that begins here. The text must be JSON."""
    return JsonText(text, text, "  ", "\n").items(at)


def with_member(text: str, at: int, key: str, content: object) -> str:
    """The text with another value under this key of the object that begins here; all else keeps its
    bytes. A new member comes last, spaced as those before it."""
    members = items(text, at)
    old = next((member for member in reversed(members) if member.key == key), None)
    if content is ABSENT:
        edited = JsonText(text, text, "  ", "\n")
        return text if old is None else edited.removed(at, old.start).raw
    words = json.dumps(content, ensure_ascii=False)
    if old is not None:
        return text[: old.at] + words + text[old.end :]
    comma, colon, end = "", ": ", at + 1
    if members:
        last = members[-1]
        _, key_end = _DECODER.raw_decode(text, last.start)
        colon, end = text[key_end : last.at], last.end
        before = text[at + 1 : members[0].start]
        comma = f",{before or (' ' if colon == ': ' else '')}"
    return f"{text[:end]}{comma}{json.dumps(key)}{colon}{words}{text[end:]}"


def member_of(text: str, key: str) -> Item | None:
    """The value under this key in a text that is an object; the last one counts."""
    members = items(text, first_place(text))
    return next((member for member in reversed(members) if member.key == key), None)


def with_members(text: str, changes: Iterable[tuple[Item, Mapping[str, object]]]) -> str:
    """The text with other values in some of its objects, by their keys."""
    splices: list[Splice] = []
    for place, members in changes:
        words = text[place.at : place.end]
        for key, content in members.items():
            words = with_member(words, 0, key, content)
        splices.append((place.at, place.end, words))
    return spliced(text, splices)


# ------------------------------------------------------------------ the way back


def thinned(original: Record, fields: Record, plain: Mapping[str, str]) -> dict[str, Any]:
    """The parts of an object to keep: the order of its members, and the values of those that are
    not the same in our fields. `plain` says which of ours is which of theirs."""
    rest = {
        name: content
        for name, content in original.items()
        if name not in plain or content in (None, "", []) or fields.get(plain[name]) != content
    }
    return {"order": list(original), "values": rest}


def thickened(kept: Record, record: Record, plain: Mapping[str, str]) -> dict[str, Any]:
    """The object again, with what our fields say now."""
    values, order = kept.get("values"), kept.get("order")
    values = values if isinstance(values, Mapping) else {}
    found: dict[str, Any] = {}
    for name in order if isinstance(order, list) else values:
        if name in values:
            found[name] = values[name]
        elif name in plain:
            empty: object = "" if plain[name] in _PLAIN_TEXT else []
            found[name] = record.get(plain[name], empty)
    return found
