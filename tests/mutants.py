"""Plants defects in Ralph, one at a time, and looks whether the tests notice: `make mutants`.

The defects are in tests/defects, a table for each part of the program:

    @ kernel/rules.py | tests/kernel tests/loops | a limit counts one turn more
    -     if state.iteration >= self.most:
    +     if state.iteration > self.most:

What stands behind `-` is in that file exactly once, and is replaced by what stands behind `+`; then
the named tests run. At least 95 % of all defects must be seen.
"""

import argparse
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLES = ROOT / "tests" / "defects"
LEAST = 0.95
_NO_TESTS = 5  # pytest's exit code
MOST_SECONDS = 400  # of tests that a defect may have made endless
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__", "dist", ".hypothesis")


@dataclass(frozen=True)
class Defect:
    """One change of one file, and the tests that could see it."""

    where: str  # the table and the line
    file: str  # from src/ralph
    tests: tuple[str, ...]
    what: str
    before: str = ""
    after: str = ""

    @property
    def name(self) -> str:
        return f"{self.file}: {self.what}"


class TableError(Exception):
    """A row that cannot be used, with its place."""


def defects() -> list[Defect]:
    """All rows of all tables."""
    return [defect for path in sorted(TABLES.glob("*.txt")) for defect in read(path)]


def read(path: Path) -> Iterator[Defect]:
    """The rows of a table."""
    rows: list[tuple[str, list[str], list[str]]] = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.startswith("@ "):
            rows.append((f"{path.name}:{number} {line[2:]}", [], []))
        elif line[:1] in ("-", "+") and rows:
            (rows[-1][1] if line[0] == "-" else rows[-1][2]).append(line[2:])
        elif line and not line.startswith("#"):
            raise TableError(f"{path.name}:{number}: it begins with none of @ - + #")
    for head, old, new in rows:
        place, _, rest = head.partition(" ")
        parts = [part.strip() for part in rest.split("|")]
        if len(parts) != 3 or not old:
            raise TableError(f"{place}: wanted: @ FILE | TESTS | WHAT, then lines with - and +")
        before, after = "\n".join(old), "\n".join(new)
        yield Defect(place, parts[0], tuple(parts[1].split()), parts[2], before, after)


def planted(defect: Defect, text: str) -> str:
    """The text of the file with the defect in it."""
    if (found := text.count(defect.before)) != 1:
        raise TableError(f"{defect.where}: its lines are {found} times in {defect.file}")
    return text.replace(defect.before, defect.after)


class Copies:
    """Copies of the whole tree, one for each defect that is tried at the same time."""

    def __init__(self, place: str, number: int) -> None:
        self._free: queue.Queue[Path] = queue.Queue()
        for each in range(number):
            copy = Path(place) / f"copy-{each}"
            shutil.copytree(ROOT, copy, ignore=LEFT_OUT, symlinks=True)
            self._free.put(copy)

    def sees(self, defect: Defect) -> tuple[bool, float]:
        """Whether a test fails with the defect in place, and the seconds that took."""
        copy = self._free.get()
        path = copy / "src" / "ralph" / defect.file
        sound = path.read_text("utf-8")
        began = time.monotonic()
        try:
            path.write_text(planted(defect, sound), "utf-8")
            code = tested(copy, defect.tests)
        finally:
            path.write_text(sound, "utf-8")
            self._free.put(copy)
        if code not in (0, 1):
            raise TableError(f"{defect.where}: pytest exits with code {code}")
        return code == 1, time.monotonic() - began

    def are_sound(self, tests: tuple[str, ...]) -> bool:
        """Whether these tests pass as things are."""
        copy = self._free.get()
        try:
            return tested(copy, tests) == 0
        finally:
            self._free.put(copy)


def tested(copy: Path, tests: tuple[str, ...]) -> int:
    """Pytest's exit code, first of the tests of every commit, then of those that take long."""
    return _tested(copy, tests, "not slow") or _tested(copy, tests, "slow")


def _tested(copy: Path, tests: tuple[str, ...], which: str) -> int:
    """0 also where there are none; tests that do not end have noticed something."""
    words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    paths = os.pathsep.join(str(copy / name) for name in ("src", "tests", "tests/e2e"))
    env = {**os.environ, "PYTHONPATH": paths}
    marks = ["-m", f"{which} and not agents and not faults and not web"]
    with subprocess.Popen(
        [*words, *marks], cwd=copy, env=env, stdout=subprocess.DEVNULL, start_new_session=True
    ) as running:
        try:
            code = running.wait(MOST_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, 9)
            return 1
    return 0 if code == _NO_TESTS else code


def main(words: list[str]) -> int:
    """Try the defects whose names hold one of the words, or all; 1 if too few are seen."""
    parser = argparse.ArgumentParser("mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", nargs="*", help="only defects with this in their file or words")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, help="so many at a time")
    parser.add_argument(
        "--check", action="store_true", help="only look whether they can be planted"
    )
    asked = parser.parse_args(words)
    try:
        chosen = [d for d in defects() if not asked.part or any(p in d.name for p in asked.part)]
        for defect in chosen:
            planted(defect, (ROOT / "src" / "ralph" / defect.file).read_text("utf-8"))
        if asked.check:
            print(f"{len(chosen)} defects can be planted")
            return 0
        return tried(chosen, asked.j)
    except (TableError, OSError) as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2


def tried(chosen: list[Defect], number: int) -> int:
    """Plant them one by one and print what became of each; the exit code."""
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as place,
        ThreadPoolExecutor(number) as pool,
    ):
        copies = Copies(place, number)
        names = sorted({defect.tests for defect in chosen})
        for tests, sound in zip(names, pool.map(copies.are_sound, names), strict=True):
            if not sound:
                raise TableError(f"{' '.join(tests)} fail without any defect")
        unseen = 0
        for defect, (seen, took) in zip(chosen, pool.map(copies.sees, chosen), strict=True):
            unseen += not seen
            print(f"{'seen  ' if seen else 'UNSEEN'} {took:5.1f} s  {defect.name}", flush=True)
    share = 1 - unseen / len(chosen) if chosen else 0.0
    print(f"{len(chosen) - unseen} of {len(chosen)} defects seen: {share:.1%}")
    return 0 if share >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
