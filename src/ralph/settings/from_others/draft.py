"""Settings of another loop on their way to ours: rules by key, and what has no place here."""

import math
import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ralph.agents.kinds import KINDS, PROGRAMS
from ralph.settings.load import merge
from ralph.settings.paths import Json, nested
from ralph.text.plain import plain
from ralph.text.redact import redacted

Rule = str | Callable[["Draft", str, Any], None]  # why a key is lost, or what to do with it
Convert = Callable[[Any], Any]  # ValueError, with why, for what cannot be taken over

NO_PLACE = "Ralph has no such setting"
FOR_PROMPT = "it is for the prompt: write it into the prompt, or into AGENTS.md"
SECRET = "it may hold a secret, and those are not copied"  # noqa: S105  it holds none
_ALIASES = {"claude-code": "claude", "cursor": "cursor-agent"}
_MOST = 1_000_000_000
_MOST_VALUES = 10_000
_SECRET_FLAG = re.compile(
    r"-.*(?:api[-_]?key|token|secret|passw|credential|authorization)", re.IGNORECASE
)


@dataclass
class Draft:
    """The settings of another loop in our words, so far, and the keys that are not taken over."""

    loop: str
    settings: Json = field(default_factory=dict)  # as settings.json has them
    lost: list[str] = field(default_factory=list)  # keys, each with why
    _set_by: dict[str, str] = field(default_factory=dict)

    def lose(self, key: str, why: str) -> None:
        """Note a key that is not taken over. Its value is never told: it may be a secret."""
        self.lost.append(f"{plain(key, 80)}: {why}")

    def put(self, key: str, path: str, value: object) -> None:
        """Set our setting for their key; the first one that speaks of it has the word."""
        words = value if isinstance(value, list) else [value]
        flags = [word for each in words if isinstance(each, str) for word in each.split()]
        if path in self._set_by:
            self.lose(key, f"{self._set_by[path]} has set {path} already")
        elif redacted(value) != value or any(map(_SECRET_FLAG.match, flags)):
            self.lose(key, SECRET)
        else:
            self._set_by[path] = key
            self.settings = merge(self.settings, nested(path.split("."), value))

    def take(self, key: str, path: str, value: object, convert: Convert) -> None:
        """Set our setting from their value, or note why that cannot be."""
        try:
            converted = convert(value)
        except ValueError as error:
            self.lose(key, str(error))
        else:
            self.put(key, path, converted)


def walk(
    draft: Draft, document: Mapping[Any, Any], rules: Mapping[str, Rule], place: str = ""
) -> None:
    """Let the rule of each key speak; it has all below its key. A key without a rule is lost.
    People are told the `place` of the document in front of each key."""
    above = {name[:at] for name in rules for at, letter in enumerate(name) if letter == "."}
    left = _MOST_VALUES

    def group(document: Mapping[Any, Any], prefix: str) -> None:
        nonlocal left
        for name, value in document.items():
            left -= 1
            if left < 0:
                raise ValueError("it holds more than any settings do")
            key = f"{prefix}{name}"
            if value is None or value in ({}, [], ""):
                continue  # it says nothing
            rule = rules.get(key, NO_PLACE)
            if not isinstance(rule, str):
                rule(draft, f"{place}{key}", value)
            elif key in above and isinstance(value, dict):
                group(value, f"{key}.")
            else:
                draft.lose(f"{place}{key}", rule)

    group(document, "")


# Rules


def rows(table: Mapping[str, Rule]) -> dict[str, Rule]:
    """The rules of a table, each with the keys that it is for."""
    return {key: rule for keys, rule in table.items() for key in keys.split()}


def to(path: str, convert: Convert) -> Rule:
    """A key that means the same as ours, after its value is converted."""
    return lambda draft, key, value: draft.take(key, path, value, convert)


def nothing(*_: object) -> None:
    """Drop a key that says nothing to us."""


def limit(path: str, convert: Convert) -> Rule:
    """A limit; 0 is none there, as is no setting with us."""

    def checked(draft: Draft, key: str, value: object) -> None:
        if isinstance(value, bool) or value not in (0, "0"):
            draft.take(key, path, value, convert)

    return checked


def iterations(draft: Draft, key: str, value: object) -> None:
    """0 is without end there; with us every run has one."""
    if not isinstance(value, bool) and value in (0, "0"):
        draft.lose(key, "0 is without end; a run of Ralph has a limit, see maximumIterations")
    else:
        draft.take(key, "maximumIterations", value, positive_count)


def completion(draft: Draft, key: str, value: object) -> None:
    """The word is the same; that it stands in <response> tags here has to be told to the agent."""
    draft.take(key, "completionResponse", value, _promise)
    if draft.settings.get("completionResponse"):
        draft.settings.setdefault("tellCompletion", True)


def agent(draft: Draft, name: tuple[str, object], command: tuple[str, object] = ("", None)) -> None:
    """Take over their name for the agent, and the command that they run in its place: each with its
    key, and None where they do not say."""
    known = _ALIASES.get(name[1], name[1]) if isinstance(name[1], str) else None
    kind = known if known in KINDS else None
    if command[1]:
        key, said = command
        draft.take(key, "agent.command", said, words_or_text)
        try:
            words = [str(w) for w in said] if isinstance(said, list) else shlex.split(str(said))
        except ValueError:
            words = []
        if name[1] and kind != (os.path.basename(words[0]) if words else ""):
            draft.put(name[0], "agent.kind", kind or "text")
    elif kind in PROGRAMS:
        draft.put(name[0], "agent.command", kind)
    elif name[1] not in (None, "", "auto"):
        draft.lose(name[0], "Ralph does not know this agent; set agent.command to how it is called")


# What values become


def words_or_text(value: object) -> str | list[str]:
    """A command, as a line or as its words."""
    return texts(value) if value and isinstance(value, list) else text(value)


def text(value: object) -> str:
    """Text that is not blank and that a command can be given."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("text is expected")
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError("text without NUL and broken Unicode is expected")
    return value


def texts(value: object) -> list[str]:
    if not isinstance(value, list):
        raise ValueError("a list of texts is expected")
    return [text(item) for item in value]


def number(value: object) -> float | int:
    """A number that we can hold; whole ones as such."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a number is expected")
    if not math.isfinite(value) or abs(value) > _MOST:
        raise ValueError("the number is too large")
    return int(value) if value == int(value) else value


def count(value: object) -> int:
    found = number(value)
    if not isinstance(found, int) or found < 0:
        raise ValueError("a whole number, 0 or more, is expected")
    return found


def positive_count(value: object) -> int:
    if not count(value):
        raise ValueError("a whole number, 1 or more, is expected")
    return count(value)


def positive(value: object) -> float | int:
    found = number(value)
    if found <= 0:
        raise ValueError("a number above 0 is expected")
    return found


def milliseconds(value: object) -> float | int:
    """Seconds."""
    return number(positive(value) * 0.001)


def minutes(value: object) -> float | int:
    """Seconds."""
    return number(positive(value) * 60)


def _promise(value: object) -> str:
    found = re.fullmatch(r"\s*<(promise|response)>(.*)</\1>\s*", text(value), re.DOTALL)
    return text(found[2] if found else value).strip()
