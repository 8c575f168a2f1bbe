"""Reads the answers of forges, which may be anything, and words that go there and come from there.
Pure."""

import re
from collections.abc import Iterable
from typing import Any

from ralph.errors import ForgeError
from ralph.forge.port import Check, CheckState
from ralph.text.plain import plain, safe
from ralph.text.redact import redact

LONGEST_BODY = 65_536  # characters, at GitHub
_LONGEST_TITLE = 240  # characters; with what GitLab puts in front of a draft's
_CUT = "\n\n(cut: it was longer than a forge takes)"
_LINES = 200  # of a log
_TIME = re.compile(
    r"^\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z ?(?:\d\d[OE]\+? ?)?", re.MULTILINE
)
_SECTION = re.compile(r"^section_(?:start|end):\d+:\S*\n?", re.MULTILINE)
# The worst first: which one of several runs of the same name counts.
_WORST = (
    *(CheckState.FAILED, CheckState.PENDING, CheckState.NEUTRAL),
    *(CheckState.SKIPPED, CheckState.PASSED),
)


def objects(found: object, *path: str) -> list[dict[str, Any]]:
    """The objects in the list at this path of nested objects; nothing of what is no list."""
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def text(found: object, *path: str) -> str:
    """The text at this path of nested objects; "" where there is none."""
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""


def number(found: object, *path: str) -> int:
    """The whole number at this path; 0 where there is none."""
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def names(found: object, *path: str) -> list[str]:
    """The last of the path is a text of each object in the list that the rest leads to."""
    return [name for one in objects(found, *path[:-1]) if (name := text(one, path[-1]))]


def entry(found: object, key: str, what: str) -> dict[str, Any]:
    """The object that was asked for, which has a number."""
    if isinstance(found, dict) and number(found, key):
        return found
    raise ForgeError(f"the forge answered with what is no {what}: {plain(str(found), 80)}")


def each_once(checks: Iterable[Check]) -> tuple[Check, ...]:
    """One check of each name, in their order. Where several workflows have a job of one name, all
    must pass: the worst speaks for them."""
    worst: dict[str, Check] = {}
    for check in sorted(checks, key=lambda check: _WORST.index(check.state)):
        worst.setdefault(check.name, check)
    return tuple(worst[name] for name in sorted(worst))


def name_of(found: object, *path: str) -> str:
    """The name of a check, which is shown and compared with settings."""
    return plain(text(found, *path), 200)


def sendable(body: str, most: int = LONGEST_BODY) -> str:
    """A text that a forge takes: without secrets, and cut at the end of a line."""
    body = redact(body)
    if len(body) <= most:
        return body
    room = body[: most - len(_CUT)]
    return (room.rpartition("\n")[0] or room) + _CUT


def title_of(words: str) -> str:
    """A title that a forge takes, on one line and without secrets."""
    return plain(words, _LONGEST_TITLE)


def end_of_log(data: bytes) -> str:
    """The last lines of a log as plain text, without times, colours and secrets."""
    found = safe(data.decode("utf-8", "replace"))
    lines = _SECTION.sub("", _TIME.sub("", found)).rstrip().splitlines()
    return "\n".join(lines[-_LINES:])


def same(one: str, other: str) -> bool:
    """True if two texts are the same, whatever a forge did to the ends of their lines."""
    return one.replace("\r\n", "\n").strip() == other.replace("\r\n", "\n").strip()
