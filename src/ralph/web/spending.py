"""The cost of all runs of this machine, by day. A ledger is read again when it has grown."""

import os
import time
from typing import Any

from ralph.errors import StateError
from ralph.files.state_dir import lstat
from ralph.journal.ledger import FILE, read_ledger
from ralph.journal.runs import projects
from ralph.journal.spending import Sum, sums_by


class Spending:
    """Adds up what the ledgers tell."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known: dict[str, tuple[object, dict[str, Sum]]] = {}

    def told(self) -> dict[str, Any]:
        """The days in their order, and everything together."""
        days: dict[str, list[Sum]] = {}
        for project in projects(self._root):
            for day, spent in self._days_of(project).items():
                days.setdefault(day, []).append(spent)
        told = [_day(day, days[day]) for day in sorted(days)]
        return {"days": told, "total_usd": round(sum(day["cost_usd"] for day in told), 6)}

    def _days_of(self, project: str) -> dict[str, Sum]:
        seen = lstat(os.path.join(project, FILE))
        stamp = (seen.st_mtime_ns, seen.st_size) if seen else None
        known = self._known.get(project)
        if known is None or known[0] != stamp:
            try:
                entries = read_ledger(project)
            except StateError:
                entries = ()
            known = (stamp, sums_by(entries, lambda entry: _day_of(entry.time)))
            self._known[project] = known
        return known[1]


def _day(day: str, sums: list[Sum]) -> dict[str, Any]:
    return {
        "day": day,
        "cost_usd": round(sum(each.cost_usd for each in sums), 6),
        "uncounted": sum(each.unknown for each in sums),
        "turns": sum(each.turns for each in sums),
        "tokens_in": sum(each.usage.all_input for each in sums),
        "tokens_out": sum(each.usage.output for each in sums),
    }


def _day_of(moment: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(moment))
