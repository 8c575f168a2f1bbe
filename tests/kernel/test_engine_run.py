"""The loop itself: which facts are written, in which order, and what it takes for granted."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from engine_cases import policies

from kits.loop_fakes import FakeScm
from ralph.kernel.case import Case
from ralph.kernel.claims import find_claims
from ralph.kernel.engine import first_order, first_stop, run, stop_hook
from ralph.kernel.facts import Began, Checked, Checking, Decided, Ended, Fact, Settled, Step
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits
from ralph.kernel.ports import Policy, Ports
from ralph.kernel.rules import carry_on, nothing_left
from ralph.kernel.state import RunState, replay
from ralph.kernel.tasks.select import first_open
from ralph.kernel.tasks.task import Assignment, Backlog, ReviewStatus, Task
from ralph.kernel.turn import Order, Role, Turn
from ralph.kernel.verdict import Accept, Boundary, Continue, Feedback, Reason, Stop, Verdict
from ralph.kernel.world import Snapshot
from ralph.loops.prompt.policy import harness
from ralph.loops.stories.policy import reviewed
from ralph.testing.fakes import FakeAgent, FakeClock, FakeGate, FakeWorld, MemoryJournal, fake_ports

WORK = Turn(text="working", tools=1)
DONE = Turn(claims=find_claims("<response>DONE</response>"))
FINDING = FakeGate().finding


def journalled(policy: Policy, *turns: Turn, clock: FakeClock | None = None) -> list[Fact]:
    journal = MemoryJournal()
    run(policy, fake_ports(FakeAgent(turns), journal=journal, clock=clock))
    return journal.facts


def test_the_facts_of_a_run_in_their_order() -> None:
    """ADR 1: opening, turn, gates, closing, settle, and again."""
    gate = FakeGate(fails_in=frozenset({1}))
    policy = harness(Limits(iterations=5), gates=(gate,), scm=FakeScm())
    facts = journalled(policy, WORK, DONE)
    begin, check = [Decided, Began, Ended], [Checking, Checked, Decided]
    iterations = [*begin, *check, Settled, *begin, *check, Step, Step, Settled]
    assert [type(fact) for fact in facts] == [*iterations, Decided, Settled]


def test_the_first_order_is_what_a_run_would_ask_for() -> None:
    """H §CLI, R §3: `--dry-run` shows it; a story that waits for its review begins with that."""
    backlog = Backlog((Task("S-1", text="do it", review=ReviewStatus.NEEDS_REVIEW),))
    order = first_order(reviewed(), backlog, 0.0)
    assert order is not None
    assert (order.iteration, order.role, order.dollars) == (1, Role.REVIEW, None)
    assert order.prompt == "Mode: review\nStory: S-1\n\ndo it"
    plain = first_order(harness(Limits(dollars=2.0)), Backlog((Task("prompt", text="do"),)), 0.0)
    assert plain == Order("do", 1, Role.WORK, 2.0)
    assert first_order(reviewed(), Backlog(), 0.0) is None
    over = Backlog((Task("S-1", review=ReviewStatus.APPROVED, passes=True),))
    stop = first_stop(reviewed(), over, 0.0)
    assert (stop and (stop.reason, stop.why)) == (Reason.COMPLETED, "every story is approved")
    assert first_stop(reviewed(), backlog, 0.0) is None


def test_what_the_facts_say() -> None:
    clock = FakeClock(tick=1.0)
    policy = harness(Limits(iterations=1), gates=(FakeGate(fails_in=frozenset({1})),))
    facts = journalled(policy, WORK, clock=clock)
    began, ended = [f for f in facts if isinstance(f, Began | Ended)]
    assert isinstance(began, Began)
    assert (began.iteration, began.assignment) == (1, Assignment("prompt"))
    assert isinstance(ended, Ended)
    assert ended.turn == WORK
    [checked] = [f for f in facts if isinstance(f, Checked)]
    assert (checked.gate, checked.seconds, checked.findings) == ("make test", 1.0, (FINDING,))
    opened, closed = [f for f in facts if isinstance(f, Decided)]
    assert (opened.boundary, opened.verdict) == (Boundary.OPENING, Continue())
    assert (closed.boundary, closed.findings, closed.checked) == (
        Boundary.CLOSING,
        (FINDING,),
        True,
    )
    assert facts[-1] == Settled(clock.time, Stop(Reason.LIMIT, "1 iteration used up"))


def test_a_run_that_has_ended_stays_ended() -> None:
    """Resume is nothing special: `run` with the state the journal folds to."""
    facts = journalled(harness(Limits(iterations=1)), DONE)
    journal, agent = MemoryJournal(), FakeAgent([WORK])
    stop = run(
        harness(Limits(iterations=9)), fake_ports(agent, journal=journal), replay(facts)
    ).stop
    assert stop is not None
    assert (stop.reason, agent.orders, journal.facts) == (Reason.COMPLETED, [], [])


def test_the_snapshot_before_a_turn_is_compared_with_the_one_after() -> None:
    trees = iter(["before", "after", "before", "before"])
    world, journal = FakeWorld(tree=lambda: next(trees)), MemoryJournal()
    run(harness(Limits(iterations=2)), fake_ports(FakeAgent([WORK]), world, journal))
    assert [f.snapshot for f in journal.facts if isinstance(f, Began)] == [Snapshot("before")] * 2
    closings = [f for f in journal.facts if isinstance(f, Decided) and f.boundary == "closing"]
    assert [f.progressed for f in closings] == [True, False]


def test_a_gate_sees_the_turn_and_the_world_after_it() -> None:
    seen: list[Case] = []
    world = FakeWorld(tree=lambda: "after")
    policy = harness(Limits(iterations=1), gates=(FakeGate(during=seen.append),))
    run(policy, fake_ports(FakeAgent([DONE]), world))
    [case] = seen
    assert (case.boundary, case.turn, case.snapshot.tree) == (Boundary.CLOSING, DONE, "after")


def test_settling_may_settle_something_else() -> None:
    """ADR 1: "An Accept stands when its settle succeeded"."""
    refused = Continue((Feedback("the commit was refused"),))

    def settle(ports: Ports, state: RunState, verdict: Verdict) -> Iterator[Fact]:
        if isinstance(verdict, Accept) and state.iteration == 1:
            yield Settled(ports.clock.now(), refused)
            yield Step(ports.clock.now(), "never reached")

    policy = replace(harness(Limits(iterations=5)), settle=settle)
    agent = FakeAgent([DONE])
    journal = MemoryJournal()
    stop = run(policy, fake_ports(agent, journal=journal)).stop
    assert stop is not None
    assert (stop.reason, len(agent.orders)) == (Reason.COMPLETED, 2)
    assert agent.prompts()[1] == "do it\n\nthe commit was refused"
    assert not any(isinstance(fact, Step) for fact in journal.facts)


def bare(**ladders: object) -> Policy:
    """A policy with nothing but what a test gives it."""
    empty: dict[str, object] = {"opening": (), "watching": (), "stopping": (), "closing": ()}
    return Policy("bare", first_open, lambda _: "x", **{**empty, **ladders})  # type: ignore[arg-type]


def test_the_smallest_policy_there_is() -> None:
    """What a policy leaves out has a default: no gates, no steps, no notes, any allowance."""
    policy = bare(opening=(nothing_left, carry_on), closing=(lambda _: Accept(("seen",)),))
    agent = FakeAgent([WORK])
    stop = run(policy, fake_ports(agent)).stop
    assert stop is not None
    assert stop == Stop(Reason.COMPLETED, "nothing is left to do", ("seen",))
    assert agent.orders == [Order("x", 1)]


@pytest.mark.parametrize(
    "policy", [bare(), bare(opening=(nothing_left,)), bare(opening=(carry_on,))]
)
def test_a_ladder_that_ends_in_silence_is_a_bug(policy: Policy) -> None:
    with pytest.raises(AssertionError, match="a ladder must end in an answer"):
        run(policy, fake_ports(FakeAgent([WORK])))


def test_a_ladder_that_begins_a_turn_with_nothing_to_do_is_a_bug() -> None:
    policy = replace(bare(opening=(carry_on,)), select=lambda _: None)
    with pytest.raises(AssertionError, match="nothing to do"):
        run(policy, fake_ports(FakeAgent([WORK])))


@pytest.mark.parametrize("name", sorted(policies(FakeWorld())))
def test_every_profile_has_its_name_and_answers_a_stop_hook(name: str) -> None:
    world = FakeWorld()
    policy = policies(world)[name]
    assert policy.name == {"unreviewed": "reviewed", "relay": "harness"}.get(name, name)
    state = replay([Began(900.0, 0, Assignment("prompt"))])
    verdict, after = stop_hook(policy, fake_ports(FakeAgent([]), world), state, WORK)
    released = name != "session"
    assert isinstance(verdict, Continue) is not released
    assert after.iteration == (0 if released else 1)


def test_findings_of_a_stop_hook_are_kept_for_the_next() -> None:
    gate = FakeGate(fails_in=frozenset({0}), finding=Finding("tree", "Commit ALL changes."))
    policy = policies(FakeWorld(), (gate,))["reviewed"]
    state = replay([Began(900.0, 0, Assignment("prompt"))])
    journal = MemoryJournal()
    ports = fake_ports(FakeAgent([]), journal=journal)
    _, after = stop_hook(policy, ports, state, WORK)
    assert after.findings == (gate.finding,)
    assert [type(fact) for fact in journal.facts] == [Checking, Checked, Decided]
