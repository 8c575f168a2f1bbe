"""`ralph tasks add`, `edit` and `answer`: a backlog from the command line (B)."""

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pexpect
import pytest
from run_support import RALPH, Done, Here, assert_clear, in_shell, ralph

from ralph.files.state_dir import project_dir
from ralph.loops.backlog.store.watch import known

# Python 3.12 warns that forking a process with threads may hang; the child executes at once.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], workspace: Path) -> Here:
    return Here(capsys)


def tasks_file(workspace: Path) -> Path:
    return workspace / ".ralph" / "tasks.jsonl"


def write(workspace: Path, *records: dict[str, Any]) -> None:
    (workspace / ".ralph").mkdir(exist_ok=True)
    lines = "".join(f"{json.dumps(record)}\n" for record in records)
    tasks_file(workspace).write_text(lines)


def last(workspace: Path) -> dict[str, Any]:
    """The task that was written last."""
    record: dict[str, Any] = json.loads(tasks_file(workspace).read_text().splitlines()[-1])
    return record


def without_times(record: dict[str, Any]) -> dict[str, Any]:
    return {name: found for name, found in record.items() if not name.endswith("At")}


# ------------------------------------------------------------------ add


def test_a_task_is_added_with_all_that_can_be_said(here: Here, workspace: Path) -> None:
    write(workspace, {"id": "RALPH-012"})
    (workspace / "wish.md").write_text("Do it\nwell.\n")
    words = "--type bug --priority -2 --tag a --tag b --tag a --blocked-by RALPH-012 --estimate 3"
    words += " --parent RALPH-012 --max-iterations 5 --max-time 30m --max-cost $2.50 -f wish.md"
    done = here("tasks", "add", "Fix  it", *words.split(), "--completion", "test:make test")
    assert (done.code, done.out, done.err) == (0, "Added RALPH-013: Fix it\n", "")
    record = last(workspace)
    assert record["createdAt"] == record["updatedAt"]
    assert without_times(record) == {
        "id": "RALPH-013",
        "title": "Fix it",
        "status": "pending",
        "description": "Do it\nwell.\n",
        "type": "bug",
        "priority": -2,
        "tags": ["a", "b"],
        "blockedBy": ["RALPH-012"],
        "parent": "RALPH-012",
        "estimate": 3,
        "completion": {"type": "test_passing", "command": "make test"},
        "limits": {"maxIterations": 5, "maxTime": 1800, "maxCost": 2.5},
    }


def test_a_task_is_printed_as_json(here: Here, workspace: Path) -> None:
    done = here("tasks", "add", "Do it", "-d", "é", "--id", "first", "--json")
    assert done.objects == [last(workspace)]
    assert done.objects[0]["id"] == "first"


def test_a_description_from_standard_input_in_another_directory(workspace: Path) -> None:
    (workspace / "sub").mkdir()
    done = in_shell("printf 'Do\\nit' | ralph -C sub tasks add T -f -")
    assert (done.code, done.out) == (0, "Added T-001: T\n")
    assert last(workspace / "sub")["description"] == "Do\nit"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ["a task needs a title", "ralph tasks add"]),
        ((" ",), ["the title is blank"]),
        (("x" * 501,), ["longer than 500 characters", "-f FILE"]),
        (("\udcff",), ["the title is not UTF-8 text", "iconv"]),
        (("x", "--blocked-by", "T-2"), ["there is no task T-2", "Did you mean T-002?"]),
        (("x", "--blocked-by", "T-001", "--id", "T-009"), ["would wait for itself", "T-009"]),
        (("x", "--parent", "T-9"), ["there is no task T-9"]),
        (("x", "--id", "T-001"), ["there is a task T-001 already", "ralph tasks edit T-001"]),
        (("x", "--id", "a/b"), ["cannot be used", "none of them /"]),
        (("x", "--id", "--id"), ["cannot be used"]),
        (("x", "--id", ""), ["--id is empty"]),
        (("x", "--completion", "magic"), ["is no completion rule", "test:COMMAND"]),
        (("x", "--completion", '{"type":"validate"}'), ["needs a script"]),
        (("x", "--completion", '{"type":'), ["is not JSON"]),
        (("x", "--priority", "high"), ["not a whole number"]),
        (("x", "--estimate", "soon"), ["neither iterations such as 3"]),
        (("x", "--max-iterations", "0"), ["limits.maxIterations must be a whole number"]),
        (("x", "--max-cost", "0"), ["limits.maxCost must be a number above 0"]),
        (("x", "--max-time", "soon"), ["not a duration"]),
        (("x", "--tag", " "), ["--tag is blank"]),
        (("x", "-d", "a", "-f", "b"), ["exclude each other"]),
        (("x", "-f", "nowhere"), ["cannot read the description nowhere: No such file"]),
        (("x", "-f", "."), ["Is a directory"]),
        (("x", "-f", "pipe"), ["not a regular file"]),
        (("x", "-f", "binary"), ["is not UTF-8 text (byte 0)"]),
        (("x", "-f", "nul"), ["contains a NUL byte", "Name a file of text."]),
        (("x", "-f", "huge"), ["larger than 2 MB"]),
        (("x", "y"), ["unexpected extra argument"]),
    ],
)
def test_what_makes_no_task_is_refused(
    here: Here, workspace: Path, arguments: tuple[str, ...], words: list[str]
) -> None:
    """Bad input: a clear error, exit 2, and nothing is written."""
    write(workspace, {"id": "T-001", "blockedBy": ["T-009"]}, {"id": "T-002"})
    os.mkfifo("pipe")
    (workspace / "binary").write_bytes(b"\xff")
    (workspace / "nul").write_bytes(b"a\0")
    (workspace / "huge").write_bytes(b"x" * (3 << 20))
    before = tasks_file(workspace).read_bytes()
    assert_clear(here("tasks", "add", *arguments), 2, *words)
    assert tasks_file(workspace).read_bytes() == before


@pytest.mark.parametrize("number", [10, pytest.param(50, marks=pytest.mark.slow)])
def test_so_many_at_once_are_so_many_tasks(workspace: Path, number: int) -> None:
    started = [
        subprocess.Popen([*RALPH, "tasks", "add", f"Task {n}"], stdout=subprocess.DEVNULL)
        for n in range(number)
    ]
    assert [process.wait(60) for process in started] == [0] * number
    records = [json.loads(line) for line in tasks_file(workspace).read_text().splitlines()]
    assert sorted(record["id"] for record in records) == [f"T-{n + 1:03}" for n in range(number)]
    assert len({record["title"] for record in records}) == number


def test_a_person_is_asked(workspace: Path) -> None:
    write(workspace, {"id": "T-001"})
    child = pexpect.spawn(RALPH[0], [*RALPH[1:], "tasks", "add"], encoding="utf-8", timeout=20)
    for question, answer in (
        ("Title: ", " "),
        ("the title is blank.*Title: ", "Sort the list"),
        ("Description", "By date"),
        ("Completion", "magic"),
        ("is no completion rule.*Completion", "file:out.txt"),
        ("Blocked by", "T-1"),
        ("Did you mean T-001.*Blocked by", "T-001"),
        ("Priority", "high"),
        ("whole number.*Priority", ""),
    ):
        child.expect(question)
        child.sendline(answer)
    child.expect("Added T-002: Sort the list")
    child.expect(pexpect.EOF)
    assert without_times(last(workspace)) == {
        "id": "T-002",
        "title": "Sort the list",
        "status": "pending",
        "description": "By date",
        "completion": {"type": "file_exists", "path": "out.txt"},
        "blockedBy": ["T-001"],
    }


def test_a_person_may_stop_in_the_middle(workspace: Path) -> None:
    child = pexpect.spawn(RALPH[0], [*RALPH[1:], "tasks", "add"], encoding="utf-8", timeout=20)
    child.expect("Title: ")
    child.sendeof()
    child.expect("no task was added")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    assert not tasks_file(workspace).exists()


# ------------------------------------------------------------------ edit


def edited(here: Here, *arguments: str) -> Done:
    return here("tasks", "edit", "T-001", *arguments)


def test_a_task_is_changed_and_keeps_the_rest(here: Here, workspace: Path) -> None:
    old = {"id": "T-001", "title": "a", "tags": ["x", "y"], "blockedBy": ["T-002"], "mine": [1]}
    limits = {"maxTime": 5, "other": 1}
    write(workspace, {**old, "limits": limits, "parent": "T-002"}, {"id": "T-002"}, {"id": "T-003"})
    words = "--title b --tag z --untag x --blocked-by T-003 --unblock T-002 --max-iterations 3"
    done = edited(here, *words.split(), "--parent", "", "--note", "n")
    assert done.code == 0, done.err
    assert done.out.startswith("Changed T-001: title, tags, blockedBy, limits, parent, notes")
    assert without_times(last(workspace)) == {
        "id": "T-001",
        "title": "b",
        "tags": ["y", "z"],
        "blockedBy": ["T-003"],
        "mine": [1],
        "limits": {"maxTime": 5, "other": 1, "maxIterations": 3},
        "notes": "n",
    }
    assert edited(here, "--note", "m", "--json").objects == [last(workspace)]
    assert last(workspace)["notes"] == "n\nm"


def test_what_is_so_already_is_not_written(here: Here, workspace: Path) -> None:
    write(workspace, {"id": "T-001", "tags": ["x"], "blockedBy": [], "priority": 0})
    before = tasks_file(workspace).read_bytes()
    done = edited(here, "--tag", "x", "--priority", "0", "--status", "pending")
    assert (done.code, done.out) == (0, "T-001 was so already\n")
    assert tasks_file(workspace).read_bytes() == before


@pytest.mark.parametrize(
    ("old", "new", "follows"),
    [
        ("pending", "review", "in_progress, blocked, done, cancelled"),
        ("blocked", "done", "pending, in_progress, cancelled"),
        ("done", "pending", "ralph tasks edit T-001 --reopen"),
        ("cancelled", "in_progress", "ralph tasks edit T-001 --reopen"),
    ],
)
def test_a_status_that_cannot_follow_is_refused(
    here: Here, workspace: Path, old: str, new: str, follows: str
) -> None:
    """`tasks edit ID --status S` refuses illegal transitions (2)."""
    write(workspace, {"id": "T-001", "status": old})
    words = f"T-001 is {old} and cannot become {new}"
    assert_clear(edited(here, "--status", new), 2, words, follows)
    assert last(workspace) == {"id": "T-001", "status": old}


def test_a_status_takes_along_what_belongs_to_it(here: Here, workspace: Path) -> None:
    write(workspace, {"id": "T-001", "status": "blocked", "reason": "no key", "question": "?"})
    assert edited(here, "--status", "in_progress").code == 0
    assert without_times(last(workspace)) == {"id": "T-001", "status": "in_progress"}
    assert edited(here, "--status", "done").code == 0
    assert last(workspace)["completedAt"].endswith("Z")
    assert edited(here, "--reopen").out.startswith("Changed T-001: status pending")
    assert "completedAt" not in last(workspace)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ["nothing to change", "ralph tasks edit --help"]),
        (("--reopen",), ["T-001 is pending", "done or cancelled"]),
        (("--reopen", "--status", "done"), ["exclude each other"]),
        (("--status", "finished"), ["'finished' is not one of"]),
        (("--blocked-by", "T-002"), ["T-001 would wait for itself: T-001 → T-002 → T-001"]),
        (("--blocked-by", "T-7"), ["there is no task T-7"]),
        (("--unblock", "T-7"), ["T-001 does not wait for T-7"]),
        (("--untag", "x"), ["T-001 has no tag x", "It has: y"]),
        (("--note", " "), ["--note is blank"]),
        (("--title", ""), ["the title is blank"]),
        (("--completion", "file:"), ["is no completion rule"]),
    ],
)
def test_a_change_that_cannot_be_is_refused(
    here: Here, workspace: Path, arguments: tuple[str, ...], words: list[str]
) -> None:
    write(workspace, {"id": "T-001", "tags": ["y"]}, {"id": "T-002", "blockedBy": ["T-001"]})
    before = tasks_file(workspace).read_bytes()
    assert_clear(edited(here, *arguments), 2, *words)
    assert tasks_file(workspace).read_bytes() == before


def test_an_unknown_id_is_told_the_near_ones(here: Here, workspace: Path) -> None:
    write(workspace, {"id": "T-001"}, {"id": "T-002", "status": "?"})
    for command in (("edit", "T-1", "--priority", "1"), ("answer", "T-1", "x"), ("show", "T-1")):
        assert_clear(here("tasks", *command), 2, "there is no task T-1", "Did you mean T-001")
    assert_clear(edited(here, "--parent", "T-002"), 2, "line 2: the status must be one of")


# ------------------------------------------------------------------ answer


ASKING = {"id": "T-001", "status": "blocked", "question": "Which database?", "reason": "asks"}


def test_an_answer_lets_the_task_go_on(here: Here, workspace: Path) -> None:
    """After `tasks answer` the task is pending."""
    write(workspace, {**ASKING, "answers": ["before"]})
    done = here("tasks", "answer", "T-001", " SQLite. ")
    assert (done.code, done.out) == (0, "T-001 is pending again, with your answer.\n")
    answers = ["before", "SQLite."]
    assert without_times(last(workspace)) == {
        "id": "T-001",
        "status": "pending",
        "answers": answers,
    }


def test_an_answer_from_standard_input(workspace: Path) -> None:
    write(workspace, ASKING)
    done = in_shell("printf 'a\\nb\\n' | ralph tasks answer T-001 - --json")
    assert done.objects == [last(workspace)]
    assert last(workspace)["answers"] == ["a\nb"]


@pytest.mark.parametrize(
    ("task", "text", "words"),
    [
        ("T-002", "x", ["T-002 asked nothing", "T-001: Which database?"]),
        ("T-003", "x", ["T-003 asked nothing"]),
        ("T-001", " ", ["the answer is blank"]),
        ("T-001", "-", ["the answer is blank"]),
        ("T-009", "x", ["there is no task T-009"]),
    ],
)
def test_an_answer_that_helps_nobody(
    workspace: Path, task: str, text: str, words: list[str]
) -> None:
    """Answering nobody is 2."""
    over = {"id": "T-003", "status": "done", "question": "old"}
    write(workspace, ASKING, {"id": "T-002", "status": "blocked", "reason": "r"}, over)
    before = tasks_file(workspace).read_bytes()
    assert_clear(ralph("tasks", "answer", task, text), 2, *words)
    assert tasks_file(workspace).read_bytes() == before


# ------------------------------------------------------------------ agents, and who wrote it


@pytest.mark.parametrize(
    "arguments",
    [
        ("edit", "T-001", "--status", "done"),
        ("edit", "T-001", "--status", "cancelled"),
        ("edit", "T-001", "--completion", "explicit"),
        ("edit", "T-001", "--max-cost", "1000"),
        ("edit", "T-002", "--reopen"),
        ("answer", "T-001", "yes"),
    ],
)
def test_an_agent_may_not_do_what_people_do(
    here: Here, workspace: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    """An agent's word is a claim; the host verifies it."""
    write(workspace, {"id": "T-001", "question": "?"}, {"id": "T-002", "status": "done"})
    monkeypatch.setenv("RALPH_RUN", "20260131-120000-abcd")
    assert_clear(here("tasks", *arguments), 2, "an agent may not", "RALPH_RUN is set")
    monkeypatch.delenv("RALPH_RUN")
    assert here("tasks", *arguments).code == 0


def edits(workspace: Path) -> set[tuple[str, str]]:
    return known(project_dir(os.environ["RALPH_STATE_DIR"], str(workspace)))


def hashes(workspace: Path) -> list[tuple[str, str]]:
    lines = tasks_file(workspace).read_bytes().splitlines()
    return [(json.loads(line)["id"], hashlib.sha256(line).hexdigest()) for line in lines]


def test_what_people_write_is_remembered(here: Here, workspace: Path) -> None:
    """So that a run can tell a person's edit from a raw one."""
    here("tasks", "add", "One")
    edited(here, "--status", "in_progress")
    edited(here, "--priority", "3")
    assert edits(workspace) == set(hashes(workspace))
    with tasks_file(workspace).open("a") as raw:
        raw.write('{"id":"T-001","status":"done"}\n')
    assert set(hashes(workspace)) - edits(workspace) == {hashes(workspace)[-1]}


def test_nothing_that_an_agent_writes_is_remembered(
    here: Here, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RALPH_RUN", "20260131-120000-abcd")
    here("tasks", "add", "One")
    assert_clear(edited(here, "-d", "easier"), 2, "names a run that is not to be seen from here")
    assert len(list(hashes(workspace))) == 1
    assert edits(workspace) == set()


def test_without_a_state_directory_tasks_can_be_added_and_nothing_else(
    here: Here, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "taken").write_text("a file")
    monkeypatch.setenv("RALPH_STATE_DIR", str(workspace / "taken"))
    assert here("tasks", "add", "One").code == 0
    before = tasks_file(workspace).read_bytes()
    assert_clear(edited(here, "--status", "done"), 2, "cannot write the state directory")
    assert tasks_file(workspace).read_bytes() == before
