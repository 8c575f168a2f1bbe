"""The lines of `tasks.jsonl`: what makes a task, and what is only a problem, named by its line."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.kernel.limits import Limits, Spent
from ralph.kernel.tasks.task import Status, Task
from ralph.loops.backlog.store.lines import Lines
from ralph.loops.backlog.store.task_file import Listing, TaskFile

GOOD = b'{"id":"good"}'


def file_of(workspace: Path, *lines: bytes | dict[str, Any]) -> TaskFile:
    """A task file with these lines."""
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    (workspace / ".ralph").mkdir()
    (workspace / ".ralph" / "tasks.jsonl").write_bytes(b"".join(line + b"\n" for line in raw))
    return TaskFile(str(workspace))


def problems(listing: Listing) -> list[str]:
    return [str(problem) for problem in listing.problems]


def data_of(file: TaskFile) -> bytes:
    return Path(file.path).read_bytes()


def test_a_task_with_all_that_core_knows(workspace: Path) -> None:
    line = {
        "id": "T-1",
        "title": "A title",
        "description": "Do it",
        "type": "bug",
        "status": "in_progress",
        "priority": 3,
        "createdAt": "2026-01-31T12:00:00.000Z",
        "blockedBy": ["T-2"],
        "tags": ["a", "b"],
        "completion": {"type": "test_passing"},
        "limits": {"maxIterations": 4, "maxTime": 60},
        "question": "which?",
        "answers": ["this", "that"],
        "reason": "no key",
        "saved": "refs/ralph/x",
        "retries": 2,
    }
    (task,) = file_of(workspace, line).read().backlog.tasks
    assert task == Task(
        "T-1",
        "A title",
        "Do it",
        Status.IN_PROGRESS,
        3,
        "2026-01-31T12:00:00.000Z",
        ("T-2",),
        Limits(4, 60.0),
        'the tests that match "T-1" pass',
        kind="bug",
        tags=("a", "b"),
        question="which?",
        answers=("this", "that"),
        reason="no key",
        saved="refs/ralph/x",
    )


def test_what_is_missing_or_null_has_its_default(workspace: Path) -> None:
    """ADR 21: "Missing priority is 0"."""
    names = ("title", "description", "type", "priority", "createdAt", "blockedBy", "tags")
    empty = dict.fromkeys((*names, "completion", "limits", "question", "answers", "reason"))
    listing = file_of(workspace, {"id": "a"}, {"id": "b", **empty}).read()
    assert listing.backlog.tasks == (Task("a"), Task("b"))
    assert (listing.problems, listing.cycle) == ((), ())


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"nonsense", "not JSON: JSON is malformed"),
        (b'{"id":"T-', "not JSON: Input data was truncated"),
        (b'{"id":"a"} {"id":"b"}', "not JSON"),
        (b'{"id":"a\x00"}', "not JSON"),
        (b"\x00\x00\x00\x00", "not JSON"),
        (b"[1]", "not an object"),
        (b"null", "not an object"),
        (b'{"id":"a","x":"\xff"}', "not UTF-8 text (byte 16)"),
        (b'{"id":"\xff"}', "not UTF-8 text (byte 8)"),
        (b'{"id":"a","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b"{}", "there is no id"),
        (b'{"id":null}', "there is no id"),
        (b'{"id":7}', "the id is not a text"),
        (b'{"id":""}', "the id '' cannot be used"),
        (b'{"id":"  "}', "cannot be used"),
        (b'{"id":"-x"}', "no - in front"),
        (b'{"id":"a/b"}', "none of them /"),
        (b'{"id":"a\\nb"}', "a control character"),
        (b'{"id":"a\\u001bb"}', "a control character"),
        (b'{"id":"' + b"x" * 201 + b'"}', "1 to 200 characters"),
        (b'{"id":"a","status":"finished"}', "the status must be one of pending, in_progress"),
        (b'{"id":"a","status":null}', "the status must be one of"),
        (b'{"id":"a","status":["done"]}', "the status must be one of"),
        (b'{"id":"a","priority":1.5}', "the priority must be a whole number, not 1.5"),
        (b'{"id":"a","priority":"high"}', "the priority must be a whole number, not 'high'"),
        (b'{"id":"a","priority":true}', "the priority must be a whole number, not True"),
        (b'{"id":"a","title":["x"]}', "title must be a text"),
        (b'{"id":"a","createdAt":5}', "createdAt must be a text, not 5"),
        (b'{"id":"a","createdAt":"yesterday"}', "createdAt is no ISO time: 'yesterday'"),
        (b'{"id":"a","blockedBy":"b"}', "blockedBy must be a list of texts, not 'b'"),
        (b'{"id":"a","tags":[1]}', "tags must be a list of texts, not [1]"),
        (b'{"id":"a","completion":"explicit"}', "completion must be an object"),
        (b'{"id":"a","completion":{"type":"magic"}}', "completion.type must be one of"),
        (b'{"id":"a","completion":{"type":"file_exists"}}', "needs a path"),
        (b'{"id":"a","limits":{"maxCost":0}}', "limits.maxCost must be a number above 0"),
        (b'{"id":"a","limits":[]}', "limits must be an object"),
        (b'{"id":"a","spent":7}', "spent must be an object, not 7"),
        (b'{"id":"a","notes":7}', "notes must be a text or a list, not 7"),
    ],
)
def test_a_line_that_cannot_be_used_is_named_and_kept(
    workspace: Path, line: bytes, why: str
) -> None:
    """A broken line is named by its number; the rest still works; nothing is deleted."""
    file = file_of(workspace, GOOD, line, {"id": "other", "status": "done"})
    listing = file.read()
    assert [t.id for t in listing.backlog.tasks] == ["good", "other"]
    (told,) = problems(listing)
    assert told.startswith("line 2: ")
    assert why in told
    assert len(told) < 300
    file.update("good", lambda _: {"priority": 1})
    file.compact()
    assert line in data_of(file).split(b"\n")
    assert problems(file.read()) == [told]


def test_a_line_of_64_megabytes_is_a_problem_and_no_wait(workspace: Path) -> None:
    file = file_of(workspace, GOOD, b'{"id":"' + b"x" * (64 << 20) + b'"}', b'{"id":"b"}')
    listing = file.read()
    assert problems(listing) == ["line 2: longer than 4 MB"]
    assert [t.id for t in listing.backlog.tasks] == ["good", "b"]


def test_a_later_line_that_is_broken_does_not_take_the_place_of_a_good_one(workspace: Path) -> None:
    file = file_of(workspace, {"id": "a", "status": "done"}, {"id": "a", "status": "nope"})
    assert file.read().backlog.tasks == (Task("a", status=Status.DONE),)


def test_signs_of_other_systems_do_no_harm(workspace: Path) -> None:
    """A byte order mark, carriage returns, blank lines, and no newline at the end."""
    (workspace / ".ralph").mkdir()
    data = b'\xef\xbb\xbf{"id":"a"}\r\n\r\n  \n{"id":"\xc3\xa9"}'
    (workspace / ".ralph" / "tasks.jsonl").write_bytes(data)
    file = TaskFile(str(workspace))
    listing = file.read()
    assert ([t.id for t in listing.backlog.tasks], listing.problems) == (["a", "é"], ())
    assert [record["id"] for record in file.records()] == ["a", "é"]


@pytest.mark.parametrize(
    ("written", "created"),
    [
        ("2026-01-31T12:00:00.000Z", "2026-01-31T12:00:00.000Z"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000Z"),
        ("2026-01-31T13:00:00+01:00", "2026-01-31T12:00:00.000Z"),
        ("2026-01-31T12:00:00.123456", "2026-01-31T12:00:00.123Z"),
        ("2026-01-31", "2026-01-31T00:00:00.000Z"),
        ("", ""),
    ],
)
def test_times_of_any_zone_can_be_compared(workspace: Path, written: str, created: str) -> None:
    """B: "Oldest if same priority"."""
    (task,) = file_of(workspace, {"id": "a", "createdAt": written}).read().backlog.tasks
    assert task.created == created


OLD, NEW = "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"
FIRST = {"id": "a", "createdAt": OLD}
TWICE = "the id a was used in line 1 already; this one counts"


@pytest.mark.parametrize(
    ("second", "is_update"),
    [
        ({"createdAt": OLD, "updatedAt": NEW}, True),
        ({"createdAt": NEW, "updatedAt": NEW}, False),
        ({"createdAt": OLD}, False),
        ({"updatedAt": NEW}, False),
    ],
)
def test_an_id_that_is_used_twice_is_named(
    workspace: Path, second: dict[str, str], is_update: bool
) -> None:
    """The last line for an id wins; one that is no update of ours is told, and both are kept."""
    file = file_of(workspace, FIRST, {"id": "a", "title": "last", **second})
    listing = file.read()
    assert [t.title for t in listing.backlog.tasks] == ["last"]
    assert problems(listing) == ([] if is_update else [f"line 2: {TWICE}"])
    file.compact()
    assert len(data_of(file).splitlines()) == (1 if is_update else 2)


def test_updates_of_an_id_that_was_used_twice_are_compacted_too(workspace: Path) -> None:
    file = file_of(workspace, FIRST, {"id": "b"}, {"id": "a", "title": "again"})
    for number in range(3):
        file.update("a", lambda _, n=number: {"priority": n})  # type: ignore[misc]
    file.compact()
    lines = [json.loads(line) for line in data_of(file).splitlines()]
    assert [(line["id"], line.get("title"), line.get("priority")) for line in lines] == [
        ("a", None, None),
        ("b", None, None),
        ("a", "again", None),
        ("a", "again", 2),
    ]
    before = data_of(file)
    file.compact()
    assert data_of(file) == before


def test_a_long_list_is_written_anew_once_a_hundredth_is_superseded(workspace: Path) -> None:
    """Else each task of a long run takes longer than the one before."""
    file = file_of(workspace, *({"id": f"t{number}"} for number in range(200)))
    path = workspace / ".ralph" / "tasks.jsonl"
    for lines in (201, 200):
        file.update("t7", lambda old: {"priority": old.get("priority", 0) + 1})
        file.compact()
        assert len(path.read_bytes().splitlines()) == lines
    assert file.needed("t7")["priority"] == 2


def test_compaction_keeps_the_order_of_tasks_without_a_date(workspace: Path) -> None:
    """ADR 21: among equals the first in the file comes first, whatever was updated."""
    file = file_of(workspace, *({"id": name} for name in "abcd"))
    for name in "cabca":
        file.update(name, lambda old: {"priority": old.get("priority", 0) + 1})
    tasks = file.read().backlog.tasks
    assert [t.id for t in tasks] == list("abcd")
    file.compact()
    assert len(data_of(file).splitlines()) == 4
    assert file.read().backlog.tasks == tasks
    assert TaskFile(str(workspace)).read().backlog.tasks == tasks


STAMPS = st.sampled_from([None, OLD, NEW])


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from("abc"), STAMPS, STAMPS),
            st.sampled_from(["nonsense", '{"id":"a","status":"?"}', ""]),
        ),
        max_size=15,
    ),
    st.integers(0, 15),
)
def test_compaction_loses_nothing_that_counts(
    wished: "list[tuple[str, str | None, str | None] | str]", cut: int
) -> None:
    """The same tasks in the same order with the same problems; again it changes nothing."""
    lines = [
        line if isinstance(line, str) else json.dumps(_numbered(number, *line))
        for number, line in enumerate(wished)
    ]
    pieces = [f"{line}\n" for line in lines]
    data = "".join(pieces).encode()
    whole, parts, after, again = Lines(), Lines(), Lines(), Lines()
    whole.feed(data)
    parts.feed("".join(pieces[:cut]).encode())
    parts.feed(data)
    assert (parts.tasks, parts.problems) == (whole.tasks, whole.problems)
    compacted = whole.compacted()
    after.feed(compacted.data)
    assert (compacted.places, compacted.tasks) == (after.places, after.tasks)
    assert list(after.tasks.items()) == list(whole.tasks.items())
    assert len(after.problems) == len(whole.problems)
    again.feed(after.compacted().data)
    assert again.data == after.data
    broken = [line for line in lines if line and _is_broken(line)]
    assert [line for line in again.data.decode().splitlines() if _is_broken(line)] == broken


def _numbered(number: int, name: str, created: str | None, updated: str | None) -> dict[str, Any]:
    return {"id": name, "title": str(number), "createdAt": created, "updatedAt": updated}


def _is_broken(line: str) -> bool:
    return "nonsense" in line or "?" in line


def test_unknown_fields_are_kept_for_ever(workspace: Path) -> None:
    odd = {"x": {"y": [1, 2.5, None, "é"]}, "big": 2**80, "nothing": None}
    file = file_of(workspace, {"id": "a", **odd})
    file.update("a", lambda _: {"title": "t"})
    file.update("a", lambda old: {**old, "title": None})
    file.compact()
    record = TaskFile(str(workspace)).record("a")
    assert record is not None
    assert {name: record[name] for name in odd} == odd
    assert "title" not in record


@pytest.mark.parametrize(
    ("status", "spent", "used"),
    [
        ("in_progress", {"a": {"iterations": 2, "seconds": 5, "cost": 0.5}}, Spent(2, 5.0, 0.5)),
        ("in_progress", {"a": {"iterations": 2}, "b": {"iterations": 1}}, Spent(3)),
        ("in_progress", {"a": 3, "b": {"iterations": "many", "seconds": -4}}, Spent()),
        ("pending", {"a": {"iterations": 2}}, Spent(2)),  # an agent crashed in it
        ("blocked", {"a": {"iterations": 2}}, Spent()),
    ],
)  # fmt: skip
def test_what_runs_before_have_used_counts_for_a_task_under_way(
    workspace: Path, status: str, spent: object, used: Spent
) -> None:
    listing = file_of(workspace, {"id": "a", "status": status, "spent": spent}).read()
    assert listing.backlog.tasks[0].used == used
