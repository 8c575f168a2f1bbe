"""What goes on now, in words: facts and events in, one moment out."""

import time
from collections.abc import Iterator

import pytest

from ralph.kernel.events import (
    AgentEvent,
    Failure,
    RateLimited,
    Result,
    Retry,
    Text,
    Thinking,
    ToolEnd,
    ToolStart,
    Used,
)
from ralph.kernel.facts import (
    Began,
    Checked,
    Checking,
    Decided,
    Ended,
    Fact,
    Fared,
    Launching,
    Resumed,
    Sent,
    Settled,
    Step,
)
from ralph.kernel.state import NEW, fold
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Role, Turn
from ralph.kernel.verdict import Boundary, Continue, Reason, Stop, Wait
from ralph.kernel.world import Signals
from ralph.ui.lines import Briefing
from ralph.ui.live.activity import Activity, Doing

KEY = "sk-" + "a" * 40  # shaped like one

NOW = 1_700_000_000.0  # 22:13:20 UTC
BEGAN = Began(NOW, 3, Assignment("prompt"))
LAUNCHED = Launching(NOW, Role.WORK, "claude", "/s")
ENDED = Ended(NOW, Turn(cost_usd=0.5))
LIMITED = Turn(failure=Failure("Too many", status=429))
BASH = ToolStart("1", "Bash", "make test")
NOBODY = Signals()


class Watched:
    """A run whose time a test sets, and what a person would be told about it."""

    def __init__(self, *history: Fact | AgentEvent | float) -> None:
        self.now = NOW
        self.activity = Activity(
            Briefing(iterations=10, guardrails=frozenset({"make check"})),
            lambda: self.now,
        )
        for happened in history:
            self.see(happened)

    def see(self, happened: Fact | AgentEvent | float) -> None:
        """A number is a time to pass."""
        if isinstance(happened, float):
            self.now += happened
        elif isinstance(happened, Fact):
            self.activity.on_fact(happened)
        else:
            self.activity.on_events([happened])

    def moment(self, own: Signals = NOBODY, asked: Signals = NOBODY) -> Doing:
        found = self.activity.moment(own, asked)
        assert found is not None
        return found

    def words(self, own: Signals = NOBODY, asked: Signals = NOBODY) -> str:
        found = self.moment(own, asked)
        return " · ".join((found.what + found.how_long, *found.more))


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    ("history", "words"),
    [
        ((), "starting 0s"),
        ((BEGAN, 2.0), "starting the agent 2s"),
        ((Resumed(NOW, 7), 2.0), "resuming 2s"),
        ((Resumed(NOW, 7), 9.0, LAUNCHED, 2.0, BASH, 3.0), "Bash(make test) 3s · turn 5s"),
        ((BEGAN, ENDED, Resumed(NOW, 7), Checking(NOW, "x"), 9.0), "check: x 9s · $0.50"),
        ((BEGAN, LAUNCHED, 12.0), "thinking 12s"),
        ((BEGAN, Launching(NOW, Role.WORK, "text", "/s"), 5.0), "working 5s"),
        ((BEGAN, LAUNCHED, 130.0), "silent for 2m10s"),
        ((BEGAN, 60.0, BASH, 41.0), "Bash(make test) 41s · turn 1m41s"),
        ((BEGAN, 60.0, BASH, 400.0), "Bash(make test) 6m40s · turn 7m40s"),
        ((BEGAN, 5.0, BASH, 2.0, ToolEnd("1"), 3.0), "thinking 3s · turn 10s"),
        ((BEGAN, BASH, 5.0, ToolStart("2", "Read"), 2.0), "Read 2s (+1) · turn 7s"),
        ((BEGAN, BASH, ToolStart("2", "Read"), ToolEnd("2"), 2.0), "Bash(make test) 2s"),
        ((BEGAN, 9.0, Thinking("hm"), 1.0), "thinking 1s · turn 10s"),
        ((BEGAN, 9.0, Text("hm"), 1.0), "thinking 1s · turn 10s"),
        ((BEGAN, BASH, 9.0, Result(), 1.0), "ending the turn 1s · turn 10s"),
        ((BEGAN, Retry(2, 10, 30.0), 12.0), "retry 2/10: 18s left, until 22:13:50"),
        ((BEGAN, Retry(2), 12.0), "retry 2 12s"),
        ((BEGAN, RateLimited("x", NOW + 90)), "rate limited: 1m30s left, until 22:14:50"),
        ((BEGAN, RateLimited("x"), Text("on")), "thinking 0s"),
        ((BEGAN, ENDED, 2.0), "checking 2s · $0.50"),
        ((BEGAN, ENDED, Checking(NOW, "make check"), 7.0), "guardrail: make check 7s · $0.50"),
        ((BEGAN, ENDED, Checking(NOW, "protect"), 1.0), "check: protect 1s · $0.50"),
        (
            (BEGAN, ENDED, Checked(NOW, "make check", 1.0), 1.0),
            "finishing the iteration 1s · $0.50",
        ),
        (
            (BEGAN, ENDED, Launching(NOW, Role.MESSAGE, "text", "/s"), 8.0),
            "writing the commit message 8s · $0.50",
        ),
        (
            (BEGAN, ENDED, Step(NOW, "scm:message", cost_usd=0.25), 1.0),
            "finishing the iteration 1s · $0.75",
        ),
        ((BEGAN, Used(cost_usd=0.2), Used(cost_usd=0.1), Used()), "thinking 0s · $0.30"),
        ((BEGAN, Used(cost_usd=0.2), Result(cost_usd=0.5)), "ending the turn 0s · $0.50"),
        ((BEGAN, Used(cost_usd=0.2), ENDED), "checking 0s · $0.50"),
    ],
)
def test_each_thing_that_goes_on(
    history: tuple[Fact | AgentEvent | float, ...], words: str
) -> None:
    assert Watched(*history).words() == words


def test_the_iteration_is_named_once_there_is_one() -> None:
    """H §Verbose Output: `1/10`."""
    assert Watched().moment().which == ""
    assert Watched(BEGAN).moment().which == "3/10"


def waiting(verdict: Wait | Continue, turn: Turn = LIMITED) -> Watched:
    decided = Decided(NOW, Boundary.CLOSING, verdict)
    return Watched(BEGAN, Ended(NOW, turn), decided, Settled(NOW, verdict))


def test_of_a_backlog_the_task_is_named_with_its_own_iteration() -> None:
    """B §Real-time: current task, current iteration."""
    briefing = Briefing(iterations=10, tasks=True)
    state = fold(NEW, Began(NOW, 7, Assignment("T-3", "Sort")))
    assert (briefing.where(NEW), briefing.where(state)) == ("", "T-3 1/10")
    own = fold(NEW, Began(NOW, 7, Assignment("T-3", "Sort", most=2)))
    assert briefing.where(own) == "T-3 1/2"


def test_a_rate_limit_counts_down() -> None:
    run = waiting(Wait(NOW + 751, "Too many"))
    assert run.words() == "rate limited: 12m31s left, until 22:25:51"
    assert run.moment().still
    run.see(31.0)
    assert run.words() == "rate limited: 12m left, until 22:25:51"
    run.see(715.0)
    assert run.words() == "rate limited: 5s left, until 22:25:51"


def test_other_waits_say_why() -> None:
    wait = Wait(NOW + 5, "the service is busy.")
    assert waiting(wait, Turn()).words() == "the service is busy: 5s left, until 22:13:25"
    pause = Continue(after=60)
    words = "waiting before the next turn: 1m left, until 22:14:20"
    assert waiting(pause, Turn()).words() == words


def test_a_pause_says_how_it_ends() -> None:
    run = Watched(Decided(NOW, Boundary.OPENING, Wait(None, "paused")), 500.0)
    assert run.words() == "paused: ralph resume goes on"
    assert run.moment().still


@pytest.mark.parametrize(
    ("own", "asked", "words"),
    [
        (1, 0, "stopping after this turn (Ctrl+C again: at once) · Bash(make test) 4s"),
        (0, 1, "stopping after this turn (ralph stop --now: at once) · Bash(make test) 4s"),
        (1, 1, "stopping after this turn (Ctrl+C again: at once) · Bash(make test) 4s"),
        (2, 0, "stopping now · Bash(make test) 4s"),
        (0, 2, "stopping now · Bash(make test) 4s"),
    ],
)
def test_who_asked_to_stop_is_told_what_is_waited_for(own: int, asked: int, words: str) -> None:
    """ADR 7: the first signal lets the current operation finish, the second does not."""
    run = Watched(BEGAN, BASH, 4.0)
    assert run.words(Signals(own), Signals(asked)) == words


def test_a_signal_waits_for_the_guardrail_too() -> None:
    run = Watched(BEGAN, Ended(NOW, Turn()), Checking(NOW, "make check"), 4.0)
    words = "stopping after this guardrail (Ctrl+C again: at once) · guardrail: make check 4s"
    assert run.words(Signals(1)) == words


def test_when_all_is_over_nothing_goes_on() -> None:
    run = Watched(BEGAN, ENDED, Settled(NOW, Stop(Reason.COMPLETED)))
    assert run.activity.moment() is None


def test_what_an_agent_says_is_one_clean_line_without_secrets() -> None:
    """ADR 13: key-shaped values are redacted from everything people read."""
    tool = ToolStart("1", "Bash", f"\x1b[2Jecho \\\n\t {KEY}\u202e")
    assert Watched(tool).words() == "Bash(echo \\ [redacted]) 0s"


def test_an_old_attempt_that_comes_back_is_not_what_goes_on() -> None:
    sent = Sent(NOW, 2, "refs/ralph/r/T-1/2", "a" * 40)
    watched = Watched(BEGAN, sent, Fared(NOW, 2, "placed", "build-7"))
    before = watched.words()
    watched.see(Fared(NOW, 1, "ignored", "build-6"))
    assert watched.words() == before
