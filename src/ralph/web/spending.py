"""The cost of all runs of this machine, by day. A ledger is read again when it has grown."""

from typing import Any

from ralph.journal.outline import Costs
from ralph.journal.runs import projects
from ralph.journal.spending import Sum
from ralph.ui.status.spending import day_of


class Spending:
    """Adds up what the ledgers tell."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._costs = Costs(lambda entry: day_of(entry.time))

    def told(self) -> dict[str, Any]:
        """The days in their order, and everything together."""
        days: dict[str, list[Sum]] = {}
        for project in projects(self._root):
            for day, spent in self._costs(project).items():
                days.setdefault(day, []).append(spent)
        told = [_day(day, days[day]) for day in sorted(days)]
        return {"days": told, "total_usd": round(sum(day["cost_usd"] for day in told), 6)}


def _day(day: str, sums: list[Sum]) -> dict[str, Any]:
    return {
        "day": day,
        "cost_usd": round(sum(each.cost_usd for each in sums), 6),
        "uncounted": sum(each.unknown for each in sums),
        "turns": sum(each.turns for each in sums),
        "tokens_in": sum(each.usage.all_input for each in sums),
        "tokens_out": sum(each.usage.output for each in sums),
    }
