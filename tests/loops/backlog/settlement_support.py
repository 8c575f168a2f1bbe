"""A project with one task, the bench of a run, and what is written there."""

import json
import os
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kits.work_tree import new_repository, work_of
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.kernel.claims import Claim
from ralph.kernel.limits import Spent
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Ending, Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Accept, Cause, Continue, Feedback, Park, Reason, Stop
from ralph.loops.backlog.settlement import TaskSettlement
from ralph.loops.backlog.store.records import Records
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.loops.backlog.store.watch import TaskWatch
from ralph.loops.backlog.tracker.github import opener
from ralph.loops.backlog.tracker.sync import Telling, Trackers
from ralph.notify.message import About
from ralph.notify.notifier import Channels, Notify

Json = dict[str, Any]
COMPLETE = Turn(claims=(Claim("<promise>COMPLETE</promise>"),), cost_usd=0.5, seconds=2.0)
FAILED = Turn(ending=Ending.CUT, exit_code=1, why="timed out")
ACCEPT = Accept(("the agent says so",))
LIMIT = Park("task limit: 10 iterations used up")
QUESTION = Park("Which one?", Cause.QUESTION)
GO_ON = Continue((Feedback("Mend the tests."),))
STOP = Stop(Reason.LIMIT, "the run's money is used up")
KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"


class Clock:
    """Every look at it is a second later."""

    def __init__(self) -> None:
        self.time = 1_769_860_800.0  # 2026-01-31T12:00:00Z

    def __call__(self) -> float:
        self.time += 1.0
        return self.time


class Place:
    """A project with one task, and what is written in it."""

    new_file: ClassVar = [{"path": "new", "change": "added"}]  # as records tell of it

    def __init__(self, tmp_path: Path) -> None:
        self.workspace = new_repository(tmp_path / "project")
        self.told: list[str] = []
        self.clock = Clock()
        self.runs: dict[str, WorkTree] = {}
        self.put(estimate=2, type="bug", tags=["parser"])

    def put(self, **fields: object) -> None:
        """Someone writes the task's line; the list has no other."""
        task = {"id": "T-1", "title": "Sort", "createdAt": "2026-01-01T00:00:00.000Z", **fields}
        path = self.workspace / ".ralph" / "tasks.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(task) + "\n")

    def bench(self, run: str = "run-1", **more: Any) -> TaskSettlement:  # noqa: ANN401
        """The bench of a run, as a process that begins now makes it."""
        work = self.runs.get(run) or work_of(self.workspace, run)
        self.runs[run] = work
        file = TaskFile(str(self.workspace), self.clock)
        command = "cat >> ../notified"
        where = str(self.workspace)
        project = str(self.workspace.parent)
        return TaskSettlement(
            file,
            TaskWatch(file, work.run_dir, project),
            work,
            Records(where, run, self.told.append, self.clock),
            Notify(Channels(command), where, os.environ, self.told.append),
            About(where, run),
            work.run_dir,
            ("text",),
            self.clock,
            self.told.append,
            Telling(
                file, lambda place: Trackers(place, opener(place, os.environ)), self.told.append
            ),
            **more,
        )

    def begun(self, bench: TaskSettlement, iteration: int = 1, turn: Turn = COMPLETE) -> RunState:
        """A turn of the task has begun, and ended so."""
        here = bench.work.checkpoint().text()
        state = RunState(
            iteration=iteration,
            task_iteration=iteration,
            assignment=Assignment("T-1", "Sort"),
            checkpoint=here,
            task_checkpoint=here,
            spent=Spent(iteration, 30.0, 1.25),
            spent_before_task=Spent(0, 10.0, 0.25),
        )
        bench.take_up(state)
        return replace(state, turn=turn)

    def task(self) -> Json:
        """The task as the file says now, without the times."""
        record = TaskFile(str(self.workspace)).record("T-1") or {}
        times = ("createdAt", "updatedAt", "completedAt")
        return {name: held for name, held in record.items() if name not in times}

    def lines(self, name: str) -> list[Json]:
        """The objects of a file of records."""
        path = self.workspace / ".ralph" / f"{name}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def changes(self) -> list[str]:
        """The changes of status that were recorded."""
        progress = self.lines("progress")
        return [f"{e['from']} -> {e['to']}" for e in progress if e["type"] == "status"]

    def iterations(self) -> list[Json]:
        return [entry for entry in self.lines("progress") if entry["type"] == "iteration"]

    def notified(self) -> list[str]:
        path = self.workspace.parent / "notified"
        lines = path.read_text().splitlines() if path.exists() else ()
        return [json.loads(line)["event"] for line in lines]

    def files(self) -> dict[str, bytes]:
        """All that is recorded, to the byte."""
        return {path.name: path.read_bytes() for path in (self.workspace / ".ralph").iterdir()}

    def write(self, name: str, text: str = "work\n") -> None:
        (self.workspace / name).write_text(text)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
