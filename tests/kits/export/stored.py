"""Runs on disk as they are left behind: journals with streams that agents have printed."""

import json
import os
from pathlib import Path

from ralph.agents.streams.collect import Collector
from ralph.agents.streams.dialects import parser_for
from ralph.journal.journal import FileJournal
from ralph.journal.ledger import Ledger, read_ledger
from ralph.journal.runs import Run
from ralph.journal.spending import Sum, total
from ralph.kernel.facts import Began, Decided, Ended, Fact, Launching, Settled, Started
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Role, Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Boundary, Continue, Reason, Stop

RUN = "20261119-000000-aaaa"
BEGAN = 1_795_000_000.0
PROMPT = "Write hello.txt then finish"
CAPTURES = Path(__file__).resolve().parents[2] / "captures"


def captures(agent: str) -> list[Path]:
    return sorted((CAPTURES / agent).glob("*.ndjson"))


class Stored:
    """A run that is written fact by fact, also to the ledger of its project."""

    def __init__(self, state: Path, name: str = RUN, lead: "Stored | None" = None) -> None:
        self.run: Run = Run(name, lead.run.directory if lead else str(state))
        os.makedirs(self.run.directory, exist_ok=True)
        self._journal = FileJournal(self.run.journal)
        self._lead = lead
        foreman = lead.run if lead else self.run
        self._ledger = Ledger(foreman.project, lambda _: None, run=foreman.id)
        self._turns = 0
        self.now: float = lead.now if lead else BEGAN

    def add(self, *facts: Fact) -> "Stored":
        for fact in facts:
            self._journal.record(fact)
            self._ledger.on_fact(fact)
            self.now = max(self.now, fact.time)
        return self

    def begin(self, profile: str = "harness", agent: str = "claude", model: str = "") -> "Stored":
        workspace = os.devnull
        started = Started(self.now, self.run.id, profile, workspace, 7, "0.2.0")
        return self.add(replace(started, agent=agent, model=model))

    def launch(
        self,
        dialect: str,
        stream: bytes | None,
        prompt: str | None = PROMPT,
        role: Role = Role.WORK,
        model: str = "",
    ) -> Launching:
        """An agent starts, and has printed this; None: its stream is gone."""
        self._turns += 1
        stem = os.path.join(self.run.directory, f"{self._turns:03d}")
        if stream is not None:
            Path(f"{stem}.stream").write_bytes(stream)
        if prompt is not None:
            Path(f"{stem}.prompt").write_text(prompt, "utf-8")
        launch = Launching(
            self.now + 1, role, dialect, f"{stem}.stream", agent=dialect, model=model
        )
        self.add(launch)
        return launch

    def turn(
        self,
        dialect: str,
        stream: bytes,
        prompt: str | None = PROMPT,
        turn: Turn | None = None,
        cost: float | None = None,
    ) -> "Stored":
        """A whole iteration: what the agent printed is what its turn came to."""
        self.add(Began(self.now + 1, self._turns + 1, Assignment("prompt", "Write it")))
        launch = self.launch(dialect, stream, prompt)
        told = turn or _turn_of(dialect, stream, prompt or "")
        if cost is not None and told.cost_usd is None:
            told = replace(told, cost_usd=cost)
        self.add(Ended(self.now + 60, replace(told, seconds=60.0, stream=launch.stream)))
        self.add(Decided(self.now + 1, Boundary.CLOSING, Continue(), rule="CarryOn"))
        return self.add(Settled(self.now + 1, Continue()))

    def end(self, reason: Reason = Reason.COMPLETED, *evidence: str) -> "Stored":
        return self.add(Settled(self.now + 1, Stop(reason, "it is over", evidence)))

    @property
    def ledger(self) -> Sum:
        """What the ledger says of it."""
        return total(entry for entry in read_ledger(self.run.project) if entry.run == self.run.id)

    @property
    def spent(self) -> tuple[int, int, int, float]:
        """The same as sums of exports."""
        usage = self.ledger.usage
        return (usage.all_input, usage.output, usage.cache_read, self.ledger.cost_usd)


def _turn_of(dialect: str, stream: bytes, prompt: str) -> Turn:
    parser, collector = parser_for(dialect, prompt), Collector()
    collector.add([*parser.feed(stream), *parser.end()])
    return collector.turn(has_result=parser.has_result)


def lines(*objects: object) -> bytes:
    """A stream of these."""
    return b"".join(json.dumps(each).encode() + b"\n" for each in objects)
