"""Ids of tasks: the next one of a backlog, and those that a person may have meant."""

import re
from collections import Counter
from collections.abc import Collection, Iterable

from ralph.errors import ConfigError

_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})", re.DOTALL)
_FIRST = ("T-", "001")
_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])")
_CLOSE_ENOUGH = 0.4  # ids are short
_MOST_COMPARED = 5000  # to compare more takes longer than a person waits for an error


def next_id(ids: Iterable[str]) -> str:
    """The number after the highest of the commonest prefix, as wide as that: RALPH-013 after
    RALPH-012. T-001 where no id ends in a number."""
    found = [(m[1], m[2]) for m in map(_NUMBERED.fullmatch, ids) if m]
    if not found:
        return "".join(_FIRST)
    prefix = Counter(p for p, _ in found).most_common(1)[0][0]
    highest = max((n for p, n in found if p == prefix), key=int)
    return f"{prefix}{int(highest) + 1:0{len(highest)}}"


def nearest(wanted: str, ids: Collection[str]) -> list[str]:
    """At most three ids that look like it, the best first."""
    import difflib

    same = [i for i in ids if _bare(i) == _bare(wanted)]
    if same:
        return same[:3]
    near = ids if len(ids) <= _MOST_COMPARED else [i for i in ids if _alike(wanted, i)]
    return difflib.get_close_matches(wanted, list(near)[:_MOST_COMPARED], 3, _CLOSE_ENOUGH)


def _bare(task_id: str) -> str:
    """Without capitals and the zeros in front of a number."""
    return _ZEROS.sub("", task_id.casefold())


def _alike(one: str, other: str) -> bool:
    """One letter was slipped in, left out or mistaken, at most; roughly."""
    return abs(len(one) - len(other)) < 2 and (one[-3:] == other[-3:] or one[:-2] == other[:-2])


def unknown(wanted: str, ids: Collection[str]) -> ConfigError:
    """What to say of an id that is not there."""
    near = nearest(wanted, ids)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    shown = wanted if len(wanted) <= 80 else f"{wanted[:79]}…"
    return ConfigError(f"there is no task {shown}", f"{hint}All of them: ralph tasks list")
