"""The moments at which a run by several workers can be killed. As a program: a `ralph` that is."""

import os
import sys
from collections import Counter
from pathlib import Path

from crash_points import act_at, name_of

from ralph.cli.main import run_command_line
from ralph.journal.journal import FileJournal, read_journal
from ralph.kernel.facts import Assigned, Began, Fact, Returned

CrewPoint = tuple[
    str, str, int, str
]  # before or after, the worker or "", the iteration, the record


def points_of(run_dir: Path) -> list[CrewPoint]:
    """Before and after every record of the foreman and of each worker, in the order of time."""
    found = list[tuple[float, CrewPoint]]()
    for journal in (run_dir / "journal.jsonl", *run_dir.glob("runs/*/journal.jsonl")):
        names, number, last = Names(), _worker(str(journal)), 0.0
        for fact in read_journal(str(journal))[0]:
            last = max(last, fact.time)
            here = names.after(fact)
            found += [(last, (when, number, *here)) for when in ("before", "after")]
    found.sort(key=lambda each: each[0])
    return [point for _, point in found][1:]  # before the first there is nothing to go on with


class Names:
    """Each record of a journal by its iteration and a name, which it has once in there."""

    def __init__(self) -> None:
        self._iteration = 0
        self._counts = Counter[str]()

    def after(self, fact: Fact) -> tuple[int, str]:
        """The next one's."""
        if isinstance(fact, Began):
            self._iteration = fact.iteration
            self._counts.clear()
        name = _name(fact)
        self._counts[name] += 1
        count = self._counts[name]
        return self._iteration, name if count == 1 else f"{name} {count}"


def _worker(journal: str) -> str:
    name = os.path.basename(os.path.dirname(journal))
    return name.rpartition("-")[2] if "/runs/" in journal.split("/runs/", 1)[-1] else ""


def _name(fact: Fact) -> str:
    if isinstance(fact, Assigned):
        return f"Assigned {fact.assignment.task}"
    return f"Returned {fact.task}" if isinstance(fact, Returned) else name_of(fact)


def end_at(point: CrewPoint, act: str) -> None:
    """Have this process end, in one way or another, when any of its journals comes to a point."""
    journals: dict[str, Names] = {}

    def where(journal: FileJournal, fact: Fact) -> tuple[object, ...]:
        if journal.path not in journals:
            names = journals[journal.path] = Names()
            facts = read_journal(journal.path)[0] if os.path.getsize(journal.path) else []
            for each in facts:
                names.after(each)
        return _worker(journal.path), *journals[journal.path].after(fact)

    act_at(point, where, act)


if __name__ == "__main__":
    act, when, worker, iteration, name, *arguments = sys.argv[1:]
    end_at((when, worker, int(iteration), name), act)
    sys.exit(run_command_line(arguments))
