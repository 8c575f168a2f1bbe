"""Publishing as steps of settling: histories of pushes, pull requests and CI (ADR 44)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from kits.histories import Played, said
from kits.loop_fakes import FakeScm
from ralph.errors import ForgeError
from ralph.forge.judging import Terms
from ralph.forge.port import Check, CheckState
from ralph.kernel.engine import run
from ralph.kernel.facts import Published, Resting, Resumed
from ralph.kernel.limits import Limits
from ralph.kernel.state import NEW, RunState, fold, replay
from ralph.kernel.verdict import Reason
from ralph.kernel.world import Signals
from ralph.loops.prompt.policy import harness
from ralph.runner.publishing.settle import Hearing, Publication, Pushed
from ralph.testing.fakes import (
    FakeAgent,
    FakeClock,
    FakeWorld,
    KilledError,
    MemoryJournal,
    fake_ports,
)

Picture = tuple[Check, ...]
GREEN: Picture = (Check("build", CheckState.PASSED),)
BUSY: Picture = (Check("build", CheckState.PENDING),)
RED: Picture = (Check("build", CheckState.FAILED, log="7"),)
DONE = said("<response>DONE</response>")


@dataclass
class FakeOutlet:
    """A forge and a remote that hold each effect once, whoever asks twice. `pictures` are the looks
    at each commit, the last one for ever."""

    pictures: Sequence[Sequence[Picture]] = ((GREEN,),)
    scm: FakeScm = field(default_factory=FakeScm)
    troubles: list[ForgeError] = field(default_factory=list)  # before the next answers
    foreign: str = ""
    unmergeable: str = ""
    asked: dict[str, int] = field(default_factory=dict)
    pushed: list[str] = field(default_factory=list)
    pushes: int = 0  # asked for
    opened: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)

    def top(self, state: RunState) -> str:
        return f"c{len(self.scm.ran)}" if self.scm.ran else ""

    def push(self, state: RunState, commit: str) -> Pushed:
        self._fail()
        self.pushes += 1
        self.pushed += [commit] if commit not in self.pushed else []
        return Pushed(ok=True, said="ralph/x")

    def propose(self, state: RunState, commit: str, now: float) -> Published:
        self._fail()
        self.opened += [] if self.opened else ["ralph/x"]
        return Published(now, state.task, "ralph/x", "main", 1, "https://forge.test/1", commit)

    def moved(self, pull: Published) -> str:
        return self.foreign

    def checks(self, commit: str) -> Picture:
        self._fail()
        looks = self.pictures[min(int(commit[1:]), len(self.pictures)) - 1]
        number = self.asked[commit] = self.asked.get(commit, 0) + 1
        return looks[min(number, len(looks)) - 1]

    def log(self, check: Check) -> str:
        return "x" * 300_000 + "the end of the log"

    def say(self, pull: Published, text: str) -> None:
        self.said += [text] if text not in self.said else []

    def merge(self, pull: Published) -> None:
        self._fail()
        if self.unmergeable:
            raise ForgeError(self.unmergeable)
        self.merged.append(pull.commit)

    def _fail(self) -> None:
        if self.troubles:
            raise self.troubles.pop(0)


@dataclass
class Story:
    """A prompt whose work is published."""

    outlet: FakeOutlet
    repairs: int = 3
    max_wait: float = 3600.0
    merges: bool = False
    world: FakeWorld = field(default_factory=FakeWorld)
    clock: FakeClock = field(default_factory=FakeClock)

    def play(self, state: RunState = NEW, journal: MemoryJournal | None = None) -> Played:
        journal = journal or MemoryJournal(killed_after=10_000)
        hearing = Hearing(Terms(start=60.0), repairs=self.repairs)
        publish = Publication(self.outlet, (), hearing, self.max_wait, merges=self.merges)
        policy = harness(Limits(iterations=20), scm=self.outlet.scm, publish=publish)
        agent = FakeAgent([DONE], during=self._work)
        ports = fake_ports(agent, self.world, journal, self.clock)
        stop = run(policy, ports, state).stop
        assert stop is not None
        return Played(stop, journal.facts, agent, self.world, self.clock)

    def _work(self, order: object) -> None:
        self.outlet.scm.dirty = True


def test_done_is_green_on_that_commit() -> None:
    """Nothing is paid while CI is at work, and the time is not spent."""
    story = Story(FakeOutlet([[(), BUSY, BUSY, GREEN]]))
    told = story.play()
    assert told.stop.reason is Reason.COMPLETED
    assert told.turns == 1
    rests = [fact for fact in told.facts if isinstance(fact, Resting)]
    assert [fact.until - fact.time for fact in rests] == [15.0] * 4
    until = replay(told.facts[: told.facts.index(rests[0]) + 1])
    assert (until.wakes, told.state.wakes) == (rests[0].until, None), "for who looks at it"
    assert told.state.spent.seconds == 0
    assert told.state.waited == 60
    assert story.outlet.pushed == ["c1"]


def test_green_counts_when_two_looks_agree() -> None:
    """An answer that is out of order, or a workflow that is announced late."""
    told = Story(FakeOutlet([[GREEN, BUSY, GREEN, RED], [GREEN]])).play()
    assert told.stop.reason is Reason.COMPLETED
    assert told.iterations == [1, 2]


def test_red_is_told_and_the_next_commit_is_judged_anew() -> None:
    story = Story(FakeOutlet([[RED], [BUSY, RED], [GREEN]]))
    told = story.play()
    assert told.stop.reason is Reason.COMPLETED
    assert told.iterations == [1, 2, 3]
    assert "build failed on commit c1" in told.agent.prompts()[1]
    assert "the end of the log" in told.agent.prompts()[2]
    assert len(told.agent.prompts()[2]) < 131_072 // 4, "one argument holds it"
    assert story.outlet.opened == ["ralph/x"]


@pytest.mark.parametrize("repairs", [0, 1, 3])
def test_so_many_repairs_then_a_person(repairs: int) -> None:
    story = Story(FakeOutlet([[RED]]), repairs=repairs)
    told = story.play()
    assert told.stop.reason is Reason.BLOCKED
    assert len(told.iterations) == repairs + 1
    assert len(story.outlet.said) == 1
    assert "https://forge.test/1" in told.stop.why


def test_no_check_at_all_is_no_green() -> None:
    told = Story(FakeOutlet([[()]])).play()
    assert told.stop.reason is Reason.BLOCKED
    assert "--no-ci" in told.stop.why
    assert told.state.waited == 60


def test_somebody_elses_commit_is_left_to_people() -> None:
    told = Story(FakeOutlet(foreign="somebody else has pushed")).play()
    assert (told.stop.reason, told.stop.why) == (Reason.BLOCKED, "somebody else has pushed")


def test_a_forge_that_asks_for_patience_gets_it() -> None:
    busy = [ForgeError("busy", retry_after=90.0), ForgeError("busy", retry_after=5.0)]
    told = Story(FakeOutlet(troubles=busy)).play()
    assert told.stop.reason is Reason.COMPLETED
    assert told.state.waited == 90 + 5 + 15


def test_a_forge_that_says_no_ends_the_run_with_its_remedy() -> None:
    told = Story(FakeOutlet(troubles=[ForgeError("no", "gh auth login", status=403)])).play()
    assert (told.stop.reason, told.stop.why) == (Reason.BLOCKED, "no. gh auth login")


def test_patience_with_ci_ends() -> None:
    told = Story(FakeOutlet([[BUSY]]), max_wait=40.0).play()
    assert told.stop.reason is Reason.LIMIT
    assert told.state.waited == 30


def test_it_is_merged_only_if_told_and_only_when_green() -> None:
    story = Story(FakeOutlet([[RED], [GREEN]]), merges=True)
    assert story.play().stop.reason is Reason.COMPLETED
    assert story.outlet.merged == ["c2"]
    silent = Story(FakeOutlet())
    silent.play()
    assert silent.outlet.merged == []


def test_what_cannot_be_merged_is_left_to_people() -> None:
    told = Story(FakeOutlet(unmergeable="a conflict"), merges=True).play()
    assert (told.stop.reason, told.stop.why) == (Reason.BLOCKED, "#1 is not merged: a conflict.")


def test_who_is_stopped_while_waiting_goes_on_waiting() -> None:
    """Without another turn, push or pull request."""
    story = Story(FakeOutlet([[BUSY, BUSY, GREEN]]))
    stops: Callable[[], None] = lambda: setattr(story.world, "asked", Signals(cancels=1))  # noqa: E731
    story.clock.during_rest = stops
    told = story.play()
    assert told.stop.reason is Reason.INTERRUPTED
    assert len(story.clock.rests) == 1, "it ends at once"
    story.clock.during_rest, story.world.asked = (lambda: None), Signals()
    state = fold(told.state, Resumed(story.clock.now(), 1))
    again = story.play(state)
    assert again.stop.reason is Reason.COMPLETED
    assert again.turns == 0
    assert (story.outlet.pushes, story.outlet.opened) == (1, ["ralph/x"])


@pytest.mark.parametrize("pictures", [[[BUSY, GREEN]], [[RED], [GREEN]]])
@pytest.mark.parametrize("before", [True, False])
def test_whoever_is_killed_at_any_fact_comes_to_the_same_end(
    pictures: list[list[Picture]], before: bool
) -> None:
    """Every fact, kept or lost: one pull request, each commit pushed once, no repair forgotten."""
    undisturbed = Story(FakeOutlet(pictures))
    whole = undisturbed.play()
    for number in range(1, len(whole.facts) + 1):
        story = Story(FakeOutlet(pictures))
        journal = MemoryJournal()
        setattr(journal, "killed_before" if before else "killed_after", number)
        with pytest.raises(KilledError):
            story.play(journal=journal)
        state = fold(replay(journal.facts), Resumed(story.clock.now(), 2))
        told = story.play(state)
        assert told.stop.reason is Reason.COMPLETED, number
        assert story.outlet.opened == ["ralph/x"], number
        assert story.outlet.pushed == undisturbed.outlet.pushed, number
