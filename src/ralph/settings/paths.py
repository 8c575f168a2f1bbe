"""Paths of keys and indexes in a JSON document, and their spelling."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

Path = tuple[str | int, ...]
Json = dict[str, Any]

_LONGEST_KEY = 40


def dotted(path: Path) -> str:
    """The path as people write it: `guardrails[1].failAction`; odd keys are quoted."""
    spelled = ""
    for step in path:
        if isinstance(step, int):
            spelled += f"[{step}]"
        elif step.isascii() and step.isidentifier() and len(step) <= _LONGEST_KEY:
            spelled += f".{step}"
        else:
            spelled += f"[{json.dumps(step[:_LONGEST_KEY])}]"
    return spelled.removeprefix(".")


def nested(path: Sequence[str | int], value: object) -> Json:
    """An object with one value, at this path of keys."""
    found: Any = value
    for key in reversed(path):
        found = {key: found}
    return dict(found)


def has(document: object, path: Path) -> bool:
    """True if the document holds something at this path of keys."""
    for key in path:
        if not isinstance(document, dict) or key not in document:
            return False
        document = document[key]
    return True


def walk(document: object) -> Iterator[tuple[Path, object]]:
    """Every value with its path, the outer before the inner; no recursion, whatever the depth."""
    waiting: list[tuple[Path, object]] = [((), document)]
    while waiting:
        path, value = waiting.pop()
        yield path, value
        if isinstance(value, dict):
            waiting.extend(((*path, key), inner) for key, inner in value.items())
        elif isinstance(value, list):
            waiting.extend(((*path, index), inner) for index, inner in enumerate(value))


def leaves(document: Json, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Every value that is set by itself, in order: all but objects; a list is one value."""
    for key, value in document.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value
