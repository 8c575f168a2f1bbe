"""What is read of an agent's list of tasks, and what is left out of it (`ralph tasks plan`)."""

import json
import time
from typing import Any

import pytest

from ralph.kernel.tasks.task import Backlog, Status, Task
from ralph.loops.backlog.planning.answer import read
from ralph.loops.backlog.planning.proposal import (
    Proposal,
    as_json,
    check_of,
    from_json,
    with_ids,
)

Json = dict[str, Any]
NOBODY = Backlog()
THERE = Backlog((Task("T-001", "Read the file"), Task("T-007", "Old", status=Status.DONE)))
CHECK = {"type": "test_passing", "command": "make test"}


def answer(*lines: object) -> str:
    """A list of these objects, or of texts as they are, among an agent's other words."""
    held = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    return f"I have looked around.\n<tasks>\n{held}\n</tasks>\nThat is all."


def planned(*lines: object, known: Backlog = NOBODY) -> Proposal:
    return read(answer(*lines), known)


def only(data: Json) -> tuple[Json, list[str]]:
    """The one task of a plan, and what is said of it."""
    proposal = planned({"title": "x", **data})
    assert proposal.refused == ()
    (record,) = proposal.tasks
    return dict(record), [words for _, words in proposal.notes]


def test_a_task_is_taken_as_the_agent_describes_it() -> None:
    said = {
        "id": "T-002",
        "title": "Write the parser",
        "description": "Of the file.\nAll of it.",
        "type": "feature",
        "priority": 3,
        "tags": ["a", "b", "a"],
        "estimate": "2h",
        "completion": CHECK,
        "limits": {"maxIterations": 4, "maxCost": 2.5},
        "blockedBy": ["T-001"],
        "parent": "T-001",
    }
    proposal = planned(said, known=THERE)
    assert proposal == Proposal(({**said, "tags": ["a", "b"]},))
    assert proposal.words == "1 task, 1 of them with a check"
    assert check_of(proposal.tasks[0]) == "`make test` exits with 0"
    assert from_json(json.loads(json.dumps(as_json(proposal)))) == proposal


@pytest.mark.parametrize(
    "said",
    [
        'so: <tasks>{"title": "a"}\n{"title": "b"}</tasks>',
        '<TASKS>\n{"title": "a"}\n\n{"title": "b"},\n</TASKS>',
        '<tasks>\n```json\n{"title": "a"}\n{"title": "b"}\n```\n</tasks>',
        '<tasks>\n[{"title": "a"}, {"title": "b"}]\n</tasks>',
        '<tasks>\n```\n[\n{"title": "a"},\n{"title": "b"}\n]\n```\n</tasks>',
        '<tasks>\n- {"title": "a"}\n2. {"title": "b"}\n</tasks>',
        '<tasks>\n{\n  "title": "a"\n},\n{\n  "title": "b"\n}\n</tasks>',
        'I end with <tasks>.\n<tasks>\n{"title": "a"}\n{"title": "b"}\n</tasks>',
        '<tasks>\n{"title": "z"}\n</tasks>\nNo\n<tasks>\n{"title": "a"}\n{"title": "b"}\n</tasks>',
        '<tasks>\n{"title": "a"}\n{"title": "b"}\n</tasks>\nSee <tasks></tasks> above.',
        '<tasks>\r\n{"title": "a"}\r\n{"title": "b"}\r\n</tasks>\r\n',
        '<tasks>\n{"title": "a", "tags": ["x",],},\n{"title": "b"},\n</tasks>',
        '<tasks>\n[\n  {\n    "title": "a",\n  },\n  {"title": "b"},\n]\n</tasks>',
        '<tasks>\n// first\n{"title": "a"} // x\n# then\n{"title": "b"} # y\n<!-- z -->\n</tasks>',
        '<tasks>\n{\n  "title": "a", // so\n}\n## More\n{"title": "b"}\n</tasks>',
        '<tasks>\n{"tasks": [{"title": "a"}, {"title": "b"}]}\n</tasks>',
        '<tasks>\n{"title": "a"}, {"title": "b"}\n</tasks>',
        '<tasks>\n{\n"title": "a"\n} {"title":\n"b"}\n</tasks>',
    ],
)
def test_a_list_is_read_as_agents_write_it(said: str) -> None:
    proposal = read(said, NOBODY)
    assert [record["title"] for record in proposal.tasks] == ["a", "b"]
    assert proposal.refused == ()


def test_what_looks_like_a_comment_in_a_text_stays() -> None:
    said = '{"title": "See https://x.org/#a, ]", "description": "one // 1,\n\ttwo # 2,\n}",}'
    (record,) = planned(said, {"title": "b", "description": '\\"'}).tasks[:1]
    assert record["title"] == "See https://x.org/#a, ]"
    assert record["description"] == "one // 1,\n\ttwo # 2,\n}"


@pytest.mark.parametrize("name", ["blocked_by", "dependsOn", "depends_on", "dependencies"])
def test_what_a_task_waits_for_has_many_names(name: str) -> None:
    first = {"id": "T-008", "title": "a", "status": "todo"}
    tasks = planned(first, {"title": "b", name: ["T-008"], "status": "Open"}).tasks
    assert tasks[1]["blockedBy"] == ["T-008"]
    assert "status" not in tasks[0]


def test_a_task_may_speak_of_the_tags() -> None:
    title = "Read <tasks>...</tasks> of an answer"
    assert planned({"title": title}).tasks[0]["title"] == title


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("", "the answer has no <tasks>"),
        ("Which file do you mean?", "the answer has no <tasks>"),
        ('<tasks>\n{"title": "a"}', "the answer has no </tasks>"),
        ('{"title": "a"}\n</tasks>', "no <tasks> before its </tasks>, or is longer than 64 KB"),
        ("<tasks>\n\n</tasks>", "<tasks> is empty"),
        ("<tasks></tasks>", "<tasks> is empty"),
    ],
)
def test_an_answer_without_tasks_says_what_is_missing(said: str, problem: str) -> None:
    proposal = read(said, NOBODY)
    assert proposal.tasks == ()
    assert problem in proposal.objections


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{bad json}", "line 1: no JSON (Expecting"),
        ("no object at all", "line 1: no JSON"),
        ("42", "line 1: no JSON object"),
        ('{"title": "a"} and so on', "line 1: no JSON (Extra data)"),
        ('["title"]', "line 1: no JSON object"),
        ('{"title": "a", "priority": NaN}', "line 1: no JSON (NaN is no number)"),
        ('{"a":' * 100_000, "line 1: no JSON (it is nested too deeply)"),
        ({"description": "b"}, "line 1: it has no title"),
        ({"title": ""}, "line 1: it has no title"),
        ({"title": None}, "line 1: it has no title"),
        ({"title": "\u0007 \n"}, "line 1: it has no title"),
        ({"title": 3}, "line 1: its title is no text"),
        ({"title": "a" * 501}, f"line 1 ({'a' * 60}): its title is longer than 500 characters"),
        ('{"title": "\\ud800"}', "line 1 (\ud800): it is not UTF-8 text"),
        ({"title": "a", "status": "done"}, 'line 1 (a): its status is "done": only the host says'),
        ({"title": "a", "status": "in_progress"}, "only the host says that"),
        ({"title": "a", "status": {"x": 1}}, "only the host says that"),
    ],
)
def test_a_line_that_is_no_task_is_named_and_takes_nothing_from_the_others(
    line: object, why: str
) -> None:
    proposal = planned(line, {"title": "good"})
    assert [record["title"] for record in proposal.tasks] == ["good"]
    (refused,) = proposal.refused
    assert why in refused


@pytest.mark.parametrize(
    ("data", "left", "note"),
    [
        ({"status": "pending"}, {}, ""),
        ({"status": None, "description": "", "tags": [], "priority": None}, {}, ""),
        ({"description": "a\x1b[31mred\x00\r\nb"}, {"description": "ared\nb"}, ""),
        ({"title": "a\n \x1b]0;t\x07b"}, {"title": "a b"}, ""),
        ({"description": 1}, {}, "its description is left out: it is no text"),
        ({"priority": "high"}, {}, "its priority is left out: it is no whole number"),
        ({"priority": True}, {}, "its priority is left out: it is no whole number"),
        ({"priority": 10**10}, {}, "its priority is left out: it is no whole number"),
        ({"tags": "a"}, {"tags": ["a"]}, ""),
        ({"tags": {"a": 1}}, {}, "its tags is left out: it is no list of texts"),
        ({"tags": [1]}, {}, "its tags is left out: it is no text"),
        ({"type": "t" * 61}, {}, "its type is left out: it is longer than 60 characters"),
        ({"estimate": 3}, {"estimate": 3}, ""),
        ({"estimate": "soon"}, {}, "its estimate is left out: it is neither iterations"),
        ({"estimate": -1}, {}, "its estimate is left out: it is neither iterations"),
        ({"limits": {"maxTime": 60, "x": 1}}, {"limits": {"maxTime": 60}}, ""),
        ({"limits": {"maxTime": 0}}, {}, "its limits is left out: limits.maxTime must be"),
        ({"evidence": {"exitCode": 0}}, {}, "no part of a plan: evidence"),
        ({"source": {"path": "x"}, "saved": "abc"}, {}, "no part of a plan: source, saved"),
        ({"completedAt": "2026", "createdAt": "2026"}, {}, "plan: completedAt, createdAt"),
        ({"answers": ["yes"], "\x1b[31mx": 1}, {}, "no part of a plan: answers, x"),
        ({"completion": CHECK}, {"completion": CHECK}, ""),
        (
            {"completion": {**CHECK, "timeout": 9, "x": 1}},
            {"completion": {**CHECK, "timeout": 9}},
            "",
        ),
        ({"completion": "test:make test"}, {"completion": CHECK}, ""),
        ({"completion": {"type": "explicit"}}, {"completion": {"type": "explicit"}}, ""),
        (
            {"completion": {"type": "magic"}},
            {},
            "only the agent's word completes it: completion.type",
        ),
        ({"completion": "make test"}, {}, "cannot be used, so only the agent's word"),
        ({"completion": ["make test"]}, {}, "completion must be an object"),
        ({"completion": {"type": "test_passing"}}, {}, "it names no command"),
        ({"completion": {"type": "file_exists", "path": "/etc/passwd"}}, {}, "not in the project"),
        ({"completion": "file:../secret"}, {}, "../secret is not in the project"),
        ({"completion": "file:."}, {}, ". is not in the project"),
        ({"completion": "validate:a/../../x.py"}, {}, "a/../../x.py is not in the project"),
        (
            {"completion": "file:docs/a.md"},
            {"completion": {"type": "file_exists", "path": "docs/a.md"}},
            "",
        ),
        (
            {"completion": {**CHECK, "command": "make\x1b[2K test"}},
            {},
            "it holds control characters",
        ),
        ({"completion": {**CHECK, "command": "a\x00"}}, {}, "must not contain a NUL"),
        ({"parent": "T-9"}, {}, "its parent T-9 is left out: no such task"),
        ({"id": "A", "parent": "A"}, {"id": "A"}, "its parent A is left out: no such task"),
        ({"blockedBy": "T-9"}, {}, "it does not wait for T-9, which is no task"),
        ({"blockedBy": [{"x": 1}]}, {}, "a part of its blockedBy is left out: it names no task"),
        ({"id": "A", "blockedBy": ["A"]}, {"id": "A"}, ""),
        ({"id": "a/b"}, {}, ""),
        ({"id": "-x"}, {}, ""),
        ({"id": "a b"}, {}, ""),
        ({"id": "x" * 41}, {}, ""),
        ({"id": 7}, {"id": "7"}, ""),
        ({"id": ["x"]}, {}, ""),
    ],
)
def test_what_cannot_be_used_is_left_out_and_said(data: Json, left: Json, note: str) -> None:
    record, notes = only(data)
    assert record == {"id": "T-001", "title": "x", **left}
    assert len(notes) == bool(note)
    assert note in "".join(notes)


def test_a_number_without_end_is_no_estimate() -> None:
    proposal = planned('{"title": "x", "estimate": 1e999, "priority": 1e999}')
    assert dict(proposal.tasks[0]) == {"id": "T-001", "title": "x"}
    assert len(proposal.notes) == 2


def test_a_command_that_the_guard_refuses_is_no_check() -> None:
    said = answer({"title": "x", "completion": "test:rm -rf /"})
    asked: list[str] = []

    def objection(command: str) -> str:
        asked.append(command)
        return "it deletes /"

    proposal = read(said, NOBODY, objection)
    assert asked == ["rm -rf /"]
    assert "completion" not in proposal.tasks[0]
    assert "`rm -rf /` is refused by the guard: it deletes /" in proposal.notes[0][1]


def test_ids_that_are_used_become_others_and_names_go_with_them() -> None:
    proposal = planned(
        {"id": "T-001", "title": "one"},
        {"id": "T-008", "title": "two", "blockedBy": ["T-001", "T-007"]},
        {"id": "T-008", "title": "three", "blockedBy": ["T-008"]},
        {"title": "four", "blockedBy": ["T-001", "T-001"], "parent": "T-007"},
        known=THERE,
    )
    told = {r["title"]: (r["id"], r.get("blockedBy")) for r in proposal.tasks}
    assert told == {
        "one": ("T-009", None),
        "two": ("T-008", ["T-009", "T-007"]),
        "three": ("T-010", ["T-008"]),
        "four": ("T-011", ["T-009"]),
    }
    assert proposal.tasks[3]["parent"] == "T-007"
    assert proposal.notes_on("T-009") == ("the id T-001 is used already",)
    assert proposal.notes_on("T-010") == ("the id T-008 is used already",)


def test_an_id_of_a_line_that_cannot_be_read_is_used_too() -> None:
    known = Backlog(known={"T-001": Task("T-001", status=Status.BLOCKED, aside=True)})
    proposal = planned({"id": "T-001", "title": "a"}, known=known)
    assert proposal.tasks[0]["id"] == "T-002"


def test_what_is_there_or_said_twice_is_refused() -> None:
    proposal = planned(
        {"title": "read  THE file"},
        {"title": "New"},
        {"title": "new"},
        {"title": "Next", "blockedBy": ["T-001"]},
        known=THERE,
    )
    assert [record["title"] for record in proposal.tasks] == ["New", "Next"]
    assert proposal.refused == (
        "line 1 (read THE file): it is there already: T-001",
        "line 3 (new): it repeats line 2",
    )


def test_tasks_that_wait_for_each_other_are_let_go_at_the_first() -> None:
    proposal = planned(
        {"id": "A", "title": "a", "blockedBy": ["B"]},
        {"id": "B", "title": "b", "blockedBy": ["C"]},
        {"id": "C", "title": "c", "blockedBy": ["A", "B"]},
    )
    waits = {record["id"]: record.get("blockedBy") for record in proposal.tasks}
    assert waits == {"A": None, "B": None, "C": ["A", "B"]}
    assert proposal.notes_on("A") == ("it does not wait for B: they would wait for each other",)
    assert proposal.notes_on("B") == ("it does not wait for C: they would wait for each other",)


def test_circles_that_were_there_are_not_the_plans() -> None:
    one, two = Task("X", "x", blocked_by=("Y",)), Task("Y", "y", blocked_by=("X",))
    proposal = planned(
        {"id": "A", "title": "a", "blockedBy": ["X", "B"]},
        {"id": "B", "title": "b", "blockedBy": ["A"]},
        known=Backlog((one, two)),
    )
    waits = {record["id"]: record.get("blockedBy") for record in proposal.tasks}
    assert waits == {"A": ["X"], "B": ["A"]}


def test_a_task_that_is_there_may_wait_for_an_id_of_the_plan() -> None:
    known = Backlog((Task("X", "x", blocked_by=("A",)),))
    proposal = planned({"id": "A", "title": "a", "blockedBy": ["X"]}, known=known)
    assert "blockedBy" not in proposal.tasks[0]


def test_there_is_an_end_to_tasks() -> None:
    proposal = planned(*({"title": f"t{n}"} for n in range(102)))
    assert len(proposal.tasks) == 100
    assert [line.partition(":")[0] for line in proposal.refused] == [
        "line 101 (t100)",
        "line 102 (t101)",
    ]


def test_secrets_are_taken_out() -> None:
    record = planned({"title": "x", "description": "Use sk-ant-api03-abcdefghijklmnop."}).tasks[0]
    assert record["description"] == "Use [redacted]."


@pytest.mark.parametrize(
    "piece", ["<tasks>", "<tasks>\n", "{", '{"a":\n', "</tasks>", '{"title": "x"}\n', "- {", "[\n"]
)
def test_a_hostile_answer_is_read_in_no_time(piece: str) -> None:
    begin = time.process_time()
    said = piece * (65_536 // len(piece))
    for text in (said, f"<tasks>\n{said}\n</tasks>", f"<tasks>{said}"):
        read(text, NOBODY)
    assert time.process_time() - begin < 20  # seconds; quadratic would take minutes


def test_other_ids_go_through_the_whole_proposal() -> None:
    proposal = planned(
        {"id": "A", "title": "a"}, {"id": "B", "title": "b", "blockedBy": ["A", "Z"], "parent": "A"}
    )
    other = with_ids(proposal, {"A": "T-5", "B": "T-6"})
    assert [r["id"] for r in other.tasks] == ["T-5", "T-6"]
    assert (other.tasks[1]["blockedBy"], other.tasks[1]["parent"]) == (["T-5"], "T-5")
    assert [task for task, _ in other.notes] == ["T-6"]
