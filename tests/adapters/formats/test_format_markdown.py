"""Markdown checklists: "code fences in markdown are not tasks", "sync changes only the one
checkbox", "round trips lose nothing the other format can hold"."""

from typing import Any

import pytest
from formats_support import Record, again, by_key, imported
from hypothesis import given
from hypothesis import strategies as st

from ralph.adapters.formats.markdown import FORMAT

FIX_PLAN = """\
# Fix Plan

What is wrong, in the order of its weight.

## High Priority
- [ ] Fix the login
  The session is gone after a redirect.

  ```sh
  - [ ] not a task
  ```
- [x] Return 404 for unknown pages

## Medium Priority

- [ ] Fix the login of guests

## Low Priority
* [X] Spell the footer
+ [ ] Sort the imports

## Nice to Have
- [ ] Dark mode

## Completed
- [x] Project setup

## Notes
- not a box
"""

IMPLEMENTATION_PLAN = """\
# Implementation Plan

## Phase 1: storage
1. [x] T-001: Choose a database
2. [ ] **T-002** Write the schema
   After: T-001
3) [ ] US-3 - Load the fixtures

   Depends on: T-001, T-002

## Phase 2: interface
- [ ] Add tests
"""

NESTED = """\
# Ralph Tasks

- [/] Build the server
  - [x] Routes
  - [ ] Errors
    Say what to type next.
      - [ ] Words
- [ ] Release
\t- [ ] Changelog
"""

PLAN = """\
# Plan: search

## Overview
People find things.

## Validation Commands
- `go test ./...`
- `golangci-lint run`

### Task 1: Index
Files: `index.go`
- [x] write the index
- [ ] read it again
  - [ ] also from disk

### Task 2: Query
- [x] parse
- [x] rank

### Task 3: Explain

## Later
- [ ] Fuzzy search
"""
EXAMPLES = [FIX_PLAN, IMPLEMENTATION_PLAN, NESTED, PLAN]


def titles(text: str) -> list[str]:
    return [str(item.fields["title"]) for item in FORMAT.read(text, "list.md").items]


def fields(text: str, name: str) -> dict[str, Any]:
    return {str(i.fields["title"]): i.fields.get(name) for i in FORMAT.read(text, "x.md").items}


# ------------------------------------------------------------------ reading


def test_a_fix_plan_is_read_with_its_priorities() -> None:
    """frankbria: `## High|Medium|Low Priority`, optional sections, `## Completed`."""
    assert fields(FIX_PLAN, "priority") == {
        "Fix the login": 2,
        "Return 404 for unknown pages": 2,
        "Fix the login of guests": 1,
        "Spell the footer": -1,
        "Sort the imports": -1,
        "Dark mode": -2,
        "Project setup": None,
    }
    done = [title for title, status in fields(FIX_PLAN, "status").items() if status == "done"]
    assert done == ["Return 404 for unknown pages", "Spell the footer", "Project setup"]
    assert fields(FIX_PLAN, "tags")["Dark mode"] == ["optional"]
    assert fields(FIX_PLAN, "description")["Fix the login"] == (
        "The session is gone after a redirect.\n\n```sh\n- [ ] not a task\n```"
    )


def test_an_id_in_front_is_the_key_and_dependencies_are_keys() -> None:
    found = by_key(FORMAT.read(IMPLEMENTATION_PLAN, "IMPLEMENTATION_PLAN.md"))
    assert list(found) == ["T-001", "T-002", "US-3", "/Phase 2: interface/Add tests"]
    assert [fields["title"] for fields in found.values()] == [
        *("Choose a database", "Write the schema", "Load the fixtures", "Add tests")
    ]
    assert found["US-3"]["blockedBy"] == ["T-001", "T-002"]
    assert found["T-002"]["description"] == "Part of: Phase 1: storage"


def test_a_box_below_a_box_is_a_task_with_a_parent() -> None:
    found = {i.fields["title"]: i.fields for i in FORMAT.read(NESTED, "ralph-tasks.md").items}
    parents = {title: fields.get("parent") for title, fields in found.items()}
    assert parents == {
        "Build the server": None,
        "Routes": "/Build the server",
        "Errors": "/Build the server",
        "Words": "/Build the server/Errors",
        "Release": None,
        "Changelog": "/Release",
    }
    assert found["Build the server"]["status"] == "in_progress"
    assert found["Errors"]["description"] == ("Say what to type next.\n\nPart of: Build the server")


def test_a_section_of_a_plan_is_one_task() -> None:
    """ralphex: "`### Task N: ..` with `- [ ]`"; its boxes are its steps."""
    reading = FORMAT.read(PLAN, "plan.md")
    found = by_key(reading)
    assert list(found) == ["/Index", "/Query", "/Fuzzy search"]
    steps = "Files: `index.go`\n- write the index\n- read it again\n  - also from disk"
    assert found["/Index"] == {
        "title": "Index",
        "description": steps,
        "status": "in_progress",
        "completion": {"type": "test_passing", "command": "go test ./... && golangci-lint run"},
    }
    assert found["/Query"]["status"] == "done"
    assert "completion" not in found["/Fuzzy search"]
    assert reading.lost == ("plan.md: line 20: 'Task 3: Explain' has no box, so it is no task",)


@pytest.mark.parametrize(
    "hidden",
    [
        "```\n{}\n```",
        "~~~~ md\n{}\n~~~\n{}\n~~~~",
        "````\n```\n{}\n````",
        "- item\n\n  ```\n  {}\n  ```",
        "- ```\n  {}\n  ```",
        "<!-- {} -->",
        "<!--\n{}\n-->",
        "Text <!-- of\n{}\n-->",
        "text\n\n    {}\n    {}",
        "\t{}",
        "- item\n\n      {}",
        "---\ntasks: |\n{}\n---",
        "> {}",
        "```\n{}",
        "<!--\n{}",
    ],
)
def test_what_is_code_or_a_comment_is_no_task(hidden: str) -> None:
    """ "Code fences in markdown are not tasks"; neither are comments and front matter."""
    text = hidden.replace("{}", "- [ ] hidden")
    assert titles(text) == []
    if text.endswith(("-->", "```", "~~~~", "---")):
        assert titles(f"{text}\n- [ ] shown") == ["shown"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- [ ] a\n  ```\n- [ ] b", ["a", "b"]),  # a fence ends with its item
        ("- [ ] a <!-- x\n- [ ] b", ["a <!-- x", "b"]),  # a comment that never ends
        ("`<!--` is a comment\n- [ ] a\n-->", ["a"]),
        ("- [ ] a\n      - [ ] b", ["a", "b"]),
        ("1. [ ] a\n  - [ ] b", ["a", "b"]),
        ("- [ ]\n- [ ] \n- []\n- [y] c\n-[ ] d\n- [x](link) e\n- [ ]f", []),
        ("- [ ] a <!-- note --> b", ["a  b"]),
        ("High Priority\n---\n- [ ] a", ["a"]),
        ("\ufeff- [ ] a\r\n- [x] b\r- [ ] c", ["a", "b", "c"]),
        ("- [ ] UTF-8: a\n- [ ] UTF-8: b", ["UTF-8: a", "UTF-8: b"]),  # then it is no id
        ("- [ ] P1: a", ["P1: a"]),
        ("Tasks:\n    - [ ] a", ["a"]),
        ("", []),
    ],
)
def test_what_is_a_task(text: str, expected: list[str]) -> None:
    assert titles(text) == expected


@pytest.mark.parametrize(
    ("heading", "priority"),
    [
        ("High Priority", 2),
        ("🔴 High priority (now)", 2),
        ("Priority: Low", -1),
        ("P0", 3),
        ("P1 - must have", 2),
        ("Critical", 3),
        ("Future Enhancements", -2),
        ("Highlights", None),
        ("A high wall", None),
        ("Tasks", None),
    ],
)
def test_a_heading_says_how_urgent_tasks_are(heading: str, priority: int | None) -> None:
    assert fields(f"# List\n## {heading}\n### Part\n- [ ] a", "priority") == {"a": priority}


@pytest.mark.parametrize(
    ("name", "text", "fits"),
    [
        ("fix_plan.md", FIX_PLAN, True),
        ("-", NESTED, True),
        ("TODO", "* [x] a", True),
        ("README.md", "# Nothing", False),
        ("tasks.yaml", "- [ ] a", False),
        ("-", '[\n- [ ] a"', False),
        ("a.md", "[link]\n- [ ] a", True),
        ("a.md", "- [ ] a\0", False),
    ],
)
def test_it_is_known_by_its_boxes(name: str, text: str, fits: bool) -> None:
    assert FORMAT.fits(name, text) is fits


# ------------------------------------------------------------------ keys


def test_keys_stay_when_others_come_go_move_and_are_ticked() -> None:
    """ "Importing the same file again updates, never duplicates"."""
    before = {item.key for item in FORMAT.read(FIX_PLAN, "x.md").items}
    moved = FIX_PLAN.replace("- [ ] Dark mode\n", "").replace("[ ]", "[x]")
    moved = moved.replace("## Completed\n", "## Completed\n- [ ] New\n- [x] Dark mode\n")
    moved = moved.replace("# Fix Plan", "# What to fix")
    after = {item.key for item in FORMAT.read(moved, "x.md").items}
    assert after == before | {"/New"}


def test_equal_tasks_have_keys_of_their_own() -> None:
    text = "- [ ] a\n- [ ] a\n- [ ] a (2)\n## B\n- [ ] a\n- [ ] c\n  - [ ] a\n"
    keys = [item.key for item in FORMAT.read(text, "x.md").items]
    assert keys == ["/a", "/a (2)", "/a (2) (2)", "/B/a", "/B/c", "/B/c/a"]
    long = "".join(f"- [ ] {'x' * 500}{n}\n" for n in range(3))
    assert len({item.key for item in FORMAT.read(long, "x.md").items}) == 3


# ------------------------------------------------------------------ marking


@pytest.mark.parametrize("text", EXAMPLES)
@pytest.mark.parametrize("change", ["", "crlf", "bom", "bare"])
def test_marking_changes_one_character_of_one_task(text: str, change: str) -> None:
    """ "Sync changes only the one checkbox"."""
    text = {
        "": text,
        "crlf": text.replace("\n", "\r\n"),
        "bom": f"\ufeff{text}",
        "bare": text.rstrip("\n"),
    }[change]
    before = FORMAT.read(text, "x.md").items
    for item in before:
        for done in (True, False):
            marked = FORMAT.marked(text, item.key, done)
            assert marked is not None
            assert len(marked) == len(text)
            places = [n for n, (a, b) in enumerate(zip(text, marked, strict=True)) if a != b]
            assert all(text[n - 1] == "[" and text[n + 1] == "]" for n in places)
            after = FORMAT.read(marked, "x.md").items
            others = [(a, b) for a, b in zip(before, after, strict=True) if a.key != item.key]
            assert all(a == b for a, b in others)
            new = next(one for one in after if one.key == item.key)
            assert (new.fields["status"] == "done") is done
            assert {**new.fields, "status": ""} == {**item.fields, "status": ""}
            is_step = item.key in ("/Index", "/Query")
            assert is_step or len(places) == ((item.fields["status"] == "done") is not done)


def test_marking_what_is_not_there_is_none() -> None:
    assert FORMAT.marked(FIX_PLAN, "/Gone", True) is None


# ------------------------------------------------------------------ writing


@pytest.mark.parametrize("text", [*EXAMPLES, NESTED.replace("\n", "\r\n"), f"\ufeff{PLAN}"[:-1]])
def test_a_list_is_written_as_it_was(text: str) -> None:
    """ "Round trips lose nothing the other format can hold"."""
    assert again(FORMAT, text, "x.md") == text


def changed(text: str, task: str, **changes: object) -> str:
    """The text after one task has changed."""
    reading = FORMAT.read(text, "x.md")
    records = imported(reading, "markdown")
    record = next(record for record in records if record["title"] == task)
    record |= changes
    return FORMAT.write(records, reading.root).text


@pytest.mark.parametrize(
    ("task", "changes", "old", "new"),
    [
        ("Errors", {"status": "done"}, "- [ ] Errors", "- [x] Errors"),
        ("Routes", {"status": "pending"}, "- [x] Routes", "- [ ] Routes"),
        ("Errors", {"status": "cancelled"}, "- [ ] Errors", "- [-] Errors"),
        ("Errors", {"status": "blocked"}, "", ""),
        ("Release", {"title": "Ship"}, "- [ ] Release", "- [ ] Ship"),
        ("Release", {"description": "Now."}, "Release\n", "Release\n  Now.\n"),
        ("Release", {"priority": 5}, "Release\n", "Release\n  Priority: 5 (higher first)\n"),
        ("Errors", {"description": ""}, "    Say what to type next.\n", ""),
        (
            "Errors",
            {"description": "- [ ] a\n\n- [ ] b", "tags": ["t"]},
            "    Say what to type next.\n",
            "    - \\[ ] a\n\n    - \\[ ] b\n\n    Tags: t\n",
        ),
    ],
)
def test_only_what_has_changed_is_written_anew(
    task: str, changes: dict[str, object], old: str, new: str
) -> None:
    assert changed(NESTED, task, **changes) == NESTED.replace(old, new, 1)


def test_tasks_that_are_left_out_are_taken_out() -> None:
    reading = FORMAT.read(NESTED, "x.md")
    records = [r for r in imported(reading, "markdown") if r["status"] == "pending"]
    text = FORMAT.write(records, reading.root).text
    assert "Routes" not in text
    assert "- [/] Build the server" in text  # something that stays stands below it
    assert titles(text) == [title for title in titles(NESTED) if title != "Routes"]


def test_others_come_behind_the_list() -> None:
    reading = FORMAT.read(IMPLEMENTATION_PLAN, "x.md")
    records = imported(reading, "markdown", first=50)
    own: Record = {"id": "T-9", "title": "More", "blockedBy": [records[1]["id"]], "priority": 2}
    written = FORMAT.write([*records, own], reading.root)
    assert written.text == (
        f"{IMPLEMENTATION_PLAN}\n## High Priority\n\n- [ ] T-9: More\n  After: T-002\n"
    )
    assert written.lost == ()


TASKS: list[Record] = [
    {"id": "T-001", "title": "First", "description": "- [ ] step\n\n```\n- [ ] code\n```"},
    {"id": "T-002", "title": "Second", "status": "done", "priority": 2, "blockedBy": ["T-001"]},
    {"id": "two words", "title": "Third", "priority": 9, "tags": ["a", "b"], "type": "bug"},
    {"id": "T-003", "title": "Fourth", "parent": "T-002", "priority": 2, "status": "cancelled"},
    {
        "id": "T-004",
        "title": "Fifth",
        "priority": -2,
        "tags": ["optional"],
        "status": "in_progress",
    },
    {"id": "T-005", "title": "T-77: Sixth", "priority": -1, "description": "x\n\nType: bug"},
    {"id": "T-006", "title": "Seventh", "parent": "T-003", "blockedBy": ["two words", "T-005"]},
]


def test_a_backlog_is_written_by_priority_and_read_again() -> None:
    written = FORMAT.write(TASKS, {})
    assert written.lost == ()
    assert [line for line in written.text.split("\n") if line.startswith("#")] == [
        *("# Tasks", "## Critical Priority", "## High Priority", "## Tasks", "## Low Priority"),
        "## Optional",
    ]
    found = by_key(FORMAT.read(written.text, "x.md"))
    for record in TASKS:
        fields = dict(found[record["id"]])
        if "parent" in record:
            fields["description"] = fields["description"].rpartition("Part of: ")[0]
        for name in ("title", "description", "tags", "type", "blockedBy", "parent"):
            assert (fields.get(name) or None) == record.get(name), (record["id"], name)
        assert fields["status"] == record.get("status", "pending")
        assert fields.get("priority", 0) == record.get("priority", 0)


def test_what_markdown_cannot_hold_is_said() -> None:
    """ "What cannot be held is listed"."""
    tasks: list[Record] = [
        {"id": "T-1", "title": "a", "notes": "n", "status": "blocked", "tags": ["a,b", "c"]},
        {"id": "T-2", "title": "b", "parent": "T-2", "createdAt": "2026-01-01T00:00:00.000Z"},
        {"id": "T-3", "title": "c", "blockedBy": ["T-99"], "estimate": 3},
    ]
    assert sorted(FORMAT.write(tasks, {}).lost) == [
        "blockedBy: T-3",
        "estimate: T-3",
        "notes: T-1",
        "parent: T-2",
        "status blocked (written as open): T-1",
        "tags: T-1",
        "times (createdAt, completedAt): T-2",
    ]


def test_nothing_is_a_list_too() -> None:
    assert FORMAT.read(FORMAT.write([], {}).text, "x.md").items == ()


# ------------------------------------------------------------------ anything

_PIECES = st.sampled_from(
    [
        *(
            "- [ ] a",
            "- [x] b",
            "* [/] c",
            "1. [ ] T-1: d",
            "  - [ ] e",
            "\t- [X] f",
            "    - [ ] g",
        ),
        *("text", "  text", "      deep", "", "", "## High Priority", "# Top", "### Task 1: T"),
        *("```", "~~~", "  ```", "<!--", "-->", "a <!-- b", "---", "===", "- plain", "  - plain"),
        *("  After: T-1", "  Tags: x, y", "  Id: z", "  - \\[ ] esc", "> - [ ] q", "## Future"),
    ]
)
_LISTS = st.lists(_PIECES, max_size=25).flatmap(
    lambda lines: st.sampled_from(["\n", "\r\n"]).map(lambda end: end.join(lines))
)


@given(_LISTS)
def test_any_list_comes_back_and_is_marked_one_by_one(text: str) -> None:
    reading = FORMAT.read(text, "x.md")
    records = imported(reading, "markdown")
    if records:
        assert FORMAT.write(records, reading.root).text == text
    for item in reading.items[:4]:
        done = item.fields["status"] != "done"
        marked = FORMAT.marked(text, item.key, done)
        assert marked is not None
        after = FORMAT.read(marked, "x.md")
        assert [one.key for one in after.items] == [one.key for one in reading.items]
        wrong = [
            (a, b)
            for a, b in zip(reading.items, after.items, strict=True)
            if (a != b) is not (a.key == item.key)
        ]
        assert not wrong


@given(_LISTS)
def test_any_list_can_be_written_without_its_text(text: str) -> None:
    """What a new text holds is read from it again, and once more is the same."""
    reading = FORMAT.read(text, "x.md")
    records = imported(reading, "markdown")
    first = FORMAT.read(FORMAT.write(records, {}).text, "x.md")
    assert sorted(i.key for i in first.items) == sorted(str(r["id"]) for r in records)
    statuses = {item.key: item.fields["status"] for item in first.items}
    assert statuses == {r["id"]: r["status"] for r in records}
    assert {i.key: i.fields["title"] for i in first.items} == {r["id"]: r["title"] for r in records}


_TEXTS = st.text(max_size=60) | _LISTS


@given(
    st.lists(
        st.fixed_dictionaries(
            {"title": st.text(min_size=1, max_size=20), "description": _TEXTS},
            optional={
                "status": st.sampled_from(["pending", "done", "in_progress", "cancelled"]),
                "priority": st.integers(-9, 9),
                "tags": st.lists(
                    st.sampled_from(["a", "optional", "b c"]), unique=True, max_size=2
                ),
                "parent": st.sampled_from(["T-1", "T-2", "T-9"]),
            },
        ),
        max_size=5,
    )
)
def test_any_backlog_is_read_again(tasks: list[Record]) -> None:
    records = [{"id": f"T-{n}", **task} for n, task in enumerate(tasks, 1)]
    found = by_key(FORMAT.read(FORMAT.write(records, {}).text, "x.md"))
    assert sorted(found) == sorted(record["id"] for record in records)
    for record in records:
        fields = found[record["id"]]
        assert fields["status"] == record.get("status", "pending")
        assert fields.get("priority", 0) == record.get("priority", 0)
        assert sorted(fields.get("tags", [])) == sorted(record.get("tags", []))


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    FORMAT.fits("x.md", text)
    try:
        reading = FORMAT.read(text, "x.md")
    except ValueError:
        return
    assert len({item.key for item in reading.items}) == len(reading.items)


_MEGABYTE = 1 << 20


@pytest.mark.parametrize(
    "piece",
    [
        *("` `` ``` ", "<!-- ", "<!-- -->", "- [ ] a\n", " ", "#", "# ", "- ", "* ", "- [", "~"),
        *("a-1", "**a-", "```\n", "a\n=\n", "\r", "  - \\[\n", "## a\n- [ ] b\n", "\t", "1. "),
        *("### Task 1: a\n- [ ] b\n", "  After: a\n", "\\[", "---\n", "> "),
    ],
)
def test_a_megabyte_of_anything_takes_linear_time(piece: str) -> None:
    """No assertion about time: a quadratic one would not end."""
    for head in ("", "- [ ] a\n  x", "- [ ] "):
        FORMAT.fits("x.md", head + piece * (_MEGABYTE // 4 // len(piece)))
        FORMAT.read(head + piece * (_MEGABYTE // 4 // len(piece)), "x.md")
