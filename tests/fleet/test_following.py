"""An attempt as the coordinator follows it: messages in, events and messages out, no machine."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.fleet.executors.following import Following
from ralph.fleet.port import (
    LAST,
    Away,
    Beat,
    CameBack,
    Done,
    Event,
    Failed,
    Job,
    Launched,
    Lost,
    Placed,
    Said,
)
from ralph.kernel.turn import Pulse
from ralph.kernel.verdict import Cut

JOB = Job("1", "r", "T-1", 1, "refs/ralph/r/T-1/1", "a" * 40, "/remote", 60.0)
CUT = Cut("enough", 5.0)
LEASE = 60 / 0.98 + 1


def fresh(*, clear: bool = True) -> Following:
    """One at the time 0."""
    following = Following(JOB, 0.0)
    if clear:
        assert not following.clear(0.0)
    return following


def answer(state: str = "granted", stamp: float = 1000.0, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """What a machine says of it."""
    said = more.pop("said", b"")
    told = {
        "known": True,
        "incarnation": "A",
        "host": "build7",
        "stamp": stamp,
        "state": state,
        "left": None if state == "waiting" else 50.0,
        "launched": None,
        "pulse": None,
        "since": 0,
        "stream": base64.b64encode(said).decode(),
        "size": len(said),
        "result": None,
        "forgotten": False,
    }
    return {**told, **more}


def granted(*, clear: bool = True) -> Following:
    """One that was granted at 1.0, and is heard then."""
    following = fresh(clear=clear)
    following.heard(answer("waiting"), 1.0)
    assert following.request()["grant"] is True
    assert following.heard(answer(stamp=1001.0), 1.0) == [Placed("build7")]
    return following


def test_a_grant_names_an_incarnation_and_a_stamp_of_its_own() -> None:
    following = fresh()
    assert following.request() == {"key": JOB.key, "since": 0}
    assert following.heard(answer("waiting", 1000.0), 1.0) == []
    wanted = {"incarnation": "A", "grant": True, "renew": 1000.0, "lease": 60.0}
    assert following.request() == {"key": JOB.key, "since": 0, **wanted}


def test_another_incarnation_is_refused() -> None:
    following = granted()
    other = answer("waiting", incarnation="B")
    assert following.heard(other, 2.0) == []
    refusal = following.refusal(other)
    assert refusal is not None
    assert (refusal["incarnation"], refusal["cut"]["grace"]) == ("B", 0.0)
    assert "grant" not in refusal
    assert following.heard(answer(stamp=2000.0, incarnation="B", said=b"late"), 2.0) == []
    assert (following.request()["incarnation"], following.request()["renew"]) == ("A", 1001.0)
    assert following.refusal(answer()) is None


def test_one_that_went_before_it_was_granted_leaves_room_for_another() -> None:
    following = fresh()
    following.heard(answer("waiting"), 1.0)
    assert following.heard({"known": False}, 2.0) == []
    following.heard(answer("waiting", incarnation="B"), 3.0)
    assert following.request()["incarnation"] == "B"


def test_nobody_else_is_granted_it_once_a_grant_was_sent() -> None:
    """The machine may have received it."""
    following = fresh()
    following.heard(answer("waiting"), 1.0)
    following.request()
    following.heard({"known": False}, 2.0)
    following.heard(answer("waiting", incarnation="B"), 3.0)
    assert following.request()["incarnation"] == "A"
    assert not following.is_over(1.0 + LEASE)
    assert following.is_over(1.1 + LEASE)


def test_what_someone_before_us_may_have_lent_is_waited_for() -> None:
    following = fresh(clear=False)
    assert not following.may_begin(LEASE)
    assert following.heard(answer("waiting"), 1.0) == []
    assert "incarnation" not in following.request()
    following.heard(answer("waiting"), LEASE + 0.1)
    assert following.request()["grant"] is True


def test_what_lives_is_taken_up_at_once() -> None:
    following = fresh(clear=False)
    assert following.heard(answer(said=b"hello"), 1.0) == [Placed("build7"), Said(b"hello")]
    assert following.request()["renew"] == 1000.0
    assert following.request()["since"] == 5


def test_events_come_in_their_order() -> None:
    following = granted()
    launched = {"dialect": "claude", "agent": "claude", "model": "m"}
    pulse = {"seconds": 1.0, "idle": 0.5}
    now = answer(stamp=1002.0, launched=launched, pulse=pulse, said=b"hello")
    seen = following.heard(now, 2.0)
    assert seen == [Launched("claude", "claude", "m"), Said(b"hello"), Beat(Pulse(1.0, 0.5))]
    assert following.heard(now, 2.0) == [], "the same answer, twice"
    assert following.heard(answer(stamp=1003.0, since=5, said=b"!", size=6), 3.0) == [Said(b"!")]


def test_the_end_is_told_when_all_was_read_and_it_is_forgotten() -> None:
    following = granted()
    ended = {"result": {"commit": "c1"}}
    assert following.heard(answer("ended", 1002.0, said=b"ab", size=4, **ended), 2.0) == [
        Said(b"ab")
    ]
    assert following.hurry
    assert "forget" not in following.request()
    more = answer("ended", 1003.0, since=2, said=b"cd", size=4, **ended)
    assert following.heard(more, 2.1) == [Said(b"cd")]
    assert following.request()["forget"] is True
    last = answer("ended", 1004.0, since=4, size=4, forgotten=True, **ended)
    assert following.heard(last, 2.2) == [Done("c1")]
    assert following.is_over(2.2)
    assert following.heard(last, 2.3) == following.silent(1e9) == []


@pytest.mark.parametrize("end", [{"known": False}, None])
def test_the_end_is_told_if_the_machine_is_gone_since(end: dict[str, Any] | None) -> None:
    following = granted()
    following.heard(answer("ended", 1002.0, result={"why": "x", "passes": True}), 2.0)
    seen = following.silent(8.0) if end is None else following.heard(end, 2.1)
    assert seen == [Failed("x", passes=True)]


def test_silence_is_told_and_then_lost() -> None:
    following = granted()
    following.request()
    assert following.silent(4.0) == []
    assert following.silent(7.0) == [Away(6.0)]
    assert following.silent(8.0) == []
    assert following.heard({"known": False}, 13.0) == [Away(12.0)]
    assert following.heard(answer(stamp=1014.0), 14.0) == [Away(0.0)]
    following.request()
    assert not [e for e in following.silent(14.0 + LEASE) if isinstance(e, LAST)]
    [lost] = following.silent(14.1 + LEASE)
    assert isinstance(lost, Lost)
    assert "build7" in lost.why


def test_what_was_lost_and_is_heard_again_is_told_once() -> None:
    following = fresh()
    following.heard(answer("waiting"), 0.0)
    following.request()
    following.heard(answer(), 1.0)
    assert isinstance(following.silent(2 * LEASE)[-1], Lost)
    assert following.heard(answer(incarnation="B"), 2 * LEASE) == [], "another one"
    assert following.heard({"known": False, "stamp": 1.0}, 2 * LEASE) == []
    assert following.heard(answer("ended", 1500.0, result={"commit": "c"}), 2 * LEASE) == [
        CameBack("build7")
    ]
    assert following.heard(answer(stamp=1600.0), 2 * LEASE) == []
    assert isinstance(following.ended, Lost)


def test_a_cut_is_said_until_the_end_and_the_shortest_grace_counts() -> None:
    following = granted()
    assert following.cut(CUT, 2.0) == []
    following.cut(Cut("at once", 1.0), 2.1)
    following.cut(Cut("slowly", 9.0), 2.2)
    for _ in range(2):
        assert following.request()["cut"] == {"why": "at once", "grace": 1.0}
    assert "renew" in following.request(), "it may take longer than its lease"


def test_a_cut_before_the_grant_ends_it_and_nothing_is_granted() -> None:
    following = fresh()
    assert following.cut(CUT, 1.0) == [Failed("enough")]
    waiting = answer("waiting")
    assert following.heard(waiting, 1.0) == []
    assert following.refusal(waiting) is not None
    assert not following.may_begin(1e9)


def test_a_cut_of_what_somebody_may_have_waits_for_its_lease() -> None:
    following = fresh(clear=False)
    assert following.cut(CUT, 1.0) == []
    assert following.silent(LEASE) == []
    assert following.silent(LEASE + 0.1) == [Failed("enough")]
    other = fresh(clear=False)
    other.cut(CUT, 1.0)
    assert other.clear(1.0) == [Failed("enough")]


@pytest.mark.parametrize("wrong", [{"stream": "%"}, {"since": None}, {"stamp": "now"}, {"host": 3}])
def test_an_answer_that_cannot_be_understood_is_none(wrong: dict[str, object]) -> None:
    following = granted()
    assert following.heard({**answer(stamp=1002.0, said=b"x"), **wrong}, 2.0) == []
    assert following.request()["renew"] == 1001.0


def test_one_that_somebody_has_is_not_cleared() -> None:
    following = granted()
    assert following.clear(2.0) == []
    assert not following.may_begin(2.0)


def test_a_refusal_of_the_machine_is_no_end_of_what_lives() -> None:
    assert fresh().refused(Failed("x")) == [Failed("x")]
    assert granted().refused(Failed("x")) == []


ODD: st.SearchStrategy[object] = st.sampled_from(
    [None, True, -1, 0, 3.5, float("nan"), 10**400, "", "x", "granted", "ended", [], {}]
)
FIELDS = [*answer(), "more"]


@given(st.lists(st.dictionaries(st.sampled_from(FIELDS), ODD), max_size=20))
def test_whatever_a_machine_says_there_is_one_end(odd: list[dict[str, Any]]) -> None:
    following = granted()
    seen: list[Event] = []
    for number, wrong in enumerate(odd):
        following.request()
        seen += following.heard({**answer(stamp=1002.0 + number), **wrong}, 2.0 + number)
    seen += following.silent(1e6)
    ends = [isinstance(event, LAST) for event in seen]
    assert sum(ends) == 1, seen
    assert ends[-1], seen


def test_a_machine_that_lies_about_its_lease_is_lost_all_the_same() -> None:
    following = fresh()
    following.heard(answer("waiting"), 1.0)
    following.request()
    following.heard(answer(stamp=1001.0, left=1e12), 1.0)
    assert [type(each) for each in following.silent(1.0 + LEASE + 0.1)] == [Lost]


@pytest.mark.parametrize("name", ["seconds", "idle", "since_result", "dollars"])
def test_nothing_of_a_pulse_is_negative(name: str) -> None:
    """Others would be given what a turn says that it has brought in."""
    pulse = {"seconds": 1.0, "idle": 0.0, "since_result": None, "dollars": 0.5}
    assert granted().heard(answer(stamp=1002.0, pulse=pulse), 2.0)
    assert not granted().heard(answer(stamp=1002.0, pulse={**pulse, name: -1.0}), 2.0)
