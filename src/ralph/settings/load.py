"""Loading settings: two files and the flags, merged, checked, each value with its origin.

H §Loading Priority: `.ralph/settings.json`, over it `.ralph/settings.local.json`, over both the
flags. null means the default, wherever it stands.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
import msgspec.structs

from ralph.errors import ConfigError
from ralph.settings.durations import in_seconds
from ralph.settings.paths import Json, Path, dotted, has, leaves, nested
from ralph.settings.problems import SettingsProblem, problems
from ralph.settings.schema import Settings
from ralph.settings.source import LOCAL, MOST_TOLD, SETTINGS, Layer, read_layer

ASSUMED = "what was found here"  # the origin of settings that nobody has written


class Loaded(msgspec.Struct, frozen=True):
    """Settings and their origins."""

    settings: Settings
    files: tuple[str, ...]  # those that were read, relative to the workspace
    origins: Mapping[str, str]  # dotted path of every value that was set -> file or flag
    merged: Mapping[str, Any]  # what was set, as one JSON object, without the defaults


def load(
    workspace: str,
    overrides: Mapping[str, tuple[object, str]] = {},
    assumed: Callable[[], Json] = dict,
) -> Loaded:
    """The settings of a workspace; missing files are fine, anything wrong is a ConfigError. Where
    there is no file at all, `assumed` is asked for settings in their place.

    `overrides` maps a dotted path to a value and the flag it came from:
    `{"agent.model": ("opus", "--model")}`. A value of None is a flag that was not given.
    """
    flags = (
        Layer(flag, nested(path.split("."), value), is_flag=True)
        for path, (value, flag) in overrides.items()
        if value is not None
    )
    layers = file_layers(workspace)
    if not layers and (found := assumed()):
        layers.append(Layer(ASSUMED, found, is_flag=True))
    return combine([*layers, *flags])


def file_layers(workspace: str) -> list[Layer]:
    """What the settings files of a workspace say, the lower one first."""
    return [layer for name in (SETTINGS, LOCAL) if (layer := read_layer(workspace, name))]


def said_beside_files(loaded: Loaded) -> dict[str, Json]:
    """What flags have set, or was assumed, by its origin: to be laid over the files once more."""
    said: dict[str, Json] = {}
    for path, value in leaves(dict(loaded.merged)):
        origin = loaded.origins[dotted(path)]
        if origin not in (SETTINGS, LOCAL):
            said[origin] = merge(said.get(origin, {}), nested(path, value))
    return said


def combine(layers: Sequence[Layer]) -> Loaded:
    """Lay one layer over the other. Each is checked, also where another hides what it says."""
    layers = [Layer(each.name, in_seconds(each.data), each.is_flag) for each in layers]
    merged: Json = {}
    for layer in layers:
        merged = merge(merged, layer.data)
    found = list(islice(_found(merged, layers), MOST_TOLD))
    if found:
        lines = [
            f"{layer.name}:{'' if layer.is_flag else f' {dotted(one.path)}:'} {one.words}"
            for one, layer in found
        ]
        files = " and ".join(dict.fromkeys(layer.name for _, layer in found if not layer.is_flag))
        remedy = f"Fix {files or 'the command'}; ralph explain --schema lists every key and what it"
        raise ConfigError("\n".join(lines), f"{remedy} may hold.")
    return Loaded(
        settings=msgspec.convert(_without_nulls(merged), Settings),
        files=tuple(layer.name for layer in layers if not layer.is_flag),
        origins={dotted(path): _origin(path, layers).name for path, _ in leaves(merged)},
        merged=merged,
    )


def changed(loaded: Loaded, key: str, value: object, origin: str) -> Loaded:
    """The same with another value for one key of the top level."""
    merged = {**loaded.merged, key: value}
    settings = msgspec.convert(_without_nulls(merged), Settings)
    origins = {**loaded.origins, key: origin}
    return Loaded(settings=settings, files=loaded.files, origins=origins, merged=merged)


def value_at(settings: Settings, path: str) -> Any:  # noqa: ANN401  what a setting may hold
    """The setting in force at a dotted path."""
    found: Any = settings
    for key in path.split("."):
        name = next(f.name for f in msgspec.structs.fields(found) if f.encode_name == key)
        found = getattr(found, name)
    return found


def merge(base: Json, over: Json) -> Json:
    """`over` laid over `base`: objects merge, everything else replaces (H §Deep Merge)."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            merged[key] = merge(below, value)
        else:
            merged[key] = value
    return merged


def _without_nulls(value: object) -> object:
    """The same without keys that are null: they shall have their defaults."""
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value


def _origin(path: Path, layers: Sequence[Layer]) -> Layer:
    """The layer that had the last word about what stands at the path."""
    return next(layer for layer in reversed(layers) if has(layer.data, path))


def _found(merged: Json, layers: Sequence[Layer]) -> Iterator[tuple[SettingsProblem, Layer]]:
    """Every problem, with the layer that has it. What is missing may stand in another one."""
    for layer in layers:
        yield from ((found, layer) for found in problems(layer.data) if not found.missing)
    missing = (found for found in problems(merged) if found.missing)
    yield from ((found, _origin(found.path, layers)) for found in missing)
