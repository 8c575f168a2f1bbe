"""Our own tasks as every kind of list, and from it again: "round trips lose nothing the other
format can hold"."""

from typing import Any

import pytest
from formats_support import Record, imported

from ralph.formats.catalog import NAMES, by_name

TASKS: list[Record] = [
    {
        "id": "T-001",
        "title": "First",
        "description": "Do it.\n\n- [ ] one\n- [ ] two",
        "type": "feature",
        "tags": ["core", "two words"],
        "priority": 4,
        "limits": {"maxIterations": 4, "maxTime": 1800, "maxCost": 2.5},
        "completion": {"type": "test_passing", "command": "make test"},
        "estimate": 3,
    },
    {"id": "T-002", "title": "Second", "type": "docs", "estimate": "120m", "blockedBy": ["T-001"]},
    {"id": "T-003", "title": "Third", "parent": "T-001", "blockedBy": ["T-002"], "priority": 3},
    {
        "id": "T-004",
        "title": "Fourth",
        "parent": "T-003",
        "completion": {"type": "test_passing", "grep": "x y", "timeout": 90},
        "notes": "Seen by people.\nTwice.",
        "priority": 2,
    },
    {
        "id": "T-005",
        "title": "Fifth",
        "type": "bug",
        "status": "done",
        "externalId": "X-5",
        "externalUrl": "https://example.org/5",
        "priority": 1,
    },
    {"id": "T-006", "title": "Sixth", "status": "blocked"},
    {"id": "T-007", "title": "Seventh", "status": "in_progress"},
]
FIELDS = (
    *("title", "type", "tags", "limits", "completion", "estimate", "parent", "notes", "status"),
    *("externalId", "externalUrl", "blockedBy", "reason", "question", "answers"),
)
STATUSES = [
    f"status {status} (written as {{}}): T-00{number}"
    for number, status in ((6, "blocked"), (7, "in_progress"))
]
LOST = {
    "prd": [words.format("open") for words in STATUSES],
    "ralph-tui": [words.format("open") for words in STATUSES],
    "stories": [words.format("open") for words in STATUSES],
    "iannuttall": [STATUSES[0].format("open")],
    "markdown": [],
    "beads": [],
    "ralphy": [words.format("not completed") for words in STATUSES],
    "github": [words.format("open") for words in STATUSES],
}
OTHERWISE: dict[str, dict[tuple[str, str], Any]] = {  # what a format says in its own way
    "stories": {("T-005", "status"): "review"},  # R: only a review approves
    "beads": {(f"T-00{number}", "type"): "task" for number in (3, 4, 6, 7)},
    "ralphy": {
        ("T-002", "blockedBy"): ["T-001", "T-004", "T-005", "T-006", "T-007"],  # a group of its own
    },
    "github": {
        ("T-001", "tags"): ["core", "two words", "priority: critical"],
        ("T-003", "tags"): ["priority: critical"],
        ("T-004", "tags"): ["priority: high"],
        ("T-005", "tags"): ["priority: medium"],
    },
}


@pytest.mark.parametrize("name", NAMES)
def test_our_tasks_come_back_from_every_list(name: str) -> None:
    form = by_name(name)
    writing = form.write(TASKS, {})
    assert list(writing.lost) == LOST[name]
    reading = form.read(writing.text, "list")
    keys = {item.fields["title"]: item.key for item in reading.items}
    ours = {key: task["id"] for task in TASKS for key in [keys[task["title"]]]}
    assert len(ours) == len(TASKS)
    found = {ours[item.key]: item.fields for item in reading.items}
    for task in TASKS:
        fields = dict(found[task["id"]])
        fields["blockedBy"] = [ours[key] for key in fields.get("blockedBy", ())]
        fields["parent"] = ours.get(fields.get("parent", ""))
        for field in FIELDS:
            wanted = {"status": "pending", **task}.get(field)
            wanted = OTHERWISE.get(name, {}).get((task["id"], field), wanted)
            assert (fields.get(field) or None) == wanted, (task["id"], field)
        assert fields.get("description", "").startswith(task.get("description", ""))


@pytest.mark.parametrize("name", NAMES)
def test_the_urgent_ones_stay_the_urgent_ones(name: str) -> None:
    reading = by_name(name).read(by_name(name).write(TASKS, {}).text, "list")
    order = sorted(reading.items, key=lambda item: -item.fields.get("priority", 0))
    titles = [item.fields["title"] for item in order]
    assert titles[:4] == ["First", "Third", "Fourth", "Fifth"]


@pytest.mark.parametrize("name", NAMES)
def test_what_came_back_is_written_as_it_was(name: str) -> None:
    form = by_name(name)
    text = form.write(TASKS, {}).text
    reading = form.read(text, "list")
    assert form.write(imported(reading, name), reading.root).text == text


@pytest.mark.parametrize(
    "member",
    [
        *({"tags": "a"}, {"tags": [1]}, {"type": 7}, {"completion": "make"}, {"priority": True}),
        *({"parent": ["a"]}, {"notes": {"a": 1}}, {"estimate": None}, {"answers": [None]}),
    ],
)
def test_what_cannot_be_ours_is_refused_with_its_name(member: Record) -> None:
    story = f'{{"id": "US-1", "title": "a", "ralph": {member}}}'.replace("'", '"')
    story = story.replace("True", "true").replace("None", "null")
    with pytest.raises(ValueError, match=rf"US-1: {next(iter(member))} in ralph"):
        by_name("iannuttall").read(f'{{"stories": [{story}]}}', "prd.json")


def test_what_others_say_beside_is_not_ours() -> None:
    member = '{"title": "b", "x": 1, "status": "done"}'
    text = f'{{"stories": [{{"id": "a", "title": "a", "ralph": {member}}}]}}'
    (item,) = by_name("iannuttall").read(text, "prd.json").items
    assert item.fields == {"title": "a", "status": "pending"}
