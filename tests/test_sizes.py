"""Functions and modules stay small (STYLE §12). `python tests/test_sizes.py` prints the table."""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
LONGEST_FUNCTION = 50
LONGEST_MODULE = 600
MEDIAN_FUNCTION = 10
MEDIAN_MODULE = 150
DIRECTORIES = ("src", "tests", "bench")


@dataclass(frozen=True)
class Piece:
    """A function or a module, and how many lines it has."""

    where: str
    lines: int


def modules(*directories: str) -> list[Piece]:
    return [
        Piece(str(path.relative_to(ROOT)), len(path.read_text("utf-8").splitlines()))
        for path in files(*directories)
    ]


def functions(*directories: str) -> list[Piece]:
    return [piece for path in files(*directories) for piece in functions_of(path)]


def files(*directories: str) -> list[Path]:
    return [path for name in directories for path in sorted((ROOT / name).rglob("*.py"))]


@cache
def functions_of(path: Path) -> list[Piece]:
    return [
        Piece(
            f"{path.relative_to(ROOT)}:{node.lineno} {node.name}",
            (node.end_lineno or node.lineno) - node.lineno + 1,
        )
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def percentile(pieces: list[Piece], share: float) -> int:
    ordered = sorted(piece.lines for piece in pieces)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def longer(pieces: list[Piece], limit: int) -> str:
    return "\n".join(
        f"{p.where} has {p.lines} lines, {limit} allowed" for p in pieces if p.lines > limit
    )


def table() -> str:
    """Median, p90 and longest of functions and modules, for each directory."""
    rows = [f"{'':16}{'count':>7}{'median':>8}{'p90':>6}{'longest':>9}"]
    for directory in DIRECTORIES:
        for kind, pieces in (("functions", functions(directory)), ("modules", modules(directory))):
            middle = median(piece.lines for piece in pieces)
            rows.append(
                f"{directory + ' ' + kind:16}{len(pieces):>7}{middle:>8g}"
                f"{percentile(pieces, 0.9):>6}{percentile(pieces, 1):>9}"
            )
    return "\n".join(rows)


def test_no_function_is_longer_than_a_screen() -> None:
    """STYLE §12: function ≤ 50 lines, tests and bench included."""
    wrong = longer(functions(*DIRECTORIES), LONGEST_FUNCTION)
    assert not wrong, f"\n{wrong}"


def test_no_module_is_longer_than_600_lines() -> None:
    """STYLE §12: a module may have 600 lines when it is one thing, tests and bench included."""
    wrong = longer(modules(*DIRECTORIES), LONGEST_MODULE)
    assert not wrong, f"\n{wrong}"


def test_the_median_module_is_short() -> None:
    """STYLE §12: the median decides. `__init__` of a room, a docstring, does not count."""
    sizes = [p.lines for p in modules("src") if not p.where.endswith("__init__.py")]
    assert median(sizes) <= MEDIAN_MODULE, table()


def test_the_median_function_is_short() -> None:
    """STYLE §12: median function ≤ 10 lines."""
    print(table())
    assert median(piece.lines for piece in functions("src")) <= MEDIAN_FUNCTION, table()


if __name__ == "__main__":
    print(table())
