"""Markdown checklists: "code fences in markdown are not tasks", "sync changes only the one
checkbox", "round trips lose nothing the other format can hold"."""

from typing import Any

import pytest
from formats_support import by_key
from markdown_examples import FIX_PLAN, IMPLEMENTATION_PLAN, NESTED, PLAN

from ralph.formats.markdown.format import FORMAT


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
