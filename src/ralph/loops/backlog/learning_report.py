"""Lessons of past tasks, for people and for programs (B §Logs)."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from ralph.loops.backlog.learning import Figures, Summary, TypeSummary
from ralph.text.words import duration, money
from ralph.ui.status.spending import aligned

_COLUMNS = ("type", "done", "blocked", "iterations", "time", "cost", "of estimate")
_UNNAMED = "(no type)"
_FOOTNOTE = "Iterations, time and cost: mean of a task (median)."


def learning_lines(summary: Summary) -> list[str]:
    """A table by type, and what blocked and held up those tasks."""
    rows = [_row(kind, kind.kind or _UNNAMED) for kind in summary.types]
    total = [_row(summary.together, "all")] if len(rows) > 1 else []
    return [
        *aligned([_COLUMNS, *rows, *total]),
        "",
        _FOOTNOTE,
        *(line for kind in summary.types for line in _sentences(kind)),
    ]


def _row(kind: TypeSummary, name: str) -> tuple[str, ...]:
    ratio = f"{kind.ratio.mean * 100:.0f} %" if kind.ratio else "–"
    took = (
        _cell(kind.iterations, "{:.3g}".format),
        _cell(kind.seconds, duration),
        _cell(kind.cost, money),
    )
    return (name, str(kind.done), str(kind.blocked), *took, ratio)


def _cell(figures: Figures | None, shown: Callable[[float], str]) -> str:
    return f"{shown(figures.mean)} ({shown(figures.median)})" if figures else "–"


def _sentences(kind: TypeSummary) -> list[str]:
    name = f"Tasks of type {kind.kind}" if kind.kind else "Tasks without a type"
    lines = []
    told = {"were blocked by": kind.blockers, "met most objections from": kind.gates}
    for what, counts in told.items():
        lines += ["", f"{name} {what}:"] if counts else []
        lines += [f"  {count:>3} × {which}" for which, count in counts]
    return lines


def learning_dict(summary: Summary) -> dict[str, Any]:
    """The same as one JSON object."""
    return {
        "types": [{"type": kind.kind, **_as_dict(kind)} for kind in summary.types],
        "total": _as_dict(summary.together),
    }


def _as_dict(kind: TypeSummary) -> dict[str, Any]:
    told: dict[str, Any] = {"done": kind.done, "blocked": kind.blocked}
    for name in ("iterations", "seconds", "cost", "ratio"):
        found: Figures | None = getattr(kind, name)
        told[name] = found and {key: round(number, 6) for key, number in asdict(found).items()}
    told["blockers"] = [{"reason": reason, "count": count} for reason, count in kind.blockers]
    told["gates"] = [{"gate": gate, "count": count} for gate, count in kind.gates]
    return told
