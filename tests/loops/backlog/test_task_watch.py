"""What a turn may do to the task list: "An agent's edits of its own line in `tasks.jsonl` are
undone and reported"; nor does it say of another task that it is done, or what would prove it."""

import json
import os
import shlex
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ralph.errors import StateError
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.loops.backlog.store.watch import TaskWatch, note

Json = dict[str, Any]
CHECK = {"type": "test_passing", "command": "make test"}
OWN: Json = {"id": "T-1", "title": "One", "status": "in_progress", "createdAt": "2026-01-01"}
OTHER: Json = {
    "id": "T-2",
    "title": "Two",
    "status": "pending",
    "createdAt": "2026-01-02",
    "completion": CHECK,
    "limits": {"maxIterations": 3},
}
DONE: Json = {
    "id": "T-3",
    "title": "Three",
    "status": "done",
    "createdAt": "2026-01-03",
    "evidence": {"kind": "claim"},
    "completedAt": "2026-01-04T00:00:00.000Z",
}
ALL = (OWN, OTHER, DONE)
ITERATION = 4


class List:
    """A task list, its watch, and everybody who may change it."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.path = workspace / ".ralph" / "tasks.jsonl"
        self.path.parent.mkdir()
        self.run_dir = workspace.parent / "state" / "project" / "runs" / "run-1"
        self.run_dir.mkdir(parents=True)
        self.project = str(self.run_dir.parent.parent)
        self.write(*ALL)
        self.watch = self.new_watch()

    def new_watch(self, memo: str = "tasks.before") -> TaskWatch:
        return TaskWatch(TaskFile(str(self.workspace)), str(self.run_dir), self.project, memo)

    def write(self, *records: Json) -> None:
        """Anybody writes the whole file."""
        self.path.write_text("".join(f"{json.dumps(record)}\n" for record in records))

    def change(self, task_id: str, **fields: object) -> None:
        """An agent changes fields of a task in its file; None takes one out."""
        new = {**self.now()[task_id], **fields}
        kept = {name: held for name, held in new.items() if held is not None}
        self.write(*({**self.now(), task_id: kept}.values()))

    def edit(self, task_id: str, **fields: object) -> None:
        """A person changes fields by `ralph tasks edit`, which leaves a note."""
        witness = partial(note, self.project)
        TaskFile(str(self.workspace), witness=witness).update(task_id, lambda _: fields)

    def now(self) -> dict[str, Json]:
        """Each task, as its last line says."""
        lines = self.path.read_text().splitlines() if self.path.exists() else ()
        return {record["id"]: record for record in map(json.loads, lines)}

    def said(self) -> dict[str, Json]:
        """The same without the time of the last change, which is the undoing's own."""
        return {
            task_id: {name: held for name, held in record.items() if name != "updatedAt"}
            for task_id, record in self.now().items()
        }


@pytest.fixture
def tasks(workspace: Path) -> List:
    return List(workspace)


def with_fields(task: Json, **fields: object) -> dict[str, Json]:
    """All tasks as they were, one of them with other fields."""
    return {**{t["id"]: t for t in ALL}, task["id"]: {**task, **fields}}


AS_BEFORE = with_fields(OWN)
Change = Callable[[List], object]


# ------------------------------------------------------------------ its own line


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tasks: tasks.change("T-1", status="done"), "T-1 was changed (status)"),
        (lambda tasks: tasks.change("T-1", title="Less"), "T-1 was changed (title)"),
        (
            lambda tasks: tasks.change("T-1", limits={"maxCost": 99}, completion=CHECK),
            "T-1 was changed (completion, limits)",
        ),
        (lambda tasks: tasks.change("T-1", createdAt=None), "T-1 was changed (createdAt)"),
        (lambda tasks: tasks.change("T-1", mine=1), "T-1 was changed (mine)"),
        (lambda tasks: tasks.write(OTHER, DONE), "T-1 was taken out"),
        (lambda tasks: tasks.write({**OWN, "id": "T-9"}, OTHER, DONE), "T-1 was taken out"),
        (lambda tasks: tasks.write({**OWN, "status": "odd"}, OTHER, DONE), "T-1 was taken out"),
    ],
)
def test_what_the_turn_did_to_its_own_line_is_undone(
    tasks: List, change: Change, words: str
) -> None:
    """ "edits of its own line in `tasks.jsonl` are undone and reported"."""
    tasks.watch.remember(ITERATION)
    change(tasks)
    told = tasks.watch.undo("T-1", ITERATION)
    assert told == f"edited by the turn, and put back: {words}"
    assert {name: tasks.said()[name] for name in AS_BEFORE} == AS_BEFORE
    assert tasks.watch.undo("T-1", ITERATION) == "", "and the second time there is nothing to undo"


# ------------------------------------------------------------------ the lines of others


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tasks: tasks.change("T-2", status="done"), "T-2 was called done"),
        (lambda tasks: tasks.change("T-2", status="cancelled"), "T-2 was called cancelled"),
        (lambda tasks: tasks.change("T-3", status="cancelled"), "T-3 was called cancelled"),
        (lambda tasks: tasks.change("T-3", status=None), "T-3 was called pending"),
        (lambda tasks: tasks.change("T-2", completion=None), "T-2 was changed (completion)"),
        (
            lambda tasks: tasks.change("T-2", completion={"type": "explicit"}),
            "T-2 was changed (completion)",
        ),
        (
            lambda tasks: tasks.change("T-2", limits={"maxIterations": 99}),
            "T-2 was changed (limits)",
        ),
        (lambda tasks: tasks.change("T-2", evidence={"exitCode": 0}), "T-2 was changed (evidence)"),
        (lambda tasks: tasks.change("T-3", evidence=None), "T-3 was changed (evidence)"),
        (
            lambda tasks: tasks.change("T-2", completedAt="2026-01-05"),
            "T-2 was changed (completedAt)",
        ),
        (
            lambda tasks: tasks.change("T-2", status="done", completion=None),
            "T-2 was called done",
        ),
        (lambda tasks: tasks.write(OWN, DONE), "T-2 was taken out"),
        (lambda tasks: tasks.write(OWN), "T-2 was taken out, T-3 was taken out"),
        (
            lambda tasks: tasks.write(),
            "T-1 was taken out, T-2 was taken out, T-3 was taken out",
        ),
        (
            lambda tasks: tasks.path.unlink(),
            "T-1 was taken out, T-2 was taken out, T-3 was taken out",
        ),
    ],
)
def test_what_the_turn_may_not_do_to_other_tasks_is_undone(
    tasks: List, change: Change, words: str
) -> None:
    """Only people say what is done, and what proves it."""
    tasks.watch.remember(ITERATION)
    change(tasks)
    told = tasks.watch.undo("T-1", ITERATION)
    assert told == f"edited by the turn, and put back: {words}"
    assert tasks.said() == AS_BEFORE


def test_what_else_it_said_of_another_task_stays(tasks: List) -> None:
    tasks.watch.remember(ITERATION)
    tasks.change("T-2", status="cancelled", completion=None, title="New", notes="seen", limits=None)
    told = tasks.watch.undo("T-1", ITERATION)
    assert told == "edited by the turn, and put back: T-2 was called cancelled"
    assert tasks.said() == with_fields(OTHER, title="New", notes="seen")


def in_another_order(tasks: List) -> None:
    tasks.write(*reversed(ALL))


def spelled_otherwise(tasks: List) -> None:
    lines = (json.dumps(task, indent=None, separators=(" , ", " : ")) for task in ALL)
    tasks.path.write_text("".join(f"{line}\n" for line in lines))


def with_new_tasks(tasks: List) -> None:
    tasks.write(*ALL, {"id": "T-4", "status": "blocked"}, {"id": "T-5", "source": SOURCE})


def with_broken_lines(tasks: List) -> None:
    with tasks.path.open("a") as file:
        file.write('{"id":"T-1","status":\n{"id":"T-2","status":"odd"}\n')


@pytest.mark.parametrize(
    "change",
    [
        lambda tasks: None,
        lambda tasks: tasks.change("T-2", title="Better words"),
        lambda tasks: tasks.change("T-2", blockedBy=["T-1"], priority=9, description="More"),
        lambda tasks: tasks.change("T-2", status="blocked"),
        lambda tasks: tasks.change("T-1", updatedAt="2026-02-02T00:00:00.000Z"),
        in_another_order,
        spelled_otherwise,
        with_new_tasks,
        with_broken_lines,
    ],
)
def test_what_the_turn_may_do_is_left_alone(tasks: List, change: Change) -> None:
    """New tasks, other words for them, another order."""
    tasks.watch.remember(ITERATION)
    change(tasks)
    before = tasks.path.read_bytes()
    assert tasks.watch.undo("T-1", ITERATION) == ""
    assert tasks.path.read_bytes() == before


SOURCE: Json = {"path": "TODO.md", "key": "one"}


@pytest.mark.parametrize(
    ("added", "right"),
    [
        ({"status": "done"}, {"status": "pending"}),
        ({"status": "cancelled"}, {"status": "pending"}),
        ({"evidence": {"exitCode": 0}, "completedAt": "2026"}, {}),
        ({"blockedBy": ["T-4"]}, {"blockedBy": []}),
        ({"source": {**SOURCE, "path": "../list.md"}}, {}),
        ({"source": {**SOURCE, "path": "/list.md"}}, {}),
        ({"source": {**SOURCE, "repo": "o/n"}}, {}),
        ({"source": {**SOURCE, "format": "github"}}, {}),
    ],
)
def test_what_a_new_task_may_not_be_is_put_right(tasks: List, added: Json, right: Json) -> None:
    """Done, with a proof, waiting for itself, or from a list that the turn could not change."""
    tasks.watch.remember(ITERATION)
    tasks.write(*ALL, {"id": "T-4", "title": "Four", **added})
    told = tasks.watch.undo("T-1", ITERATION)
    assert told == "edited by the turn, and put back: T-4 was added as it may not be"
    assert tasks.said()["T-4"] == {"id": "T-4", "title": "Four", **right}
    assert tasks.watch.undo("T-1", ITERATION) == ""


# ------------------------------------------------------------------ a person's edits


@pytest.mark.parametrize(
    ("task_id", "fields"),
    [
        ("T-1", {"status": "cancelled"}),
        ("T-1", {"title": "Less", "completion": CHECK}),
        ("T-2", {"status": "done"}),
        ("T-2", {"completion": None, "limits": None}),
    ],
)
def test_what_a_person_asked_for_meanwhile_stays(
    tasks: List, task_id: str, fields: dict[str, Any]
) -> None:
    """ "a task file edited by … a person while the run goes on"."""
    tasks.watch.remember(ITERATION)
    tasks.edit(task_id, **fields)
    before = tasks.path.read_bytes()
    assert tasks.watch.undo("T-1", ITERATION) == ""
    assert tasks.path.read_bytes() == before


def test_what_a_person_said_before_the_turn_is_no_excuse(tasks: List) -> None:
    """An agent that checks out an old file brings back lines which were a person's once."""
    tasks.edit("T-1", title="Old")
    old = tasks.path.read_bytes()
    tasks.edit("T-1", title="New", completion=CHECK)
    tasks.watch.remember(ITERATION)
    tasks.path.write_bytes(old)
    told = tasks.watch.undo("T-1", ITERATION)
    assert told == "edited by the turn, and put back: T-1 was changed (completion, title)"
    assert tasks.said()["T-1"] == {**OWN, "title": "New", "completion": CHECK}


def test_a_persons_note_covers_no_other_line(tasks: List) -> None:
    tasks.watch.remember(ITERATION)
    tasks.edit("T-2", title="A person's")
    tasks.change("T-2", completion=None)
    told = tasks.watch.undo("T-1", ITERATION)
    assert told == "edited by the turn, and put back: T-2 was changed (completion)"
    assert tasks.said() == with_fields(OTHER, title="A person's")


# ------------------------------------------------------------------ memory


def test_another_process_knows_it_after_a_crash(tasks: List) -> None:
    tasks.watch.remember(ITERATION)
    tasks.change("T-1", status="done")
    tasks.change("T-2", status="done")
    told = tasks.new_watch().undo("T-1", ITERATION)
    assert told == "edited by the turn, and put back: T-1 was changed (status), T-2 was called done"
    assert tasks.said() == AS_BEFORE


def test_a_kill_within_the_undoing_is_made_good(
    tasks: List, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks.watch.remember(ITERATION)
    tasks.path.unlink()
    really, calls = TaskFile.put, []

    def killed(file: TaskFile, record: Json) -> Json:
        calls.append(record["id"])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return really(file, record)

    with monkeypatch.context() as patched:
        patched.setattr(TaskFile, "put", killed)
        with pytest.raises(KeyboardInterrupt):
            tasks.watch.undo("T-1", ITERATION)
    told = tasks.new_watch().undo("T-1", ITERATION)
    assert told == "edited by the turn, and put back: T-2 was taken out, T-3 was taken out"
    assert tasks.said() == AS_BEFORE


@pytest.mark.parametrize("remembered", [None, ITERATION - 1, ITERATION + 1])
def test_the_memory_of_another_iteration_is_not_used(tasks: List, remembered: int | None) -> None:
    """ "A turn that was cut off before anything was remembered has changed nothing"."""
    if remembered is not None:
        tasks.watch.remember(remembered)
    tasks.change("T-1", status="blocked", reason="by the run itself")
    before = tasks.path.read_bytes()
    assert tasks.watch.undo("T-1", ITERATION) == ""
    assert tasks.path.read_bytes() == before


def test_each_turn_begins_with_what_is_right_then(tasks: List) -> None:
    tasks.watch.remember(ITERATION)
    tasks.edit("T-1", title="A person's")
    tasks.watch.remember(ITERATION + 1)
    tasks.change("T-1", title="An agent's")
    tasks.watch.undo("T-1", ITERATION + 1)
    assert tasks.said() == with_fields(OWN, title="A person's")


def test_many_are_told_in_one_sentence(tasks: List) -> None:
    tasks.write(*({"id": f"T-{n}"} for n in range(100)))
    tasks.watch.remember(ITERATION)
    tasks.path.unlink()
    told = tasks.watch.undo("T-1", ITERATION)
    assert told.endswith("T-4 was taken out and 95 more")
    assert len(tasks.now()) == 100


def test_without_tasks_there_is_nothing_to_undo(tasks: List) -> None:
    tasks.path.unlink()
    tasks.watch.remember(ITERATION)
    with_new_tasks(tasks)
    assert tasks.watch.undo("T-1", ITERATION) == ""
    assert len(tasks.now()) == 5


def test_a_run_directory_that_cannot_be_written_is_told(tasks: List) -> None:
    (tasks.run_dir / "tasks.before").mkdir()
    with pytest.raises(StateError, match="cannot write the state directory") as refused:
        tasks.watch.remember(ITERATION)
    assert "RALPH_STATE_DIR" in refused.value.remedy
    assert os.listdir(tasks.workspace) == [".ralph"]


def test_tasks_that_could_not_land_are_taken_in(tasks: List, tmp_path: Path) -> None:
    """A sandbox's list does not land where someone else has changed it meanwhile."""
    held = tmp_path / "held.jsonl"
    new = {"id": "N-1", "title": "found"}
    lines = (OWN, {**DONE, "title": "other"}, new, "{broken")
    held.write_text("".join(f"{x if isinstance(x, str) else json.dumps(x)}\n" for x in lines))
    tasks.watch.remember(ITERATION)
    began = tasks.watch.begun_with(ITERATION)
    assert began == {"T-1", "T-2", "T-3"}
    for _ in range(2):  # a run that was killed does it again
        tasks.watch.take_in(str(held), began)
        assert tasks.said() == {**AS_BEFORE, "N-1": new}
    tasks.watch.take_in(str(tmp_path / "gone"), began)


@pytest.mark.parametrize("created", [{}, {"createdAt": "2026-01-31T12:00:00.000Z"}])
def test_tasks_that_agents_add_under_one_id_are_all_taken_in(
    tasks: List, tmp_path: Path, created: Json
) -> None:
    """Each saw a list without the others' tasks, and added its own in the same millisecond."""
    workers = [f"by {number}" for number in range(8)]
    for title in workers:
        (tmp_path / title).write_text(json.dumps({"id": "N-1", "title": title, **created}) + "\n")

    def take_in(title: str) -> None:
        for _ in range(2):  # killed, and done again
            tasks.new_watch().take_in(str(tmp_path / title), frozenset())

    with ThreadPoolExecutor(len(workers)) as executor:
        list(executor.map(take_in, workers))
    added = [task["title"] for name, task in tasks.now().items() if name not in AS_BEFORE]
    assert sorted(added) == workers


def test_what_workers_write_while_another_looks_stays(tasks: List) -> None:
    """A worker undoes what its agent did to the list; others write it all the time."""
    names = [f"W-{number}" for number in range(300)]
    tasks.write(*ALL, *({"id": name, "title": name, "status": "pending"} for name in names))
    over, interval = threading.Event(), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # seconds: threads take turns in the middle of a look

    def look(memo: str) -> str:
        watch, told = tasks.new_watch(memo), ""
        while not over.is_set():
            watch.remember(ITERATION)
            watch.let_stand()
            watch.put_back()
            told += watch.undo("T-1", ITERATION)
        return told

    with ThreadPoolExecutor() as executor:
        looking = [executor.submit(look, memo) for memo in ("one", "two")]
        try:
            for name in names:
                tasks.edit(name, status="done", evidence={"by": "Ralph"})
        finally:
            over.set()
            sys.setswitchinterval(interval)
    assert [watch.result() for watch in looking] == ["", ""]
    assert {tasks.now()[name]["status"] for name in names} == {"done"}


# ------------------------------------------------------------------ between gates


@pytest.mark.parametrize(
    "change",
    [
        lambda tasks: tasks.change("T-2", status="done"),
        lambda tasks: tasks.write(OWN, DONE),
        lambda tasks: tasks.write(*ALL, {"id": "T-9", "title": "New"}),
        lambda tasks: tasks.path.unlink(),
        lambda tasks: (tasks.path.unlink(), tasks.path.symlink_to("/etc/passwd")),
        lambda tasks: (tasks.path.unlink(), tasks.path.mkdir(), (tasks.path / "x").touch()),
        lambda tasks: (tasks.path.unlink(), os.system(f"mkfifo {shlex.quote(str(tasks.path))}")),
    ],
    ids=["done", "taken out", "added", "gone", "a link", "a directory", "a pipe"],
)
def test_what_a_check_does_to_the_list_is_undone(tasks: List, change: Change) -> None:
    """ADR 33: whatever code a check runs, the list stays as the turn left it; a person's edit
    meanwhile stays too."""
    tasks.watch.let_stand()
    assert not tasks.watch.put_back()
    tasks.edit("T-1", title="A person's")
    assert not tasks.watch.put_back()
    held = tasks.said()
    change(tasks)
    assert tasks.watch.put_back()
    kept = {**held, "T-1": tasks.said()["T-1"]}
    assert tasks.said() == kept
    assert not tasks.watch.put_back()
