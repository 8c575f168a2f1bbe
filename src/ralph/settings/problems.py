"""The problems of merged settings: every unknown key, wrong type and value out of range.

The walk follows the types of `schema`; msgspec judges the leaves. It runs before the conversion
because msgspec stops at the first error and does not say what would be allowed.
"""

import json
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

import msgspec
import msgspec.structs
from msgspec import Meta

from ralph.settings.paths import Json, Path, dotted
from ralph.settings.schema import Settings, SettingsGroup
from ralph.settings.source import kind_of

_LONGEST_SHOWN = 60
_CLOSE_ENOUGH = 0.7
_SECRET = (("agent", "env"), ("notify", "urls"))


class SettingsProblem(msgspec.Struct, frozen=True):
    """Something wrong at one place of the settings, in words."""

    path: Path
    words: str  # a sentence
    missing: bool = False  # another layer may have it; not in a list, which replaces another


def problems(document: Json, whole: type[SettingsGroup] = Settings) -> Iterator[SettingsProblem]:
    """All problems of the settings, or of another document with keys of its own; none means that
    it can be converted."""
    return _check(document, whole, (), whole)


def _check(
    value: object, hint: object, path: Path, whole: type[SettingsGroup]
) -> Iterator[SettingsProblem]:
    hint = _member(hint, value)
    kind = _without_null(hint)
    if isinstance(kind, type) and issubclass(kind, SettingsGroup):
        yield from _check_group(value, kind, path, whole)
    elif get_origin(kind) is tuple and isinstance(value, list | tuple):
        if len(value) < _least(hint):
            yield _not_allowed(value, _allowed(hint), path)
        for index, inner in enumerate(value):
            yield from _check(inner, get_args(kind)[0], (*path, index), whole)
    elif get_origin(kind) is dict and isinstance(value, dict):
        name, item = get_args(kind)
        for key, inner in value.items():
            yield from _check_leaf(key, name, (*path, key))
            if inner is not None:
                yield from _check(inner, item, (*path, key), whole)
    elif get_origin(kind) in (tuple, dict):
        allowed = "a list" if get_origin(kind) is tuple else "an object"
        yield _not_allowed(value, allowed, path)
    else:
        yield from _check_leaf(value, hint, path)


def _check_group(
    value: object, group: type[SettingsGroup], path: Path, whole: type[SettingsGroup]
) -> Iterator[SettingsProblem]:
    if not isinstance(value, dict):
        yield _not_allowed(value, "an object", path)
        return
    fields = {field.encode_name: field for field in msgspec.structs.fields(group)}
    for key, inner in value.items():
        if key not in fields:
            meant = _suggestion((*path, key), list(fields), whole)
            has = f"{dotted(path) or 'the top level'} has {', '.join(fields)}."
            words = f"did you mean {meant}?" if meant else has
            yield SettingsProblem((*path, key), f"unknown key; {words}")
        elif inner is not None:  # null is the default, everywhere
            yield from _check(inner, fields[key].type, (*path, key), whole)
    for key, field in fields.items():
        if field.required and value.get(key) is None:
            words = f"{key} is missing; allowed: {_allowed(field.type)}."
            yield SettingsProblem(
                path, words, missing=not any(isinstance(step, int) for step in path)
            )


def _check_leaf(value: object, hint: object, path: Path) -> Iterator[SettingsProblem]:
    try:
        msgspec.convert(value, hint)
    except msgspec.ValidationError:
        yield _not_allowed(value, _allowed(hint), path)
        return
    if _notes(hint).get("filled") and isinstance(value, str) and not value.strip():
        yield _not_allowed(value, _allowed(hint), path)
        return
    # No command can be given anything else.
    if isinstance(value, str) and ("\0" in value or any("\ud800" <= c <= "\udfff" for c in value)):
        yield _not_allowed(value, "text without NUL and broken Unicode", path)


def _without_null(hint: object) -> object:
    """The type itself, without its notes and without the `| None`."""
    while get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, UnionType):
        return _without_null(next(kind for kind in get_args(hint) if kind is not NoneType))
    return hint


def _member(hint: object, value: object) -> object:
    """The one of several types that a value is meant to be; the type itself where there is one."""
    bare = hint
    while get_origin(bare) is Annotated:
        bare = get_args(bare)[0]
    kinds = [kind for kind in get_args(bare) if kind is not NoneType]
    if get_origin(bare) not in (Union, UnionType) or len(kinds) == 1:
        return hint
    is_list = isinstance(value, list | tuple)
    fits = (kind for kind in kinds if (get_origin(_without_null(kind)) is tuple) == is_list)
    return next(fits)


def _notes(hint: object) -> dict[str, object]:
    """What `schema` says beside a type."""
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((note.extra for note in notes if isinstance(note, Meta) and note.extra), {})


def _least(hint: object) -> int:
    """How many items a list must have."""
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((note.min_length or 0 for note in notes if isinstance(note, Meta)), 0)


def _allowed(hint: object) -> str:
    """The words of `schema` for what the type admits; a choice names its values."""
    if get_origin(hint) is Literal:
        *others, last = (f'"{choice}"' for choice in get_args(hint))
        return f"{', '.join(others)} or {last}"
    kind, *notes = get_args(hint)
    words = (note.extra["allowed"] for note in notes if isinstance(note, Meta) and note.extra)
    return next(words, None) or _allowed(kind)


def _not_allowed(value: object, allowed: str, path: Path) -> SettingsProblem:
    """Shows the value short and without secrets; of these and of containers only the kind."""
    from ralph.text.redact import redact

    if path[:2] in _SECRET or isinstance(value, dict | list | tuple):
        return SettingsProblem(path, f"found {kind_of(value)}; allowed: {allowed}.")
    text = redact(json.dumps(value, ensure_ascii=False))
    text = text if text.isprintable() else redact(json.dumps(value))
    text = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    return SettingsProblem(path, f"found {text}; allowed: {allowed}.")


def _suggestion(path: Path, siblings: list[str], whole: type[SettingsGroup]) -> str | None:
    """The known key nearest to an unknown one: here first, then at any other level."""
    from difflib import get_close_matches

    def bare(name: str) -> str:
        return name.replace("_", "").replace("-", "").lower()

    key, place = bare(str(path[-1])), dotted(path[:-1])
    here = {name: f"{place}.{name}".removeprefix(".") for name in siblings}
    elsewhere = {known.rpartition(".")[2]: known for known in reversed(list(known_keys(whole)))}
    for cutoff in (1.0, _CLOSE_ENOUGH):  # the same but for capitals, `_` and `-`; or most like it
        for names in (here, elsewhere):
            known = {bare(name): name for name in names}
            if near := get_close_matches(key, known, 1, cutoff):
                name = known[near[0]]
                return names[name] if "." in names[name] or not place else f"{name} (top level)"
    return None


def known_keys(group: type[SettingsGroup] = Settings, place: str = "") -> Iterator[str]:
    """Every key of the settings with its place, outer levels first: `guardrails[].hint`."""
    fields = msgspec.structs.fields(group)
    for field in fields:
        yield f"{place}{field.encode_name}"
    for field in fields:
        for inner, many in _groups_in(field.type):
            yield from known_keys(inner, f"{place}{field.encode_name}{'[]' if many else ''}.")


def _groups_in(hint: object, many: bool = False) -> Iterator[tuple[type[SettingsGroup], bool]]:
    if isinstance(hint, type) and issubclass(hint, SettingsGroup):
        yield hint, many
    for inner in get_args(hint):
        yield from _groups_in(inner, many or get_origin(hint) is tuple)
