"""Requests of people: heard once, notes told once, and a pause that wires anew (ADR 38)."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kits.histories import COMPLETE, CRASH, CUT, DONE, MISSING, WORK, limited
from kits.loop_fakes import FakeWorkbench
from ralph.kernel.engine import run
from ralph.kernel.facts import Asked, Began, Decided, Fact, Resumed, Settled
from ralph.kernel.limits import Limits
from ralph.kernel.rules import Patience
from ralph.kernel.state import NEW, RunState, replay
from ralph.kernel.tasks.task import Assignment, Backlog, Task
from ralph.kernel.turn import Order, Turn
from ralph.kernel.verdict import Reason, Wait
from ralph.kernel.world import (
    ANSWER,
    NOTE,
    PAUSE,
    RESUME,
    STOP,
    Origin,
    Request,
    Signals,
    Snapshot,
    of_worker,
)
from ralph.loops.backlog.policy import Bounds, tasks
from ralph.loops.prompt.policy import harness
from ralph.testing.fakes import (
    FakeAgent,
    FakeClock,
    FakeGate,
    FakeWorld,
    KilledError,
    MemoryJournal,
    fake_ports,
)

FIVE = harness(Limits(iterations=5), Patience(max_wait=1e6))
ONE = Assignment("prompt")
TOLD = "A note from the person you work for:\n"


def asked(request: str, number: int = 1, text: str = "", task: str = "") -> Request:
    return Request(f"{request}-{number}", request, Origin.WEB, 900.0, text, task)


def note(number: int, task: str = "") -> Request:
    return asked(NOTE, number, f"Mind {number}.", task)


class Desk:
    """A run on fakes to which somebody says something; what is said stays there, as a file that
    nobody removes would."""

    def __init__(self, *turns: Turn | tuple[Turn, ...]) -> None:
        self.agent, self.world, self.policy = FakeAgent(turns), FakeWorld(), FIVE
        self.clock, self.journal = FakeClock(tick=1.0), MemoryJournal()

    def says(self, *requests: Request, paused: bool = False) -> None:
        self.world.asked = Signals(
            cancels=sum(each.request == STOP for each in requests),
            paused=paused,
            requests=(*self.world.asked.requests, *requests),
        )

    def during(self, said: Mapping[int, Request]) -> None:
        """Say these while the agent takes its n-th turn."""

        def speak(_: Order) -> None:
            if (request := said.get(len(self.agent.orders))) is not None:
                self.says(request)

        self.agent.during = speak

    def run(self, state: RunState = NEW) -> RunState:
        ports = fake_ports(self.agent, self.world, self.journal, self.clock)
        return run(self.policy, ports, state)

    @property
    def told(self) -> list[list[str]]:
        """By turn, the notes in its prompt."""
        return [
            [part.partition("\n\n")[0] for part in prompt.split(TOLD)[1:]]
            for prompt in self.agent.prompts()
        ]

    @property
    def heard(self) -> list[str]:
        return [fact.request.id for fact in self.journal.facts if isinstance(fact, Asked)]


@pytest.mark.parametrize(
    ("turns", "said", "told"),
    [
        ((WORK, WORK, DONE), {1: note(1)}, [[], ["Mind 1."], []]),
        ((WORK, CRASH, DONE), {1: note(1)}, [[], ["Mind 1."], []]),
        ((WORK, WORK, DONE), {1: note(1), 2: note(2)}, [[], ["Mind 1."], ["Mind 2."]]),
        # A turn that meets a rate limit is taken again: nobody has heard it.
        ((WORK, (limited(), WORK), DONE), {1: note(1)}, [[], ["Mind 1."], ["Mind 1."], []]),
        # What is said at the last moment before the end is told to nobody.
        ((WORK, DONE), {2: note(1)}, [[], []]),
        ((WORK, DONE), {1: note(1, "other")}, [[], []]),
        ((WORK, DONE), {1: note(1, "prompt")}, [[], ["Mind 1."]]),
    ],
)
def test_a_note_is_told_once_by_the_next_turn(
    turns: tuple[Turn, ...], said: Mapping[int, Request], told: list[list[str]]
) -> None:
    desk = Desk(*turns)
    desk.during(said)
    state = desk.run()
    assert state.stop is not None
    assert state.stop.reason is Reason.COMPLETED
    assert desk.told == told
    heard = {text for turn in told for text in turn}
    untold = [each.id for each in said.values() if each.text not in heard]
    assert [each.id for each in state.notes] == [each for each in untold if each in desk.heard]


def test_notes_of_several_people_stand_in_their_order_behind_the_prompt() -> None:
    desk = Desk(WORK, DONE)
    desk.says(note(1), note(2))
    desk.run()
    first = desk.agent.prompts()[0]
    assert first.startswith("do it")
    assert first.endswith(f"{TOLD}Mind 1.\n\n{TOLD}Mind 2.")
    assert desk.heard == ["note-1", "note-2"]


def test_a_note_waits_for_the_turn_of_its_task() -> None:
    """It is heard with the first turn, so that it is kept, and told with its task's."""
    desk = Desk(COMPLETE)
    desk.world.tasks = Backlog((Task("a", text="do a"), Task("b", text="do b")))
    desk.policy = tasks(FakeWorkbench(desk.world), Bounds())
    desk.says(note(1, "b"))
    assert desk.run().notes == ()
    assert desk.told == [[], ["Mind 1."]]
    heard = next(n for n, fact in enumerate(desk.journal.facts) if isinstance(fact, Asked))
    assert isinstance(desk.journal.facts[heard + 1], Began), "before the first turn began"


def test_a_note_that_another_worker_has_taken_is_not_ours() -> None:
    desk = Desk(WORK, DONE)
    desk.world.take = lambda request: request.id == "note-2"  # type: ignore[method-assign]
    desk.says(note(1), note(2))
    desk.run()
    assert desk.told == [["Mind 2."], []]


def test_an_interrupted_turn_keeps_its_note() -> None:
    """Its work is judged by the run that goes on; cut off, it is taken again, and told again."""
    desk = Desk(WORK, CUT, WORK, DONE)
    desk.during({1: note(1), 2: asked(STOP)})
    state = desk.run()
    assert state.stop is not None
    assert state.stop.reason is Reason.INTERRUPTED
    assert [each.id for each in state.notes] == ["note-1"]
    desk.world.asked, desk.agent.during = Signals(), lambda _: None
    desk.agent.turns = (WORK, DONE)
    desk.journal.record(Resumed(2000.0, 8))
    desk.run(replay(desk.journal.facts))
    assert desk.told == [[], ["Mind 1."], ["Mind 1."]]


def test_a_turn_that_never_began_has_told_nobody() -> None:
    desk = Desk(WORK, MISSING, DONE)
    desk.during({1: note(1)})
    state = desk.run()
    assert state.stop is not None
    assert state.stop.reason is Reason.CONFIG
    assert [each.id for each in state.notes] == ["note-1"]


@pytest.mark.parametrize("ahead", range(1, 9))
def test_a_note_survives_a_kill_wherever_it_is(ahead: int) -> None:
    """It is told by a turn that was judged, once, whatever was killed before."""
    desk = Desk(WORK, WORK, DONE)
    desk.during({1: note(1)})
    first = Desk(WORK, WORK, DONE)
    first.during({1: note(1)})
    first.run()
    when = next(n for n, f in enumerate(first.journal.facts) if isinstance(f, Asked)) + ahead
    desk.journal.killed_after = when
    with pytest.raises(KilledError):
        desk.run()
    desk.agent.during = lambda _: None
    desk.journal = MemoryJournal([*desk.journal.facts, Resumed(5000.0, 8)])
    desk.run(replay(desk.journal.facts))
    assert desk.heard == ["note-1"]
    judged = [f for f in desk.journal.facts if isinstance(f, Decided) and f.boundary == "closing"]
    assert len(judged) == 3
    assert ["Mind 1."] in desk.told
    assert desk.told[-1] == []


# ------------------------------------------------------------------ other requests


def test_requests_are_journaled_once_though_they_stand() -> None:
    desk = Desk(WORK, WORK, WORK, DONE)
    desk.during({1: asked(ANSWER, 1, "Use SQLite.", "T-1"), 3: asked(STOP)})
    desk.run()
    assert desk.heard == ["answer-1", "stop-1"]
    origins = {f.request.origin for f in desk.journal.facts if isinstance(f, Asked)}
    assert origins == {Origin.WEB}
    *_, heard, decided, settled = desk.journal.facts
    assert [type(fact) for fact in (heard, decided, settled)] == [Asked, Decided, Settled]


def paused_desk() -> Desk:
    """A run that sleeps since its first turn; whoever ends its sleep says what comes."""
    desk = Desk(WORK, WORK, DONE)

    def pause(_: Order) -> None:
        if len(desk.agent.orders) == 1:
            desk.says(asked(PAUSE), paused=True)

    desk.agent.during = pause
    return desk


def test_whoever_lets_a_paused_run_go_on_has_it_wired_anew() -> None:
    desk = paused_desk()
    desk.clock.during_rest = lambda: desk.says(asked(RESUME))
    state = desk.run()
    assert (state.stop, state.rewire, state.rereads) == (None, True, True)
    assert desk.heard == ["pause-1", "resume-1"]
    assert len(desk.agent.orders) == 1, "no turn by the old settings"
    desk.journal.record(Resumed(3000.0, 8, Limits(iterations=2)))
    again = replay(desk.journal.facts)
    assert (again.rewire, again.paused, again.limits.iterations) == (False, False, 2)
    state = desk.run(again)
    assert state.stop is not None
    assert state.stop.reason is Reason.COMPLETED


def test_a_pause_that_a_hand_has_removed_changes_nothing() -> None:
    desk = paused_desk()
    desk.clock.during_rest = desk.says
    state = desk.run()
    assert state.stop is not None
    assert state.stop.reason is Reason.COMPLETED


def test_a_run_that_had_not_paused_is_not_wired_anew() -> None:
    desk = Desk(WORK, DONE)
    desk.during({1: asked(RESUME)})
    assert desk.run().stop is not None
    assert desk.heard == ["resume-1"]


def test_a_stop_ends_a_pause_without_wiring_anew() -> None:
    """Whoever resumes it afterwards has paused it before: then the settings are read again."""
    desk = paused_desk()
    desk.clock.during_rest = lambda: desk.says(asked(STOP), paused=True)
    state = desk.run()
    assert state.stop is not None
    assert (state.stop.reason, state.rewire) == (Reason.INTERRUPTED, False)
    assert state.rereads
    assert not replay([Resumed(9.0, 1)], state).rereads


def test_a_run_that_stays_paused_is_wired_anew_the_next_time() -> None:
    """Its settings could not be read: it is paused once more, by the same person."""
    desk = paused_desk()
    desk.clock.during_rest = lambda: desk.says(asked(RESUME))
    desk.run()
    desk.journal.record(Resumed(3000.0, 8))
    desk.world.asked = Signals(paused=True, requests=(asked(PAUSE, 2),))
    desk.clock.during_rest = lambda: desk.says(asked(RESUME, 2))
    state = desk.run(replay(desk.journal.facts))
    assert (state.rewire, desk.heard) == (True, ["pause-1", "resume-1", "pause-2", "resume-2"])
    assert isinstance(state.verdict, Wait)


def test_settings_are_not_read_again_in_the_middle_of_a_turn() -> None:
    """It may have changed them: what it did is judged and settled first."""
    desk = paused_desk()
    desk.clock.during_rest = lambda: desk.says(asked(STOP), paused=True)
    desk.run()
    facts = desk.journal.facts
    judged = next(n for n, fact in enumerate(facts) if isinstance(fact, Decided) and n > 2)
    settled = next(n for n, fact in enumerate(facts) if isinstance(fact, Settled))
    assert isinstance(facts[judged - 1], Asked)
    reread = [replay(facts[:end]).rereads for end in range(judged, settled + 2)]
    assert reread == [*(len(reread) - 1) * [False], True]


# ------------------------------------------------------------------ around them


def test_the_law_is_asked_of_a_turn_that_is_not_taken_again() -> None:
    """ADR 38: "protected files that an unfinished turn changed are put back first": a turn that
    was killed may have changed the settings that the next resume reads."""
    asked_of: list[int] = []
    law = FakeGate(
        "protect", always=True, during=lambda case: asked_of.append(case.state.iteration)
    )
    facts: list[Fact] = [Began(1001.0, 2, ONE, Snapshot()), Resumed(1002.0, 8)]
    state = replace(replay(facts), spent=replace(NEW.spent, seconds=99.0))
    policy = harness(Limits(seconds=9.0), law=(law,))
    journal = MemoryJournal()
    end = run(policy, fake_ports(FakeAgent([DONE]), journal=journal), state)
    assert end.stop is not None
    assert (end.stop.reason, asked_of) == (Reason.LIMIT, [2])


def test_what_a_worker_hears_of_its_leads_signals() -> None:
    """Notes for it or for anybody; the rest is its lead's. Who goes on after a pause calls it
    back."""
    said = Signals(1, paused=True, requests=(note(1), note(2, "a"), note(3, "b"), asked(STOP)))
    heard = of_worker(said, "a", recalled=False)
    assert (heard.cancels, heard.paused) == (1, True)
    assert [each.id for each in heard.requests] == ["note-1", "note-2"]
    assert of_worker(Signals(), "a", recalled=True).cancels == 1
    assert of_worker(Signals(requests=(asked(RESUME),)), "a", recalled=False) == Signals(1)
