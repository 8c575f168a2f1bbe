"""What was measured, for people and for programs."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.machine import Machine
from bench.rows import Row

_MET = {True: "yes", False: "no", None: ""}


@dataclass(frozen=True)
class Report:
    """One run of the bench."""

    date: str
    ralph: str  # its version, as it says it
    machine: Machine
    disk: str
    rows: tuple[Row, ...]
    contenders: tuple[str, ...]

    def table(self) -> str:
        """The table, as wide as it needs to be."""
        head = ("measure", "", *self.contenders, "ratio", "aim", "met")
        return _columns([head, *(self._cells(row) for row in self.rows)])

    def as_json(self) -> str:
        """Everything, also the rounds that the medians come from."""
        return json.dumps(
            {
                "date": self.date,
                "ralph": self.ralph,
                "machine": vars(self.machine),
                "disk": self.disk,
                "rows": [_as_object(row) for row in self.rows],
            },
            indent=1,
        )

    def _cells(self, row: Row) -> tuple[str, ...]:
        figures = (row.figures.get(name) for name in self.contenders)
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        shown = ("-" if figure is None else rounded(figure) for figure in figures)
        return (row.name, row.unit, *shown, ratio, row.aim.words(), _MET[row.met])


def rounded(figure: float) -> str:
    """Three digits, and never fewer than those before the point."""
    return f"{figure:.0f}" if figure >= 100 else f"{figure:.3g}"


def _as_object(row: Row) -> dict[str, object]:
    return {
        "name": row.name.strip(),
        "unit": row.unit,
        "figures": dict(row.figures),
        "ratio": row.ratio,
        "aim": vars(row.aim),
        "met": row.met,
        "rounds": {name: list(rounds) for name, rounds in row.rounds.items()},
    }


def _columns(rows: Iterable[Sequence[str]]) -> str:
    """The first two columns and the last two to the left, figures to the right."""
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    last = len(widths) - 2
    lines = []
    for row in table:
        cells = [
            cell.rjust(width) if 2 <= number < last else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
