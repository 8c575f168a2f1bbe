"""A verdict is judged again by other rules than gave it. That the same rules give the same is held
against every history of these tests (kits/histories.py)."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kits.histories import COMPLETE, CRASH, DONE, WORK, limited, play, said
from ralph.kernel.case import Case, Ladder
from ralph.kernel.claims import find_claims
from ralph.kernel.engine import run, stop_hook
from ralph.kernel.facts import Assigned, Began, Decided, Ended, Fact, Resumed, Started
from ralph.kernel.judging import LIVE, OLD, RETAKING, SELECTION, Judge, Rejudged
from ralph.kernel.limits import Limits
from ralph.kernel.ports import Policy, TodaysRules, ladders_of
from ralph.kernel.rules import Believed, Failing, Patience, RunLimit, carry_on
from ralph.kernel.sight import Sight
from ralph.kernel.state import replay
from ralph.kernel.tasks.task import Assignment, Backlog, Task
from ralph.kernel.turn import Order, Turn
from ralph.kernel.verdict import Answer, Boundary, Continue, Stop, Wait
from ralph.loops.prompt.policy import harness
from ralph.loops.session.policy import session
from ralph.testing.fakes import FakeAgent, FakeClock, FakeGate, FakeWorld, MemoryJournal, fake_ports

HARNESS = harness(Limits(5), Patience(fail_delay=0.0))


def history(*turns: Turn, policy: Policy = HARNESS) -> list[Fact]:
    """The facts of a run, with its beginning as a run writes it."""
    started = Started(1000.0, "r", "harness", "/w", 7, "1.0", ladders=ladders_of(policy))
    return [started, *play(policy, turns).facts]


def judged(
    facts: Sequence[Fact], policy: Policy, reread: Turn | None = None, **beyond: str
) -> list[Rejudged]:
    """Every judgement; the first turn is read as `reread` today."""
    judge, found, first = Judge(lambda _f, _s: TodaysRules(policy, beyond)), [], True
    for fact in facts:
        turn = reread if isinstance(fact, Ended) and first else None
        first = first and not isinstance(fact, Ended)
        found += [one] if (one := judge.take(fact, turn)) is not None else []
    return found


def differing(facts: Sequence[Fact], policy: Policy, reread: Turn | None = None) -> list[Rejudged]:
    return [one for one in judged(facts, policy, reread) if one.differs]


def with_closing(*ladder: object) -> Policy:
    return replace(HARNESS, closing=ladder)  # type: ignore[arg-type]


def test_one_that_differs_changes_none_that_follow() -> None:
    """Each is judged on what was stored before it."""
    without = tuple(rule for rule in HARNESS.closing if not isinstance(rule, Believed))
    found = judged(history(WORK, DONE), with_closing(*without))
    assert [one.differs for one in found if one.where == "closing"] == [False, True]
    assert not any(one.differs for one in found if one.where == "opening")


def moved(ladder: Ladder, kind: type, place: int) -> Ladder:
    rule = next(rule for rule in ladder if isinstance(rule, kind))
    others = [each for each in ladder if each is not rule]
    return (*others[:place], rule, *others[place:])


@pytest.mark.parametrize(
    ("turns", "closing", "changes"),
    [
        (
            (CRASH, DONE),
            moved(HARNESS.closing, Failing, 16),
            (),
        ),
        (
            (CRASH, DONE),
            tuple(Failing(1) if isinstance(r, Failing) else r for r in HARNESS.closing),
            ("Failing(after=3, park=False) is Failing(after=1, park=False) now",),
        ),
        (
            (WORK, DONE),
            tuple(r for r in HARNESS.closing if not isinstance(r, Believed)),
            ("Believed is not in this ladder any more",),
        ),
        (
            (WORK, DONE),
            (carry_on, *HARNESS.closing[:-1]),
            ("carry_on is asked before Believed now, and was asked after it",),
        ),
    ],
    ids=["moved where it makes no difference", "parameters", "gone", "asked earlier"],
)
def test_the_change_is_named(
    turns: tuple[Turn, ...], closing: Ladder, changes: tuple[str, ...]
) -> None:
    found = differing(history(*turns), with_closing(*closing))
    assert tuple(change for one in found for change in one.changes) == changes


def test_a_new_rule_is_named() -> None:
    def at_noon(case: Case) -> Answer | None:
        return Wait(0, "it is noon")

    found = differing(history(DONE), with_closing(*HARNESS.closing[:3], at_noon))
    assert [one.changes for one in found] == [
        ("Believed is not in this ladder any more", "at_noon is new: rule 4 of 4")
    ]


def test_a_rule_asked_later_is_named() -> None:
    failing = moved(HARNESS.closing, Failing, len(HARNESS.closing) - 2)
    first = Failing(1)
    policy = with_closing(*(first if isinstance(r, Failing) else r for r in HARNESS.closing))
    later = tuple(first if isinstance(r, Failing) else r for r in failing)
    found = differing(history(CRASH, policy=policy), with_closing(*later))
    (one,) = found
    assert (one.rule, one.rule_now) == ("Failing", "Objections")
    assert one.changes == ("Objections is asked before Failing now, and was asked after it",)


def test_code_that_changes_leaves_nothing_to_name() -> None:
    def believed(case: Case) -> Answer | None:
        return None

    believed.__name__ = "Believed"
    old = tuple(believed if isinstance(r, Believed) else r for r in HARNESS.closing)
    facts = history(WORK, said("<response>DONE</response>"), policy=with_closing(*old))
    (one, *_) = differing(facts, HARNESS)
    assert (one.rule, one.rule_now) == ("carry_on", "Believed")
    assert one.changes[0].startswith("Believed is Believed(")


def test_without_the_ladders_of_then_only_rules_are_named() -> None:
    first, *others = history(WORK, DONE)
    assert isinstance(first, Started)
    facts = [replace(first, ladders=None), *others]
    (one, *_) = differing(facts, with_closing(carry_on))
    assert (one.rule, one.rule_now, one.changes) == ("Believed", "carry_on", ())


def test_the_same_verdict_by_another_rule_is_no_difference() -> None:
    def another(case: Case) -> Answer | None:
        return Continue()

    found = judged(history(WORK, DONE), with_closing(*HARNESS.closing[:-1], another))
    assert not any(one.differs for one in found)
    assert [one.by_another for one in found if one.where == "closing"] == [True, False]


def test_a_ladder_that_is_silent_differs() -> None:
    (one, *_) = differing(history(DONE), replace(HARNESS, opening=()))
    assert (one.where, one.now, one.rule_now) == ("opening", None, "")
    assert one.changes == ("carry_on is not in this ladder any more",)


def test_a_choice_is_judged() -> None:
    other = replace(HARNESS, select=lambda _: Assignment("other"))
    first, *_ = differing(history(DONE), other)
    assert (first.where, first.iteration, first.task) == (SELECTION, 1, "prompt")
    assert first.now == Assignment("other")
    nothing = replace(HARNESS, select=lambda _: None)
    assert differing(history(DONE), nothing)[0].now is None


def test_a_turn_that_is_read_otherwise_is_judged_too() -> None:
    facts = history(WORK, WORK, DONE)
    reread = replace(WORK, claims=find_claims("<response>DONE</response>"))
    (one,) = differing(facts, HARNESS, reread)
    assert (one.iteration, one.rule, one.rule_now) == (1, "carry_on", "Believed")
    assert one.by_reading
    assert one.turn == reread
    assert not differing(facts, HARNESS, replace(WORK, text="other words"))
    (by_rules, _, _) = differing(facts, with_closing(RunLimit(Limits(1))), reread)
    assert not by_rules.by_reading, "rules come first"


def test_a_backlog_that_could_not_be_read_once_is_known_later() -> None:
    """It is the same again by the next opening, so nothing of it is recorded there."""
    world = FakeWorld()
    usable = world.tasks

    def broken(_: Order) -> None:
        world.tasks = Backlog(problem="the prompt file is a directory")

    def mended(_: Case) -> None:
        world.tasks = usable

    policy = harness(Limits(5), gates=(FakeGate(during=mended),))
    facts = play(policy, FakeAgent([WORK, DONE], during=broken), world).facts
    seen = [fact.seen for fact in facts if isinstance(fact, Decided)]
    assert [one.problem is not None for one in seen if one] == [False, True, False, True, False]


def test_a_verdict_tells_the_time_that_its_rules_were_given() -> None:
    """Else the same wait would end at another time."""
    clock = FakeClock(tick=1.0)
    assert play(HARNESS, [(limited(), DONE)], clock=clock).names == "Wait Accept"


def test_what_nobody_recorded_is_not_judged() -> None:
    facts = [
        replace(fact, seen=None) if isinstance(fact, Decided) else fact
        for fact in history(WORK, DONE)
    ]
    assert {one.unjudged for one in judged(facts, with_closing(carry_on))} == {OLD}
    assert {one.unjudged for one in judged(history(DONE)[1:], HARNESS)} == {OLD}, "no settings"


def test_rules_that_look_further_are_not_judged() -> None:
    found = judged(history(WORK, DONE), with_closing(carry_on), Believed="it looked around")
    assert [one.unjudged for one in found if one.rule == "Believed"] == ["it looked around"]
    assert not any(one.differs for one in found)


def test_a_session_keeps_no_turn() -> None:
    policy, journal = session(), MemoryJournal()
    began = Began(1000.0, 0, Assignment("prompt"))
    state = play(HARNESS, [DONE]).state
    stop_hook(policy, fake_ports(FakeAgent([]), FakeWorld(), journal), state, COMPLETE)
    judge = Judge(lambda _f, _s: TodaysRules(policy))
    found = [judge.take(fact) for fact in (began, *journal.facts)]
    assert [one.unjudged for one in found if one] == [LIVE]


def test_a_turn_that_would_be_taken_again_is_judged() -> None:
    """A crash cut it off, and the run's iterations were lowered before it was resumed."""
    world, journal = FakeWorld(), MemoryJournal()
    facts = history(WORK, DONE)
    until = next(at for at, fact in enumerate(facts) if isinstance(fact, Ended))
    lowered = replace(HARNESS, retaking=(RunLimit(Limits(iterations=0)),))
    resumed = Resumed(2000.0, 8, ladders=ladders_of(lowered))
    before = [*facts[:until], resumed]
    run(lowered, fake_ports(FakeAgent([WORK]), world, journal), replay(before))
    (one,) = [one for one in judged([*before, *journal.facts], lowered) if one.where == RETAKING]
    assert not one.differs
    assert isinstance(one.now, Stop)
    later = replace(lowered, retaking=())
    (one,) = [one for one in judged([*before, *journal.facts], later) if one.where == RETAKING]
    assert one.differs
    assert one.now is None


def test_the_verdict_at_an_opening_is_about_the_turn_to_come() -> None:
    found = judged(history(WORK, DONE), HARNESS)
    assert [(one.where, one.iteration) for one in found] == [
        ("opening", 1),
        (SELECTION, 1),
        ("closing", 1),
        ("opening", 2),
        (SELECTION, 2),
        ("closing", 2),
        ("opening", 3),
    ]
    assert isinstance(found[0].then, Continue)
    assert str(Boundary.OPENING) == found[0].where


SENT = Assigned(1001.0, Assignment("prompt"), "r-001", Sight(tasks=(Task("prompt"),), anew=True))
LEAD = Started(1000.0, "r", "tasks", "/w", 7, "1.0", ladders=ladders_of(HARNESS))


def test_sending_a_worker_is_a_choice() -> None:
    (same,) = judged([LEAD, SENT], HARNESS)
    assert (same.where, same.iteration, same.task, same.differs) == (SELECTION, 1, "prompt", False)
    other = replace(HARNESS, select=lambda _: Assignment("other"))
    assert differing([LEAD, SENT], other)[0].now == Assignment("other")
    used_up = replace(HARNESS, opening=(RunLimit(Limits(0)), carry_on))
    (one,) = differing([LEAD, SENT], used_up)
    assert (type(one.now), one.rule_now) == (Stop, "RunLimit")
    assert one.changes == (
        "RunLimit(limits=Limits(iterations=5)) is RunLimit(limits=Limits(iterations=0)) now",
    )
    (old,) = judged([LEAD, replace(SENT, seen=None)], HARNESS)
    assert old.unjudged == OLD
