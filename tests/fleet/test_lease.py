"""Whatever becomes of messages and clocks, no attempt is called lost that its machine may have."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from ralph.fleet.lease import RATE, Held, Lent

seconds = st.floats(0, 90)


@dataclass(frozen=True)
class Poll:
    """One question of the coordinator and its answer, with what becomes of them."""

    gap: float  # seconds since the one before was sent
    there: float | None  # how long it takes to the machine; None: it is lost
    back: float | None
    restart: bool = False  # the coordinator was killed before it, and another goes on


polls = st.builds(
    Poll,
    gap=st.floats(0, 40),
    there=st.none() | seconds,
    back=st.none() | seconds,
    restart=st.booleans(),
)
prompt = st.builds(Poll, gap=st.floats(0, 5), there=st.floats(0, 1), back=st.floats(0, 1))


@dataclass
class World:
    """A coordinator and a machine, each with a clock of its own, and the messages between them."""

    lease: float
    rate: float  # of the machine's clock, where that of the coordinator is 1
    ahead: float  # of the machine's clock
    held: Held = Held()
    lent: Lent = Lent(0.0)
    now: float = 0.0
    due: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    count: int = 0

    def there(self) -> float:
        return self.ahead + self.now * self.rate

    def at(self, when: float, what: Callable[[], None]) -> None:
        self.count += 1
        heapq.heappush(self.due, (when, self.count, what))

    def play(self, script: list[Poll]) -> None:
        self.lent = Lent(self.lease)
        when = 0.0
        for poll in script:
            when += poll.gap
            self.at(when, lambda poll=poll: self.ask(poll))  # type: ignore[misc]
        while self.due:
            self.now, _, what = heapq.heappop(self.due)
            what()
            self.judge()

    def ask(self, poll: Poll) -> None:
        if poll.restart:
            self.lent = Lent(self.lease).held_from(self.now)
        named = self.lent.stamp
        if named is not None:
            if self.lent.is_over(self.now):
                return  # it has said that the attempt is lost
            self.lent = self.lent.lending()
        if poll.there is not None:
            self.at(self.now + poll.there, lambda: self.arrive(named, poll))

    def arrive(self, named: float | None, poll: Poll) -> None:
        now = self.there()
        if named is not None:
            self.held = self.held.renewed(named, self.lease, now)
        left = None if self.held.until is None else max(0.0, self.held.until - now)
        if poll.back is not None:
            self.at(self.now + poll.back, lambda: self.hear(now, left))

    def hear(self, stamp: float, left: float | None) -> None:
        if not self.lent.is_over(self.now):
            self.lent = self.lent.hearing(stamp, left, self.now)

    def judge(self) -> None:
        """What the coordinator takes for over is over, now and if nothing more is ever heard."""
        if self.held.until is None or self.held.is_over(self.there()):
            return
        ends = (self.held.until - self.ahead) / self.rate
        assert self.lent.over is not None, "the machine may go on, and nobody has lent it anything"
        assert ends <= self.lent.over, f"it may go on until {ends}, and is lost at {self.lent.over}"


@given(
    script=st.lists(polls | prompt, max_size=30),
    lease=st.floats(1, 300),
    rate=st.floats(1 - RATE, 1 + RATE),
    ahead=st.floats(1, 1e6),
)
def test_nothing_lives_that_is_called_lost(
    script: list[Poll], lease: float, rate: float, ahead: float
) -> None:
    World(lease, rate, ahead).play(script)


def test_a_clock_that_runs_slow_is_waited_for() -> None:
    World(3000.0, 1 - RATE, 5.0).play([Poll(0.0, 0.0, 0.0), Poll(1.0, 0.0, 0.0)])


def test_a_renewal_counts_from_the_stamp_that_it_names() -> None:
    held = Held().renewed(100.0, 60.0, 130.0)
    assert held.until == 160.0
    assert not held.is_over(159.9)
    assert held.is_over(160.0)


def test_a_lease_never_becomes_shorter_and_never_comes_back() -> None:
    held = Held().renewed(100.0, 60.0, 101.0)
    assert held.renewed(90.0, 60.0, 102.0) == held, "an old one arrives late"
    assert held.renewed(150.0, 60.0, 160.0) == held, "it is over"
    assert held.renewed(170.0, 60.0, 155.0) == held, "a stamp that is none of ours"
    assert held.renewed(150.0, 60.0, 159.0).until == 210.0


def test_a_grant_that_comes_too_late_grants_nothing() -> None:
    assert Held().renewed(100.0, 60.0, 160.0).until is None


def test_a_machine_kills_before_the_end() -> None:
    held = Held().renewed(100.0, 60.0, 100.0)
    assert not held.is_killing(157.9)
    assert held.is_killing(158.0)
    assert Held().renewed(100.0, 5.0, 100.0).is_killing(104.0)
    assert not Held().is_killing(1e9)


def test_nothing_is_lost_that_was_never_lent() -> None:
    assert not Lent(60.0).is_over(1e9)
    heard = Lent(60.0).hearing(5.0, None, 10.0)
    assert not heard.is_over(1e9)
    assert heard.lending().is_over(10.0 + 60.0 / (1 - RATE) + 1.1)


def test_whoever_goes_on_counts_what_others_have_lent() -> None:
    lent = Lent(5.0).hearing(1000.0, 300.0, 10.0)
    assert not lent.is_over(310.0)
    assert lent.is_over(10.0 + 300.0 / (1 - RATE) + 1.1)
