"""Which key a person may have meant. Loaded only when a key is unknown."""

import difflib
from collections.abc import Iterator
from typing import get_args, get_origin

import msgspec.structs

from ralph.settings.paths import Path, dotted
from ralph.settings.schema import Group, Settings

_CLOSE_ENOUGH = 0.7


def suggestion(path: Path, siblings: list[str]) -> str | None:
    """The known key nearest to an unknown one: here first, then at any other level."""
    key, place = str(path[-1]), dotted(path[:-1])
    here = {name: f"{place}.{name}".removeprefix(".") for name in siblings}
    elsewhere = {known.rpartition(".")[2]: known for known in reversed(list(known_keys()))}
    for names, near in ((here, _same), (elsewhere, _same), (here, _close), (elsewhere, _close)):
        name = near(key, list(names))
        if name:
            return names[name] if "." in names[name] or not place else f"{name} (top level)"
    return None


def known_keys(group: type[Group] = Settings, place: str = "") -> Iterator[str]:
    """Every key of the settings with its place, outer levels first: `guardrails[].hint`."""
    fields = msgspec.structs.fields(group)
    for field in fields:
        yield f"{place}{field.encode_name}"
    for field in fields:
        for inner, many in _groups_in(field.type):
            yield from known_keys(inner, f"{place}{field.encode_name}{'[]' if many else ''}.")


def _groups_in(hint: object, many: bool = False) -> Iterator[tuple[type[Group], bool]]:
    if isinstance(hint, type) and issubclass(hint, Group):
        yield hint, many
    for inner in get_args(hint):
        yield from _groups_in(inner, many or get_origin(hint) is tuple)


def _same(key: str, names: list[str]) -> str | None:
    """The name that differs only in capitals, `_` and `-`."""
    return next((name for name in names if _bare(name) == _bare(key)), None)


def _close(key: str, names: list[str]) -> str | None:
    """The name that is most like the key, if any is."""
    bare = {_bare(name): name for name in names}
    return next(
        (bare[near] for near in difflib.get_close_matches(_bare(key), bare, 1, _CLOSE_ENOUGH)), None
    )


def _bare(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
