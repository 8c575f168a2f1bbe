"""Settings of another loop on their way to ours: rules by key, and what has no place here."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from ralph.core.plain import plain
from ralph.core.redact import redacted

Json = dict[str, Any]
Rule = Callable[["Draft", str, Any], None]
Convert = Callable[[Any], Any]  # ValueError, with why, for what cannot be taken over

NO_PLACE = "Ralph has no such setting"
FOR_PROMPT = "it is for the prompt: write it into the prompt, or into AGENTS.md"
SECRET = "it may hold a secret, and those are not copied"  # noqa: S105  it holds none
_MOST = 1_000_000_000
_MOST_VALUES = 10_000
_SECRET_FLAG = re.compile(
    r"-.*(?:api[-_]?key|token|secret|passw|credential|authorization)", re.IGNORECASE
)


class Draft:
    """What is taken over so far, and what is not."""

    def __init__(self) -> None:
        self.settings: Json = {}
        self.lost: list[str] = []
        self._set_by: dict[str, str] = {}

    def lose(self, key: str, why: str) -> None:
        """A key that is not taken over. Its value is never told: it may be a secret."""
        self.lost.append(f"{plain(key, 80)}: {why}")

    def put(self, key: str, path: str, value: object) -> None:
        """Set what their key means with us; the first one that speaks of it has the word."""
        if path in self._set_by:
            self.lose(key, f"{self._set_by[path]} has set {path} already")
        elif _is_secret(value):
            self.lose(key, SECRET)
        else:
            self._set_by[path] = key
            *above, last = path.split(".")
            group = self.settings
            for name in above:
                group = group.setdefault(name, {})
            group[last] = value

    def take(self, key: str, path: str, value: object, convert: Convert) -> None:
        """Set what their value means with us, or say why that cannot be."""
        try:
            converted = convert(value)
        except ValueError as error:
            self.lose(key, str(error))
        else:
            self.put(key, path, converted)


def _is_secret(value: object) -> bool:
    words = value if isinstance(value, list) else [value]
    flags = (word for word in words if isinstance(word, str))
    return redacted(value) != value or any(
        _SECRET_FLAG.match(word) for flag in flags for word in flag.split()
    )


def walk(draft: Draft, document: Mapping[Any, Any], rules: Mapping[str, Rule]) -> None:
    """Let the rule of each key speak; what has none is lost. A rule has all that is below its
    key."""
    _Walk(draft, rules).group(document, "")


class _Walk:
    def __init__(self, draft: Draft, rules: Mapping[str, Rule]) -> None:
        self._draft, self._rules = draft, rules
        self._above = {name[:place] for name in rules for place in _dots(name)}
        self._left = _MOST_VALUES

    def group(self, document: Mapping[Any, Any], above: str) -> None:
        for name, value in document.items():
            self._left -= 1
            if self._left < 0:
                raise ValueError("it holds more than any settings do")
            self._one(f"{above}{name}", value)

    def _one(self, key: str, value: object) -> None:
        if value is None or value in ({}, [], ""):
            return  # it says nothing
        if key in self._rules:
            self._rules[key](self._draft, key, value)
        elif key in self._above and isinstance(value, dict):
            self.group(value, f"{key}.")
        else:
            self._draft.lose(key, NO_PLACE)


def _dots(name: str) -> list[int]:
    return [place for place, letter in enumerate(name) if letter == "."]


# Rules


def to(path: str, convert: Convert) -> Rule:
    """A key that means the same as ours, after its value is converted."""

    def rule(draft: Draft, key: str, value: object) -> None:
        draft.take(key, path, value, convert)

    return rule


def lost(why: str) -> Rule:
    """A key that has no place with us."""
    return lambda draft, key, _: draft.lose(key, why)


def unless_zero(rule: Rule) -> Rule:
    """0 is no limit there, as is no setting with us."""

    def checked(draft: Draft, key: str, value: object) -> None:
        if isinstance(value, bool) or value not in (0, "0"):
            rule(draft, key, value)

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


# What values become


def text(value: object) -> str:
    """Text that is not blank and that a command can be given."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("text is expected")
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError("text without NUL and broken Unicode is expected")
    return value


def texts(value: object) -> list[str]:
    """A list of such."""
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
    """A whole number, 0 or more."""
    found = number(value)
    if not isinstance(found, int) or found < 0:
        raise ValueError("a whole number, 0 or more, is expected")
    return found


def positive_count(value: object) -> int:
    """A whole number, 1 or more."""
    if not count(value):
        raise ValueError("a whole number, 1 or more, is expected")
    return count(value)


def positive(value: object, size: float = 1) -> float | int:
    """More than 0; in other units, `size` of ours each."""
    found = number(value)
    if found <= 0:
        raise ValueError("a number above 0 is expected")
    return number(found * size)


def milliseconds(value: object) -> float | int:
    """Seconds."""
    return positive(value, 0.001)


def minutes(value: object) -> float | int:
    """Seconds."""
    return positive(value, 60)


def _promise(value: object) -> str:
    found = re.fullmatch(r"\s*<(promise|response)>(.*)</\1>\s*", text(value), re.DOTALL)
    return text(found[2] if found else value).strip()
