"""What a machine that lies can make of its result: nothing that the run believes, stumbles over, or
writes outside the work tree of the task."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from test_fleet_turns import ORDER, STREAM, World, machine, quiet, says, world

from kits.thorough import dealt
from kits.work_tree import git, work_of
from ralph.fleet import trees
from ralph.fleet.port import Beat, Done, Event, Failed, Job, Launched, Lost, Placed
from ralph.fleet.trees import OrderFound, fetch_words, push_words, read_order
from ralph.git.repository import Repository
from ralph.kernel.events import Failure, Usage
from ralph.kernel.turn import Pulse, Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Cut

__all__ = ["world"]  # the fixture
TOLD = json.dumps([{"type": "ended", "time": 1.0, "turn": {"type": "turn", "text": "Done."}}])
Entry = tuple[str, str, str]  # mode, object, name
Lie = Callable[["Liar"], str]


class Liar:
    """Makes a result by hand; each part may be a lie."""

    def __init__(self, repository: Repository, job: Job, order: OrderFound, outside: Path) -> None:
        self.repository, self.job, self.order, self.outside = repository, job, order, outside

    def blob(self, data: bytes) -> str:
        return self.repository.identifier("hash-object", "-w", "--stdin", stdin=data)

    def tree(self, *entries: Entry) -> str:
        """A tree as nobody but a liar makes it."""
        data = b"".join(f"{m} {n}".encode() + b"\0" + bytes.fromhex(at) for m, at, n in entries)
        words = ("hash-object", "-w", "-t", "tree", "--literally", "--stdin")
        return self.repository.identifier(*words, stdin=data)

    def link(self) -> str:
        return self.blob(os.fsencode(self.outside))

    def commit(self, tree: str) -> str:
        return self.repository.commit(tree, [self.order.head], "lies")

    def result(self, *, work: str = "", head: str = "", told: bytes = TOLD.encode()) -> str:
        parts = (
            ("100644", self.blob(b"a task list of its own\n"), "list"),
            ("100644", self.blob(told), "result.json"),
            ("100644", self.blob(STREAM), "stream"),
            ("40000", work or self.order.work, "work"),
        )
        both = [self.job.order, head or self.order.head]
        return self.repository.commit(self.tree(*parts), both, "lies")


def lying(lie: Lie) -> Callable[[World, Job], Sequence[Event]]:
    """A machine that says that it is done."""

    def take(world: World, job: Job) -> Sequence[Event]:
        there = work_of(world.there, f"there-{job.attempt}")
        there.repository.ask(*fetch_words(job.remote, job.ref))
        order = read_order(there.repository, job.order)
        result = lie(Liar(there.repository, job, order, world.there.parent / "outside"))
        git(world.there, *push_words(job.remote, job.ref, result, job.order))
        return [Placed("liar"), Launched("claude"), Done(result)]

    return take


def deep(liar: Liar) -> str:
    return liar.result(told=b"[" * 200_000)


def no_commit(liar: Liar) -> str:
    return liar.blob(b"neither commit nor tree")


def above(liar: Liar) -> str:
    return liar.result(work=liar.tree(("40000", liar.tree(one(liar)), "..")))


def with_slash(liar: Liar) -> str:
    return liar.result(work=liar.tree(("100644", liar.blob(b"x"), "../pwned")))


def settings_of_git(liar: Liar) -> str:
    return liar.result(work=liar.tree(("40000", liar.tree(one(liar, "config")), ".git")))


def settings_in_a_commit(liar: Liar) -> str:
    tree = liar.tree(("40000", liar.tree(one(liar, "config")), ".git"))
    return liar.result(head=liar.commit(tree))


def linked_records(liar: Liar) -> str:
    return liar.result(work=liar.tree(("120000", liar.link(), ".ralph")))


def linked_records_in_a_commit(liar: Liar) -> str:
    tree = liar.tree(("120000", liar.link(), ".ralph"))
    return liar.result(work=tree, head=liar.commit(tree))


def records_that_are_a_file(liar: Liar) -> str:
    return liar.result(work=liar.tree(one(liar, ".ralph")))


def a_list_that_is_a_folder(liar: Liar) -> str:
    folder = liar.tree(("40000", liar.tree(one(liar)), "tasks.jsonl"))
    tree = liar.tree(("40000", folder, ".ralph"))
    return liar.result(work=tree, head=liar.commit(tree))


def one(liar: Liar, name: str = "pwned") -> Entry:
    return "100644", liar.blob(b"x"), name


LIES = [
    *(deep, no_commit, above, with_slash, settings_of_git, settings_in_a_commit),
    *(linked_records, linked_records_in_a_commit, records_that_are_a_file),
    a_list_that_is_a_folder,
]


@pytest.mark.parametrize("lie", dealt(LIES, 3))
def test_a_result_that_could_not_land_is_none(world: World, lie: Lie) -> None:
    """It is fenced, and another machine has its turn: nobody must find it again after a resume."""
    outside = world.there.parent / "outside"
    outside.mkdir()
    world.machines = [lying(lie), machine()]
    turns = world.turns()
    assert not turns.take_turn(ORDER, quiet).failed
    assert (1, "ignored") in world.fared()
    assert turns.land(1, 5.0, keep=True).count == 1
    assert not [*outside.iterdir()]
    assert not (outside.parent / "pwned").exists()


@pytest.mark.parametrize("part", dealt(["result.json", "list", "stream"], 1))
def test_a_part_that_is_too_large_is_not_read(
    world: World, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(trees._MOST, part, 3)
    world.machines = [lying(lambda liar: liar.result())] * 3
    assert world.turns().take_turn(ORDER, quiet).failed
    assert (1, "ignored") in world.fared()


def test_records_come_only_by_commits(world: World) -> None:
    """What is in `.ralph` of the files is no work: settings there would be the run's."""

    def lie(liar: Liar) -> str:
        return liar.result(
            work=liar.tree(("40000", liar.tree(one(liar, "settings.json")), ".ralph"), one(liar))
        )

    world.machines = [lying(lie)]
    turns = world.turns()
    turns.take_turn(ORDER, quiet)
    turns.land(1, 5.0, keep=True)
    here = Path(world.here.workspace)
    assert (here / "pwned").exists()
    assert os.listdir(here / ".ralph") == ["tasks.jsonl"]


def test_a_link_in_place_of_the_list_leads_nowhere(world: World) -> None:
    """Nothing is written through it, and what it leads to does not travel with the next order."""
    outside = world.there.parent / "outside"
    outside.write_text("a secret\n")

    def lie(liar: Liar) -> str:
        tree = liar.tree(("40000", liar.tree(("120000", liar.link(), "tasks.jsonl")), ".ralph"))
        return liar.result(work=tree, head=liar.commit(tree))

    world.machines = [lying(lie), machine()]
    turns = world.turns()
    turns.take_turn(ORDER, quiet)
    turns.land(1, 5.0, keep=True)
    assert outside.read_text() == "a secret\n"
    path = Path(world.here.workspace) / ".ralph" / "tasks.jsonl"
    assert not path.is_symlink()
    path.unlink()
    path.symlink_to(outside)
    turns.clear()
    turns.take_turn(ORDER, quiet)
    assert read_order(world.here.repository, world.sent()[-1].order).list is None


def test_what_is_ignored_here_is_no_obstacle_to_what_is_not_ignored_there(world: World) -> None:
    def work(place: Path) -> None:
        (place / ".gitignore").write_text("")
        (place / ".env").write_text("of the agent\n")

    assert (Path(world.here.workspace) / ".env").exists()
    world.machines = [machine(work=work)]
    turns = world.turns()
    turns.take_turn(ORDER, quiet)
    turns.land(1, 5.0, keep=True)
    assert (Path(world.here.workspace) / ".env").read_text() == "of the agent\n"


def test_numbers_of_a_machine_can_be_counted_with(world: World) -> None:
    told = Turn(
        exit_code=10**400,
        failure=Failure("busy", 429, float("nan"), 1e300),
        tools=10**400,
        usage=Usage(-5, 10**400, 3),
        cost_usd=1e300,
        seconds=float("-inf"),
    )
    world.machines = [machine(told)]
    turn = world.turns().take_turn(ORDER, quiet)
    assert turn.failure == Failure("busy", 429)
    assert turn.usage == Usage(0, 0, 3)
    assert (turn.exit_code, turn.tools, turn.cost_usd, turn.seconds) == (1, 0, None, 0.0)


def test_what_a_lost_attempt_has_cost_is_paid(world: World) -> None:
    """The next one may cost what is left, and is judged by the sum."""
    seen: list[float] = []

    def watch(pulse: Pulse) -> Cut | None:
        seen.append(pulse.dollars)
        return None

    beat = Beat(Pulse(3.0, 1.0, None, 0.75))
    world.machines = [says(Placed("one"), beat, Lost("away")), says(beat), machine()]
    turn = world.turns().take_turn(replace(ORDER, dollars=2.0), watch)
    assert turn.cost_usd == 0.75 + 0.25
    assert seen == [1.5]
    orders = [read_order(world.here.repository, sent.order).order for sent in world.sent()]
    assert [order.dollars for order in orders] == [2.0, 1.25]


def test_attempts_that_were_lost_do_not_cost_more_than_the_turn_may(world: World) -> None:
    world.machines = [says(Beat(Pulse(3.0, 1.0, None, 1.0)), Failed("full", passes=True))] * 2
    turn = world.turns().take_turn(replace(ORDER, dollars=2.0), quiet)
    assert (turn.failed, turn.cost_usd) == (True, 2.0)


def test_time_passes_also_for_a_machine_that_says_nothing_of_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that nothing contains can stop whoever tells how long it works."""
    monkeypatch.setattr("ralph.fleet.coordinator.hearing._SLACK", -1000.0)

    def watch(pulse: Pulse) -> Cut | None:
        return Cut("too long", 1.0) if pulse.seconds > 900 else None

    world.machines = [says(), says(Launched("claude")), says(Failed("cut"))]
    world.turns().take_turn(ORDER, watch)
    assert world.cuts == [Cut("too long", 1.0)]


def test_an_attempt_keeps_its_lease_when_the_setting_was_changed(world: World) -> None:
    """A machine may still have it for as long as it was lent before the run was killed."""
    world.machines = [says(Failed("first")), says(Failed("again"))]
    world.turns().take_turn(ORDER, quiet)
    sent = replace(world.sent()[0], lease=300.0)
    world.turns(1, sent).take_turn(ORDER, quiet)
    assert [job.lease for job in world.jobs] == [5.0, 300.0]


def test_names_of_refs_are_what_they_are(world: World) -> None:
    """Unicode has line ends that git's names may hold."""
    remote = trees.Remote(world.here.repository, str(world.remote))
    ref = trees.ref_of("run", "T-1", 1)
    for name in (f"refs/heads/{ref}/a\u2028b\x85", f"{ref}/c\u2028d"):
        git(world.here.workspace, "push", "-q", str(world.remote), f"HEAD:{name}")
    assert set(remote.at(ref)) == {f"{ref}/c\u2028d"}
    remote.forget(remote.at(ref))
    assert remote.at(ref) == {}
