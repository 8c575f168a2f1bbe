"""`.ralph/tasks.jsonl`: adding, updating, and seeing what others have changed."""

from pathlib import Path
from typing import Any

import pytest
from task_file_support import file, path_of, titles, write

from ralph.errors import ConfigError
from ralph.kernel.tasks.task import Status
from ralph.loops.backlog.store.lines import encoded
from ralph.loops.backlog.store.task_file import Listing, TaskFile

NOON = 1_769_860_800.0  # 2026-01-31T12:00:00Z

__all__ = ["file"]


# ------------------------------------------------------------------ adding and updating


def test_without_a_file_there_are_no_tasks(file: TaskFile, workspace: Path) -> None:
    assert file.read() == Listing()
    assert (file.records(), file.record("a")) == ([], None)
    file.compact()
    assert list(workspace.iterdir()) == []


def test_a_new_task(workspace: Path) -> None:
    record = TaskFile(str(workspace), lambda: NOON).add({"title": "Do it", "tags": ["x"]})
    assert record == {
        "id": "T-001",
        "title": "Do it",
        "status": "pending",
        "tags": ["x"],
        "createdAt": "2026-01-31T12:00:00.000Z",
        "updatedAt": "2026-01-31T12:00:00.000Z",
    }
    assert path_of(workspace).read_bytes() == encoded(record) + b"\n"
    assert (workspace / ".ralph" / ".gitignore").read_text().startswith("*\n")


@pytest.mark.parametrize(
    ("ids", "following"),
    [
        ([], "T-001"),
        (["RALPH-012"], "RALPH-013"),
        (["RALPH-099", "RALPH-7"], "RALPH-100"),
        (["A-1", "B-8", "B-9"], "B-10"),
        (["login", "logout"], "T-001"),
        (["7", "008"], "009"),
        (["T-" + "9" * 30], "T-" + "9" * 12 + "1" + "0" * 18),
    ],
)
def test_the_id_of_a_new_task(
    file: TaskFile, workspace: Path, ids: list[str], following: str
) -> None:
    """The commonest prefix, the number after the highest, as wide as that."""
    write(workspace, *({"id": name} for name in ids))
    assert file.add({"title": "x"})["id"] == following


def test_the_number_of_a_broken_line_is_not_given_away(file: TaskFile, workspace: Path) -> None:
    write(workspace, {"id": "T-001"}, {"id": "T-002", "status": "nonsense"})
    assert file.add({"title": "x"})["id"] == "T-003"
    for taken in ("T-001", "T-002"):
        with pytest.raises(ConfigError, match=f"there is a task {taken} already"):
            file.add({"title": "x", "id": taken})


def test_an_update_appends_and_keeps_the_rest(workspace: Path) -> None:
    file = TaskFile(str(workspace), lambda: NOON)
    path = write(workspace, {"id": "a", "title": "A", "mine": [1]}, {"id": "b"})
    before = path.read_bytes()
    record = file.update("a", lambda old: {"status": "done", "title": None, "id": "other"})
    stamp = {"updatedAt": "2026-01-31T12:00:00.000Z"}
    assert record == {"id": "a", "mine": [1], "status": "done", **stamp}
    assert path.read_bytes() == before + encoded(record) + b"\n"
    assert [(t.id, t.status) for t in file.read().backlog.tasks] == [
        ("a", Status.DONE),
        ("b", Status.PENDING),
    ]


def test_no_change_is_not_written(file: TaskFile, workspace: Path) -> None:
    path = write(workspace, {"id": "a"})
    before = path.read_bytes()
    assert file.update("a", lambda _: None) == {"id": "a"}
    assert path.read_bytes() == before


def broken(_: dict[str, Any]) -> dict[str, Any]:
    raise ConfigError("not so")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (broken, "not so"),
        (lambda _: {"status": "finished"}, "the status must be one of"),
        (lambda _: {"completion": {"type": "validate"}}, "needs a script"),
        (lambda _: {"blockedBy": ["T-01"]}, "there is no task T-01"),
        (lambda _: {"blockedBy": ["T-001"]}, "T-001 would wait for itself: T-001 → T-001"),
        (lambda _: {"blockedBy": ["T-003"]}, "T-001 → T-003 → T-002 → T-001"),
        (lambda _: {"title": "x" * (5 << 20)}, "longer than 4 MB"),
        (lambda _: {"x": float("nan")}, "cannot be written as JSON"),
    ],
)
def test_a_change_that_cannot_be_is_not_written(
    file: TaskFile,
    workspace: Path,
    change: Any,  # noqa: ANN401
    why: str,
) -> None:
    chain = {"id": "T-002", "blockedBy": ["T-001"]}, {"id": "T-003", "blockedBy": ["T-002"]}
    path = write(workspace, {"id": "T-001"}, *chain)
    before = path.read_bytes()
    with pytest.raises(ConfigError) as refused:
        file.update("T-001", change)
    assert why in refused.value.message
    assert path.read_bytes() == before
    file.update("T-001", lambda _: {"priority": 1})  # the lock is free again


def test_old_sins_do_not_stand_in_the_way_of_an_update(file: TaskFile, workspace: Path) -> None:
    """Unknown blockers and circles that are there already are told elsewhere."""
    write(workspace, {"id": "a", "blockedBy": ["gone", "b"]}, {"id": "b", "blockedBy": ["a"]})
    assert file.read().cycle == ("a", "b")
    file.update("a", lambda _: {"status": "blocked"})
    file.update("a", lambda _: {"blockedBy": ["gone"]})
    assert file.read().cycle == ()


def test_bringing_a_task_back_must_not_close_a_circle(file: TaskFile, workspace: Path) -> None:
    done = {"id": "b", "status": "done", "blockedBy": ["a"]}
    write(workspace, {"id": "a", "blockedBy": ["b"]}, done)
    with pytest.raises(ConfigError, match="b would wait for itself"):
        file.update("b", lambda _: {"status": "pending"})


@pytest.mark.parametrize(
    ("wanted", "remedy"),
    [
        ("T-0002", "Did you mean T-002?"),
        ("t-002", "Did you mean T-002?"),
        ("T-2", "Did you mean T-002?"),
        ("T-003x", "Did you mean T-003"),
        ("zzz", "All of them: ralph tasks list"),
    ],
)
def test_an_unknown_id_is_told_the_near_ones(
    file: TaskFile, workspace: Path, wanted: str, remedy: str
) -> None:
    write(workspace, {"id": "T-001"}, {"id": "T-002"}, {"id": "T-003"})
    with pytest.raises(ConfigError, match=f"there is no task {wanted}") as refused:
        file.update(wanted, lambda _: {})
    assert refused.value.remedy.startswith(remedy)


def test_an_id_on_a_broken_line_is_told_what_is_wrong_with_it(
    file: TaskFile, workspace: Path
) -> None:
    write(workspace, {"id": "a"}, {"id": "b", "priority": "high"})
    with pytest.raises(ConfigError, match="line 2: the priority must be a whole number"):
        file.update("b", lambda _: {})


def test_an_unknown_id_without_a_file_makes_none(file: TaskFile, workspace: Path) -> None:
    with pytest.raises(ConfigError, match="there is no task a"):
        file.update("a", lambda _: {})
    assert list(workspace.iterdir()) == []


def test_a_task_is_put_back_whatever_became_of_it(file: TaskFile, workspace: Path) -> None:
    """An agent's edits of its own line in `tasks.jsonl` are undone."""
    old = {"id": "a", "title": "A", "createdAt": "2026-01-31T12:00:00.000Z", "blockedBy": ["gone"]}
    write(workspace, old, {"id": "a", "status": "done", "extra": 1}, {"id": "b"})
    written = file.put(old)
    assert written == {**old, "updatedAt": written["updatedAt"]}
    assert file.record("a") == written
    assert file.lines()["a"] == encoded(written)
    assert "c" not in file.lines()
    path_of(workspace).unlink()
    file.put(old)
    assert titles(file) == ["A"]


# ------------------------------------------------------------------ reading again


def test_only_what_is_new_is_read_again(file: TaskFile, workspace: Path) -> None:
    write(workspace, {"id": "a"}, {"id": "b"})
    a, b = file.read().backlog.tasks
    assert file.read() is file.read()
    file.update("b", lambda _: {"title": "new"})
    again, other = file.read().backlog.tasks
    assert again is a
    assert other.title == "new"
    assert b.title == ""


def test_every_change_by_others_is_seen(file: TaskFile, workspace: Path) -> None:
    """A task file edited by the agent or a person while the run goes on."""
    path = write(workspace, {"id": "a", "title": "one"})
    assert titles(file) == ["one"]
    path.write_text('{"id":"a","title":"two"}\n')  # in place
    assert titles(file) == ["two"]
    path.write_text('{"id":"a","title":"333"}\n')  # of the same size, within the same moment
    assert titles(file) == ["333"]
    path.with_suffix(".new").write_text('{"id":"a","title":"four"}')
    path.with_suffix(".new").replace(path)
    assert titles(file) == ["four"]
    with path.open("a") as other:
        other.write(',{"id":"b"}')  # which spoils that line
    assert titles(file) == []
    path.unlink()
    assert file.read() == Listing()
    write(workspace, {"id": "a", "title": "five"})
    assert titles(file) == ["five"]


def test_a_copy_is_given(file: TaskFile, workspace: Path) -> None:
    write(workspace, {"id": "a", "tags": ["x"]})
    record = file.record("a")
    assert record is not None
    record["tags"].append("y")
    assert file.record("a") == {"id": "a", "tags": ["x"]}


def test_a_hundred_thousand_tasks(file: TaskFile, workspace: Path) -> None:
    path = write(workspace, *({"id": f"T-{n}", "title": "x" * 200} for n in range(100_000)))
    before = path.stat()
    tasks = file.read().backlog.tasks
    assert len(tasks) == 100_000
    record = file.update("T-50000", lambda _: {"status": "done"})
    after = path.stat()
    assert (after.st_ino, after.st_size) == (
        before.st_ino,
        before.st_size + len(encoded(record)) + 1,
    )
    again = file.read().backlog.tasks
    assert again[50_000].status is Status.DONE
    assert all(one is other for one, other in zip(tasks[:50_000], again, strict=False))
    with pytest.raises(ConfigError) as refused:
        file.update("t-050000", lambda _: {})
    assert refused.value.remedy.startswith("Did you mean T-50000?")
