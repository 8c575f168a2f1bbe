"""What was spent, by day and by run: two small tables, or a dict for programs."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

from ralph.journal.spending import LedgerEntry, Sum, by_day, by_run, total
from ralph.text.words import counted, money, number
from ralph.ui.status.report import tokens_dict

_DAYS = 14
_RUNS = 10
_DAY = 86_400
_COLUMNS = ("cost", "tokens in", "tokens out", "turns")


def spending_lines(entries: Sequence[LedgerEntry], now: float) -> list[str]:
    """The last days and runs with what they cost, newest last, and everything together."""
    if not entries:
        return ["Nothing was spent here yet, as far as agents told."]
    days = _last_days(now)
    recent = [entry for entry in _in_order(entries) if _day(entry.time) in days]
    runs = _latest_runs(entries)
    since = _day(min(entry.time for entry in entries))
    return [
        *_table(f"The last {_DAYS} days", "day", by_day(recent, _day), total(recent)),
        "",
        *_table(f"The last {_RUNS} runs", "run", by_run(runs), total(runs)),
        "",
        f"In all since {since}: {_in_words(total(entries))}",
        *_footnote(entries),
    ]


def spending_dict(entries: Sequence[LedgerEntry]) -> dict[str, Any]:
    """Every day and every run, oldest first, and everything together."""
    days, runs = by_day(_in_order(entries), _day), by_run(_in_order(entries))
    first = {entry.run: entry for entry in reversed(_in_order(entries))}
    return {
        "days": [{"day": day, **_as_dict(spent)} for day, spent in days.items()],
        "runs": [{"run": run, **_origin(first[run]), **_as_dict(runs[run])} for run in runs],
        "total": _as_dict(total(entries)),
    }


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(moment))


def _last_days(now: float) -> frozenset[str]:
    """From noon to noon, so that a day of 23 hours is not passed over."""
    noon = time.mktime((*time.localtime(now)[:3], 12, 0, 0, 0, 0, -1))
    return frozenset(_day(noon - back * _DAY) for back in range(_DAYS))


def _in_order(entries: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    return sorted(entries, key=lambda entry: entry.time)


def _latest_runs(entries: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    names = list(dict.fromkeys(entry.run for entry in reversed(_in_order(entries))))[:_RUNS]
    return [entry for entry in _in_order(entries) if entry.run in names]


def _table(title: str, key: str, sums: dict[str, Sum], together: Sum) -> list[str]:
    if not sums:
        return [f"{title}: nothing."]
    named = [*sums.items(), ("total", together)]
    rows = [(key, *_COLUMNS), *((name or "?", *_cells(spent)) for name, spent in named)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [f"{title}:", *(f"  {_aligned(row, widths)}" for row in rows)]


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """The name to the left, numbers to the right."""
    return "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])


def _cells(spent: Sum) -> tuple[str, ...]:
    tokens = number(_tokens_in(spent)), number(spent.usage.output)
    return _cost(spent), *tokens, str(spent.turns)


def _cost(spent: Sum) -> str:
    """With a + where some turns did not tell: it was at least that."""
    return money(spent.cost_usd) + ("+" if spent.unknown else "") if _known(spent) else "?"


def _known(spent: Sum) -> bool:
    return not spent.turns or spent.unknown < spent.turns


def _tokens_in(spent: Sum) -> int:
    usage = spent.usage
    return usage.input + usage.cache_read + usage.cache_write


def _in_words(spent: Sum) -> str:
    tokens = f"{number(_tokens_in(spent))} tokens in, {number(spent.usage.output)} out"
    return f"{_cost(spent)}, {tokens}, {counted(spent.turns, 'turn')}."


def _footnote(entries: Sequence[LedgerEntry]) -> list[str]:
    unknown = total(entries).unknown
    if not unknown:
        return []
    return [f"{counted(unknown, 'turn')} told no cost: + and ? stand for that. See agent.prices."]


def _as_dict(spent: Sum) -> dict[str, Any]:
    return {
        "cost_usd": round(spent.cost_usd, 6) if _known(spent) else None,
        "turns_of_unknown_cost": spent.unknown,
        "tokens": tokens_dict(spent.usage),
        "turns": spent.turns,
        "seconds": round(spent.seconds, 3),
    }


def _origin(entry: LedgerEntry) -> dict[str, str]:
    return {"profile": entry.profile, "agent": entry.agent, "model": entry.model}
