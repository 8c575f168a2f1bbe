"""How a worker's task is settled: its records are the project's, its turns are elsewhere."""

import json
import os
from pathlib import Path

import pytest
from crew_support import LINES, Crew, crew
from settlement_support import ACCEPT, Clock

from kits.work_tree import git
from ralph.kernel.ports import Merge
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Turn
from ralph.kernel.value import replace
from ralph.loops.backlog.parallel.settlement import WorkerSettlement
from ralph.loops.backlog.settlement import TaskSettlement
from ralph.loops.backlog.store.records import Records
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.loops.backlog.store.watch import TaskWatch
from ralph.loops.backlog.tracker.github import opener
from ralph.loops.backlog.tracker.sync import Telling, Trackers
from ralph.notify.message import About
from ralph.notify.notifier import Channels, Notify

__all__ = ["crew"]

OWN, OTHER = {"id": "T-1", "title": "It"}, {"id": "T-2", "title": "Other"}


class Bench:
    """The bench of a worker, with the list in the project and its copy in the work tree."""

    def __init__(self, crew: Crew, *, contained: bool = False) -> None:
        self.crew, self.told = crew, list[str]()
        for where in (crew.top, crew.own):
            self.write(where, OWN, OTHER)
        file, work, place = TaskFile(str(crew.top)), crew.work, str(crew.top)
        project, run_dir, clock = str(crew.top.parent), work.run_dir, Clock()
        copy = TaskWatch(TaskFile(str(crew.own)), run_dir, project)
        inner = TaskSettlement(
            file,
            copy,
            work,
            Records(place, "run-1-001", self.told.append, clock),
            Notify(Channels(), place, os.environ, self.told.append),
            About(place, "run-1"),
            run_dir,
            ("text",),
            clock,
            self.told.append,
            Telling(file, lambda top: Trackers(top, opener(top, os.environ)), self.told.append),
        )
        theirs = TaskWatch(file, run_dir, project, "project.before")
        self.worker = WorkerSettlement(inner, crew.joining, theirs, contained=contained)
        here = crew.work.checkpoint().text()
        self.state = RunState(
            iteration=1,
            task_iteration=1,
            assignment=Assignment("T-1", "It"),
            checkpoint=here,
            task_checkpoint=here,
        )
        self.worker.take_up(self.state)
        self.state = replace(self.state, turn=Turn())

    def write(self, where: Path, *tasks: dict[str, str]) -> None:
        self.crew.write(where, ".ralph/tasks.jsonl", "".join(f"{json.dumps(t)}\n" for t in tasks))

    def said(self, where: Path) -> dict[str, str]:
        """Each task's status in a list."""
        tasks = TaskFile(str(where)).load().backlog.tasks
        return {task.id: str(task.status) for task in tasks}

    def merge(self) -> Merge:
        return self.worker.merge(self.state)


@pytest.fixture
def bench(crew: Crew) -> Bench:
    return Bench(crew)


# ------------------------------------------------------------------ the list


def test_what_a_turn_did_to_either_list_is_undone(bench: Bench) -> None:
    """Its own is a copy, and without a sandbox it reaches the project's too."""
    crew = bench.crew
    bench.write(crew.own, {**OWN, "status": "done"}, OTHER)
    bench.write(crew.top, OWN, {**OTHER, "status": "done"})
    told = bench.worker.undo_edits(bench.state)
    assert told.count("put back") == 2
    assert bench.said(crew.own) == {"T-1": "pending", "T-2": "pending"}
    assert bench.said(crew.top) == {"T-1": "in_progress", "T-2": "pending"}
    assert bench.worker.undo_edits(bench.state) == ""


def test_a_contained_turn_cannot_have_changed_the_projects_list(crew: Crew) -> None:
    """Whoever did is somebody else."""
    bench = Bench(crew, contained=True)
    bench.write(crew.top, {**OWN, "status": "in_progress"}, {**OTHER, "status": "done"})
    assert bench.worker.undo_edits(bench.state) == ""
    assert bench.said(crew.top)["T-2"] == "done"


def test_tasks_that_a_turn_adds_are_the_projects_too(bench: Bench) -> None:
    crew = bench.crew
    bench.write(crew.own, OWN, OTHER, {"id": "N-1", "title": "found"})
    for _ in range(2):  # a killed run does it again
        assert bench.worker.undo_edits(bench.state) == ""
        assert bench.said(crew.top) == {"T-1": "in_progress", "T-2": "pending", "N-1": "pending"}


def test_a_turn_that_removes_its_way_to_git_gets_it_back(bench: Bench) -> None:
    link = bench.crew.own / ".git"
    before = link.read_text()
    link.write_text("gitdir: /elsewhere\n")
    bench.worker.undo_edits(bench.state)
    assert link.read_text() == before
    link.unlink()
    bench.worker.take_up(bench.state)
    assert link.read_text() == before


# ------------------------------------------------------------------ merging


def test_a_conflict_is_told_with_the_way_to_the_tasks_own_version(bench: Bench) -> None:
    """And what is left of it is told once more, before anything is merged."""
    crew = bench.crew
    crew.write(crew.own, "code", "mine\n")
    crew.write(crew.top, "code", "theirs\n")
    crew.commit(crew.top, "theirs")
    merge = bench.merge()
    assert (merge.refusal.partition("\n")[0], merge.fresh) == ("conflicts in code", True)
    own = next(word for word in merge.refusal.split() if word.startswith("refs/"))
    assert git(crew.own, "show", own.replace("PATH.", "code")) == "mine"
    bench.state = replace(bench.state, iteration=2, task_checkpoint=merge.checkpoint)
    assert bench.merge() == Merge(refusal="conflicts are left in code")
    bench.state = replace(bench.state, iteration=3)
    crew.write(crew.own, "code", "both\n")
    assert bench.merge().refusal == ""


def test_what_a_person_has_not_committed_is_in_the_way_only_where_it_is(bench: Bench) -> None:
    crew = bench.crew
    crew.write(crew.own, "code", LINES.replace("1\n", "one\n"))
    crew.write(crew.top, "b", "a person's\n")
    assert bench.merge() == Merge()
    crew.write(crew.top, "code", "a person's\n")
    merge = bench.merge()
    assert merge.refusal == "uncommitted changes in the project are in the way: code"
    assert merge.hopeless


def test_a_project_that_is_elsewhere_takes_no_work(bench: Bench) -> None:
    crew = bench.crew
    crew.write(crew.own, "code", "mine\n")
    git(crew.top, "switch", "--quiet", "-c", "mine")
    merge = bench.merge()
    assert (merge.hopeless, "the project is on mine now" in merge.refusal) == (True, True)


# ------------------------------------------------------------------ landing


def test_a_task_is_committed_with_the_projects_records_and_lands(bench: Bench) -> None:
    crew, worker, state = bench.crew, bench.worker, bench.state
    crew.write(crew.own, "code", "mine\n")
    assert bench.merge() == Merge()
    worker.record(state, ACCEPT)
    assert worker.landed(state) is None
    made = worker.commit(state)
    assert made.ok
    assert worker.landed(state) is None
    assert (worker.land(state), worker.landed(state)) == ("", made)
    assert git(crew.top, "log", "-1", "--format=%s") == "T-1: It"
    assert git(crew.top, "status", "--porcelain") == ""
    assert json.loads(git(crew.top, "show", "HEAD:.ralph/tasks.jsonl").splitlines()[0])["id"]
    assert bench.said(crew.top)["T-1"] == "done"


def test_who_commits_in_the_project_makes_the_merge_old(bench: Bench) -> None:
    crew = bench.crew
    crew.write(crew.own, "code", "mine\n")
    assert bench.worker.is_current(bench.state)
    crew.write(crew.top, "new", "theirs\n")
    crew.commit(crew.top, "theirs")
    assert not bench.worker.is_current(bench.state)
