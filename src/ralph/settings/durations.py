"""Durations as people write them, in settings: "90s", "30m", "8h"."""

from typing import get_args, get_origin

import msgspec.structs
from msgspec import Meta

from ralph.settings.paths import Json, walk
from ralph.settings.schema import AS_TEXT, Settings, SettingsGroup
from ralph.text.words import seconds_of


def in_seconds(document: Json, whole: type[SettingsGroup] = Settings) -> Json:
    """The same with durations as seconds. What is no duration stays, for others to object to."""
    if not any(
        isinstance(value, str) and _number(value) is not None for _, value in walk(document)
    ):
        return document
    changed = _in_seconds(document, whole)
    assert isinstance(changed, dict)
    return changed


def _in_seconds(value: object, hint: object) -> object:
    if isinstance(value, str):
        number = _number(value) if _is_duration(hint) else None
        return value if number is None else number
    if isinstance(value, list):
        return [_in_seconds(inner, hint) for inner in value]
    group = _group_in(hint)
    if not isinstance(value, dict) or group is None:
        return value
    hints = {field.encode_name: field.type for field in msgspec.structs.fields(group)}
    return {key: _in_seconds(inner, hints.get(key)) for key, inner in value.items()}


def _number(text: str) -> float | None:
    seconds = seconds_of(text)
    return int(seconds) if seconds is not None and seconds.is_integer() else seconds


def _is_duration(hint: object) -> bool:
    if isinstance(hint, Meta):
        return (hint.extra_json_schema or {}).get("pattern") == AS_TEXT
    return any(map(_is_duration, get_args(hint)))


def _group_in(hint: object) -> type[SettingsGroup] | None:
    """The group of settings that a type holds, alone or in a list."""
    if isinstance(hint, type) and issubclass(hint, SettingsGroup):
        return hint
    inner = () if get_origin(hint) is dict else get_args(hint)
    return next(filter(None, map(_group_in, inner)), None)
