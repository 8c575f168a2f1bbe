"""beads' issues.jsonl: "everything unknown kept", "closed <=> closed_at"."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from formats_support import (
    Record,
    again,
    assert_comes_back,
    assert_read_or_refused,
    by_key,
    imported,
)
from hypothesis import given
from hypothesis import strategies as st

from ralph.formats.beads import FORMAT, Beads

NOW = "2026-02-03T04:05:06.000Z"
BEADS = Beads(lambda: datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC))


def line(**fields: object) -> str:
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


EPIC = line(
    id="bd-1", title="Search", description="Find things.", design="An index.", status="open",
    acceptance_criteria="- quick\n- right", priority=1, issue_type="epic", owner="developer",
    created_at="2026-01-01T10:00:00.123456789+02:00", updated_at="2026-01-01T10:00:00Z",
)  # fmt: skip
INDEX = line(
    id="bd-1.1", title="Index", notes="Mind the memory.", status="closed", priority=0,
    issue_type="feature", assignee="reviewer", estimated_minutes=90,
    created_at="2026-01-01T10:00:00Z", updated_at="2026-01-02T10:00:00Z",
    closed_at="2026-01-02T10:00:00Z", close_reason="works", labels=["backend", "fast"],
    dependencies=[
        {"issue_id": "bd-1.1", "depends_on_id": "bd-1", "type": "parent-child"},
        {"issue_id": "bd-1.1", "depends_on_id": "bd-9", "type": "related"},
    ],
    comments=[{"id": 1, "issue_id": "bd-1.1", "author": "me", "text": "ö", "created_at": "x"}],
    metadata={"x": [1, None]},
)  # fmt: skip
QUERY = line(
    id="bd-1.2", title="Query", status="hooked", priority=4, issue_type="task",
    dependencies=[
        {"issue_id": "bd-1.2", "depends_on_id": "bd-1.1", "type": "blocks", "created_by": "x"},
        {"issue_id": "bd-1.2", "depends_on_id": "bd-1", "type": "waits-for"},
        {"issue_id": "bd-1.2", "depends_on_id": "bd-77", "type": "conditional-blocks"},
    ],
    created_at="2026-01-03T10:00:00Z",
)  # fmt: skip
TOMB = line(id="bd-3", title="Gone", status="tombstone", deleted_at="2026-01-01T00:00:00Z")
TEMPLATE = line(id="bd-4", title="Release {{v}}", status="open", is_template=True)
LIST = "".join(f"{one}\n" for one in (TOMB, EPIC, INDEX, TEMPLATE, QUERY))


def test_a_list_is_read() -> None:
    reading = BEADS.read(LIST, "issues.jsonl")
    found = by_key(reading)
    assert list(found) == ["bd-1", "bd-1.1", "bd-1.2"]
    assert found["bd-1"] == {
        "title": "Search",
        "description": (
            "Find things.\n\nDesign:\nAn index.\n\nAcceptance criteria:\n- quick\n- right"
        ),
        "status": "pending",
        "priority": -1,
        "type": "epic",
        "createdAt": "2026-01-01T08:00:00.123Z",
    }
    assert found["bd-1.1"] == {
        "title": "Index",
        "status": "done",
        "type": "feature",
        "tags": ["backend", "fast"],
        "parent": "bd-1",
        "notes": "Mind the memory.",
        "estimate": "90m",
        "createdAt": "2026-01-01T10:00:00.000Z",
        "completedAt": "2026-01-02T10:00:00.000Z",
    }
    assert found["bd-1.2"]["status"] == "in_progress"
    assert found["bd-1.2"]["blockedBy"] == ["bd-1.1", "bd-1"]
    assert reading.lost == ("bd-1.2 waits for bd-77, which is no task of this list",)


@pytest.mark.parametrize("indent", [None, 2])
def test_what_bd_prints_is_a_list_too(indent: int | None) -> None:
    """`bd list --json`, `bd ready --json`: an array."""
    issues = [json.loads(one) for one in LIST.splitlines()]
    separators = (",", ":") if indent is None else None
    text = json.dumps(issues, ensure_ascii=False, indent=indent, separators=separators) + "\n"
    assert BEADS.fits("-", text)
    assert not BEADS.fits("-", '[{"id": "a", "title": "b"}]')
    reading = BEADS.read(text, "-")
    assert reading.items == BEADS.read(LIST, "issues.jsonl").items
    assert again(BEADS, text, "-") == text
    marked = json.loads(BEADS.marked(text, ["bd-1"], True))
    lines = [json.loads(one) for one in BEADS.marked(LIST, ["bd-1"], True).splitlines()]
    assert marked == lines
    with pytest.raises(ValueError, match="issue 2: bd-1 is in issue 1 already"):
        BEADS.read(f"[{EPIC}, {EPIC}]", "-")


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"status": "open"}, "pending"),
        ({"status": "blocked"}, "blocked"),
        ({"status": "deferred"}, "blocked"),
        ({"status": "closed", "closed_at": NOW}, "done"),
        ({"status": "closed", "close_reason": "Cancelled"}, "cancelled"),
        ({"status": "open", "issue_type": "gate"}, "blocked"),
        ({"status": "our own"}, "blocked"),
        ({"status": ["?"]}, "pending"),
        ({}, "pending"),
    ],
)
def test_a_status_is_read(fields: Record, status: str) -> None:
    text = line(id="a-1", title="A", **fields)
    reading = BEADS.read(text, "issues.jsonl")
    assert reading.items[0].fields["status"] == status
    assert bool(reading.lost) is (fields.get("status") == "our own")


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "tombstone"},
        {"is_template": True},
        {"issue_type": "message"},
        {"status": "pinned"},
    ],
)
def test_some_issues_are_no_tasks(fields: Record) -> None:
    text = line(id="a-1", title="A", **fields)
    assert BEADS.read(text, "issues.jsonl").items == ()
    assert BEADS.marked(text, ["a-1"], True) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "line 1: line 1, column 2: Expecting property name enclosed in double quotes"),
        (f"{EPIC}\n\n[]", "line 3: an issue is an object, in braces"),
        (f"{EPIC}\n{EPIC}", "line 2: bd-1 is in line 1 already"),
        ('{"id":1,"title":"a"}', "line 1: id must be a text"),
        ('{"id":"a"}', "line 1: title must be a text"),
        (
            '{"id":"a","title":"b","priority":"P1"}',
            "line 1: priority must be a whole number, 0 to 4",
        ),
        ('{"id":"a","title":NaN}', "line 1: NaN is not JSON"),
        ("[" * 100_000, "it is nested too deeply"),
        ("<<<<<<< HEAD", "line 1: line 1, column 1: Expecting value"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(text: str, why: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011  the words are compared
        BEADS.read(text, "issues.jsonl")
    assert str(error.value) == why


@pytest.mark.parametrize(
    ("name", "text", "fits"),
    [
        ("issues.jsonl", LIST, True),
        ("-", f"\n{EPIC}", True),
        ("tasks.jsonl", '{"id":"T-1","title":"a","status":"pending","createdAt":"x"}', False),
        ("issues.md", EPIC, False),
        ("a.json", "[]", False),
        ("a.json", "{", False),
        ("a", "", False),
    ],
)
def test_it_is_known_by_its_first_line(name: str, text: str, fits: bool) -> None:
    assert FORMAT.fits(name, text) is fits


# ------------------------------------------------------------------ marking


def test_closing_changes_one_line_and_keeps_the_invariant() -> None:
    """ "closed <=> closed_at"."""
    text = f"\ufeff{LIST}".replace("\n", "\r\n")
    closed = BEADS.marked(text, ["bd-1"], True)
    before, after = text.split("\r\n"), closed.split("\r\n")
    assert [n for n, (a, b) in enumerate(zip(before, after, strict=True)) if a != b] == [1]
    changes = {"status": "closed", "updated_at": NOW, "closed_at": NOW, "close_reason": "Completed"}
    assert json.loads(after[1]) == {**json.loads(EPIC), **changes}
    opened = BEADS.marked(closed, ["bd-1"], False)
    assert json.loads(opened.split("\r\n")[1]) == {**json.loads(EPIC), "updated_at": NOW}


def test_marking_what_is_so_already_changes_nothing() -> None:
    assert BEADS.marked(LIST, ["bd-1.1"], True) == LIST
    assert BEADS.marked(LIST, ["bd-1"], False) == LIST
    assert BEADS.marked(LIST, ["bd-99"], True) == LIST


# ------------------------------------------------------------------ writing


@pytest.mark.parametrize(
    "text",
    [LIST, f"{line(id='a-1', title='A', priority=None, labels=[], notes='')}\n", ""],
)
def test_a_list_is_written_as_it_was(text: str) -> None:
    assert again(BEADS, text, "issues.jsonl") == text


def test_what_go_escapes_stays_escaped() -> None:
    text = '{"id":"a-1","title":"a \\u003c b \\u0026 c","status":"open"}\n'
    assert BEADS.read(text, "x").items[0].fields["title"] == "a < b & c"
    assert again(BEADS, text, "x") == text


def written(index: int, **changes: object) -> dict[str, Any]:
    """What becomes of the fields of an issue when its task has changed."""
    reading = BEADS.read(LIST, "issues.jsonl")
    records = imported(reading, "beads")
    records[index] |= changes
    lines = BEADS.write(records, reading.root).text.splitlines()
    before = json.loads([EPIC, INDEX, QUERY][index])
    after = json.loads(lines[[1, 2, 4][index]])
    return {name: after.get(name) for name in after | before if after.get(name) != before.get(name)}


@pytest.mark.parametrize(
    ("index", "changes", "expected"),
    [
        (0, {"title": "Find"}, {"title": "Find"}),
        (0, {"priority": -3}, {"priority": 3}),
        (0, {"description": "x\n\nAcceptance criteria:\n- y"},
         {"description": "x", "design": "", "acceptance_criteria": "- y"}),
        (0, {"status": "done", "completedAt": "2026-03-01T00:00:00.000Z"},
         {"status": "closed", "closed_at": "2026-03-01T00:00:00.000Z",
          "close_reason": "Completed"}),
        (0, {"status": "cancelled"},
         {"status": "closed", "closed_at": NOW, "close_reason": "Cancelled"}),
        (1, {"status": "pending"}, {"status": "open", "closed_at": None, "close_reason": None}),
        (1, {"tags": ["x"], "estimate": "2h"}, {"labels": ["x"], "estimated_minutes": 120}),
        (2, {"status": "blocked"}, {"status": "blocked"}),
        (2, {"blockedBy": ["T-002", "T-001"]}, {}),
    ],
)  # fmt: skip
def test_only_what_has_changed_is_written_anew(
    index: int, changes: Record, expected: Record
) -> None:
    found = written(index, **changes)
    assert found.pop("updated_at", NOW) == NOW
    assert found == expected


def test_dependencies_come_and_go_by_themselves() -> None:
    found = written(2, blockedBy=["T-001"], parent="T-002")
    assert [(d["depends_on_id"], d["type"]) for d in found["dependencies"]] == [
        ("bd-1", "waits-for"),
        ("bd-77", "conditional-blocks"),  # not in this list: no business of ours
        ("bd-1.1", "parent-child"),
    ]


def test_a_backlog_becomes_a_list() -> None:
    tasks: list[Record] = [
        {"id": "T-1", "title": "A", "priority": 3, "description": "x", "tags": ["t"]},
        {"id": "T-2", "title": "B", "blockedBy": ["T-1"], "parent": "T-1", "type": "odd"},
        {"id": "T-3", "title": "C", "status": "done", "priority": -5, "estimate": 3},
        {"id": "T-4", "title": "D", "status": "review", "completion": {"type": "explicit"}},
    ]
    result = BEADS.write(tasks, {})
    issues = [json.loads(one) for one in result.text.splitlines()]
    assert [one["priority"] for one in issues] == [0, 3, 4, 3]
    assert [one["status"] for one in issues] == ["open", "open", "closed", "in_progress"]
    assert issues[0] == {
        "id": "T-1", "title": "A", "description": "x", "status": "open", "priority": 0,
        "issue_type": "task", "created_at": NOW, "updated_at": NOW, "labels": ["t"],
    }  # fmt: skip
    assert all(("closed_at" in one) is (one["status"] == "closed") for one in issues)
    found = by_key(BEADS.read(result.text, "x"))
    assert found["T-2"]["blockedBy"] == ["T-1"]
    assert found["T-2"]["parent"] == "T-1"
    assert (found["T-2"]["type"], found["T-3"]["estimate"]) == ("odd", 3)
    assert found["T-4"]["completion"] == {"type": "explicit"}
    assert result.lost == (
        "priorities below 4 (written as 4): T-3",
        "status review (written as in_progress): T-4",
    )


# ------------------------------------------------------------------ anything

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "b-1", NOW, "open"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["depends_on_id", "type", "x"]), inner, max_size=3)
    ),
    max_leaves=5,
)
_FIELDS = st.dictionaries(
    st.sampled_from(
        [
            *("description", "design", "acceptance_criteria", "notes", "status", "labels", "x"),
            *("dependencies", "created_at", "closed_at", "close_reason", "issue_type", "y"),
            *("estimated_minutes", "external_ref", "updated_at"),
        ]
    ),
    _JSON
    | st.sampled_from(["closed", "blocked", "epic", [{"depends_on_id": "a-0", "type": "blocks"}]]),
)


@given(st.lists(st.tuples(_FIELDS, st.none() | st.integers(0, 4)), max_size=4))
def test_any_list_comes_back(issues: list[tuple[Record, int | None]]) -> None:
    """ "Round trips lose nothing", also fields that we do not know."""
    text = "".join(
        line(id=f"a-{n}", title=f"Issue {n}", **fields, priority=priority) + "\n"
        for n, (fields, priority) in enumerate(issues)
    )
    assert_comes_back(BEADS, text)


@given(st.text() | st.text(alphabet='{}[]":,idtle \n\\u0a'))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert_read_or_refused(FORMAT, text)


def test_ten_thousand_issues_take_linear_time() -> None:
    """No assertion about time: a quadratic one would not end."""
    text = "".join(
        line(id=f"a-{n}", title="x", dependencies=[{"depends_on_id": f"a-{n - 1}"}]) + "\n"
        for n in range(10_000)
    )
    assert again(BEADS, text, "x") == text
