"""`ralph tasks list`, `show` and `next`: what there is to do, and what comes first (B)."""

import json
from pathlib import Path
from typing import Any

import pytest
from run_support import Here, assert_clear, ralph

BACKLOG: tuple[dict[str, Any], ...] = (
    {"id": "T-1", "title": "Parse dates", "status": "done", "type": "bug", "tags": ["parser"]},
    {"id": "T-2", "title": "Sort by date", "blockedBy": ["T-1"], "priority": 2, "mine": 1},
    {"id": "T-3", "title": "Write it up", "blockedBy": ["T-2", "T-9"], "description": "News!"},
    {"id": "T-4", "status": "blocked", "reason": "no key", "title": "Call it"},
    {"id": "T-5", "status": "blocked", "question": "Which one?", "title": "Store it"},
    {"id": "T-6", "status": "in_progress", "title": "Half done", "tags": ["parser", "ui"]},
)


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], workspace: Path) -> Here:
    return Here(capsys)


def write(workspace: Path, *records: dict[str, Any] | str) -> None:
    (workspace / ".ralph").mkdir(exist_ok=True)
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    (workspace / ".ralph" / "tasks.jsonl").write_text("".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("list",), 'No tasks yet. Add one: ralph tasks add "What to do"\n'),
        (("list", "--tree"), 'No tasks yet. Add one: ralph tasks add "What to do"\n'),
        (("list", "--json"), "[]\n"),
        (("next",), 'No tasks yet. Add one: ralph tasks add "What to do"\n'),
        (("next", "--json"), "null\n"),
    ],
)
def test_without_tasks(here: Here, workspace: Path, command: tuple[str, ...], said: str) -> None:
    done = here("tasks", *command)
    assert (done.code, done.out, done.err) == (0, said, "")
    assert list(workspace.iterdir()) == []


def test_the_table(here: Here, workspace: Path) -> None:
    write(workspace, *BACKLOG)
    done = here("tasks", "list")
    assert done.code == 0
    assert done.out.splitlines() == [
        "status       id   priority  title",
        "done         T-1         0  Parse dates",
        "pending      T-2         2  Sort by date",
        "pending      T-3         0  Write it up  (waits for T-2)",
        "blocked      T-4         0  Call it  (no key)",
        "blocked      T-5         0  Store it  (asks: Which one?)",
        "in_progress  T-6         0  Half done",
        "6 tasks: 2 pending, 1 in_progress, 2 blocked, 1 done",
    ]
    assert done.err == "[ralph] .ralph/tasks.jsonl: T-3 waits for T-9, which is not there\n"


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ((), "T-1 T-2 T-3 T-4 T-5 T-6"),
        (("--status", "done", "--status", "in_progress"), "T-1 T-6"),
        (("--tag", "parser"), "T-1 T-6"),
        (("--tag", "ui", "--tag", "other"), "T-6"),
        (("--type", "bug"), "T-1"),
        (("--ready",), "T-2 T-6"),
        (("--search", "DATE"), "T-1 T-2"),
        (("--search", "news"), "T-3"),
        (("--search", "which"), "T-5"),
        (("--ready", "--tag", "parser"), "T-6"),
        (("--status", "cancelled"), ""),
    ],
)
def test_filters(here: Here, workspace: Path, filters: tuple[str, ...], ids: str) -> None:
    write(workspace, *BACKLOG)
    found = json.loads(here("tasks", "list", "--json", *filters).out)
    assert found == [record for record in BACKLOG if record["id"] in ids.split()]


def test_a_blocker_on_a_broken_line_is_waited_for(here: Here, workspace: Path) -> None:
    """ "a broken line … is named by line", and nobody knows whether that task is done."""
    waits = {"id": "T-2", "title": "Sort", "blockedBy": ["T-1"]}
    write(workspace, {"id": "T-1", "status": "half done"}, waits)
    done = here("tasks", "list")
    assert "Sort  (waits for T-1)" in done.out
    assert "line 1" in done.err
    assert "is not there" not in done.err
    assert here("tasks", "list", "--ready", "--json").out == "[]\n"
    assert "T-2: waits for T-1" in here("tasks", "next").out


def test_the_tree_of_dependencies(here: Here, workspace: Path) -> None:
    """Each task below its blockers; what was shown is not shown again, and circles do not hang."""
    write(
        workspace,
        {"id": "a", "title": "A"},
        {"id": "b", "blockedBy": ["a"]},
        {"id": "c", "blockedBy": ["a"]},
        {"id": "d", "blockedBy": ["b", "c"], "title": "D"},
        {"id": "e", "blockedBy": ["d"]},
        {"id": "x", "blockedBy": ["y"]},
        {"id": "y", "blockedBy": ["x"]},
    )
    done = here("tasks", "list", "--tree")
    assert [line.partition("  (")[0].rstrip() for line in done.out.splitlines()] == [
        "a: [pending] A",
        "  b: [pending]",
        "    d: [pending] D",
        "      e: [pending]",
        "  c: [pending]",
        "    d: [pending] (see above)",
        "x: [pending]",
        "  y: [pending]",
        "    x: [pending] (see above)",
        "7 tasks: 7 pending",
    ]
    assert "these tasks wait for each other: x → y → x" in done.err


def test_a_very_deep_tree_is_shown(here: Here, workspace: Path) -> None:
    chain = [{"id": str(n), "blockedBy": [str(n - 1)]} for n in range(5000)]
    write(workspace, *chain)
    lines = here("tasks", "list", "--tree").out.splitlines()
    assert len(lines) == 5001
    assert max(map(len, lines)) < 200


def test_broken_lines_are_named_on_stderr(here: Here, workspace: Path) -> None:
    """Named by line; the rest still works."""
    write(workspace, {"id": "a", "title": "A"}, "nonsense", {"id": "b", "status": "?"}, *"x" * 30)
    done = here("tasks", "list")
    assert (done.code, done.out.splitlines()[-1]) == (0, "1 task: 1 pending")
    told = done.err.splitlines()
    assert told[0].startswith("[ralph] .ralph/tasks.jsonl line 2: not JSON")
    assert told[1].startswith("[ralph] .ralph/tasks.jsonl line 3: the status must be one of")
    assert told[-1] == "[ralph] .ralph/tasks.jsonl: 12 more such lines"
    assert len(told) == 21
    found = json.loads(here("tasks", "list", "--json").out)
    assert found == [{"id": "a", "title": "A"}]


def test_nothing_in_a_task_moves_the_cursor(here: Here, workspace: Path) -> None:
    evil = "\x1b[2J\x1b]0;title\x07first\r\nsecond\u202e"
    key = "sk-ant-" + "a" * 30
    write(workspace, {"id": "a", "title": evil, "reason": key, "status": "blocked", "x": evil})
    for command in (("list",), ("list", "--tree"), ("show", "a"), ("next",)):
        out = here("tasks", *command).out
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert key not in out
    assert "first second" in here("tasks", "list").out


def test_a_file_that_cannot_be_read(here: Here, workspace: Path) -> None:
    (workspace / ".ralph" / "tasks.jsonl").mkdir(parents=True)
    for command in (("list",), ("next",), ("show", "a"), ("add", "x"), ("answer", "a", "b")):
        assert_clear(here("tasks", *command), 2, ".ralph/tasks.jsonl: Is a directory")


# ------------------------------------------------------------------ show


def test_all_that_is_known_of_a_task(here: Here, workspace: Path) -> None:
    task = {
        "id": "T-2",
        "title": "Sort",
        "description": "By date,\nnewest first.",
        "status": "review",
        "blockedBy": ["T-1", "T-9"],
        "completion": {"type": "test_passing", "command": "make test", "timeout": 60},
        "evidence": {"kind": "test_passing", "exitCode": 0},
        "answers": ["Use SQLite."],
        "createdAt": "2026-01-31T12:00:00.000Z",
        "mine": {"x": 1},
        "tags": ["a", "b"],
    }
    write(workspace, {"id": "T-1", "title": "Parse", "status": "done"}, task)
    entry = {"taskId": "T-2", "iteration": 1, "status": "continue", "reason": "tests fail"}
    others = ['{"taskId": "T-2", "ite', "[]", json.dumps({"taskId": "T-1", "note": "T-2"})]
    progress = workspace / ".ralph" / "progress.jsonl"
    progress.write_text("\n".join([json.dumps(entry), *others]))
    assert here("tasks", "show", "T-2").out.splitlines() == [
        "T-2: Sort",
        "  status: review",
        "  complete when: `make test` exits with 0 (within 60 s)",
        "  waits for: T-1 (done): Parse",
        "  waits for: T-9 (not there)",
        "  evidence: test_passing, exit code 0",
        '  mine: {"x": 1}',
        "  tags: a, b",
        "  createdAt: 2026-01-31T12:00:00.000Z",
        "  answer: Use SQLite.",
        "",
        "  By date,",
        "  newest first.",
        "",
        "  Last iterations:",
        "    iteration 1: continue tests fail",
    ]
    blockers = [{"id": "T-1", "status": "done"}, {"id": "T-9", "status": None}]
    (found,) = here("tasks", "show", "T-2", "--json").objects
    assert found == {**task, "blockers": blockers, "progress": [entry]}


def test_why_a_task_is_blocked_and_what_it_asks(here: Here, workspace: Path) -> None:
    write(workspace, {**BACKLOG[4], "reason": "asks"})
    said = here("tasks", "show", "T-5").out
    assert "  reason: asks\n  question: Which one?\n  complete when: the agent says so\n" in said


def test_tests_named_after_a_task_complete_it(here: Here, workspace: Path) -> None:
    """B §Completion Detection 2; settings that nobody can read are told by others."""
    write(workspace, {"id": "T-1"}, {"id": "T-2", "completion": {"type": "explicit"}})
    settings = workspace / ".ralph" / "settings.json"
    settings.write_text('{"loop": {"testCommand": "pytest -k"}}')
    words = "complete when: `pytest -k T-1` passes; without such tests, when the agent says so\n"
    assert words in here("tasks", "show", "T-1").out
    assert "complete when: the agent says so\n" in here("tasks", "show", "T-2").out
    settings.write_text("{")
    assert "complete when: the agent says so\n" in here("tasks", "show", "T-1").out


def test_only_the_last_iterations_are_shown(here: Here, workspace: Path) -> None:
    write(workspace, {"id": "a"})
    lines = [json.dumps({"taskId": "a", "iteration": n}) for n in range(100)]
    (workspace / ".ralph" / "progress.jsonl").write_text("\n".join(lines))
    (found,) = here("tasks", "show", "a", "--json").objects
    assert [entry["iteration"] for entry in found["progress"]] == list(range(90, 100))


# ------------------------------------------------------------------ next


@pytest.mark.parametrize(
    ("arguments", "said", "record"),
    [
        ((), "T-6: Half done\n", BACKLOG[5]),
        (("--task", "T-2"), "T-2: Sort by date\n", BACKLOG[1]),
        (("--tag", "ui"), "T-6: Half done\n", BACKLOG[5]),
        (("--task", "T-3"), "No task is ready:\n  T-3: waits for T-2\n", None),
        (("--task", "T-4"), "No task is ready:\n  T-4: no key\n", None),
        (("--task", "T-5"), "No task is ready:\n  T-5: asks: Which one?\n", None),
        (("--task", "T-1"), "Nothing is left to do (1 task: 1 done).\n", None),
        (("--tag", "nobody"), "Nothing is left to do (0 tasks).\n", None),
    ],
)
def test_the_next_task(
    here: Here,
    workspace: Path,
    arguments: tuple[str, ...],
    said: str,
    record: dict[str, Any] | None,
) -> None:
    """`ralph tasks next --json` prints the task (or `null`)."""
    write(workspace, *BACKLOG)
    done = here("tasks", "next", *arguments)
    assert (done.code, done.out) == (0, said)
    assert here("tasks", "next", "--json", *arguments).objects == [record]


def test_tasks_that_wait_for_each_other_are_an_error(here: Here, workspace: Path) -> None:
    """ADR 21 and B: a cycle is an error that names it."""
    write(workspace, {"id": "a"}, {"id": "b", "blockedBy": ["c"]}, {"id": "c", "blockedBy": ["b"]})
    words = "these tasks wait for each other: b → c → b"
    assert_clear(here("tasks", "next"), 2, words, "ralph tasks edit b --unblock c")
    assert here("tasks", "edit", "b", "--unblock", "c").code == 0
    assert here("tasks", "next").out == "a:\n"


def test_an_unknown_task_is_an_error(here: Here, workspace: Path) -> None:
    write(workspace, *BACKLOG)
    assert_clear(here("tasks", "next", "--task", "T-77"), 2, "there is no task T-77")


# ------------------------------------------------------------------ the group


def test_a_wrong_command_is_told_the_near_one(here: Here) -> None:
    assert_clear(here("tasks", "lsit"), 2, "there is no command 'lsit'. Did you mean list?")
    assert_clear(here("tasks", "zzzz"), 2, "there is no command 'zzzz'.", "ralph tasks --help")
    done = here("tasks")
    assert done.code == 2
    assert done.out.startswith("Usage: ralph tasks ")


def test_a_shell_completes_ids(workspace: Path) -> None:
    write(workspace, *BACKLOG, {"id": "other"})
    env = {"COMP_WORDS": "ralph tasks show T-", "COMP_CWORD": "3"}
    done = ralph(env={**env, "_RALPH_COMPLETE": "bash_complete"})
    assert done.out.split() == [f"plain,T-{n}" for n in range(1, 7)]


def test_another_directory(here: Here, workspace: Path, tmp_path: Path) -> None:
    write(workspace, {"id": "a", "title": "A"})
    for arguments in (
        ("-C", str(workspace), "tasks", "next"),
        ("tasks", "-C", str(workspace), "next"),
        ("tasks", "next", "-C", str(workspace)),
    ):
        assert here(*arguments).out == "a: A\n"
