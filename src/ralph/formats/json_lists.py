"""JSON of other people's lists: read with the place of what is wrong, changed in one member, and
kept for the way back without what our own fields hold already."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ralph.files.json_edit import DECODER, Item, JsonText
from ralph.formats.base import ListedTask, Splice, spliced
from ralph.formats.records import NOTHING, Record, kept_of, values_of

_PLAIN_TEXT = ("title", "notes", "description", "externalUrl", "type")
ABSENT = object()  # in place of a value: without this member


def parsed(text: str) -> Any:  # noqa: ANN401  any JSON
    """The content of a text in JSON; ValueError with the place where it is none."""
    try:
        return DECODER.decode(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def opening(text: str) -> str:
    """The sign with which the text begins."""
    return text.removeprefix("\ufeff").lstrip()[:1]


def all_are(text: str, is_one: Callable[[Record], bool]) -> bool:
    """True if the text is one such object in JSON, or a list of them."""
    if opening(text) not in ("[", "{"):
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


def first_place(text: str) -> int:
    """The place where the JSON begins."""
    return len(text) - len(text.removeprefix("\ufeff").lstrip(" \t\r\n"))


def items(text: str, at: int) -> list[Item]:
    """The items of the list or object that begins here. The text must be JSON."""
    return JsonText(text, text, "  ", "\n").items(at)


def with_member(text: str, key: str, content: object) -> str:
    """The text of an object with another value under this key; all else keeps its bytes. A new
    member comes last, spaced as those before it."""
    edited = JsonText(text, text, "  ", "\n")
    old = edited.member(0, key)
    if content is ABSENT:
        return text if old is None else edited.removed(0, old.start).raw
    words = json.dumps(content, ensure_ascii=False)
    if old is not None:
        return text[: old.at] + words + text[old.end :]
    comma, colon, end = "", ": ", 1
    if members := edited.items(0):
        last = members[-1]
        _, key_end = DECODER.raw_decode(text, last.start)
        colon, end = text[key_end : last.at], last.end
        before = text[1 : members[0].start]
        comma = f",{before or (' ' if colon == ': ' else '')}"
    return f"{text[:end]}{comma}{json.dumps(key)}{colon}{words}{text[end:]}"


def member_of(text: str, key: str) -> Item | None:
    """The value under this key in a text that is an object; the last one counts."""
    return JsonText(text, text, "  ", "\n").member(first_place(text), key)


def with_members(text: str, changes: Iterable[tuple[Item, Mapping[str, object]]]) -> str:
    """The text with other values in some of its objects, by their keys."""
    splices: list[Splice] = []
    for place, members in changes:
        words = text[place.at : place.end]
        for key, content in members.items():
            words = with_member(words, key, content)
        splices.append((place.at, place.end, words))
    return spliced(text, splices)


def listed_task(key: str, original: Record, fields: Record, plain: Mapping[str, str]) -> ListedTask:
    """A task with these fields, of which the empty ones are left out. Of the object it came from
    are kept the order of its members, and the values that are not the same in our fields; `plain`
    says which of ours is which of theirs."""
    fields = {name: content for name, content in fields.items() if content not in NOTHING}
    rest = {
        name: content
        for name, content in original.items()
        if name not in plain or content in (None, "", []) or fields.get(plain[name]) != content
    }
    return ListedTask(key, fields, {"order": list(original), "values": rest})


def thickened(record: Record, form: str, plain: Mapping[str, str]) -> dict[str, Any]:
    """The object in a list of this format again, with what our fields say now."""
    values, order = values_of(record, form), kept_of(record, form).get("order")
    found: dict[str, Any] = {}
    for name in order if isinstance(order, list) else values:
        if name in values:
            found[name] = values[name]
        elif name in plain:
            empty: object = "" if plain[name] in _PLAIN_TEXT else []
            found[name] = record.get(plain[name], empty)
    return found
