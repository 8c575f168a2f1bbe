"""GitHub's issues, through `gh` and from a file of its JSON."""

import json
from datetime import UTC, datetime

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

from ralph.formats.github import FORMAT, GitHub

GITHUB = GitHub(lambda: datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC))
URL = "https://github.com/acme/shop/issues"


def label(name: str) -> Record:
    return {"id": f"L_{name}", "name": name, "description": "", "color": "ededed"}


def issue(number: int, title: str, **fields: object) -> Record:
    found: Record = {
        "assignees": [],
        "body": "",
        "closedAt": None,
        "createdAt": "2026-01-01T10:00:00Z",
        "labels": [],
        "milestone": None,
        "number": number,
        "state": "OPEN",
        "title": title,
        "updatedAt": "2026-01-01T10:00:00Z",
        "url": f"{URL}/{number}",
    }
    return {**found, **fields}


ISSUES = [
    issue(
        14, "Pay by card",
        body="Cards.\r\n\r\n- [ ] form\r\n- [x] route\r\n\r\nBlocked by #12, #99",
        labels=[label("bug"), label("priority: high")], assignees=[{"login": "developer"}],
    ),
    issue(12, "Cart", state="CLOSED", closedAt="2026-01-02T10:00:00Z", labels=[label("P3")]),
    issue(15, "Refund", body=f"* Depends on: #14 and {URL}/12\n**Part of** acme/shop#12"),
    issue(16, "Never", state="CLOSED", stateReason="NOT_PLANNED", milestone={"title": "v1"}),
]  # fmt: skip
LIST = f"{json.dumps(ISSUES, indent=2)}\n"


def test_a_list_is_read() -> None:
    reading = GITHUB.read(LIST, "issues.json")
    found = by_key(reading)
    assert list(found) == ["acme/shop#14", "acme/shop#12", "acme/shop#15", "acme/shop#16"]
    assert found["acme/shop#14"] == {
        "title": "Pay by card",
        "description": "Cards.\n\n- [ ] form\n- [x] route\n\nBlocked by #12, #99",
        "status": "pending",
        "priority": 2,
        "tags": ["bug", "priority: high"],
        "blockedBy": ["acme/shop#12"],
        "createdAt": "2026-01-01T10:00:00.000Z",
        "externalId": "acme/shop#14",
        "externalUrl": f"{URL}/14",
    }
    assert found["acme/shop#12"]["status"] == "done"
    assert found["acme/shop#12"]["priority"] == -1
    assert found["acme/shop#12"]["completedAt"] == "2026-01-02T10:00:00.000Z"
    assert found["acme/shop#15"]["blockedBy"] == ["acme/shop#14", "acme/shop#12"]
    assert found["acme/shop#15"]["parent"] == "acme/shop#12"
    assert found["acme/shop#16"]["status"] == "cancelled"
    assert reading.lost == ("acme/shop#14 waits for acme/shop#99, which is not in this list",)


def test_one_issue_without_a_url_is_a_list_too() -> None:
    """ "Also a single object of `gh issue view`, also without url"."""
    text = '{"number":3,"title":"A","state":"open","body":"Depends on #3"}\n'
    reading = GITHUB.read(text, "-")
    assert by_key(reading) == {
        "#3": {
            "title": "A",
            "status": "pending",
            "description": "Depends on #3",
            "externalId": "#3",
        }
    }
    assert again(GITHUB, text, "-") == text
    marked = GITHUB.marked(text, ["#3"], True)
    assert marked == '{"number":3,"title":"A","state":"closed","body":"Depends on #3"}\n'


@pytest.mark.parametrize(
    ("body", "waits"),
    [
        ("Blocked by #1", ["#1"]),
        ("depends on: #1, #2 and #1", ["#1", "#2"]),
        ("- [ ] Depends on #2", ["#2"]),
        ("It depends on #1", []),
        ("Blocked by other/repo#1", []),
        ("Blocked by nothing well-known", []),
        ("x\r\nBlocked by #2\r\ny #1", ["#2"]),
    ],
)
def test_who_waits_for_whom(body: str, waits: list[str]) -> None:
    issues = [{"number": n, "title": "t", "state": "OPEN"} for n in (1, 2)]
    text = json.dumps([*issues, {"number": 3, "title": "t", "state": "OPEN", "body": body}])
    assert by_key(GITHUB.read(text, "-"))["#3"].get("blockedBy", []) == waits


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[", "line 1, column 2: Expecting value"),
        ("[1]", "item 1: an issue is an object, in braces"),
        ('[{"number":1,"state":"OPEN"}]', "item 1: title must be a text"),
        ('[{"number":1,"title":"a","state":"?"}]', "item 1: state must be OPEN or CLOSED"),
        ('{"number":"1","title":"a","state":"OPEN"}', "item 1: number must be a whole number"),
        (json.dumps([ISSUES[0]] * 2), "acme/shop#14 is there twice"),
        ("[" * 100_000, "it is nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_item(text: str, why: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011  the words are compared
        GITHUB.read(text, "issues.json")
    assert str(error.value) == why


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        (LIST, True),
        (f"\ufeff{LIST}", True),
        (json.dumps(ISSUES[0]), True),
        ("[]", False),
        ("{}", False),
        ('{"userStories": []}', False),
        ('[{"title": "a", "state": "started", "number": 1}]', False),
        ("[", False),
        ("- [ ] a", False),
        ("", False),
    ],
)
def test_it_is_known_by_its_members(text: str, fits: bool) -> None:
    assert FORMAT.fits("issues.json", text) is fits


# ------------------------------------------------------------------ marking and writing


def test_closing_changes_one_issue() -> None:
    closed = GITHUB.marked(LIST, ["acme/shop#15"], True)
    assert json.loads(closed) == [
        *ISSUES[:2],
        {**ISSUES[2], "state": "CLOSED", "closedAt": "2026-02-03T04:05:06Z"},
        ISSUES[3],
    ]
    different = [
        (a, b) for a, b in zip(LIST.split("\n"), closed.split("\n"), strict=True) if a != b
    ]
    assert len(different) == 2
    assert GITHUB.marked(closed, ["acme/shop#15"], False) == LIST
    assert GITHUB.marked(LIST, ["acme/shop#12"], True) == LIST
    assert GITHUB.marked(LIST, ["#15"], True) == LIST


@pytest.mark.parametrize(
    "text", [LIST, json.dumps(ISSUES, separators=(",", ":")) + "\n", json.dumps(ISSUES[0]) + "\n"]
)
def test_a_list_is_written_as_it_was(text: str) -> None:
    written = again(GITHUB, text, "issues.json")
    assert json.loads(written) == json.loads(text)
    assert list(json.loads(written)[0] if text[0] == "[" else json.loads(written)) == list(
        ISSUES[0]
    )
    assert written == text or text[0] == "{"


@pytest.mark.parametrize(
    ("index", "changes", "expected"),
    [
        (0, {"title": "Pay"}, {"title": "Pay"}),
        (0, {"status": "done", "completedAt": "2026-03-01T00:00:00.000Z"},
         {"state": "CLOSED", "closedAt": "2026-03-01T00:00:00.000Z"}),
        (1, {"status": "pending"}, {"state": "OPEN", "closedAt": None}),
        (0, {"tags": ["bug", "new"], "priority": 0}, {"labels": [label("bug"), {"name": "new"}]}),
        (0, {"priority": 3}, {"labels": [label("bug"), {"name": "priority: critical"}]}),
        (1, {"blockedBy": ["T-004"], "description": "x", "parent": "T-003"},
         {"body": "x\n\nBlocked by #16\nPart of #15"}),
        (0, {"status": "in_progress"}, {"ralph": {"status": "in_progress"}}),
    ],
)  # fmt: skip
def test_only_what_has_changed_is_written_anew(
    index: int, changes: Record, expected: Record
) -> None:
    reading = GITHUB.read(LIST, "issues.json")
    records = imported(reading, "github")
    records[index] |= changes
    after = json.loads(GITHUB.write(records, reading.root).text)
    assert after[index] == {**ISSUES[index], **expected}
    assert [one for n, one in enumerate(after) if n != index] == [
        one for n, one in enumerate(ISSUES) if n != index
    ]


def test_a_backlog_becomes_issues_without_numbers() -> None:
    tasks: list[Record] = [
        {"id": "T-001", "title": "A", "tags": ["t"], "priority": 9},
        {"id": "T-002", "title": "B", "description": "x", "blockedBy": ["T-001"]},
        {"id": "T-003", "title": "C", "status": "cancelled", "parent": "T-001", "notes": "n"},
        {"id": "odd", "title": "D", "status": "blocked", "blockedBy": ["gone"]},
    ]
    result = GITHUB.write(tasks, {})
    found = by_key(GITHUB.read(result.text, "x"))
    assert list(found) == ["T-001", "T-002", "T-003", "/D"]
    assert found["T-001"]["priority"] == 9
    assert "priority: critical" in result.text
    assert found["T-003"]["notes"] == "n"
    assert found["T-002"] == {
        "title": "B",
        "description": "x\n\nBlocked by T-001",
        "status": "pending",
        "blockedBy": ["T-001"],
    }
    assert found["T-003"]["parent"] == "T-001"
    assert found["T-003"]["status"] == "cancelled"
    assert sorted(result.lost) == [
        "blockers and parents that are not in this list: odd",
        "id: odd",
        "status blocked (written as open): odd",
    ]
    assert again(GITHUB, result.text, "x") == result.text


# ------------------------------------------------------------------ anything

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "OPEN", "P1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "nodes", "x"]), inner, max_size=3)
    ),
    max_leaves=5,
)
_BODIES = st.text(alphabet="Blocked by #12\r\n-[] ", max_size=40)
_FIELDS = st.dictionaries(
    st.sampled_from(
        [
            *("labels", "body", "url", "closedAt", "stateReason", "createdAt", "milestone", "x"),
            *("assignees", "updatedAt", "closed"),
        ]
    ),
    _JSON
    | _BODIES
    | st.sampled_from([[{"name": "P1"}, {"name": "a"}], f"{URL}/1", "Blocked by #1"]),
)


@given(st.lists(st.tuples(_FIELDS, st.sampled_from(["OPEN", "CLOSED"])), max_size=4), st.booleans())
def test_any_list_comes_back(issues: list[tuple[Record, str]], numbered: bool) -> None:
    """ "Round trips lose nothing", also fields that we do not know."""
    found = [
        {**({"number": n} if numbered else {}), "title": "Issue", **fields, "state": state}
        for n, (fields, state) in enumerate(issues)
    ]
    text = f"{json.dumps(found, indent=2, ensure_ascii=False)}\n"
    assert_comes_back(GITHUB, text)


@given(st.text() | st.text(alphabet='{}[]":,titlesaOPEN \n\\u0a'))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert_read_or_refused(FORMAT, text)


@pytest.mark.parametrize(
    "piece", [" ", "- ", "Blocked by ", "http://a/", "a/", "a-", "#1", "Blocked by #1\n"]
)
def test_a_megabyte_of_anything_takes_linear_time(piece: str) -> None:
    """No assertion about time: a quadratic one would not end."""
    for head in ("", "Blocked by "):
        body = head + piece * ((1 << 20) // len(piece))
        text = json.dumps([{"number": 1, "title": "t", "state": "OPEN", "body": body}])
        GITHUB.read(text, "x")
        assert GITHUB.marked(text, ["#1"], True)
