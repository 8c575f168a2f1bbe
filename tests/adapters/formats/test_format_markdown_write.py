"""Markdown checklists, marked and written: "sync changes only the one checkbox", "round trips lose
nothing the other format can hold"."""

import pytest
from formats_support import Record, again, by_key, imported
from hypothesis import given
from hypothesis import strategies as st
from markdown_examples import EXAMPLES, FIX_PLAN, IMPLEMENTATION_PLAN, NESTED, PLAN

from ralph.adapters.formats.markdown import FORMAT


def titles(text: str) -> list[str]:
    return [str(item.fields["title"]) for item in FORMAT.read(text, "list.md").items]


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


def test_a_step_that_was_dropped_stays_so() -> None:
    text = "### Task 1: a\n- [x] b\n- [-] c\n- [ ] d\n"
    assert FORMAT.marked(text, "/a", True) == text.replace("[ ]", "[x]")
    assert FORMAT.marked(text, "/a", False) == text.replace("[x]", "[ ]")


def test_a_long_list_comes_back_without_what_stands_between() -> None:
    """The way back must fit into a line of tasks.jsonl."""
    text = "".join(f"- [ ] T-{n}: {'x' * 80}\n" for n in range(10_000))
    reading = FORMAT.read(text, "x.md")
    assert reading.root == {}
    assert "too long" in reading.lost[0]
    written = FORMAT.write(imported(reading, "markdown"), reading.root)
    assert len(FORMAT.read(written.text, "x.md").items) == 10_000


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


_LONG = 1 << 17


@pytest.mark.parametrize(
    "piece",
    [
        *("` `` ``` ", "<!-- ", "<!-- -->", "- [ ] a\n", " ", "#", "# ", "- ", "* ", "- [", "~"),
        *("a-1", "**a-", "```\n", "a\n=\n", "\r", "  - \\[\n", "## a\n- [ ] b\n", "\t", "1. "),
        *("### Task 1: a\n- [ ] b\n", "  After: a\n", "\\[", "---\n", "> "),
    ],
)
def test_a_long_text_of_anything_takes_linear_time(piece: str) -> None:
    """No assertion about time: a quadratic one would not end."""
    for head in ("", "- [ ] a\n  x", "- [ ] "):
        text = head + piece * (_LONG // len(piece))
        FORMAT.fits("x.md", text)
        FORMAT.read(text, "x.md")
