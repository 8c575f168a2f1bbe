"""Reading one settings file: bytes to a JSON object, or an error that says where and what."""

import json
import os
import stat
from collections import Counter
from typing import Any

import msgspec

from ralph.errors import ConfigError
from ralph.kernel.verdict import Placement
from ralph.settings.paths import Json, dotted, walk

SETTINGS = ".ralph/settings.json"
LOCAL = ".ralph/settings.local.json"

MOST_TOLD = 20  # problems of one file; nobody reads more at once

_LARGEST = 10 * 1024 * 1024
_DEEPEST = 32
_FIX = "Fix it by hand; ralph explain --schema lists every key and what it may hold."
_SYNTAX = "JSON has no comments, no comma after the last item, and double quotes only."
_EXPECTED = {
    "Expecting property name": "a key in double quotes",
    "Expecting ',' delimiter": "a comma or the closing bracket",
    "Expecting ':' delimiter": "a colon after the key",
    "Expecting value": "a value (text in double quotes, a number, true, false, null, [ or {)",
    "Unterminated string": "a closing double quote in the same line",
    "Invalid control character": "an escape such as \\n or \\t",
    "Invalid \\escape": 'one of " \\ / b f n r t u after the backslash',
    "Invalid \\uXXXX escape": "four hexadecimal digits after \\u",
    "Extra data": "nothing after the end of the object",
    "Illegal trailing comma": "no comma after the last item",
}


class Layer(msgspec.Struct, frozen=True):
    """Settings from one place: a file, or one flag."""

    name: str  # as people know it: `.ralph/settings.json`, `--model`
    data: Json
    is_flag: bool = False


def read_layer(workspace: str, name: str) -> Layer | None:
    """The settings file `name` of the workspace; None if there is none."""
    raw = read_bytes(os.path.join(workspace, name), name)
    return None if raw is None else Layer(name, parse(raw, name))


def parse(raw: bytes, name: str) -> Json:
    """The JSON object in the bytes of the file `name`."""
    text = decoded(raw, name)
    if not text.strip():
        raise ConfigError(f"{name}: is empty; expected a JSON object.", f"Write {{}} to {name}.")
    try:
        document = json.loads(text, object_pairs_hook=_collected)
    except json.JSONDecodeError as error:
        raise _syntax_error(error, name) from None
    except RecursionError:
        raise _too_deep(name) from None
    except ValueError:  # Python refuses to read such a number: it would take for ever
        raise ConfigError(f"{name}: holds a number of thousands of digits.", _FIX) from None
    _refuse_oddities(document, name)
    document.pop("$schema", None)  # for editors; it says nothing to us
    return normalized(document)


class _Doubled(dict[str, Any]):
    """An object in which some keys stand twice. It never leaves this module."""

    doubled: list[str]


def _collected(pairs: list[tuple[str, Any]]) -> Json:
    document = dict(pairs)
    if len(document) == len(pairs):
        return document
    found = _Doubled(document)
    found.doubled = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    return found


def read_bytes(path: str, name: str) -> bytes | None:
    """The content of a file of settings; None if there is none."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ConfigError(f"{name}: is not a file.", f"Move {name} away, or make it a file.")
        with open(path, "rb") as file:
            raw = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise ConfigError(
            ".ralph: is not a directory.", "Move the file .ralph away; Ralph keeps its files there."
        ) from None
    except OSError as error:
        raise ConfigError(
            f"{name}: cannot be read: {error.strerror}.", f"Check who may read it: ls -l {name}"
        ) from None
    if len(raw) > _LARGEST:
        raise ConfigError(f"{name}: is larger than 10 MB.", "Is it really a settings file?")
    return raw


def decoded(raw: bytes, name: str) -> str:
    """The text, with or without a byte order mark."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{name}:{line}: is not UTF-8 (byte {error.start + 1}).", f"Save {name} as UTF-8."
        ) from None


def _syntax_error(error: json.JSONDecodeError, name: str) -> ConfigError:
    words = (words for start, words in _EXPECTED.items() if error.msg.startswith(start))
    expected = next(words, "JSON")
    found = error.doc[error.pos : error.pos + 1]
    shown = f"`{found}`" if found.isprintable() else f"U+{ord(found):04X}"
    described = {"": "the end of the file", "\n": "the end of the line"}.get(found, shown)
    return ConfigError(
        f"{name}:{error.lineno}:{error.colno}: found {described}; expected {expected}.",
        f"Fix line {error.lineno} of {name}. {_SYNTAX}",
    )


def _too_deep(name: str) -> ConfigError:
    return ConfigError(f"{name}: is nested too deeply; no setting is.", _FIX)


def _refuse_oddities(document: object, name: str) -> None:
    """Refuse a top level that is no object, nesting without end, and keys that stand twice."""
    if not isinstance(document, dict):
        raise ConfigError(
            f"{name}: holds {kind_of(document)}; expected a JSON object.",
            'Put the settings in braces: {"maximumIterations": 10}',
        )
    doubled: list[str] = []
    for path, value in walk(document):
        if len(path) > _DEEPEST:
            raise _too_deep(name)
        if isinstance(value, _Doubled):
            doubled.extend(dotted((*path, key)) for key in value.doubled)
    if doubled:
        lines = (f"{name}: {place}: stands there twice." for place in sorted(doubled)[:MOST_TOLD])
        raise ConfigError("\n".join(lines), "Keep one of them; Ralph does not guess which.")


def normalized(document: Json) -> Json:
    """The same with one spelling: `failAction` in capitals, `cached` under its other name."""
    guardrails = document.get("guardrails")
    for guardrail in guardrails if isinstance(guardrails, list) else ():
        action = guardrail.get("failAction") if isinstance(guardrail, dict) else None
        if isinstance(action, str) and action.upper() in Placement.__members__:
            guardrail["failAction"] = action.upper()
    agent = document.get("agent")
    prices = agent.get("prices") if isinstance(agent, dict) else None
    if isinstance(prices, dict) and "cached" in prices and "cacheRead" not in prices:
        prices["cacheRead"] = prices.pop("cached")
    return document


def kind_of(value: object) -> str:
    kinds = {
        type(None): "null",
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "text",
        list: "a list",
        tuple: "a list",
    }
    return kinds.get(type(value), "an object")
