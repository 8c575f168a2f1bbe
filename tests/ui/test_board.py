"""The lines of several workers at the bottom of a terminal: what a person sees."""

import threading
from collections.abc import Iterator

import pytest

from kits.screen_model import Screen, Terminal
from ralph.kernel.events import Text, ToolEnd, ToolStart, Used
from ralph.kernel.facts import (
    Assigned,
    Began,
    Checking,
    Decided,
    Ended,
    Fact,
    Launching,
    Moved,
    Returned,
    Settled,
    Started,
    Step,
)
from ralph.kernel.limits import Spent
from ralph.kernel.state import NEW, RunState, replay
from ralph.kernel.tasks.task import Assignment, Backlog, Status, Task
from ralph.kernel.turn import Role, Turn
from ralph.kernel.verdict import Accept, Boundary, Continue, Park, Reason, Stop, Wait
from ralph.kernel.world import Signals
from ralph.ui.console import Console
from ralph.ui.lines import Briefing
from ralph.ui.live.activity import Activity, Board
from ralph.ui.style import Style

NOW = 1_700_000_000.0
WORKER = Briefing(iterations=10, guardrails=frozenset({"make test"}), tasks=True, worker=True)
STARTED = Started(NOW, "r1", "tasks", "/w", 7, "1.0", workers=2)
LAUNCHED = Launching(NOW, Role.WORK, "claude", "/s")
FLOOD = 2000
BASH = ToolStart("1", "Bash", "make all")
MOVED = Moved(NOW, "{}")
REFUSED = Step(NOW, "merge", ok=False)
ACCEPTED = Decided(NOW, Boundary.CLOSING, Accept(("claimed",)))


def began(task: str, iteration: int = 1) -> Began:
    return Began(NOW, iteration, Assignment(task))


def assigned(task: str) -> Assigned:
    return Assigned(NOW, Assignment(task), f"r1-{task}")


class Shown:
    """A console with a board on one terminal, and a time that a test sets."""

    def __init__(self, height: int = 24) -> None:
        self.screen = Screen(80)
        self.height = height
        self.time = NOW
        self.err = Terminal(self.screen)
        self.board = Board(lambda: self.time)
        self.console = Console(
            Terminal(self.screen),
            self.err,
            Style(emoji=True, color=True),
            stream=True,
            verbose=False,
            briefing=Briefing(iterations=10, tasks=True),
            clock=lambda: self.time,
            width=lambda: self.screen.width,
            height=lambda: self.height,
            lock=threading.RLock(),
            board=self.board,
        )
        self.console.on_fact(STARTED)

    def send(self, task: str, *facts: Fact, state: RunState = NEW) -> Activity:
        """A worker that has come so far."""
        self.console.on_fact(assigned(task))
        follower = self.board.follow(task, WORKER, state)
        for fact in facts:
            follower.on_fact(fact)
        return follower

    def beat(self, seconds: float = 0.0, own: int = 0, asked: Signals = Signals()) -> list[str]:
        """Let time pass, and look; without the marks in front."""
        self.time += seconds
        self.console.beat(asked, Signals(own))
        return [line[2:] if line[1:2] == " " else line for line in self.lines()]

    def lines(self) -> list[str]:
        return self.screen.lines()


@pytest.fixture
def shown() -> Iterator[Shown]:
    made = Shown()
    with made.console.live():
        yield made


def test_each_worker_has_a_line_below_a_summary(shown: Shown) -> None:
    """ "ONE LINE FOR EACH worker under a summary"."""
    first = shown.send("T-1", began("T-1"), LAUNCHED)
    shown.send("T-2", STARTED)
    shown.board.look(Backlog(tuple(Task(f"T-{n}") for n in range(1, 6))))
    first.on_events([BASH])
    assert shown.beat(12)[1:] == [
        "0 of 5 done · 12s",
        "T-1 1/10 · Bash(make all) 12s",
        "T-2 · starting 12s",
    ]
    first.on_events([ToolEnd("1"), Used(cost_usd=0.25)])
    assert shown.beat(3)[1:3] == [
        "0 of 5 done · 15s · $0.25",
        "T-1 1/10 · thinking 3s · turn 15s · $0.25",
    ]


def test_who_is_back_is_gone_and_counted(shown: Shown) -> None:
    shown.board.look(Backlog((Task("T-1"), Task("T-2"), Task("T-3", status=Status.DONE))))
    for task in ("T-1", "T-2"):
        shown.send(task, began(task), LAUNCHED)
    shown.console.on_fact(
        Returned(NOW, "T-1", "r1-T-1", Accept(("claimed",)), Spent(2, dollars=1.5))
    )
    shown.board.look(Backlog((Task("T-1", status=Status.DONE), Task("T-2"))))
    assert shown.beat()[-2:] == ["1 of 2 done · 0s · $1.50", "T-2 1/10 · thinking 0s"]
    shown.console.on_fact(Returned(NOW, "T-2", "r1-T-2", Park("no")))
    assert shown.beat()[-1] == "1 of 2 done, 1 left to you · 0s · $1.50"
    shown.console.on_fact(Settled(NOW, Stop(Reason.BLOCKED)))
    assert "2 iterations" in "".join(shown.beat())


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ((ACCEPTED,), "waiting for its turn to merge"),
        ((ACCEPTED, MOVED), "merging"),
        ((ACCEPTED, MOVED, Checking(NOW, "make test")), "guardrail: make test"),
        ((ACCEPTED, Step(NOW, "record")), "merging"),
        ((ACCEPTED, REFUSED, Settled(NOW, Continue())), "finishing the iteration"),
        ((Decided(NOW, Boundary.CLOSING, Continue()),), "finishing the iteration"),
    ],
)
def test_what_a_worker_does_when_its_agent_has_done(
    shown: Shown, facts: tuple[Fact, ...], words: str
) -> None:
    shown.send("T-1", began("T-1"), LAUNCHED, Ended(NOW, Turn()), *facts)
    assert shown.beat(4)[-1] == f"T-1 1/10 · {words} 4s"


def test_one_that_is_resumed_goes_on_where_it_was(shown: Shown) -> None:
    before = replay((began("T-1"), Ended(NOW, Turn(cost_usd=2.0))))
    shown.send("T-1", began("T-1", 2), LAUNCHED, state=before)
    assert shown.beat()[-2:] == ["0 done · 0s · $2.00", "T-1 2/10 · thinking 0s · $2.00"]


@pytest.mark.parametrize(
    ("own", "asked", "words"),
    [
        (1, Signals(), "stopping after these turns (Ctrl+C again: at once) · 0 done · 0s"),
        (0, Signals(1), "stopping after these turns (ralph stop --now: at once) · 0 done · 0s"),
        (2, Signals(), "stopping now · 0 done · 0s"),
        (0, Signals(paused=True), "pausing before the next turns · 0 done · 0s"),
    ],
)
def test_who_asks_is_told_that_it_was_heard(
    shown: Shown, own: int, asked: Signals, words: str
) -> None:
    shown.send("T-1", began("T-1"), LAUNCHED)
    assert shown.beat(own=own, asked=asked)[-2:] == [words, "T-1 1/10 · thinking 0s"]


def test_it_has_paused_when_all_have(shown: Shown) -> None:
    shown.send("T-1", Decided(NOW, Boundary.OPENING, Wait(None, "paused")))
    lines = shown.beat(asked=Signals(paused=True))
    assert lines[-2] == "paused: ralph resume goes on · 0 done · 0s"
    assert lines[-1] == "T-1 · paused: ralph resume goes on"


def test_they_stand_in_the_order_in_which_they_were_sent(shown: Shown) -> None:
    """Whichever thread began first."""
    for task in ("T-1", "T-2"):
        shown.console.on_fact(assigned(task))
    for task in ("T-2", "T-1"):
        shown.board.follow(task, WORKER, NEW)
    assert shown.beat()[-2:] == ["T-1 · starting 0s", "T-2 · starting 0s"]


def test_what_workers_write_lands_above(shown: Shown) -> None:
    """No remnant is left, whoever writes to which stream."""
    for task in ("T-1", "T-2"):
        shown.send(task, began(task), LAUNCHED)
    for n in range(30):
        shown.console.relay(f"T-1 | line {n}\n", out=n % 2 == 0)
        shown.beat(n % 3)
    lines = shown.lines()
    assert lines[:30] == [f"T-1 | line {n}" for n in range(30)]
    assert len(lines) == 34
    shown.console.on_fact(Settled(NOW, Stop(Reason.COMPLETED)))
    assert all(line.startswith(("T-1 |", "[ralph]")) for line in shown.lines() if line)


def test_it_stays_while_workers_say_much(shown: Shown) -> None:
    """It must "never flicker": what cannot be drawn below yet is held back for a moment."""
    shown.send("T-1", began("T-1"), LAUNCHED)
    shown.beat()
    there = 0
    for n in range(FLOOD):
        shown.console.relay(f"T-1 | line {n}\n", out=True)
        shown.time += 1 / FLOOD
        there += shown.lines()[-1].endswith("T-1 1/10 · thinking 0s")
    assert there > FLOOD - 10
    assert len(shown.err.writes) < 150
    shown.beat(1)
    assert shown.lines()[:FLOOD] == [f"T-1 | line {n}" for n in range(FLOOD)]


def test_what_is_held_back_is_told_before_anything_else(shown: Shown) -> None:
    """Also when the run ends, and when it is much."""
    shown.send("T-1", began("T-1"), LAUNCHED)
    for n in range(99):
        shown.console.relay(f"T-1 | line {n}\n", out=n % 2 == 0)
    shown.console.note("mine")
    for _ in range(99):
        shown.console.relay("T-1 | last\n", out=True)
    with shown.console.live():
        pass
    lines = [line for line in shown.lines() if line]
    assert lines == [*(f"T-1 | line {n}" for n in range(99)), "[ralph] mine", *["T-1 | last"] * 99]
    shown.console.relay("afterwards\n", out=False)
    assert shown.lines()[-1] == "afterwards"


def test_a_resized_window_is_followed(shown: Shown) -> None:
    """It "must follow resizing" and "never wrap"."""
    follower = shown.send("T-1", began("T-1"), LAUNCHED)
    follower.on_events([ToolStart("1", "Bash", "x" * 200)])
    for width in (40, 120, 20, 80):
        shown.screen.width = width
        shown.beat(1)
        assert len(shown.lines()[-1]) == width - 1
        assert len([line for line in shown.lines() if line]) == 2
    assert shown.screen.wrapped == 0


@pytest.mark.parametrize(
    ("height", "last", "count"),
    [
        (24, "T-9 · starting 0s", 10),
        (10, "and 6 more", 5),
        (4, "and 9 more", 2),
        (3, "0 done · 0s", 1),
        (0, "T-9 · starting 0s", 10),
    ],
)
def test_they_take_at_most_half_of_the_window(height: int, last: str, count: int) -> None:
    shown = Shown(height)
    with shown.console.live():
        for n in range(1, 10):
            shown.send(f"T-{n}")
        lines = [line for line in shown.beat() if line]
    assert (lines[-1], len(lines)) == (last, count)


def test_each_drawing_is_one_write(shown: Shown) -> None:
    """A write is what a `kill -9` cannot tear apart, and what does not flicker."""
    for task in ("T-1", "T-2"):
        shown.send(task, began(task), LAUNCHED)
    shown.beat()
    before = len(shown.err.writes)
    shown.beat(1)
    (drawing,) = shown.err.writes[before:]
    assert "\x1b[J" not in drawing.removesuffix("\x1b[J\x1b[?7h\r\x1b[A\x1b[A\x1b[A")
    assert shown.screen.wraps


def test_a_worker_is_asked_while_it_goes_on(shown: Shown) -> None:
    """Its thread tells it thousands of events; the foreman's asks what it does."""
    follower = shown.send("T-1", began("T-1"), LAUNCHED)
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for n in range(3000):
                follower.on_events([ToolStart(str(n), "Bash", "x"), ToolStart("a", "Read", "y")])
                follower.on_events([ToolEnd(str(n)), Text("z")])
        except BaseException as error:  # noqa: BLE001  the test tells
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        assert follower.moment() is not None
        shown.beat(1)
    thread.join()
    assert not failed
    last = follower.moment()
    assert last is not None
    assert last.which == "T-1 1/10"


def test_a_task_of_any_name_is_safe_to_show(shown: Shown) -> None:
    shown.send("T\x1b[31m-1\n2")
    assert shown.beat()[-1] == "T-1 2 · starting 0s"
