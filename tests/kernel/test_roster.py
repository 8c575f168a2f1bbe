"""The roster (ADR 45): turns in by agent, facts out; who is asked, who is benched, until when."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kits.histories import DONE, WORK, erred, limited, said
from ralph.kernel.case import Case
from ralph.kernel.engine import run
from ralph.kernel.facts import Began, Decided, Ended, Fact, Resumed, Started, Step
from ralph.kernel.limits import Limits
from ralph.kernel.ports import Policy, Watch
from ralph.kernel.roster import Roster, StepDown, rostered
from ralph.kernel.rules import Patience
from ralph.kernel.state import NEW, RunState, fold, replay
from ralph.kernel.tasks.task import Backlog, ReviewStatus, Task
from ralph.kernel.turn import Order, Turn
from ralph.kernel.verdict import Bench, Boundary, Reason, Stop, Wait
from ralph.loops.prompt.policy import harness
from ralph.loops.stories.policy import reviewed
from ralph.testing.fakes import FakeClock, FakeWorld, KilledError, MemoryJournal, fake_ports

TWO, THREE = Roster(fallbacks=1), Roster(fallbacks=2)
NAMES = "abcdef"
BEGAN = 1000.0  # when the clock starts
REFUSED, BUSY = erred(401, "bad key"), erred(529, "Overloaded")


@dataclass
class Players:
    """Agents by their places: each answers its turns in order, the last one for ever. A turn takes
    ten seconds."""

    turns: dict[int, list[Turn]]
    clock: FakeClock = field(default_factory=FakeClock)
    asked: list[tuple[str, float]] = field(default_factory=list)  # who, and when

    def take_turn(self, order: Order, watch: Watch) -> Turn:
        self.asked.append((NAMES[order.place], self.clock.time - BEGAN))
        turns = self.turns[order.place]
        turn = turns.pop(0) if len(turns) > 1 else turns[0]
        self.clock.time += 10
        failure = turn.failure
        if failure is not None and failure.resets_at is not None:  # given as a delay
            failure = replace(failure, resets_at=self.clock.time + failure.resets_at)
        return replace(turn, failure=failure, place=order.place, agent=NAMES[order.place])


def policy_of(roster: Roster, dollars: float | None = None, most: int = 4) -> Policy:
    patience = Patience(roster=roster, fail_delay=0.0, max_wait=20_000.0)
    limits = Limits(iterations=most, dollars=dollars)
    return rostered(harness(limits, patience), roster, dollars)


def play(
    roster: Roster,
    *turns: list[Turn],
    policy: Policy | None = None,
    killed_after: int | None = None,
) -> tuple[Stop, Players, list[Fact]]:
    """A run to its end; of one that is killed, also what it does when it is resumed at once."""
    players = Players(dict(enumerate(turns)))
    policy, clock = policy or policy_of(roster), players.clock
    journal = MemoryJournal(killed_after=killed_after)
    state = NEW
    try:
        state = run(policy, fake_ports(players, FakeWorld(), journal, clock))
    except KilledError:
        resumed = Resumed(clock.time, 8)
        past = [*journal.facts, resumed]
        journal = MemoryJournal(past)
        state = run(policy, fake_ports(players, FakeWorld(), journal, clock), replay(past))
    assert state.stop is not None
    return state.stop, players, journal.facts


def who(players: Players) -> str:
    """`a0 b10`: who was asked when, in seconds since the run began."""
    return " ".join(f"{name}{seconds:g}" for name, seconds in players.asked)


@pytest.mark.parametrize(
    ("roster", "turns", "asked", "reason"),
    [
        # A limit that passes soon is waited for, one that does not is gone around.
        (TWO, [[limited(200), DONE], [DONE]], "a0 a210", "completed"),
        (TWO, [[limited(300), DONE], [DONE]], "a0 a310", "completed"),
        (TWO, [[limited(301), DONE], [DONE]], "a0 b10", "completed"),
        (replace(TWO, after=60.0), [[limited(61)], [DONE]], "a0 b10", "completed"),
        (replace(TWO, after=0.0), [[limited(1)], [DONE]], "a0 b10", "completed"),
        # Waits in a row add up, also where nobody has said when the limit ends.
        (TWO, [[limited()], [DONE]], "a0 a40 a110 a240 b250", "completed"),
        (TWO, [[limited(200), limited(100), DONE], [DONE]], "a0 a210 a320", "completed"),
        (TWO, [[limited(200)], [DONE]], "a0 a210 b220", "completed"),
        (TWO, [[limited(200), WORK, limited(200), DONE], [DONE]], "a0 a210 a220 a430", "completed"),
        (TWO, [[limited()], [limited(), DONE]], "a0 a40 a110 a240 b250 b290", "completed"),
        (THREE, [[limited(200)], [limited(200)], [DONE]], "a0 a210 b220 c230", "completed"),
        # After its reset the first agent works again, at the next turn.
        (TWO, [[limited(305), DONE], [*[WORK] * 2, DONE]], "a0 b10 b20 b30", "completed"),
        (
            replace(TWO, after=15.0),
            [[limited(16), DONE], [WORK]],
            "a0 b10 b20 a30",
            "completed",
        ),
        # With all of them benched, until the first is free: whichever that is.
        (TWO, [[limited(1000), DONE], [limited(2000)]], "a0 b10 a1010", "completed"),
        (TWO, [[limited(3000)], [limited(1000), DONE]], "a0 b10 b1020", "completed"),
        (
            THREE,
            [[limited(3000)], [limited(1000), DONE], [limited(2000)]],
            "a0 b10 c20 b1020",
            "completed",
        ),
        # A short limit of the one that goes on is waited for, by that one.
        (TWO, [[limited(5000)], [limited(100), DONE]], "a0 b10 b120", "completed"),
        # A refused credential is not tried again, an overloaded provider after its backoff.
        (TWO, [[REFUSED, DONE], [WORK, WORK, WORK, WORK]], "a0 b10 b20 b30 b40", "limit"),
        (TWO, [[BUSY, DONE], [WORK]], "a0 b10 b20 b30 a40", "completed"),
        (TWO, [[BUSY, BUSY, DONE], [WORK]], "a0 b10 b20 b30 a40 b50", "limit"),
        (TWO, [[BUSY, DONE], [BUSY, DONE]], "a0 b10 a40", "completed"),
        (THREE, [[REFUSED], [BUSY], [DONE]], "a0 b10 c20", "completed"),
        (TWO, [[limited(5000)], [BUSY, DONE]], "a0 b10 b50", "completed"),
        (TWO, [[REFUSED], [limited(4000), DONE]], "a0 b10 b4020", "completed"),
        (TWO, [[limited(4000), DONE], [REFUSED]], "a0 b10 a4010", "completed"),
        # Nobody is left: as with one agent, exit code 2.
        (TWO, [[REFUSED], [REFUSED]], "a0 b10", "config"),
        (Roster(), [[REFUSED]], "a0", "config"),
        (Roster(), [[limited(5000), DONE]], "a0 a5010", "completed"),
        # What is waited for in all has its limit.
        (TWO, [[limited(90_000)], [limited(80_000)]], "a0 b10", "limit"),
        # A turn that failed by itself is nobody's limit.
        (TWO, [[erred(None), DONE], [WORK]], "a0 a10", "completed"),
        (TWO, [[Turn(exit_code=1), DONE], [WORK]], "a0 a10", "completed"),
    ],
)
def test_who_is_asked_and_when(
    roster: Roster, turns: list[list[Turn]], asked: str, reason: str
) -> None:
    stop, players, _ = play(roster, *turns)
    assert (who(players), stop.reason.value) == (asked, reason)


def verdicts(facts: list[Fact]) -> Iterator[Decided]:
    return (f for f in facts if isinstance(f, Decided) and f.boundary is Boundary.CLOSING)


def test_the_facts_of_a_hand_over() -> None:
    """Issue: "goes on with the next one in the same iteration"; the journal knows until when."""
    _, _, facts = play(TWO, [said("one"), limited(4000)], [said("two", cost=0.5), DONE])
    handed = next(f for f in verdicts(facts) if isinstance(f.verdict, Wait))
    why, until = "a cannot go on: rate limit reached", BEGAN + 20 + 4000
    assert handed.verdict == Wait(0, why, Bench(0, until, "a", 1))
    assert handed.rule == "NextAgent"
    assert [f.iteration for f in facts if isinstance(f, Began)] == [1, 2, 2, 3]
    assert [f.turn.agent for f in facts if isinstance(f, Ended)] == ["a", "a", "b", "b"]
    state = replay(facts)
    assert (state.benches, state.place, state.agent) == ((Bench(0, until, "a", 1),), 1, "b")
    assert (state.spent.iterations, state.spent.dollars) == (3, 0.5)


def test_money_of_a_turn_that_was_handed_over_counts() -> None:
    paid = replace(limited(4000), cost_usd=1.5)
    stop, players, facts = play(
        TWO, [paid], [replace(DONE, cost_usd=1.0)], policy=policy_of(TWO, dollars=1.5)
    )
    assert (who(players), stop.reason) == ("a0", Reason.LIMIT)
    assert replay(facts).spent.dollars == 1.5


def test_backoff_of_an_agent_grows_whatever_others_do_meanwhile() -> None:
    """ADR 45: an agent's failures in a row are counted though others succeed between them."""
    _, _, facts = play(TWO, [BUSY], [WORK], policy=policy_of(replace(TWO, after=0.0), most=40))
    benches = [f.verdict.bench for f in verdicts(facts) if isinstance(f.verdict, Wait)]
    times = [(b.until or 0) - t for b, t in zip(benches, _when(facts), strict=True) if b]
    assert times[:4] == [30.0, 60.0, 120.0, 240.0]
    assert [b.times for b in benches if b][:4] == [1, 2, 3, 4]


def _when(facts: list[Fact]) -> list[float]:
    return [f.time for f in verdicts(facts) if isinstance(f.verdict, Wait)]


def test_an_agent_that_works_again_is_forgiven() -> None:
    _, players, facts = play(
        replace(TWO, after=0.0),
        [BUSY, said("well"), BUSY, DONE],
        [*[WORK] * 9],
        policy=policy_of(TWO, most=12),
    )
    benches = [f.verdict.bench for f in verdicts(facts) if isinstance(f.verdict, Wait)]
    assert [b.times for b in benches if b] == [1, 1]
    assert who(players).startswith("a0 b10 b20 b30 a40 a50 b60")


def test_overload_of_all_is_a_failure_in_the_end() -> None:
    """ADR 11: "ten times in a row at most; then the turn has failed"."""
    stop, players, facts = play(TWO, [BUSY], [BUSY], policy=policy_of(TWO, most=1))
    assert stop.reason is Reason.LIMIT
    assert len(players.asked) == 21
    assert replay(facts).failures == 1


@given(
    st.lists(
        st.lists(
            st.sampled_from([WORK, DONE, REFUSED, BUSY, limited(50), limited(900), limited(4000)]),
            min_size=1,
            max_size=4,
        ),
        min_size=1,
        max_size=3,
    ),
    st.integers(1, 60),
)
def test_a_kill_changes_nobody_s_bench(turns: list[list[Turn]], killed_after: int) -> None:
    """Resumed at once, the same agents take the same turns at the same times."""
    roster = Roster(fallbacks=len(turns) - 1)
    whole, _, facts = play(roster, *(list(each) for each in turns))
    again, _, more = play(roster, *(list(each) for each in turns), killed_after=killed_after)
    if killed_after < len(facts):  # else it was over by then
        assert [f for f in more if isinstance(f, Ended)] == [
            f for f in facts if isinstance(f, Ended)
        ]
        assert (replay(more).benches, again) == (replay(facts).benches, whole)


@given(
    st.lists(
        st.lists(
            st.sampled_from([WORK, REFUSED, BUSY, limited(50), limited(900), limited(4000)]),
            min_size=1,
            max_size=4,
        ),
        min_size=2,
        max_size=3,
    )
)
def test_nobody_is_asked_before_his_time(turns: list[list[Turn]]) -> None:
    """Also: a refused one never again, and somebody is asked whenever one of them is free."""
    roster = Roster(fallbacks=len(turns) - 1)
    _, players, facts = play(roster, *(list(each) for each in turns))
    state, asked = NEW, iter(players.asked)
    for fact in facts:
        if isinstance(fact, Began):
            name, seconds = next(asked)
            bench = next((b for b in state.benches if b.agent == name), None)
            assert bench is None or bench.until is not None
            assert bench is None or (bench.until or 0) <= BEGAN + seconds
            free = [n for n in NAMES[: len(turns)] if _is_free(state, n, BEGAN + seconds)]
            assert name == free[0]
        state = fold(state, fact)


def _is_free(state: RunState, name: str, now: float) -> bool:
    bench = next((b for b in state.benches if b.agent == name), None)
    return bench is None or (bench.until is not None and bench.until <= now)


@pytest.mark.parametrize(
    ("until", "chosen"),
    [
        ((90.0, 50.0), 0),  # whoever was free first: both are free now
        ((101.0, 50.0), 1),
        ((130.0, 120.0), 1),
        ((None, 120.0), 1),
        ((120.0, None), 0),
        ((100.0, 100.0), 0),
    ],
)
def test_the_first_one_that_is_free_is_chosen(
    until: tuple[float | None, float | None], chosen: int
) -> None:
    benches = tuple(Bench(place, time) for place, time in enumerate(until))
    case = Case(Boundary.WATCHING, replace(NEW, benches=benches), 100.0)
    assert TWO.choose(case) == chosen


# ------------------------------------------------------------------ what a person changes


STARTED = Started(BEGAN, "run", "harness", "/work", 7, "1.0")
BENCHED = (Bench(0, None, "a", 1), Bench(1, 9000.0, "b", 2))


@pytest.mark.parametrize(
    ("changed", "left"),
    [
        ((), BENCHED),
        ((("maximumIterations", "1", "2"),), BENCHED),
        ((("agent.command", '"a"', '"x"'),), ()),
        ((("agent.fallbacks", "[]", '[{"command": "x"}]'),), ()),
        ((("loop.stepDown", '{"at": 0.8, "model": "haiku"}', "null"),), ()),
    ],
)
def test_other_agents_are_not_benched(
    changed: tuple[tuple[str, str, str], ...], left: tuple[Bench, ...]
) -> None:
    state = replace(NEW, benches=BENCHED)
    assert fold(state, Resumed(2000.0, 8, changed=changed)).benches == left


def test_a_run_that_had_ended_asks_everybody_again() -> None:
    """ADR 35: "patience with the agent begins anew"; perhaps somebody has logged in."""
    stop, players, facts = play(TWO, [REFUSED, DONE], [REFUSED])
    assert stop.reason is Reason.CONFIG
    state = replay([*facts, Resumed(3000.0, 8)])
    assert state.benches == ()
    journal = MemoryJournal()
    ended = run(policy_of(TWO), fake_ports(players, FakeWorld(), journal, players.clock), state)
    assert ended.stop is not None
    assert (ended.stop.reason, players.asked[-1][0]) == (Reason.COMPLETED, "a")


# ------------------------------------------------------------------ reviews


def test_a_reviewer_of_its_own_has_a_bench_of_its_own() -> None:
    """Places: the first agent 0, the one that goes on 1, the reviewer 2."""
    roster = replace(TWO, reviewer=2)
    story = Task("S-1", text="do", review=ReviewStatus.NEEDS_REVIEW)
    world = FakeWorld(Backlog((story,)))
    players = Players({0: [WORK], 1: [WORK], 2: [limited(4000)]})
    patience = Patience(roster=roster, fail_delay=0.0, stall_after=0)
    policy = rostered(reviewed(limits=Limits(iterations=2), patience=patience), roster)
    journal = MemoryJournal()
    run(policy, fake_ports(players, world, journal, players.clock))
    assert who(players) == "c0 b10 b20"
    world.tasks = Backlog((replace(story, review=None),))
    players.asked.clear()
    run(policy, fake_ports(players, world, MemoryJournal(), players.clock))
    assert [name for name, _ in players.asked] == ["a", "a"]


# ------------------------------------------------------------------ a cheaper model


CHEAP = StepDown(0.8, "haiku")


@pytest.mark.parametrize(
    ("costs", "asked"),
    [
        ([0.79, 0.0, 0.0, 0.0], "aaaa"),
        ([0.8, 0.0, 0.0, 0.0], "abbb"),
        ([0.4, 0.4, 0.0, 0.0], "aabb"),
        ([0.9, 0.01, 0.02, 0.03], "abbb"),
        ([0.7, 0.1, 0.0, 0.0], "aabb"),  # in binary, 0.7 + 0.1 is less than 0.8
    ],
)
def test_when_it_steps_down(costs: list[float], asked: str) -> None:
    roster = Roster(step_down=CHEAP)
    turns = [said(f"turn {n}", cost=cost) for n, cost in enumerate(costs)]
    first = asked.index("b") if "b" in asked else len(asked)
    _, players, facts = play(
        roster, turns[:first], turns[first:] or [WORK], policy=policy_of(roster, dollars=1.0)
    )
    assert "".join(name for name, _ in players.asked) == asked
    said_once = [f.detail for f in facts if isinstance(f, Step) and f.key == "step down"]
    spent = sum(costs[:first])
    words = f"${spent:.2f} of $1 spent: the model is haiku from here on"
    assert said_once == ([words] if "b" in asked else [])


def test_a_raised_limit_has_its_own_share() -> None:
    """From 80 % of $1 to 8 % of $10: the first model is back."""
    state = replace(NEW, stepped_down=True, limits=Limits(dollars=1.0))
    again = fold(state, Resumed(2000.0, 8, limits=Limits(dollars=10.0)))
    assert not again.stepped_down
    assert fold(state, Resumed(2000.0, 8, limits=Limits(dollars=1.0))).stepped_down


def test_a_cheaper_model_that_is_no_longer_in_the_settings_is_not_asked() -> None:
    """A person may take it out while the run is paused."""
    case = Case(Boundary.WATCHING, replace(NEW, stepped_down=True), 100.0)
    assert (replace(TWO, step_down=CHEAP).choose(case), TWO.choose(case)) == (2, 0)


def test_others_go_on_for_the_cheaper_one_too() -> None:
    """Places: the first agent 0, the one that goes on 1, the cheaper model 2."""
    roster = replace(TWO, step_down=CHEAP)
    cheap = [said("three", cost=0.0), limited(4000)]
    _, players, _ = play(
        roster, [said("one", cost=0.9)], [DONE], cheap, policy=policy_of(roster, dollars=1.0)
    )
    assert "".join(name for name, _ in players.asked) == "accb"


def test_who_is_out_for_good_does_not_step_down() -> None:
    roster = replace(TWO, step_down=CHEAP)
    _, players, facts = play(
        roster, [REFUSED], [said("b", cost=0.3)], [DONE], policy=policy_of(roster, dollars=1.0)
    )
    assert "".join(name for name, _ in players.asked) == "abbbb"[: len(players.asked)]
    assert not [f for f in facts if isinstance(f, Step)]


def test_workers_count_what_all_of_them_have_spent() -> None:
    roster = Roster(step_down=CHEAP)
    policy = rostered(harness(Limits(1), Patience(roster=roster)), roster, 10.0, lambda: 8.5)
    _, players, _ = play(roster, [WORK], [DONE], policy=policy)
    assert "".join(name for name, _ in players.asked) == "b"
