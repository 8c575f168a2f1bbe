"""Lists of others as tasks of ours: added, brought up to date, never doubled, never set back."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from task_file_support import file, path_of, write

from ralph.errors import ConfigError
from ralph.formats.base import ListedTask, TaskList
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.loops.backlog.tracker.importing import Conflict, Import, Merge, Origin

__all__ = ["file"]
NOW = "2026-01-31T12:00:00.000Z"
ORIGIN = Origin("prd", {"path": "prd.json"}, "prd.json")
Json = dict[str, Any]


def item(key: str, kept: Json | None = None, **fields: Any) -> ListedTask:  # noqa: ANN401
    return ListedTask(key, {"title": f"Do {key}", "status": "pending", **fields}, kept or {})


def take_in(
    file: TaskFile,
    *items: ListedTask,
    root: Mapping[str, Any] | None = None,
    origin: Origin = ORIGIN,
    by_agent: bool = False,
    write: bool = True,
) -> Import:
    merge = Merge(TaskList(items, root or {}), origin, NOW, by_agent=by_agent)
    file.change_all(merge, write=write)
    return merge.result


def change(file: TaskFile, task: str, **fields: Any) -> None:  # noqa: ANN401
    file.update(task, lambda _: fields)


def record(file: TaskFile, task: str) -> Json:
    found = file.record(task)
    assert found is not None
    return found


# ------------------------------------------------------------------ new ones


def test_items_become_tasks_with_their_source(file: TaskFile) -> None:
    done = take_in(file, item("US-1", {"x": 1}), item("US-2", blockedBy=["US-1"]), root={"p": "q"})
    first, second = file.records()
    assert (done.added, done.updated) == ((first, second), ())
    assert first == {
        "id": "US-1",
        "title": "Do US-1",
        "status": "pending",
        "source": {
            "format": "prd",
            "path": "prd.json",
            "key": "US-1",
            "kept": {"x": 1},
            "seen": first["source"]["seen"],
            "root": {"p": "q"},
        },
        "createdAt": NOW,
        "updatedAt": NOW,
    }
    assert all(len(seen) == 8 for seen in first["source"]["seen"].values())
    assert (second["blockedBy"], "root" in second["source"]) == (["US-1"], False)


def test_an_id_that_is_taken_or_unusable_becomes_the_next_number(
    file: TaskFile, workspace: Path
) -> None:
    """Also one of a line that cannot be used; those who wait for it wait for its new name."""
    write(workspace, {"id": "US-1"}, {"id": "US-2", "status": "odd"})
    take_in(file, item("US-1"), item("US-2", parent="US-1"), item("a/b"), item("US-4"))
    take_in(file, item("US-4", blockedBy=["z"]), item("z"), origin=_other("x.json"))
    tasks = {r["source"]["key"]: r["id"] for r in file.records()[1:5]}
    assert tasks == {"US-1": "US-5", "US-2": "US-6", "a/b": "US-7", "US-4": "US-4"}
    assert record(file, "US-6")["parent"] == "US-5"
    assert record(file, "US-8")["blockedBy"] == ["z"]


def _other(path: str) -> Origin:
    return Origin("prd", {"path": path}, path)


def test_keys_made_from_text_are_no_ids(file: TaskFile) -> None:
    take_in(file, item("sort the list"), item("/x"), item("x"), origin=_other("plan.md"))
    assert [r["id"] for r in file.records()] == ["T-001", "T-002", "x"]


def test_what_is_no_time_or_waits_for_a_stranger_is_left_out(file: TaskFile) -> None:
    done = take_in(
        file,
        item("a", blockedBy=["b", "?"], parent="!", createdAt="long ago", completedAt="2026-01-01"),
        item("b", createdAt="2026-01-02T03:04:05+01:00"),
    )
    first, second = file.records()
    assert (first["blockedBy"], "parent" in first, first["createdAt"]) == (["b"], False, NOW)
    assert first["completedAt"] == "2026-01-01T00:00:00.000Z"
    assert second["createdAt"] == "2026-01-02T02:04:05.000Z"
    assert done.lost == (
        "a waits for ?, which is not in the list",
        "a is a part of !, which is not in the list",
    )


def test_what_waits_for_itself_is_refused_before_anything_is_written(
    file: TaskFile, workspace: Path
) -> None:
    before = write(workspace, {"id": "a"}).read_bytes()
    for dry in (False, True):
        with pytest.raises(ConfigError, match="wait for each other"):
            take_in(
                file, item("b"), item("c", blockedBy=["d"]), item("d", blockedBy=["c"]), write=dry
            )
    assert path_of(workspace).read_bytes() == before


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"priority": "high"}, "priority"),
        ({"tags": [1]}, "tags"),
        ({"description": "x" * (5 << 20)}, "longer than 4 MB"),
    ],
)
def test_what_would_be_no_task_keeps_everything_out(
    file: TaskFile, workspace: Path, fields: Json, why: str
) -> None:
    with pytest.raises(ConfigError, match=f"b would be no task: .*{why}"):
        take_in(file, item("a"), item("b", **fields))
    assert path_of(workspace).read_bytes() == b""


def test_nothing_is_written_to_see_what_would_be(file: TaskFile, workspace: Path) -> None:
    done = take_in(file, item("a"), write=False)
    assert [r["id"] for r in done.added] == ["a"]
    assert list(workspace.iterdir()) == []


def test_a_line_that_was_torn_off_is_left_alone(file: TaskFile, workspace: Path) -> None:
    path = path_of(workspace)
    path.write_text('{"id": "a"}\n{"id": "b"')
    path.chmod(0o600)
    take_in(file, item("c"))
    assert path.read_text().startswith('{"id": "a"}\n{"id": "b"\n{"id":"c"')
    assert path.stat().st_mode & 0o777 == 0o600


# ------------------------------------------------------------------ the same list again


def test_the_same_list_again_changes_nothing(file: TaskFile, workspace: Path) -> None:
    """Also under another format of its kin: lists grow."""
    items = (item("a", {"k": 1}, tags=["x"]), item("b", blockedBy=["a"]))
    take_in(file, *items, root={"p": 1})
    before = path_of(workspace).read_bytes()
    assert take_in(file, *items, root={"p": 1}) == Import(unchanged=("a", "b"))
    assert path_of(workspace).read_bytes() == before
    again = take_in(file, *items, root={"p": 1}, origin=Origin("ralph-tui", ORIGIN.place, "prd"))
    assert again.unchanged == ("a", "b")
    assert [r["source"]["format"] for r in file.records()] == ["ralph-tui", "ralph-tui"]


def test_another_list_with_the_same_keys_is_another_list(file: TaskFile) -> None:
    take_in(file, item("US-1"))
    done = take_in(file, item("US-1"), origin=_other("b/prd.json"))
    assert [r["id"] for r in done.added] == ["US-2"]


def test_what_changed_there_changes_here_and_what_changed_here_stays(file: TaskFile) -> None:
    first: Json = {"description": "old", "tags": ["x"], "priority": -1, "notes": "n"}
    take_in(file, item("a", **first), item("b"))
    change(file, "a", title="Mine", priority=7)
    done = take_in(file, item("a", description="new", tags=["x"], priority=-1), item("b"))
    assert [(r["id"], f) for r, f in done.updated] == [("a", ("description", "notes"))]
    task = record(file, "a")
    assert (task["title"], task["description"], task["priority"]) == ("Mine", "new", 7)
    assert ("notes" in task, task["tags"]) == (False, ["x"])
    assert done.conflicts == ()


def test_what_changed_here_and_there_is_told_and_stays(file: TaskFile) -> None:
    """ "A two-way conflict is reported, never overwritten", until both say the same."""
    take_in(file, item("a", description="old"))
    change(file, "a", description="mine")
    for _ in range(2):
        done = take_in(file, item("a", description="theirs"))
        assert done.conflicts == (Conflict("a", "description", "mine", "theirs"),)
        assert record(file, "a")["description"] == "mine"
    change(file, "a", description="theirs")
    assert take_in(file, item("a", description="theirs")).conflicts == ()
    assert take_in(file, item("a", description="newer")).updated[0][1] == ("description",)


def test_who_waits_for_whom_is_compared_by_their_names(file: TaskFile, workspace: Path) -> None:
    write(workspace, {"id": "a"})
    take_in(file, item("a"), item("b", blockedBy=["a"]), item("c"))
    assert record(file, "b")["blockedBy"] == ["T-001"]
    take_in(file, item("a"), item("b", blockedBy=["a", "c"]), item("c"))
    assert record(file, "b")["blockedBy"] == ["T-001", "c"]
    change(file, "b", blockedBy=["a"])
    done = take_in(file, item("a"), item("b", blockedBy=["c"]), item("c"))
    assert done.conflicts == (Conflict("b", "blockedBy", ["a"], ["c"]),)


def test_a_task_that_is_in_the_list_no_more_is_told_and_stays(file: TaskFile) -> None:
    take_in(file, item("a"), item("b"), root={"p": 1})
    done = take_in(file, item("b"), root={"p": 2})
    assert (done.missing, done.unchanged) == (("a",), ("b",))
    assert [r["source"].get("root") for r in file.records()] == [None, {"p": 2}]


def test_what_only_the_list_knows_is_kept_up_to_date(file: TaskFile) -> None:
    take_in(file, item("a", {"reviewCount": 0}))
    done = take_in(file, item("a", {"reviewCount": 1}))
    assert [(r["source"]["kept"], f) for r, f in done.updated] == [({"reviewCount": 1}, ())]


# ------------------------------------------------------------------ statuses


@pytest.mark.parametrize(
    ("was", "here", "there", "then", "conflict"),
    [
        ("pending", "pending", "done", "done", False),
        ("pending", "blocked", "done", "done", False),
        ("pending", "in_progress", "done", "in_progress", False),  # a run has it under work
        ("pending", "done", "pending", "done", False),  # for sync
        ("pending", "cancelled", "done", "cancelled", True),
        ("done", "done", "pending", "done", True),  # opened again there
        ("done", "pending", "done", "pending", False),  # opened again here
        ("pending", "pending", "in_progress", "in_progress", False),
        ("pending", "blocked", "in_progress", "blocked", True),
    ],
)
def test_what_is_under_work_or_ended_is_not_set_back(
    file: TaskFile, was: str, here: str, there: str, then: str, *, conflict: bool
) -> None:
    take_in(file, item("a", status=was))
    change(file, "a", status=here)
    done = take_in(file, item("a", status=there))
    assert (record(file, "a")["status"], bool(done.conflicts)) == (then, conflict)


def test_done_there_is_done_here_with_a_note(file: TaskFile) -> None:
    take_in(file, item("a", notes="n"))
    change(file, "a", status="blocked", reason="stuck")
    done = take_in(file, item("a", status="done", notes="new"))
    task = record(file, "a")
    assert task["notes"] == f"new\nCalled done by prd.json, imported {NOW}."
    assert (task["completedAt"], "reason" in task) == (NOW, False)
    assert set(done.updated[0][1]) == {"status", "notes", "reason", "completedAt"}


def test_an_agent_may_add_tasks_and_say_of_none_that_it_is_done(file: TaskFile) -> None:
    """An agent's word is a claim: `passes: true` of a list that it may just have edited is one."""
    take_in(file, item("a", description="x"))
    done = take_in(
        file,
        item("a", description="y", status="done"),
        item("b", status="done", completedAt="2026-01-01"),
        by_agent=True,
    )
    assert (record(file, "a")["description"], record(file, "a")["status"]) == ("x", "pending")
    assert (record(file, "b")["status"], "completedAt" in record(file, "b")) == ("pending", False)
    assert done.kept == ("b is added as pending: an agent does not say done",)
    take_in(file, item("a"), item("b", status="done"))  # a person does
    assert record(file, "b")["status"] == "done"
