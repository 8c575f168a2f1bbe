"""P, the loop inside one session: the stop hook answers, nothing is started.

The first five tests are the acceptance tests of the specification, by name.
"""

from dataclasses import dataclass, field, replace

import pytest

from kits.histories import said
from ralph.kernel.case import Case
from ralph.kernel.contracts import PromiseTag
from ralph.kernel.engine import stop_hook
from ralph.kernel.facts import Began, Decided
from ralph.kernel.ports import Policy
from ralph.kernel.state import RunState, replay
from ralph.kernel.tasks.task import Assignment, Backlog, Task
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import Accept, Boundary, Continue, Reason, Stop, Verdict
from ralph.kernel.world import Signals
from ralph.loops.session.policy import ULTRAWORK, session
from ralph.testing.fakes import FakeAgent, FakeGate, FakeWorld, MemoryJournal, fake_ports

TASK = Task("loop", text="Build the thing")
DONE = "<promise>DONE</promise>"
PROMISED = said(DONE)
IDLE = said(DONE, tools=0)


@dataclass
class Session:
    """A live session that tries to end, again and again."""

    policy: Policy
    world: FakeWorld = field(default_factory=lambda: FakeWorld(Backlog((TASK,))))
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    state: RunState = field(default_factory=lambda: replay([Began(900.0, 0, Assignment("loop"))]))

    def stops(self, turn: Turn) -> Verdict:
        ports = fake_ports(FakeAgent([]), self.world, self.journal)
        verdict, self.state = stop_hook(self.policy, ports, self.state, turn)
        return verdict

    @property
    def notes(self) -> tuple[str, ...]:
        return next(f.notes for f in reversed(self.journal.facts) if isinstance(f, Decided))


def reason(verdict: Verdict) -> str:
    """The text that holds the agent back."""
    assert isinstance(verdict, Continue)
    return "\n".join(feedback.text for feedback in verdict.feedback)


def test_1_stops_on_promise() -> None:
    """Acceptance 1: "outputs `<promise>DONE</promise>` after doing work → PROMISE_ACCEPTED"."""
    loop = Session(session())
    verdict = loop.stops(PROMISED)
    assert verdict == Accept((f"claimed: {DONE}", "no gate is configured"))
    assert loop.state.done == {"loop"}


def test_2_blocks_exit_without_promise() -> None:
    """Acceptance 2: "says “I'm done” but no promise → exit blocked, reinjection occurs"."""
    loop = Session(session())
    told = reason(loop.stops(said("I'm done")))
    assert f"you did not output the completion promise {DONE}" in told
    assert told.endswith("Original task: Build the thing")
    assert (loop.state.iteration, loop.state.stop) == (1, None)


def test_3_max_iterations() -> None:
    """Acceptance 3: "exits after N iterations with MAX_ITERATIONS_REACHED"."""
    loop = Session(session(max_iterations=3))
    verdicts = [loop.stops(said("not yet")) for _ in range(4)]
    assert [type(v) for v in verdicts] == [Continue, Continue, Continue, Stop]
    assert loop.state.stop == Stop(Reason.LIMIT, "3 iterations used up")


def test_4_bypass_rejected() -> None:
    """Acceptance 4: the promise at once, with zero tool calls → rejected, continued."""
    loop = Session(session())
    told = reason(loop.stops(IDLE))
    assert told.startswith("Promise detected, but no tool calls/work were performed")
    assert told.endswith("Original task: Build the thing")


def test_5_promise_detector_correctness() -> None:
    """Acceptance 5: "Promise appears in final message → loop must stop"."""
    loop = Session(session())
    for words in ("Reading.", "Writing.", "Almost there."):
        assert isinstance(loop.stops(said(words)), Continue)
    assert isinstance(loop.stops(said(f"At last.\n\n```\n{DONE}\n```\n")), Accept)


@pytest.mark.parametrize(
    "text",
    ["<promise>done</promise>", "<promise> DONE </promise>", "<Promise>DONE</Promise>", "DONE"],
)
def test_a_near_miss_is_named_to_the_agent_and_in_the_log(text: str) -> None:
    """P §Promise detection: "must match exactly"; ADR 3: near misses are named."""
    loop = Session(session())
    told = reason(loop.stops(said(text)))
    [note] = loop.notes
    assert DONE in note
    assert note in told


def test_a_rejected_promise_is_spent() -> None:
    """ADR 3: afterwards only text after that block counts, and the work goes on counting."""
    loop = Session(session())
    assert isinstance(loop.stops(IDLE), Continue)
    assert "did not output the completion promise" in reason(loop.stops(said("Now I did work.")))
    assert isinstance(loop.stops(PROMISED), Accept)


def test_work_is_counted_against_min_tool_calls() -> None:
    loop = Session(session(min_tools=3))
    told = reason(loop.stops(replace(PROMISED, tools=2)))
    assert "before emitting the promise. (Tool calls: 2 of 3.)" in told
    assert isinstance(loop.stops(replace(PROMISED, tools=3)), Accept)
    assert isinstance(Session(session(min_tools=0)).stops(IDLE), Accept)


@pytest.mark.parametrize(
    ("turn", "verdict"), [(PROMISED, Accept), (IDLE, Stop), (said("not yet"), Stop)]
)
def test_at_the_limit_a_valid_promise_is_accepted(turn: Turn, verdict: type[Verdict]) -> None:
    """ADR 2: "Completion wins wherever both hold"."""
    loop = Session(session(max_iterations=1))
    loop.stops(said("not yet"))
    assert isinstance(loop.stops(turn), verdict)


def test_no_limit_must_be_asked_for() -> None:
    """P: "`max-iterations` defaults to 50 (0 = none must be asked for)"."""
    for policy, ends in ((session(), True), (session(max_iterations=0), False)):
        loop = Session(policy)
        verdicts = [loop.stops(said("not yet")) for _ in range(51)]
        assert isinstance(verdicts[-1], Stop) is ends
        assert not any(isinstance(v, Stop) for v in verdicts[:50])


def test_cancel_lets_the_session_end() -> None:
    """P §Observability: "`/cancel-ralph` to force stop the loop immediately"."""
    loop = Session(session())
    loop.world.asked = Signals(1, 1000.0)
    assert loop.stops(PROMISED) == Stop(Reason.INTERRUPTED, "asked to stop")
    assert loop.state.stop is not None


def test_a_gate_may_object_to_the_promise() -> None:
    loop = Session(session(gates=(FakeGate(fails_in=frozenset({0})),)))
    assert reason(loop.stops(PROMISED)).startswith("the tests fail\n\nOriginal task:")
    assert loop.stops(PROMISED) == Accept((f"claimed: {DONE}", "passed: make test"))


def test_the_token_may_be_any_words() -> None:
    loop = Session(session(PromiseTag("ALL GREEN")))
    assert "<promise>ALL GREEN</promise>" in reason(loop.stops(PROMISED))
    assert isinstance(loop.stops(said("<promise>ALL GREEN</promise>")), Accept)


def test_the_ultrawork_loop_differs_only_in_its_first_words() -> None:
    """P §ULW-loop compatibility."""
    plain, ultra = Session(session()), Session(session(ultrawork=True))
    for turn in (said("not yet"), IDLE):
        assert reason(ultra.stops(turn)) == f"{ULTRAWORK}\n\n{reason(plain.stops(turn))}"
    assert plain.stops(PROMISED) == ultra.stops(PROMISED)


def test_only_the_stopping_boundary_exists() -> None:
    """ADR 1, the table's last row."""
    policy = session()
    assert (policy.opening, policy.watching, policy.closing) == ((), (), ())
    loop = Session(policy)
    loop.stops(PROMISED)
    case = Case(Boundary.STOPPING, loop.state, 1000.0, backlog=loop.world.tasks)
    assert policy.compose(case) == "Build the thing"
    boundaries = [f.boundary for f in loop.journal.facts if isinstance(f, Decided)]
    assert boundaries == [Boundary.STOPPING]
