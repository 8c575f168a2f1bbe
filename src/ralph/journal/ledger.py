"""The money ledger of a project: one line for each turn that cost something (ADR 22)."""

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from ralph.errors import StateError
from ralph.files.append import append_line
from ralph.journal.spending import Entry
from ralph.kernel.events import AgentEvent, Usage
from ralph.kernel.facts import Began, Ended, Fact, Launching, Resumed, Started, Step
from ralph.kernel.turn import Role, Turn

FILE = "ledger.jsonl"
_END_OF_TIME = 253_402_300_800  # the year 10000: no calendar goes on from there
_USAGE = ("input", "output", "cache_read", "cache_write")


class Ledger:
    """A reader of facts that keeps what turns cost. It never disturbs the run.

    It hears each fact once, as it is recorded. `past` are the facts of a run that is resumed, which
    were written down by then. What a worker spends is its foreman's `run`'s.
    """

    def __init__(
        self,
        project: str,
        on_loss: Callable[[str], None],
        past: Sequence[Fact] = (),
        run: str = "",
    ) -> None:
        self._path = os.path.join(project, FILE)
        self._on_loss = on_loss
        self._lost = False
        self._run = run
        self._started: Started | None = None
        self._iteration = 0
        self._launching: Launching | None = None
        self._tells = False  # whether the agent's stream could tell what a turn costs
        for fact in past:
            self._follow(fact)
        self._launching = None

    def on_fact(self, fact: Fact) -> None:
        """Write down what a turn cost, when it is over."""
        self._follow(fact)
        match fact:
            case Ended(turn=turn) if self._is_due(turn):
                self._enter(fact.time, Role.WORK, turn.cost_usd, turn.usage, turn.seconds)
            case Step(cost_usd=cost) if cost or fact.usage != Usage() or self._owes(cost):
                began = self._launching.time if self._launching else fact.time
                seconds = round(max(0.0, fact.time - began), 3)
                self._enter(fact.time, Role.MESSAGE, cost, fact.usage, seconds)
            case _:
                pass

    def _follow(self, fact: Fact) -> None:
        """Know which turn it is."""
        match fact:
            case Started():
                self._started = fact
            case Resumed():
                self._launching = None
            case Began():
                self._iteration, self._launching = fact.iteration, None
            case Launching():
                self._launching = fact
                if fact.role is not Role.MESSAGE:
                    self._tells = fact.dialect != "text"
            case _:
                pass

    def on_events(self, events: Sequence[AgentEvent]) -> None:
        """What a turn costs is known when it is over."""

    def _owes(self, cost: float | None) -> bool:
        return cost is None and self._tells

    def _is_due(self, turn: Turn) -> bool:
        """A turn that cost something, or may have: an agent that tells was cut off before."""
        tells = self._launching is not None and self._tells
        return bool(turn.cost_usd) or turn.usage != Usage() or (tells and turn.uncounted)

    def _enter(
        self, time: float, role: Role, cost: float | None, usage: Usage, seconds: float
    ) -> None:
        started, launching = self._started, self._launching
        entry = Entry(
            time=time,
            run=self._run or (started.run if started else ""),
            profile=started.profile if started else "",
            iteration=self._iteration,
            role=launching.role if launching else role,
            agent=started.agent if started else "",
            model=started.model if started else "",
            cost_usd=cost,
            usage=usage,
            seconds=seconds,
        )
        try:
            _append(self._path, _line(entry))
        except OSError as error:
            self._say_once(error)

    def _say_once(self, error: OSError) -> None:
        if not self._lost:
            self._lost = True
            why = error.strerror or error
            self._on_loss(f"The ledger {self._path} cannot be written: {why}. The run goes on.")


def _append(path: str, line: bytes) -> None:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        append_line(file, line, alone=False)
    finally:
        os.close(file)


def _line(entry: Entry) -> bytes:
    return json.dumps(asdict(entry), separators=(",", ":")).encode() + b"\n"


def read_ledger(project_dir: str) -> tuple[Entry, ...]:
    """Everything that was written down, oldest first; lines that make no sense are left out."""
    path = os.path.join(project_dir, FILE)
    try:
        with open(path, "rb") as file:
            entries = [entry for line in file if (entry := _entry(line)) is not None]
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise StateError(
            f"cannot read the ledger {path}: {error.strerror}", f"Look at it: ls -l {path}"
        ) from error
    return tuple(entries)


def _entry(line: bytes) -> Entry | None:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    time = _amount(data.get("time"))
    if time is None or time >= _END_OF_TIME:
        return None
    words = {name: _word(data.get(name)) for name in ("run", "profile", "role", "agent", "model")}
    return Entry(
        time=time,
        iteration=_count(data.get("iteration")),
        cost_usd=_amount(data.get("cost_usd")),
        usage=_usage(data.get("usage")),
        seconds=_amount(data.get("seconds")) or 0.0,
        **words,
    )


def _usage(value: Any) -> Usage:  # noqa: ANN401  JSON is what it is
    if not isinstance(value, dict):
        return Usage()
    return Usage(*(_count(value.get(name)) for name in _USAGE))


def _word(value: Any) -> str:  # noqa: ANN401
    return value if isinstance(value, str) else ""


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
