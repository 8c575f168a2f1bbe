"""Turns on other machines as a run sees them, on machines that are functions and a real remote."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kits.thorough import dealt
from kits.work_tree import git, new_repository, work_of
from ralph.agents.turn_files import NumberedFiles
from ralph.fleet.coordinator.attempts import Errand
from ralph.fleet.coordinator.turns import FleetTurns
from ralph.fleet.place import Fleet
from ralph.fleet.port import (
    Beat,
    CameBack,
    Done,
    Event,
    Failed,
    Handle,
    Job,
    Launched,
    Lost,
    Placed,
    Said,
)
from ralph.fleet.trees import fetch_words, make_result, push_words, read_order
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.kernel.events import AgentEvent
from ralph.kernel.facts import Began, Ended, Fact, Fared, Landed, Launching, Sent
from ralph.kernel.state import replay
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Ending, Order, Pulse, Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Cut
from ralph.runner.wired import AgentReaders

ORDER = Order("Do it.", 1)
RUN = "20261119-000000-abcd"
TURN = Turn(text="Done.", cost_usd=0.25, seconds=4.0)
STREAM = b'{"type":"assistant","message":{"content":[{"type":"text","text":"Done."}]}}\n'
Machine = Callable[["World", Job], Sequence[Event]]


@dataclass
class World:
    """A project, its remote, and machines that are asked one after the other."""

    here: WorkTree
    there: Path
    remote: Path
    machines: list[Machine] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    again: list[bool] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    seen: list[AgentEvent] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    prepared: int = 0
    lost_ones: set[str] = field(default_factory=set)
    back: list[Event] = field(default_factory=list)  # what is heard of those

    # the executor
    def submit(self, job: Job, *, again: bool = False) -> Job:
        self.jobs.append(job)
        self.again.append(again)
        return job

    def events(self, handle: Handle, wait: float) -> Sequence[Event]:
        assert isinstance(handle, Job)
        if handle.key in self.lost_ones:
            told, self.back = self.back, []
            return told
        events = self.machines.pop(0)(self, handle)
        if events and isinstance(events[-1], Lost):
            self.lost_ones.add(handle.key)
        return events

    def cancel(self, handle: Handle, cut: Cut) -> None:
        self.cuts.append(cut)

    def lost(self, handle: Handle) -> bool:
        return handle.key in self.lost_ones

    def slots(self) -> int:
        return 1

    def close(self) -> None: ...

    # the run
    def turns(self, number: int = 0, sent: Sent | None = None) -> FleetTurns:
        def prepare() -> None:
            self.prepared += 1

        return FleetTurns(
            Fleet("local", str(self.remote), 5.0, "{}", executor=self),
            self.here,
            Errand(RUN, "T-1", "refs/heads/main", "{}", 5.0),
            NumberedFiles(self.here.run_dir),
            AgentReaders(self.seen.extend, record=self.facts.append),
            number=number,
            sent=sent,
            tell=self.told.append,
            prepare=prepare,
        )

    def refs(self) -> list[str]:
        return git(self.remote, "for-each-ref", "--format=%(refname)").split()

    def sent(self) -> list[Sent]:
        return [fact for fact in self.facts if isinstance(fact, Sent)]

    def fared(self) -> list[tuple[int, str]]:
        return [(fact.attempt, fact.how) for fact in self.facts if isinstance(fact, Fared)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    here = work_of(new_repository(tmp_path / "here"))
    git(tmp_path, "init", "--quiet", "--bare", "remote.git")
    git(tmp_path, "clone", "--quiet", str(tmp_path / "here"), "there")
    return World(here, tmp_path / "there", tmp_path / "remote.git")


def quiet(_: Pulse) -> Cut | None:
    return None


def machine(
    turn: Turn = TURN,
    *,
    work: Callable[[Path], object] = lambda place: (place / "new").write_text("new\n"),
    commits: bool = False,
    told: bool = True,
    landed: Landed | None = None,
) -> Machine:
    """A machine that takes the turn; it may be lost before it can tell."""

    def take(world: World, job: Job) -> Sequence[Event]:
        there = work_of(world.there, f"there-{job.attempt}")
        there.repository.ask(*fetch_words(job.remote, job.ref))
        order = read_order(there.repository, job.order)
        there.repository.ask("read-tree", "-m", "-u", "HEAD", order.work)
        work(world.there)
        if commits:
            git(world.there, "add", "--all")
            git(world.there, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "own")
        stream = world.there.parent / "stream"
        stream.write_bytes(STREAM)
        result = make_result(
            there.repository,
            job.order,
            head=there.head(),
            work=there.tree(),
            task_list=order.list,
            facts=(*((landed,) if landed else ()), Ended(9.0, turn)),
            stream=str(stream),
        )
        git(world.there, *push_words(job.remote, job.ref, result, job.order))
        heard: list[Event] = [Placed("build-7"), Launched("claude", "claude"), Said(STREAM)]
        beat = Beat(Pulse(3.0, 1.0, None, 0.2))
        return [*heard, beat, Done(result) if told else Lost("nothing was heard for 5s")]

    return take


def says(*events: Event) -> Machine:
    return lambda _world, _job: events


def test_a_turn_is_taken_there_and_lands_here(world: World) -> None:
    world.machines = [machine()]
    turns = world.turns()
    turn = turns.take_turn(ORDER, quiet)
    assert (turn.text, turn.cost_usd) == ("Done.", 0.25)
    assert Path(turn.stream).read_bytes() == STREAM
    assert [event.text for event in world.seen if hasattr(event, "text")] == ["Done."]
    assert world.fared() == [(1, "placed"), (1, "done")]
    assert any(isinstance(fact, Launching) for fact in world.facts)
    assert not (Path(world.here.workspace) / "new").exists()
    landed = turns.land(1, 5.0, keep=True)
    assert (landed.kept, landed.count) == (True, 1)
    assert (Path(world.here.workspace) / "new").read_text() == "new\n"
    assert world.prepared == 1
    turns.clear()
    assert world.refs() == []


def test_commits_deletions_and_uncommitted_work_come_as_they_are(world: World) -> None:
    here = Path(world.here.workspace)
    (here / "begun").write_text("by an earlier turn\n")

    def work(place: Path) -> None:
        assert (place / "begun").read_text() == "by an earlier turn\n"
        (place / "a" / "one").unlink()
        (place / "b").unlink()
        (place / "b").mkdir()
        (place / "b" / "c").write_text("c\n")

    world.machines = [machine(work=work, commits=True)]
    turns = world.turns()
    turns.take_turn(ORDER, quiet)
    turns.land(1, 5.0, keep=True)
    turns.land(1, 5.0, keep=True)  # after a kill
    assert not (here / "a").exists()
    assert (here / "b" / "c").read_text() == "c\n"
    assert (here / "begun").exists()
    assert git(here, "log", "-1", "--format=%s") == "own"
    assert git(here, "status", "--short") == ""
    assert (here / ".env").exists(), "ignored files stay"


def test_a_failed_turn_does_not_land(world: World) -> None:
    world.machines = [machine(Turn(exit_code=1))]
    turns = world.turns()
    assert turns.take_turn(ORDER, quiet).failed
    landed = turns.land(1, 5.0, keep=False)
    assert (landed.kept, landed.count) == (False, 1)
    assert not (Path(world.here.workspace) / "new").exists()


def test_records_that_a_machine_does_not_bring_count_as_no_change(world: World) -> None:
    """`.ralph` is the host's: in a result it may lack, and nobody has deleted it."""
    here = Path(world.here.workspace)
    (here / ".ralph").mkdir(exist_ok=True)
    (here / ".ralph" / "settings.json").write_text("{}")
    git(here, "add", "--force", ".ralph/settings.json")
    git(here, "commit", "--quiet", "--message", "settings")
    git(world.there, "pull", "--quiet")
    world.machines = [
        machine(Turn(exit_code=1), work=lambda place: shutil.rmtree(place / ".ralph"))
    ]
    turns = world.turns()
    turns.take_turn(ORDER, quiet)
    assert turns.land(1, 5.0, keep=False).count == 0


def test_a_lost_attempt_is_fenced_before_the_next_begins(world: World) -> None:
    world.machines = [says(Placed("one"), Lost("nothing was heard for 5s")), machine()]
    turn = world.turns().take_turn(ORDER, quiet)
    assert not turn.failed
    assert world.fared() == [(1, "placed"), (1, "lost"), (2, "placed"), (2, "done")]
    assert [sent.attempt for sent in world.sent()] == [1, 2]
    assert world.refs() == [f"refs/ralph/{RUN}/T-1/2"]


def test_an_old_attempt_that_comes_back_is_recorded_and_ignored(world: World) -> None:
    gone = says(Placed("one"), Launched("claude"), Lost("nothing was heard for 5s"))
    world.machines, world.back = [gone, says(Placed("two")), machine()], [CameBack("one")]
    assert not world.turns().take_turn(ORDER, quiet).failed
    told = [(1, "placed"), (1, "lost"), (2, "placed"), (1, "ignored")]
    assert world.fared() == [*told, (2, "placed"), (2, "done")]
    began = Began(0.0, 1, Assignment("T-1"))
    hows = [fact.how if isinstance(fact, Fared) else "" for fact in world.facts]
    state = replay((began, *world.facts[: hows.index("ignored") + 1]))
    assert (state.trying, state.host) == (world.sent()[1], "two"), "nothing else has changed"


def test_what_arrives_while_an_attempt_is_given_up_is_recorded_and_ignored(world: World) -> None:
    """Its push had left before its lease was over."""

    class Slow(list[Fact]):
        def append(self, fact: Fact) -> None:
            super().append(fact)
            if isinstance(fact, Fared) and fact.how == "lost":
                machine()(world, world.jobs[0])

    world.machines, world.facts = [says(Lost("nothing was heard")), machine()], Slow()
    assert not world.turns().take_turn(ORDER, quiet).failed
    assert world.fared()[:2] == [(1, "lost"), (1, "ignored")]
    assert world.refs() == [f"refs/ralph/{RUN}/T-1/2"]


def test_an_attempt_that_was_given_up_is_never_taken_up_again(world: World) -> None:
    """Also by whoever goes on after a kill: its machine may wake up, and push to a ref that is
    there again."""

    def killed(_world: World, _job: Job) -> Sequence[Event]:
        raise KeyboardInterrupt

    world.machines = [says(Placed("one"), Launched("claude"), Lost("nothing was heard")), killed]
    with pytest.raises(KeyboardInterrupt):
        world.turns().take_turn(ORDER, quiet)
    began = Began(0.0, 1, Assignment("T-1"))
    for count in range(1, len(world.facts) + 1):
        state = replay((began, *world.facts[:count]))
        given_up = any(isinstance(f, Fared) and f.how == "lost" for f in world.facts[:count])
        newest = [f.attempt for f in world.facts[:count] if isinstance(f, Sent)][-1]
        trying = state.trying.attempt if state.trying else None
        assert trying == (None if given_up and newest == 1 else newest)
        assert state.spent.uncounted == given_up, "nobody knows what its agent has cost"


def test_what_was_given_up_and_not_fenced_is_fenced_before_the_next(world: World) -> None:
    """Its machine may come back, and push. An earlier worker may have had attempts, too."""
    head = git(world.there, "rev-parse", "HEAD")
    for number in (1, 3):
        git(world.there, *push_words(str(world.remote), f"refs/ralph/{RUN}/T-1/{number}", head))
    git(world.there, *push_words(str(world.remote), f"refs/ralph/{RUN}/T-11/1", head))
    world.machines = [machine()]
    assert not world.turns(1).take_turn(ORDER, quiet).failed
    assert world.refs() == [f"refs/ralph/{RUN}/T-1/4", f"refs/ralph/{RUN}/T-11/1"]


def test_whoever_is_killed_while_an_attempt_is_given_up_has_not_fenced_it_yet(
    world: World,
) -> None:
    facts = world.facts

    class Killed(list[Fact]):
        def append(self, fact: Fact) -> None:
            if isinstance(fact, Fared) and fact.how == "lost":
                raise KeyboardInterrupt
            facts.append(fact)

    world.machines, world.facts = [says(Lost("nothing was heard"))], Killed()
    with pytest.raises(KeyboardInterrupt):
        world.turns().take_turn(ORDER, quiet)
    assert world.refs() == [f"refs/ralph/{RUN}/T-1/1"]


def test_a_machine_that_was_lost_after_it_had_pushed_has_done_its_work(world: World) -> None:
    world.machines = [machine(told=False)]
    assert not world.turns().take_turn(ORDER, quiet).failed
    assert world.fared()[-1] == (1, "done")


def test_a_run_that_goes_on_finds_what_was_finished_and_runs_nothing(world: World) -> None:
    world.machines = [machine()]
    world.turns().take_turn(ORDER, quiet)  # and is killed before it has recorded the end
    sent = world.sent()[-1]
    turns = world.turns(1, sent)
    assert turns.take_turn(ORDER, quiet).text == "Done."
    assert len(world.jobs) == 1
    turns = world.turns(1, sent)  # and once more, before it has landed
    assert turns.land(1, 5.0, keep=True).count == 1
    turns.clear()
    assert world.refs() == []


@pytest.mark.parametrize("pushed", [True, False])
def test_a_run_that_goes_on_submits_the_same_attempt(world: World, *, pushed: bool) -> None:
    """Whoever has it goes on with it. It was recorded before anybody could know of it."""
    world.machines = [says(Failed("first", passes=False)), machine()]
    world.turns().take_turn(ORDER, quiet)
    sent = world.sent()[0]
    if pushed:
        git(world.there, "fetch", "--quiet", world.here.workspace, sent.order)
        git(world.there, "push", "--quiet", str(world.remote), f"{sent.order}:{sent.ref}")
    turns = world.turns(1, sent)
    assert not turns.take_turn(ORDER, quiet).failed
    assert [job.key for job in world.jobs] == [world.jobs[0].key] * 2
    assert world.again == [False, pushed]


def test_what_no_machine_can_do_is_no_turn(world: World) -> None:
    world.machines = [says(Failed("claude is not there", "Install it.", passes=False))]
    turn = world.turns().take_turn(ORDER, quiet)
    assert turn.ending is Ending.UNSTARTABLE
    assert turn.why == "claude is not there. Install it."
    assert world.refs() == []


def test_what_may_pass_is_tried_on_others_and_then_a_failed_turn(world: World) -> None:
    world.machines = [says(Failed(f"full {n}", passes=True)) for n in range(3)]
    turn = world.turns().take_turn(ORDER, quiet)
    assert turn.failure is not None
    assert turn.failure.message == "full 2"
    assert [how for _, how in world.fared()] == ["failed"] * 3


def test_a_cut_is_handed_on_and_the_turn_says_why(world: World) -> None:
    cuts = iter([None, Cut("asked to stop", 5.0), Cut("at once", 0.0)])
    world.machines = [says(Placed("one")), says(), says(), says(Failed("it was cut", passes=True))]
    turn = world.turns().take_turn(ORDER, lambda _: next(cuts))
    assert turn.ending is Ending.CUT
    assert turn.why == "at once"
    assert [cut.grace for cut in world.cuts] == [5.0, 0.0]
    assert world.refs() == []


def test_what_is_no_result_is_ignored(world: World) -> None:
    """A machine that pushes something else is believed as little as one that pushes nothing."""

    def lies(world: World, job: Job) -> Sequence[Event]:
        words = push_words(job.remote, job.ref, git(world.there, "rev-parse", "HEAD"), job.order)
        git(world.there, *words)
        return [Done("0" * 40)]

    world.machines = [lies, machine()]
    assert not world.turns().take_turn(ORDER, quiet).failed
    assert world.fared()[:2] == [(1, "ignored"), (1, "failed")]


@pytest.mark.parametrize("cost", dealt([-1.0, float("inf"), float("nan")], 1))
def test_a_sum_that_cannot_be_added_counts_as_unknown(world: World, cost: float) -> None:
    world.machines = [machine(Turn(cost_usd=cost))]
    assert world.turns().take_turn(ORDER, quiet).cost_usd is None


def test_the_pulse_there_is_judged_here(world: World) -> None:
    pulses: list[Pulse] = []

    def watch(pulse: Pulse) -> Cut | None:
        pulses.append(pulse)
        return None

    world.machines = [says(Placed("one"), Beat(Pulse(7.0, 2.0, 1.0, 0.5))), machine()]
    world.turns().take_turn(ORDER, watch)
    assert [replace(pulse, queued=0.0) for pulse in pulses] == [Pulse(7.0, 2.0, 1.0, 0.5)]


def test_the_wait_for_a_machine_is_told_apart_from_the_turn(world: World) -> None:
    pulses: list[Pulse] = []

    def slow(world: World, _: Job) -> Sequence[Event]:
        time.sleep(0.2)
        return ()

    def watch(pulse: Pulse) -> Cut | None:
        pulses.append(pulse)
        return None

    lost = says(Placed("one"), Lost("nothing was heard for 5s"))
    world.machines = [slow, lost, slow, says(Placed("two")), slow, machine()]
    turn = world.turns().take_turn(ORDER, watch)
    first, again, placed, at_work = [pulse.queued for pulse in pulses]
    assert first >= 0.2
    assert first + 0.2 <= again <= placed == at_work == turn.queued
    assert [pulse.placed for pulse in pulses] == [False, False, True, True]


def test_what_makes_the_work_tree_unusable_ends_the_attempt(world: World) -> None:
    def fails() -> None:
        raise RuntimeError("npm ci failed")

    def never(world: World, job: Job) -> Sequence[Event]:
        world.machines.append(never)
        return []

    world.machines = [never]
    turns = world.turns()
    turns._prepare = fails
    with pytest.raises(RuntimeError, match="npm ci failed"):
        turns.take_turn(ORDER, quiet)
    assert world.cuts == [Cut("the run ends", 0.0)]


def test_a_remote_that_is_away_is_asked_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = world.remote.with_name("away.git")
    world.remote.rename(away)

    def pulses() -> Iterator[Cut | None]:
        yield None
        away.rename(world.remote)
        while True:
            yield None

    cuts = pulses()
    monkeypatch.setattr("ralph.fleet.coordinator.turns._AGAIN", 0.01)
    world.machines = [machine()]
    assert not world.turns().take_turn(ORDER, lambda _: next(cuts)).failed
    assert len(world.told) == 1


def test_whoever_asks_once_need_not_wait_for_a_remote_where_nothing_is_begun(
    world: World,
) -> None:
    """An attempt that may be under way somewhere is not left for that."""
    seen: list[bool] = []

    def watch(pulse: Pulse) -> Cut | None:
        seen.append(pulse.placed)
        return Cut("asked to stop", 5.0)

    world.remote.rename(world.remote.with_name("away.git"))
    world.turns().take_turn(ORDER, watch)
    world.machines = [says(Failed("asked to stop"))]
    world.turns(1, Sent(1.0, 1, f"refs/ralph/{RUN}/T-1/1", "a" * 40)).take_turn(ORDER, watch)
    assert seen == [False, True, True]
    assert all("\n" not in told and ".." not in told.partition(": ")[2] for told in world.told)


def test_a_turn_can_be_cut_while_the_remote_is_away(world: World) -> None:
    world.remote.rename(world.remote.with_name("away.git"))
    turn = world.turns().take_turn(ORDER, lambda _: Cut("asked to stop", 5.0))
    assert (turn.ending, turn.why) == (Ending.CUT, "asked to stop")


def test_what_may_be_under_way_is_ended_by_whoever_is_cut_while_the_remote_is_away(
    world: World,
) -> None:
    """An earlier process has sent it: whoever goes on later begins the next one at once."""
    world.remote.rename(world.remote.with_name("away.git"))
    ends = Failed("asked to stop", passes=False)
    world.machines = [says(), says(Placed("one"), Launched("claude")), says(), says(ends)]
    sent = Sent(1.0, 1, f"refs/ralph/{RUN}/T-1/1", "a" * 40)
    turn = world.turns(1, sent).take_turn(ORDER, lambda _: Cut("asked to stop", 5.0))
    assert (turn.ending, turn.why) == (Ending.CUT, "asked to stop")
    assert [job.attempt for job in world.jobs] == [1]
    assert world.again == [True]
    assert world.cuts == [Cut("asked to stop", 5.0)]
    assert world.machines == [], "it was heard to its end"


def test_what_was_cut_while_the_remote_was_away_is_settled_without_it(world: World) -> None:
    """Whoever asks to stop twice is not told of a network."""
    world.machines = [machine()]
    world.turns().take_turn(ORDER, quiet)
    world.remote.rename(world.remote.with_name("away.git"))
    world.machines = [says(Failed("nobody has it", passes=True))]
    turns = world.turns(1, world.sent()[-1])
    turns.take_turn(ORDER, lambda _: Cut("asked to stop", 5.0))
    assert turns.land(1, 5.0, keep=False) == Landed(5.0, kept=False)
    turns.clear()


def test_a_fleet_without_machines_is_told_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    slots = iter([1, 0])
    monkeypatch.setattr("ralph.fleet.coordinator.hearing._ALONE", 0.0)
    monkeypatch.setattr(World, "slots", lambda _: next(slots))
    world.machines = [says(), says(), says(), says(Placed("one")), says(), machine()]
    assert not world.turns().take_turn(ORDER, quiet).failed
    assert world.told == ["The fleet has no machine now, or is not reached. It is waited for."]
