"""Markdown checklists, marked and written: "sync changes only the one checkbox", "round trips lose
nothing the other format can hold"."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from formats_support import Record, again, by_key, imported
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_examples import EXAMPLES, FIX_PLAN, IMPLEMENTATION_PLAN, NESTED, PLAN

from kits.thorough import dealt, examples
from ralph.formats.markdown.format import FORMAT
from ralph.kernel.tasks.task import Status


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
            marked = FORMAT.marked(text, [item.key], done)
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
    assert FORMAT.marked(text, ["/a"], True) == text.replace("[ ]", "[x]")
    assert FORMAT.marked(text, ["/a"], False) == text.replace("[x]", "[ ]")


def test_a_long_list_comes_back_without_what_stands_between() -> None:
    """The way back must fit into a line of tasks.jsonl."""
    text = "".join(f"- [ ] T-{n}: {'x' * 80}\n" for n in range(10_000))
    reading = FORMAT.read(text, "x.md")
    assert reading.root == {}
    assert "too long" in reading.lost[0]
    written = FORMAT.write(imported(reading, "markdown"), reading.root)
    assert len(FORMAT.read(written.text, "x.md").items) == 10_000


def test_marking_what_is_not_there_changes_nothing() -> None:
    assert FORMAT.marked(FIX_PLAN, ["/Gone"], True) == FIX_PLAN


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
        ("Errors", {"status": "blocked"}, "next.\n", "next.\n\n    Status: blocked\n"),
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
        {"id": "T-1", "title": "a", "tags": ["a,b", "c"], "reason": "r"},
        {"id": "T-2", "title": "b", "parent": "T-2", "createdAt": "2026-01-01T00:00:00.000Z"},
        {"id": "T-3", "title": "c", "blockedBy": ["T-99"], "estimate": {"odd": 1}},
    ]
    assert sorted(FORMAT.write(tasks, {}).lost) == [
        "blockedBy: T-3",
        "estimate: T-3",
        "parent: T-2",
        "reason: T-1",
        "tags: T-1",
        "times (createdAt, completedAt): T-2",
    ]


LABELLED: Record = {
    "notes": "Mind the gap.\n\n- [ ] really\n\nType: of it",
    "status": "blocked",
    "estimate": "2h",
    "completion": {"type": "test_passing", "command": "make test"},
    "limits": {"maxIterations": 5, "maxTime": 1800, "maxCost": 2.5},
    "externalId": "gh-9",
    "externalUrl": "https://example.org/9",
}


@pytest.mark.parametrize(
    "changes",
    [
        LABELLED,
        {"status": "review", "estimate": 3, "notes": "one line"},
        {"completion": {"type": "test_passing", "command": "a\nb"}, "estimate": 0.5},
        {"completion": {"type": "test_passing", "grep": "x", "timeout": 9}},
        {"completion": {"type": "file_exists", "path": "out.txt"}},
        {"completion": {"type": "validate", "script": "./check.py"}},
        {"completion": {"type": "explicit"}},
    ],
)
@pytest.mark.parametrize("root", [{}, {"text": "# Mine\n\n1. [ ] T-1: a\n\n   b\n2. [ ] c\n"}])
def test_what_has_no_sign_of_its_own_is_a_label(changes: Record, root: Record) -> None:
    """ "Round trips lose nothing the other format can hold"."""
    task: Record = {"id": "T-1", "title": "a", "description": "b", **changes}
    source = {"format": "markdown", "path": "x.md", "key": "T-1", "root": root}
    written = FORMAT.write([{**task, "source": source} if root else task], root)
    assert written.lost == ()
    (item,) = FORMAT.read(written.text, "x.md").items
    assert {"id": item.key, **item.fields} == {"status": "pending", **task}


@pytest.mark.parametrize(
    "text",
    [
        *("Status: in progress", "Completion: 80%", "Limits: many", "Estimate: soon", "Url: here"),
        *("Priority: 1", "After: tomorrow", "Type: a\nand so on", "Limits: maxIterations 0"),
        *("Notes:", "Notes: see below", "text\nNotes:\nmore"),
    ],
)
def test_what_only_looks_like_a_label_is_text(text: str) -> None:
    below = text.replace("\n", "\n  ")
    (item,) = FORMAT.read(f"- [ ] a\n  {below}\n", "x.md").items
    assert item.fields == {"title": "a", "description": text, "status": "pending"}


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
        marked = FORMAT.marked(text, [item.key], done)
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
_ENDS = re.compile(r"\r\n|\n|\r")
_RULES = st.sampled_from([{"type": "test_passing", "command": "a, b"}, {"type": "explicit"}])


@given(
    st.lists(
        st.fixed_dictionaries(
            {"title": st.text(min_size=1, max_size=20), "description": _TEXTS},
            optional={
                "status": st.sampled_from(list(map(str, Status))),
                "priority": st.integers(-9, 9),
                "tags": st.lists(
                    st.sampled_from(["a", "optional", "b c"]), unique=True, max_size=2
                ),
                "parent": st.sampled_from(["T-1", "T-2", "T-9"]),
                "notes": _TEXTS,
                "completion": _RULES,
                "estimate": st.integers(1, 9) | st.just("2h"),
            },
        ),
        max_size=5,
    )
)
@example([{"title": "a", "description": "#\n    - [ ] 0", "parent": "T-2"}, {"title": "b"}])
@example([{"title": "a", "description": "- \\[ ] a\n- \\\\[x] b\n```\n- \\[ ] c\n```"}])
@example([{"title": "a", "description": "\ttab\n\n\t- [ ] b", "parent": "T-2"}, {"title": "b"}])
@example([{"title": "a", "description": "- <!--\n - [ ] 0\n0"}, {"title": "<!--", "notes": "-->"}])
@example([{"title": "a <\\!-- b -->", "description": "- ```"}, {"title": "b", "parent": "T-1"}])
def test_any_backlog_is_read_again(tasks: list[Record]) -> None:
    records = [{"id": f"T-{n}", **task} for n, task in enumerate(tasks, 1)]
    written = FORMAT.write(records, {})
    found = by_key(FORMAT.read(written.text, "x.md"))
    assert sorted(found) == sorted(record["id"] for record in records)
    for record in records:
        fields = found[record["id"]]
        assert fields["status"] == record.get("status", "pending")
        assert fields.get("priority", 0) == record.get("priority", 0)
        assert sorted(fields.get("tags", [])) == sorted(record.get("tags", []))
        assert fields.get("completion") == record.get("completion")
        assert fields.get("estimate") == record.get("estimate")
        assert told(fields) == told(record)
        title = _ENDS.sub(" ", record["title"]).strip().replace("\0", "\ufffd")
        assert fields["title"] == (title or record["id"])


@given(_LISTS, st.integers(0, 5), _TEXTS, st.text(min_size=1, max_size=9), st.booleans())
@example("- [ ] a\na <!-- b\n===\n- [ ] a", 1, "-->", "0", False)
def test_any_change_in_a_list_is_read_again(
    text: str, place: int, words: str, title: str, notes: bool
) -> None:
    """Whatever becomes of one task, all others are as they were."""
    reading = FORMAT.read(text, "x.md")
    records = imported(reading, "markdown")
    for record in records[place : place + 1]:
        record |= {"notes" if notes else "description": words, "title": title}
    written = FORMAT.write(records, reading.root)
    after = [item.fields for item in FORMAT.read(written.text, "x.md").items]
    titles_now = [_ENDS.sub(" ", one["title"]).strip().replace("\0", "\ufffd") for one in records]
    named = [title or record["id"] for title, record in zip(titles_now, records, strict=True)]
    assert sorted(one["title"] for one in after) == sorted(named)
    if not written.lost:
        assert sorted(map(told, after)) == sorted(map(told, records))


def told(fields: Mapping[str, Any]) -> list[str]:
    """All words of a task but for empty lines, what it is a part of, and ends of fences."""
    text = re.sub(r"(^|\n\n)Part of: .*$", "", fields.get("description", ""))
    notes = fields.get("notes", "")
    text += f"\nNotes:\n{notes}" if notes.strip() else ""
    lines = _ENDS.split(text.replace("\0", "\ufffd"))
    return [line for line in lines if line.strip(" \t`~")]


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    FORMAT.fits("x.md", text)
    try:
        reading = FORMAT.read(text, "x.md")
    except ValueError:
        return
    assert len({item.key for item in reading.items}) == len(reading.items)


_LONG = examples(1 << 17)


@pytest.mark.parametrize(
    "piece",
    dealt(
        [
            *(
                "` `` ``` ",
                "<!-- ",
                "<!-- -->",
                "- [ ] a\n",
                " ",
                "#",
                "# ",
                "- ",
                "* ",
                "- [",
                "~",
            ),
            *("a-1", "**a-", "```\n", "a\n=\n", "\r", "  - \\[\n", "## a\n- [ ] b\n", "\t", "1. "),
            *("### Task 1: a\n- [ ] b\n", "  After: a\n", "\\[", "---\n", "> "),
        ],
        5,
    ),
)
def test_a_long_text_of_anything_takes_linear_time(piece: str) -> None:
    """No assertion about time: a quadratic one would not end."""
    for head in ("", "- [ ] a\n  x", "- [ ] "):
        text = head + piece * (_LONG // len(piece))
        FORMAT.fits("x.md", text)
        FORMAT.read(text, "x.md")
