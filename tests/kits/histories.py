"""Histories: turns in, facts out. A whole run on fakes, and what can be asked of it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ralph.journal.codec import decode_fact, encode
from ralph.kernel.claims import find_claims
from ralph.kernel.engine import run
from ralph.kernel.events import Failure
from ralph.kernel.facts import Began, Checked, Decided, Ended, Fact, Step
from ralph.kernel.judging import Judge
from ralph.kernel.ports import Policy, TodaysRules, Trees
from ralph.kernel.state import NEW, RunState, replay
from ralph.kernel.turn import Ending, Turn
from ralph.kernel.verdict import Boundary, Stop, Verdict
from ralph.testing.fakes import FakeAgent, FakeClock, FakeWorld, MemoryJournal, fake_ports

ENDLESS = 3000  # facts; a run that has more of them does not end


@dataclass(frozen=True)
class Played:
    """What came of a history."""

    stop: Stop
    facts: list[Fact]
    agent: FakeAgent
    world: FakeWorld
    clock: FakeClock

    @property
    def exit_code(self) -> int:
        return self.stop.reason.exit_code

    @property
    def verdicts(self) -> list[Verdict]:
        """What was decided after each turn."""
        return [f.verdict for f in self.decided(Boundary.CLOSING)]

    @property
    def names(self) -> str:
        """The same by name: `Continue Wait Accept`."""
        return " ".join(type(verdict).__name__ for verdict in self.verdicts)

    @property
    def iterations(self) -> list[int]:
        return [f.iteration for f in self.facts if isinstance(f, Began)]

    @property
    def tasks(self) -> list[str]:
        """The task of each turn."""
        return [f.assignment.task for f in self.facts if isinstance(f, Began)]

    @property
    def turns(self) -> int:
        return sum(isinstance(f, Ended) for f in self.facts)

    @property
    def gates(self) -> list[str]:
        return [f.gate for f in self.facts if isinstance(f, Checked)]

    @property
    def steps(self) -> list[tuple[str, bool, str]]:
        return [(f.key, f.ok, f.detail) for f in self.facts if isinstance(f, Step)]

    @property
    def state(self) -> RunState:
        return replay(self.facts)

    def decided(self, boundary: Boundary) -> list[Decided]:
        return [f for f in self.facts if isinstance(f, Decided) and f.boundary is boundary]


def play(
    policy: Policy,
    agent: FakeAgent | Sequence[Turn | tuple[Turn, ...]],
    world: FakeWorld | None = None,
    clock: FakeClock | None = None,
    state: RunState = NEW,
    trees: Trees | None = None,
) -> Played:
    """Run the history to its end."""
    agent = agent if isinstance(agent, FakeAgent) else FakeAgent(agent)
    world, clock = world or FakeWorld(), clock or FakeClock()
    journal = MemoryJournal(killed_after=ENDLESS)
    stop = run(policy, fake_ports(agent, world, journal, clock, trees), state).stop
    assert stop is not None
    assert_same_again(policy, journal.facts, state)
    return Played(stop, journal.facts, agent, world, clock)


def assert_same_again(
    policy: Policy, facts: Sequence[Fact], state: RunState = NEW, *beyond: str
) -> None:
    """Facts tell enough to judge each verdict again (ADR 55): the same policy gives it once more.
    Rules that look `beyond` them are not asked."""
    rules = TodaysRules(policy, dict.fromkeys(beyond, "beyond"))
    judge = Judge(lambda _fact, _state: rules, rules, state)
    for fact in facts:
        as_stored = decode_fact(json.loads(json.dumps(encode(fact))))
        judged = judge.take(as_stored)
        assert judged is None or not judged.differs, judged
        assert judged is None or judged.unjudged in ("", "beyond"), judged


def said(text: str, tools: int = 1, cost: float | None = None) -> Turn:
    return Turn(text=text, claims=find_claims(text), tools=tools, cost_usd=cost)


def limited(resets_at: float | None = None, cost: float | None = None) -> Turn:
    failure = Failure("rate limit reached", 429, resets_at=resets_at)
    return Turn(exit_code=1, failure=failure, cost_usd=cost)


def erred(status: int | None, message: str = "API error") -> Turn:
    return Turn(exit_code=1, failure=Failure(message, status))


DONE = said("All is well. <response>DONE</response>")
WORK = said("working")
CRASH = Turn(exit_code=1, stderr="boom")
CUT = Turn(Ending.CUT, exit_code=None, why="timed out after 1m")
MISSING = Turn(Ending.UNSTARTABLE, exit_code=None, why="'claud': no such command")
BLOCKED = said("<promise>BLOCKED: no network</promise>")
DECIDE = said("<promise>DECIDE: tabs or spaces?</promise>")
QUESTION = replace(WORK, question="Which port?")
COMPLETE = said("<promise>COMPLETE</promise>")
