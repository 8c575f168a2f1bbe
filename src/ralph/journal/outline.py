"""A run in outline, from the two ends of its journal: quick enough for a list of a thousand runs.

What stands between is neither read nor checked; where the ends do not tell, all of it is.
"""

import json
import os
from collections.abc import Callable, Mapping
from operator import attrgetter

from ralph.errors import StateError
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import stamp_of
from ralph.journal.codec import decode_fact
from ralph.journal.ledger import FILE, read_ledger
from ralph.journal.runs import NONSENSE, Run, account_of
from ralph.journal.spending import LedgerEntry, Sum, sums_by
from ralph.kernel.facts import Began, Fact, Resumed, Settled, Started
from ralph.kernel.value import value
from ralph.kernel.verdict import Stop

_TAIL = 1 << 16  # bytes
_LARGEST = 1 << 20  # bytes of the first line, which holds the settings
_BEGAN, _RESUMED = b'{"type":"began",', b'{"type":"resumed",'
_SENT = b'{"type":"assigned",'


@value
class Outline:
    """The beginning and the end of a run; `stop` is None for one that said no last word."""

    started: Started | None = None
    stop: Stop | None = None
    iterations: int = 0
    most: int | None = None  # its limit of them
    time: float = 0.0  # of its last fact
    problem: str = ""


def outline_of(run: Run) -> Outline:
    """The outline of a run, whatever state it is in."""
    try:
        found = _from_ends(run)
    except (OSError, RecursionError, *NONSENSE):
        found = None
    if found is not None:
        return found
    account = account_of(run)
    state = account.state
    spent, most = state.spent.iterations, state.limits.iterations
    return Outline(account.started, state.stop, spent, most, state.time, account.problem)


def _from_ends(run: Run) -> Outline | None:
    """None where the ends do not tell: of a run by a crew, after a very long turn, or where limits
    were raised in between."""
    with open_regular(run.journal) as file:
        first = file.readline(_LARGEST)
        size = file.seek(0, os.SEEK_END)
        begin = file.seek(max(len(first), size - _TAIL))
        tail = file.read(_TAIL)
    *lines, _ = tail.split(b"\n")  # what follows the last newline was torn off
    is_whole = begin == len(first)
    started, last = _fact(first), _fact(lines[-1] if lines else first)
    if not first.endswith(b"\n") or not isinstance(started, Started) or started.workers > 1:
        return None
    whole = lines[not is_whole :]
    began = [line for line in whole if line.startswith(_BEGAN)]
    if (not began and not is_whole) or any(line.startswith(_SENT) for line in whole):
        return None
    resumed = [_fact(line) for line in whole if line.startswith(_RESUMED)]
    limits = [fact.limits for fact in resumed if isinstance(fact, Resumed) and fact.limits]
    most = [started.limits, *limits][-1].iterations
    turn = _fact(began[-1]) if began else None
    verdict = last.verdict if isinstance(last, Settled) else None
    stop = verdict if isinstance(verdict, Stop) else None
    iterations = turn.iteration if isinstance(turn, Began) else 0
    if most is not None and iterations > most:
        return None
    return Outline(started, stop, iterations, most, last.time)


def _fact(line: bytes) -> Fact:
    return decode_fact(json.loads(line))


class Costs:
    """What the runs that are kept at a place have cost, as its ledger tells: by run, or by another
    key. A ledger is read again when it has changed; one that cannot be read tells nothing."""

    def __init__(self, key_of: Callable[[LedgerEntry], str] = attrgetter("run")) -> None:
        self._key_of = key_of
        self._known: dict[str, tuple[object, Mapping[str, Sum]]] = {}

    def __call__(self, project: str) -> Mapping[str, Sum]:
        stamp, known = stamp_of(os.path.join(project, FILE)), self._known.get(project)
        if known is None or known[0] != stamp:
            known = self._known[project] = stamp, self._read(project)
        return known[1]

    def _read(self, project: str) -> Mapping[str, Sum]:
        try:
            return sums_by(read_ledger(project), self._key_of)
        except StateError:
            return {}
