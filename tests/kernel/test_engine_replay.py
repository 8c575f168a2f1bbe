"""Property (b): replaying a journal gives the state of the live run, for arbitrary histories."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

import pytest
from engine_cases import BACKLOGS, SIGNALS, TASKS, TURNS, policies
from hypothesis import given
from hypothesis import strategies as st

from kits.histories import assert_same_again
from kits.loop_fakes import FakeScm
from ralph.journal.codec import decode_fact, encode
from ralph.kernel.case import Case
from ralph.kernel.engine import run, stop_hook
from ralph.kernel.facts import Began, Fact
from ralph.kernel.findings import Finding
from ralph.kernel.ports import Policy, Ports
from ralph.kernel.state import RunState, replay
from ralph.kernel.tasks.task import Assignment, Backlog, Task
from ralph.kernel.turn import Order, Turn
from ralph.kernel.verdict import Verdict
from ralph.kernel.world import Signals
from ralph.testing.fakes import FakeAgent, FakeClock, FakeGate, FakeWorld, MemoryJournal, fake_ports

HISTORIES = st.lists(TURNS | st.tuples(TURNS, TURNS), min_size=1, max_size=6)


def replayed(journal: MemoryJournal) -> RunState:
    """The state from the journal's text, as another process would read it."""
    lines = [json.dumps(encode(fact)) for fact in journal.facts]
    return replay([decode_fact(json.loads(line)) for line in lines])


@dataclass(frozen=True)
class Witness:
    """A gate that finds nothing, but compares the live state with the journal's."""

    journal: MemoryJournal
    name: str = "witness"
    always: bool = True

    def check(self, case: Case) -> Iterable[Finding]:
        told = replayed(self.journal)
        # A message turn is held against the tree as it was right before it.
        assert replace(case.state, snapshot=told.snapshot) == told
        return ()


def witnessed(policy: Policy, journal: MemoryJournal) -> Policy:
    """The policy, with the same comparison when it composes and when it settles."""

    def compose(case: Case) -> str:
        assert case.state == replayed(journal)
        return policy.compose(case)

    def settle(ports: Ports, state: RunState, verdict: Verdict) -> Iterator[Fact]:
        assert state == replayed(journal)
        yield from policy.settle(ports, state, verdict)

    return replace(policy, compose=compose, settle=settle)


@dataclass
class RestlessClock(FakeClock):
    """Time passes at each look, and a sleeper who cannot be woken is woken all the same."""

    world: FakeWorld = field(default_factory=FakeWorld)

    def rest(self, until: float | None, stirred: Callable[[], bool]) -> None:
        self.world.asked = replace(self.world.asked, paused=False)
        self.time = max(self.time, until or 0.0)


@st.composite
def worlds(draw: st.DrawFn) -> FakeWorld:
    tasks = draw(st.lists(TASKS, max_size=3, unique_by=lambda task: task.id))
    tree = iter(draw(st.lists(st.sampled_from("xyz"), max_size=9)))
    return FakeWorld(Backlog(tuple(tasks)), Signals(), lambda: next(tree, "still"))


@pytest.mark.parametrize("name", ["harness", "relay", "tasks", "supervise", "reviewed"])
@given(
    world=worlds(),
    turns=HISTORIES,
    signals=st.dictionaries(st.integers(1, 6), SIGNALS, max_size=2),
    backlogs=st.dictionaries(st.integers(1, 6), BACKLOGS, max_size=3),
    fails_in=st.frozensets(st.integers(1, 6)),
)
def test_the_journal_is_the_state(
    name: str,
    world: FakeWorld,
    turns: list[Turn | tuple[Turn, ...]],
    signals: dict[int, Signals],
    backlogs: dict[int, Backlog],
    fails_in: frozenset[int],
) -> None:
    """Issue 2: "replaying a journal gives the same state". It gives the same verdicts, too."""
    if name == "supervise":
        world.tasks = Backlog((Task("a"),))
    journal, clock = MemoryJournal(), RestlessClock(tick=1.0, world=world)
    gates = (FakeGate(fails_in=fails_in), Witness(journal))
    policy = witnessed(policies(world, gates, FakeScm())[name], journal)
    agent = FakeAgent(turns)

    def press(order: Order) -> None:
        world.asked = signals.get(len(agent.orders), world.asked)
        if name != "supervise":
            world.tasks = backlogs.get(len(agent.orders), world.tasks)

    agent.during = press
    stop = run(policy, fake_ports(agent, world, journal, clock)).stop
    assert replayed(journal).stop == stop
    assert_same_again(policy, journal.facts)


@given(turns=st.lists(TURNS, max_size=6), fails_in=st.frozensets(st.integers(0, 5)))
def test_the_journal_of_a_session_is_its_state(turns: list[Turn], fails_in: frozenset[int]) -> None:
    """P: each hook call is a process of its own, and has nothing but the journal."""
    world, journal = FakeWorld(), MemoryJournal()
    policy = policies(world, (FakeGate(fails_in=fails_in),))["session"]
    ports = fake_ports(FakeAgent([]), world, journal, FakeClock(tick=1.0))
    journal.record(Began(1000.0, 0, Assignment("prompt")))
    state = replayed(journal)
    for turn in turns:
        _, state = stop_hook(policy, ports, state, turn)
        assert state == replayed(journal)
