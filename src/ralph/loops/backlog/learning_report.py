"""What tasks have taught, for people and for programs (B §Logs)."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from ralph.loops.backlog.learning import Counts, Figures, Summary, TypeSummary
from ralph.text.words import duration, money

_COLUMNS = ("type", "done", "blocked", "iterations", "time", "cost", "of estimate")
_UNNAMED = "(no type)"
_FOOTNOTE = "Iterations, time and cost: mean of a task (median)."


def learning_lines(summary: Summary) -> list[str]:
    """A table by type, and what blocked and held up those tasks."""
    rows = [_row(kind, kind.kind or _UNNAMED) for kind in summary.types]
    total = [_row(summary.together, "all")] if len(rows) > 1 else []
    return [
        *_table([_COLUMNS, *rows, *total]),
        "",
        _FOOTNOTE,
        *(line for kind in summary.types for line in _sentences(kind)),
    ]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The name to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
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
    if kind.blockers:
        lines += ["", f"{name} were blocked by:", *_counted(kind.blockers)]
    if kind.gates:
        lines += ["", f"{name} met most objections from:", *_counted(kind.gates)]
    return lines


def _counted(counts: Counts) -> list[str]:
    return [f"  {count:>3} × {name}" for name, count in counts]


def learning_dict(summary: Summary) -> dict[str, Any]:
    """The same as one JSON object."""
    return {
        "types": [{"type": kind.kind, **_as_dict(kind)} for kind in summary.types],
        "total": _as_dict(summary.together),
    }


def _as_dict(kind: TypeSummary) -> dict[str, Any]:
    told: dict[str, Any] = {"done": kind.done, "blocked": kind.blocked}
    for name in ("iterations", "seconds", "cost", "ratio"):
        told[name] = _figures_dict(getattr(kind, name))
    told["blockers"] = [{"reason": reason, "count": count} for reason, count in kind.blockers]
    told["gates"] = [{"gate": gate, "count": count} for gate, count in kind.gates]
    return told


def _figures_dict(figures: Figures | None) -> dict[str, float] | None:
    if figures is None:
        return None
    return {f.name: round(getattr(figures, f.name), 6) for f in fields(figures)}
