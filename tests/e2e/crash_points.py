"""The moments at which a run can be killed. As a program: a `ralph` that is, at one of them."""

import os
import signal
import sys
from collections.abc import Callable, Iterable

from ralph.cli.main import run_command_line
from ralph.journal.journal import FileJournal, read_journal
from ralph.kernel.facts import Began, Checked, Checking, Decided, Fact, Settled, Step
from ralph.processes.signals import SignalFiles

Point = tuple[str, int, str]  # before or after, the iteration, the record


def points_of(facts: Iterable[Fact]) -> list[Point]:
    """Before and after every record; before the first there is nothing to go on with."""
    found, iteration = list[Point](), 0
    for fact in facts:
        iteration = fact.iteration if isinstance(fact, Began) else iteration
        found += [(when, iteration, name_of(fact)) for when in ("before", "after")]
    return found[1:]


def name_of(fact: Fact) -> str:
    """A record has this name once in an iteration."""
    match fact:
        case Step():
            detail = fact.key
        case Checking() | Checked():
            detail = fact.gate
        case Decided():
            detail = fact.boundary.value
        case Settled():
            detail = type(fact.verdict).__name__
        case _:
            detail = ""
    return f"{type(fact).__name__} {detail}".strip()


def kill_at(point: Point) -> None:
    """Have this process kill itself when its journal comes to a point."""
    begun = [0]

    def where(journal: FileJournal, fact: Fact) -> tuple[object, ...]:
        if not begun[0] and os.path.getsize(journal.path):
            begun[0] = points_of(read_journal(journal.path)[0])[-1][1]
        if isinstance(fact, Began):
            begun[0] = fact.iteration
        return begun[0], name_of(fact)

    act_at(point, where)


def _ask(journal: str, name: str) -> None:
    """As `ralph stop` does in another terminal; a run's own processes may not."""
    run_dir = os.path.dirname(journal)
    above = os.path.dirname(os.path.dirname(run_dir))
    foreman = above if os.path.exists(os.path.join(above, "journal.jsonl")) else run_dir
    SignalFiles(foreman).ask(name)


ACTS: dict[str, Callable[[str], None]] = {
    "KILL": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "INT": lambda _: os.kill(os.getpid(), signal.SIGINT),
    "TERM": lambda _: os.kill(os.getpid(), signal.SIGTERM),
    "STOP": lambda journal: _ask(journal, SignalFiles.STOP),
    "STOP NOW": lambda journal: _ask(journal, SignalFiles.NOW),
}


def act_at(
    point: tuple[object, ...],
    where: Callable[[FileJournal, Fact], tuple[object, ...]],
    act: str = "KILL",
) -> None:
    """Kill this process, or ask it to stop, before or after the record that `where` names so."""
    keep = FileJournal.record

    def record(journal: FileJournal, fact: Fact) -> None:
        here = where(journal, fact)
        for when in ("before", "after"):
            if when == "after":
                keep(journal, fact)
            if (when, *here) == point:
                ACTS[act](journal.path)

    setattr(FileJournal, "record", record)  # noqa: B010  a method is not to be assigned to


if __name__ == "__main__":
    when, iteration, name, *arguments = sys.argv[1:]
    kill_at((when, int(iteration), name))
    sys.exit(run_command_line(arguments))
