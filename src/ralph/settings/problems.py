"""What is wrong with merged settings: every unknown key, wrong type and value out of range.

The walk follows the types of `schema`; msgspec judges the leaves. It runs before the conversion
because msgspec stops at the first error and does not say what would be allowed.
"""

import json
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Union, get_args, get_origin

import msgspec
import msgspec.structs
from msgspec import Meta

from ralph.settings.paths import Json, Path, dotted
from ralph.settings.schema import Group, Settings
from ralph.settings.source import kind_of

_LONGEST_SHOWN = 60
_SECRET = (("agent", "env"), ("notify", "urls"))


class Problem(msgspec.Struct, frozen=True):
    """Something wrong at one place of the settings, in words."""

    path: Path
    words: str  # a sentence
    missing: bool = False  # another layer may have it; not in a list, which replaces another


def problems(document: Json) -> Iterator[Problem]:
    """All problems of the settings; none means that they can be converted."""
    return _check(document, Settings, ())


def _check(value: object, hint: object, path: Path) -> Iterator[Problem]:
    kind = _without_null(hint)
    if isinstance(kind, type) and issubclass(kind, Group):
        yield from _check_group(value, kind, path)
    elif get_origin(kind) is tuple:
        yield from _check_list(value, get_args(kind)[0], path)
    elif get_origin(kind) is dict:
        yield from _check_table(value, kind, path)
    else:
        yield from _check_leaf(value, hint, path)


def _check_group(value: object, group: type[Group], path: Path) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield _not_allowed(value, "an object", path)
        return
    fields = {field.encode_name: field for field in msgspec.structs.fields(group)}
    for key, inner in value.items():
        if key not in fields:
            yield _unknown_key((*path, key), list(fields))
        elif inner is not None:  # null is the default, everywhere
            yield from _check(inner, fields[key].type, (*path, key))
    for key, field in fields.items():
        if field.required and value.get(key) is None:
            words = f"{key} is missing; allowed: {_allowed(field.type)}."
            yield Problem(path, words, missing=not any(isinstance(step, int) for step in path))


def _check_list(value: object, item: object, path: Path) -> Iterator[Problem]:
    if not isinstance(value, list | tuple):
        yield _not_allowed(value, "a list", path)
        return
    for index, inner in enumerate(value):
        yield from _check(inner, item, (*path, index))


def _check_table(value: object, kind: object, path: Path) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield _not_allowed(value, "an object", path)
        return
    name, item = get_args(kind)
    for key, inner in value.items():
        yield from _check_leaf(key, name, (*path, key))
        if inner is not None:
            yield from _check(inner, item, (*path, key))


def _check_leaf(value: object, hint: object, path: Path) -> Iterator[Problem]:
    try:
        msgspec.convert(value, hint)
    except msgspec.ValidationError:
        yield _not_allowed(value, _allowed(hint), path)
        return
    if isinstance(value, str) and not _speakable(value):
        yield _not_allowed(value, "text without NUL and broken Unicode", path)


def _speakable(text: str) -> bool:
    """Whether a command can be given this text: no NUL, no half of a surrogate pair."""
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _without_null(hint: object) -> object:
    """The type itself, without its notes and without the `| None`."""
    while get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, UnionType):
        return _without_null(next(kind for kind in get_args(hint) if kind is not NoneType))
    return hint


def _allowed(hint: object) -> str:
    """The words of `schema` for what the type admits."""
    kind, *notes = get_args(hint)
    words = (note.extra["allowed"] for note in notes if isinstance(note, Meta) and note.extra)
    return next(words, None) or _allowed(kind)


def _not_allowed(value: object, allowed: str, path: Path) -> Problem:
    return Problem(path, f"found {_shown(value, path)}; allowed: {allowed}.")


def _shown(value: object, path: Path) -> str:
    """The value, short and without secrets; of these and of containers only the kind."""
    from ralph.core.redact import redact

    if path[:2] in _SECRET or isinstance(value, dict | list | tuple):
        return kind_of(value)
    text = redact(json.dumps(value, ensure_ascii=False))
    text = text if text.isprintable() else redact(json.dumps(value))
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _unknown_key(path: Path, siblings: list[str]) -> Problem:
    from ralph.settings.suggest import suggestion

    meant = suggestion(path, siblings)
    if meant:
        return Problem(path, f"unknown key; did you mean {meant}?")
    place = dotted(path[:-1]) or "the top level"
    return Problem(path, f"unknown key; {place} has {', '.join(siblings)}.")
