"""The settings for people and programs: each value with its origin, and the JSON Schema.

Nothing here prints; nothing that is returned holds a secret.
"""

import json
from collections.abc import Iterable, Mapping

import msgspec

from ralph.settings.load import Loaded
from ralph.settings.paths import Json, Path, dotted, leaves, walk
from ralph.settings.schema import Settings
from ralph.text.redact import redact
from ralph.text.secrets import secret_among, secret_flags, secret_urls, secrets_of

DEFAULT = "default"
_OF_NUMBERS = ("type", "minimum", "exclusiveMinimum", "maximum")
_HIDDEN = (("agent", "env", "set"), ("notify", "urls"))  # apprise has passwords in URLs
_WIDEST = 44  # a longer value pushes its origin out of the column instead of all others


def lines(loaded: Loaded) -> tuple[str, ...]:
    """One line for each setting in force: its path, its value, where it came from."""
    rows = [
        (dotted(path), json.dumps(value, ensure_ascii=False), _origin(path, loaded.origins))
        for path, value in _rows(effective(loaded.settings), ())
    ]
    first = max(len(path) for path, _, _ in rows)
    second = max((len(value) for _, value, _ in rows if len(value) <= _WIDEST), default=0)
    return tuple(f"{path:<{first}}  {value:<{second}}  {origin}" for path, value, origin in rows)


def as_dict(loaded: Loaded) -> Json:
    """The same for programs: files, settings in force, and the origin of every value."""
    settings = effective(loaded.settings)
    origins = {dotted(path): _origin(path, loaded.origins) for path, _ in _rows(settings, ())}
    return {"files": list(loaded.files), "settings": settings, "origins": origins}


def effective(settings: Settings) -> Json:
    """The settings in force, defaults included, as a JSON object without secrets."""
    hidden = redacted(msgspec.to_builtins(settings))
    assert isinstance(hidden, dict)
    return hidden


def changes(before: Loaded, after: Loaded) -> tuple[tuple[str, str, str], ...]:
    """The settings in force that differ: the path of each and both values, without secrets and,
    where somebody has set one, without the defaults within."""
    one, other = (dict(leaves(msgspec.to_builtins(each.settings))) for each in (before, after))
    return tuple(
        (dotted(path), _said(before, path, one.get(path)), _said(after, path, other.get(path)))
        for path in {**one, **other}
        if one.get(path) != other.get(path)
    )


def _said(loaded: Loaded, path: Path, value: object) -> str:
    value = dict(leaves(dict(loaded.merged))).get(path, value)
    return json.dumps(value and redacted(value, path), ensure_ascii=False)


def redacted(value: object, path: Path = ()) -> object:
    """The JSON value without secrets: nothing like a key, no `agent.env.set` or `notify.urls`."""
    if isinstance(value, dict):
        return {key: redacted(inner, (*path, key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(inner, path) for inner in value]
    if any(path[: len(hidden)] == hidden for hidden in _HIDDEN):
        return "[redacted]"
    return redact(value) if isinstance(value, str) else value


def json_schema() -> Json:
    """The JSON Schema of a settings file. The loader takes a little more: null for the default
    of any key, and `failAction` in any case."""
    schema = msgspec.json.schema(Settings)
    for _, node in walk(schema):
        if isinstance(node, dict) and node.get("type") == "number" and "pattern" in node:
            text = {"type": "string", "pattern": node.pop("pattern")}
            bounds = {name: node.pop(name) for name in _OF_NUMBERS if name in node}
            node["anyOf"] = [bounds, text]
    prices = schema["$defs"]["PriceSettings"]["properties"]
    prices["cached"] = {**prices["cacheRead"], "description": "Another name of cacheRead."}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Ralph settings",
        "description": "What .ralph/settings.json and .ralph/settings.local.json may hold.",
        **schema,
    }


def _rows(value: object, path: Path) -> list[tuple[Path, object]]:
    """Every leaf; lists of objects are opened, other lists are one value."""
    if isinstance(value, dict) and value:
        return [row for key, inner in value.items() for row in _rows(inner, (*path, key))]
    if isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        return [row for index, inner in enumerate(value) for row in _rows(inner, (*path, index))]
    return [(path, value)]


def _origin(path: Path, origins: Mapping[str, str]) -> str:
    """The file or flag that set the value, or the whole that it is part of."""
    wholes = (dotted(path[:length]) for length in range(len(path), 0, -1))
    return next((origins[whole] for whole in wholes if whole in origins), DEFAULT)


def secrets_in(
    environ: Mapping[str, str], settings: Settings, public: Iterable[str] = ()
) -> frozenset[str]:
    """Secrets in a run's environment and settings, never to be told (ADR 13); no part of what is
    `public`, such as the project's path."""
    flags = [word for flag in settings.agent.flags for word in flag.split()]
    found = secrets_of(environ) | secrets_of(settings.agent.env.set)
    return secret_among(found | secret_flags(flags) | secret_urls(settings.notify.urls), public)
