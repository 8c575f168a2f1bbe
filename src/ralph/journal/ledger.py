"""The money ledger of a project: one line for each turn that cost something (ADR 22)."""

import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ralph.errors import StateError
from ralph.files.append import append_line
from ralph.files.safe_open import open_regular
from ralph.journal.spending import LedgerEntry, total
from ralph.kernel.events import AgentEvent, Usage
from ralph.kernel.facts import Began, Ended, Fact, Launching, Resumed, Started, Step
from ralph.kernel.turn import Role

FILE = "ledger.jsonl"
_END_OF_TIME = 253_402_300_800  # the year 10000: no calendar goes on from there
_USAGE = ("input", "output", "cache_read", "cache_write")


class Accounts:
    """Follows the facts of a run, and tells what each turn has cost. What a worker spends is its
    foreman's `run`'s."""

    def __init__(self, run: str = "") -> None:
        self._run = run
        self._started: Started | None = None
        self._iteration = 0
        self._launching: Launching | None = None
        self._tells = False  # whether the agent's stream could tell what a turn costs

    def take(self, fact: Fact) -> LedgerEntry | None:
        """One more fact; the entry of the turn that is over by it, if that may have cost
        something."""
        self._follow(fact)
        if isinstance(fact, Ended):
            turn = fact.turn
            may_have_cost = turn.uncounted and self._tells and self._launching is not None
            if turn.cost_usd or turn.usage != Usage() or may_have_cost:
                return self._entry(fact.time, Role.WORK, turn.cost_usd, turn.usage, turn.seconds)
        elif isinstance(fact, Step):
            cost = fact.cost_usd
            if cost or fact.usage != Usage() or (cost is None and self._tells):
                began = self._launching.time if self._launching else fact.time
                seconds = round(max(0.0, fact.time - began), 3)
                return self._entry(fact.time, Role.MESSAGE, cost, fact.usage, seconds)
        return None

    def _follow(self, fact: Fact) -> None:
        """Know which turn it is."""
        if isinstance(fact, Started):
            self._started = fact
        elif isinstance(fact, Resumed):
            self._launching = None
        elif isinstance(fact, Began):
            self._iteration, self._launching = fact.iteration, None
        elif isinstance(fact, Launching):
            self._launching = fact
            if fact.role is not Role.MESSAGE:
                self._tells = fact.dialect != "text"

    def _entry(
        self, time: float, role: Role, cost: float | None, usage: Usage, seconds: float
    ) -> LedgerEntry:
        started, launching = self._started, self._launching
        agent, model = (started.agent, started.model) if started else ("", "")
        if launching and launching.agent:
            agent, model = launching.agent, launching.model
        return LedgerEntry(
            time=time,
            run=self._run or (started.run if started else ""),
            profile=started.profile if started else "",
            iteration=self._iteration,
            role=launching.role if launching else role,
            agent=agent,
            model=model,
            cost_usd=cost,
            usage=usage,
            seconds=seconds,
        )


class Ledger:
    """A reader of facts that keeps what turns cost. It never disturbs the run.

    It hears each fact once, as it is recorded. `past` are the facts of a run that is resumed, which
    were written down by then. What a worker spends is its foreman's `run`'s.
    """

    def __init__(
        self, project: str, on_loss: Callable[[str], None], past: Sequence[Fact] = (), run: str = ""
    ) -> None:
        self._book = Book("ledger", os.path.join(project, FILE), on_loss)
        self._accounts = Accounts(run)
        for fact in past:
            self._accounts.take(fact)

    def on_fact(self, fact: Fact) -> None:
        """Write down what a turn cost, when it is over."""
        entry = self._accounts.take(fact)
        if entry is not None:
            self._book.add(asdict(entry))

    def on_events(self, events: Sequence[AgentEvent]) -> None:
        """Nothing: the cost of a turn is known when it is over."""


class Book:
    """A file of lines that a project keeps. One that cannot be written is told of once."""

    def __init__(self, name: str, path: str, on_loss: Callable[[str], None]) -> None:
        self._name, self._path, self._on_loss = name, path, on_loss
        self._lost = False

    def add(self, entry: Mapping[str, Any]) -> None:
        line = json.dumps(entry, separators=(",", ":")).encode() + b"\n"
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            file = os.open(self._path, flags, 0o600)
            try:
                append_line(file, line, alone=False)
            finally:
                os.close(file)
        except OSError as error:
            if not self._lost:
                self._lost = True
                why = error.strerror or error
                self._on_loss(
                    f"The {self._name} {self._path} cannot be written: {why}. The run goes on."
                )


def read_ledger(project_dir: str) -> tuple[LedgerEntry, ...]:
    """Everything that was written down, oldest first; lines that make no sense are left out."""
    path = os.path.join(project_dir, FILE)
    try:
        with open_regular(path) as file:
            return tuple(entry for line in file if (entry := _entry(line)) is not None)
    except FileNotFoundError:
        return ()
    except OSError as error:
        message = f"cannot read the ledger {path}: {error.strerror}"
        raise StateError(message, f"Look at it: ls -l {path}") from error


def _entry(line: bytes) -> LedgerEntry | None:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    time = _amount(data.get("time")) if isinstance(data, dict) else None
    if time is None or time >= _END_OF_TIME:
        return None
    words = {name: data.get(name) for name in ("run", "profile", "role", "agent", "model")}
    usage = data.get("usage")
    counts = [_count(usage.get(name)) for name in _USAGE] if isinstance(usage, dict) else []
    return LedgerEntry(
        time=time,
        iteration=_count(data.get("iteration")),
        cost_usd=_amount(data.get("cost_usd")),
        usage=Usage(*counts),
        seconds=_amount(data.get("seconds")) or 0.0,
        **{name: word if isinstance(word, str) else "" for name, word in words.items()},
    )


def _count(value: Any) -> int:  # noqa: ANN401
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _amount(value: Any) -> float | None:  # noqa: ANN401
    """A number that can be added up; None for everything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def spent_today(project: str, run: str) -> float:
    """The dollars that others have spent today, without what this run had spent on days before."""
    entries, today = read_ledger(project), time.localtime()[:3]
    spent = total(e for e in entries if time.localtime(e.time)[:3] == today).cost_usd
    return spent - total(e for e in entries if e.run == run).cost_usd
