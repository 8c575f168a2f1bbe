"""Spending by day and by run: two small tables, or a dict for programs."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any

from ralph.journal.spending import LedgerEntry, Sum, sums_by, total
from ralph.kernel.facts import with_model
from ralph.text.words import counted, money, number
from ralph.ui.style import aligned

_DAYS = 14
_RUNS = 10
_DAY = 86_400
_COLUMNS = ("cost", "tokens in", "tokens out", "turns")


def spending_lines(entries: Sequence[LedgerEntry], now: float) -> list[str]:
    """The last days and runs with what they cost, newest last, and everything together."""
    if not entries:
        return ["Nothing was spent here yet, as far as agents told."]
    entries = sorted(entries, key=attrgetter("time"))
    # From noon to noon, so that a day of 23 hours is not passed over.
    noon = time.mktime((*time.localtime(now)[:3], 12, 0, 0, 0, 0, -1))
    days = {day_of(noon - back * _DAY) for back in range(_DAYS)}
    recent = [entry for entry in entries if _day_of(entry) in days]
    names = list(dict.fromkeys(entry.run for entry in reversed(entries)))[:_RUNS]
    runs = [entry for entry in entries if entry.run in names]
    everything, agents = total(entries), sums_by(entries, _who)
    tokens = (
        f"{number(everything.usage.all_input)} tokens in, {number(everything.usage.output)} out"
    )
    in_all = f"{_cost(everything)}, {tokens}, {counted(everything.turns, 'turn')}."
    untold = f"{counted(everything.unknown, 'turn')} told no cost"
    return [
        *_table(f"The last {_DAYS} days", "day", sums_by(recent, _day_of), total(recent)),
        "",
        *_table(f"The last {_RUNS} runs", "run", sums_by(runs, attrgetter("run")), total(runs)),
        "",
        *([*_table("By agent", "agent", agents, everything), ""] if any(agents) else []),
        f"In all since {day_of(entries[0].time)}: {in_all}",
        *([f"{untold}: + and ? stand for that. See agent.prices."] if everything.unknown else []),
    ]


def spending_dict(entries: Sequence[LedgerEntry]) -> dict[str, Any]:
    """Every day and every run, oldest first, and everything together."""
    entries = sorted(entries, key=attrgetter("time"))
    first = {entry.run: entry for entry in reversed(entries)}
    origins = {
        run: {"profile": entry.profile, "agent": entry.agent, "model": entry.model}
        for run, entry in first.items()
    }
    days, runs = sums_by(entries, _day_of), sums_by(entries, attrgetter("run"))
    agents = sums_by(entries, lambda entry: (entry.agent, entry.model))
    return {
        "days": [{"day": day, **_as_dict(sum_)} for day, sum_ in days.items()],
        "runs": [{"run": run, **origins[run], **_as_dict(sum_)} for run, sum_ in runs.items()],
        "agents": [
            {"agent": agent, "model": model, **_as_dict(sum_)}
            for (agent, model), sum_ in agents.items()
        ],
        "total": _as_dict(total(entries)),
    }


def _who(entry: LedgerEntry) -> str:
    return with_model(entry.agent, entry.model)


def day_of(moment: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(moment))


def _day_of(entry: LedgerEntry) -> str:
    return day_of(entry.time)


def _table(title: str, key: str, sums: dict[str, Sum], together: Sum) -> list[str]:
    if not sums:
        return [f"{title}: nothing."]
    rows = [(key, *_COLUMNS)]
    for name, spent in (*sums.items(), ("total", together)):
        tokens = number(spent.usage.all_input), number(spent.usage.output)
        rows.append((name or "?", _cost(spent), *tokens, str(spent.turns)))
    return [f"{title}:", *(f"  {row}" for row in aligned(rows, range(1, 5)))]


def _cost(spent: Sum) -> str:
    """With a + where some turns did not tell: it was at least that."""
    return money(spent.cost_usd) + ("+" if spent.unknown else "") if _known(spent) else "?"


def _known(spent: Sum) -> bool:
    return not spent.turns or spent.unknown < spent.turns


def _as_dict(spent: Sum) -> dict[str, Any]:
    return {
        "cost_usd": round(spent.cost_usd, 6) if _known(spent) else None,
        "turns_of_unknown_cost": spent.unknown,
        "tokens": asdict(spent.usage),
        "turns": spent.turns,
        "seconds": round(spent.seconds, 3),
    }
