"""Labels below an item of a checklist (`Tags: a, b`): what markdown has no sign of its own for.

They are the last paragraph of an item's text, and mean something only if all of them do: whatever
else people write there is text.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ralph.formats.base import split_at
from ralph.kernel.tasks import completion

NUMBER = "(higher first)"  # so that nobody's "Priority: 1" is taken for a low one
AFTER = "After"
WAITS = (AFTER, "Depends on", "Blocked by", "Dependencies")
ID = "Id"
UNBOXED = ("blocked", "review")  # statuses for which there is no box
_PRIORITY = re.compile(rf"(-?[0-9]{{1,15}}) {re.escape(NUMBER)}")
_ESTIMATE = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?([smhd]?)")
_LIMIT = re.compile(r"(maxIterations|maxTime|maxCost) ([0-9.e+]{1,30})")
_URL = re.compile(r"https?://\S+")
_STATUS = re.compile("|".join(UNBOXED))
_NOTES = "Notes:\n"


def listed(label: str) -> list[str]:
    return [part for one in label.split(",") if (part := one.strip())]


def _matched(pattern: re.Pattern[str], words: str) -> re.Match[str]:
    found = pattern.fullmatch(words)
    if found is None:
        raise ValueError(words)
    return found


def _completion(words: str) -> dict[str, object]:
    rule = completion.spelled(words)
    completion.parse(rule, "")
    return rule


def _limits(words: str) -> dict[str, Any]:
    found = [_matched(_LIMIT, one) for one in listed(words)]
    limits = {one[1]: json.loads(one[2]) for one in found}
    completion.parse_limits(limits)
    return limits


_MEANINGS: Mapping[str, tuple[str, Callable[[str], Any]]] = {  # our field, and how it is read
    "Tags": ("tags", listed),
    "Type": ("type", str),
    "Priority": ("priority", lambda words: int(_matched(_PRIORITY, words)[1])),
    "Status": ("status", lambda words: _matched(_STATUS, words)[0]),
    "Estimate": ("estimate", lambda w: w if _matched(_ESTIMATE, w)[1] else json.loads(w)),
    "Completion": ("completion", _completion),
    "Limits": ("limits", _limits),
    "External id": ("externalId", str),
    "Url": ("externalUrl", lambda words: _matched(_URL, words)[0]),
}
_LABEL = re.compile(rf"({'|'.join((*WAITS, ID, *_MEANINGS))}): +(\S.*)")


def split_labels(text: str) -> tuple[str, dict[str, str]]:
    """A text without the labels at its end, and these."""
    body, _, last = text.rpartition("\n\n")
    found = [_LABEL.fullmatch(line) for line in last.split("\n")]
    labels = {label[1]: label[2].rstrip() for label in found if label}
    return (body.rstrip("\n"), labels) if len(labels) == len(found) else (text, {})


def fields_of(labels: Mapping[str, str]) -> dict[str, Any]:
    """The fields that labels set, with our names; ValueError where one of them says nothing."""
    waits = [one for name in WAITS for one in listed(labels.get(name, ""))]
    said = {
        _MEANINGS[name][0]: _MEANINGS[name][1](words)
        for name, words in labels.items()
        if name in _MEANINGS
    }
    return said | ({"blockedBy": waits} if waits else {})


def label(name: str, content: object) -> str | None:
    """A label that says this of a field; None if none would."""
    field, meaning = _MEANINGS[name]
    match field, content:
        case "priority", _:
            words = f"{content} {NUMBER}"
        case "completion", dict():
            words = _rule(content)
        case "limits", dict():
            words = ", ".join(f"{name} {amount}" for name, amount in content.items())
        case _:
            words = str(content)
    line = f"{name}: {words}"
    found = _LABEL.fullmatch(line)
    try:
        same = found is not None and meaning(found[2].rstrip()) == content
    except ValueError:
        same = False
    return line if same else None


def field_of(name: str) -> str:
    return _MEANINGS[name][0]


def _rule(rule: Mapping[str, Any]) -> str:
    """A rule as people write it behind `--completion`, where that says all of it."""
    named = {"command": "test", "grep": "grep", "path": "file", "script": "validate"}
    short = [f"{named[name]}:{words}" for name, words in rule.items() if name in named]
    plain = short[0] if len(short) == 1 and str(short[0]).isprintable() else ""
    with suppress(ValueError):
        if plain and completion.spelled(plain) == rule:
            return plain
    return json.dumps(rule, ensure_ascii=True)


def can_be_listed(word: str) -> bool:
    """True if it is read again among the values of a label; `/` begins what has no name."""
    clear = "," not in word and word == word.strip() and word.isprintable()
    return clear and bool(word) and word[0] != "/"


def with_notes(text: str, notes: str) -> str:
    """A text with what people have written to it since, as its end."""
    return paragraphs((text, f"{_NOTES}{notes}" if notes.strip() else ""))


def without_notes(text: str) -> tuple[str, str]:
    before, notes = split_at(text, _NOTES)
    return (before.rstrip("\n"), notes) if notes.strip() else (text, "")


def paragraphs(parts: Sequence[str]) -> str:
    """Those that are not empty, one below the other."""
    return "\n\n".join(part for part in parts if part)
