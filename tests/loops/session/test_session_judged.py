"""The stops of a session are judged again by what was kept of each (ADR 55)."""

from dataclasses import replace

import pytest

from ralph.kernel.judging import OLD
from ralph.kernel.verdict import Accept, Continue, Reason, Stop
from ralph.loops.session import policy
from ralph.loops.session.judged import judged_again
from ralph.loops.session.state import Decision, SessionLoop, loop_of, record_of
from ralph.loops.session.words import Wish

PROMISE = ("<promise>DONE</promise>",)
REJECTED = Decision(0, True, False, "bypass", "Disbelieved", PROMISE)
OBJECTED = Decision(1, True, False, "a gate", "Disbelieved", PROMISE, 3, ("make test",))
SILENT = Decision(2, False, False, "missing", "Remind", (), 3)
ACCEPTED = Decision(3, True, True, "believed", "Believed", PROMISE, 3)
LOOP = SessionLoop("s", Wish("do it"), 1000.0, decisions=(REJECTED, OBJECTED, SILENT, ACCEPTED))


def test_the_same_rules_say_the_same() -> None:
    found = [*judged_again(loop_of(record_of(LOOP)))]
    assert [type(one.then) for one in found] == [Continue, Continue, Continue, Accept]
    assert not any(one.differs for one in found)
    assert [one.iteration for one in found] == [0, 1, 2, 3]


def test_what_happens_without_work_is_part_of_the_wish() -> None:
    wish = replace(LOOP.wish, on_promise_no_work="warn")
    accepted = replace(REJECTED, accepted=True, rule="Believed")
    (one,) = judged_again(replace(LOOP, wish=wish, decisions=(accepted,)))
    assert not one.differs


def test_a_limit_is_told_by_its_rule() -> None:
    wish, over = replace(LOOP.wish, max_iterations=2), replace(SILENT, rule="RunLimit")
    (one,) = judged_again(replace(LOOP, wish=wish, decisions=(over,)))
    assert (one.then, one.now, one.differs) == (Stop(Reason.LIMIT), Stop(Reason.LIMIT), False)


def test_older_decisions_are_not_judged() -> None:
    record = record_of(LOOP)
    record["decisions"] = [{"iteration": 0, "found": True, "accepted": False, "reason": "bypass"}]
    (one,) = judged_again(loop_of(record))
    assert one.unjudged == OLD


def test_another_rule_is_another_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "Disbelieved", lambda *_: lambda case: None)
    found = [one for one in judged_again(LOOP) if one.differs]
    assert [(one.rule, one.rule_now) for one in found] == [("Disbelieved", "Remind")] * 2


def test_a_ladder_that_is_silent_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "Remind", lambda *_: lambda case: None)
    assert [one.now for one in judged_again(LOOP) if one.differs] == [None]
