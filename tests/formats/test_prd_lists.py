"""What stories become with us, what tasks become there, and the one mark that a sync changes."""

import json
from typing import Any

import pytest
from story_list_support import as_json, listing, records_of, story, written

from ralph.formats.prd import IANNUTTALL, PRD, RALPH_TUI, STORIES, StoryList

Json = dict[str, Any]
ALL = (PRD, RALPH_TUI, STORIES, IANNUTTALL)
REVIEWED = {"reviewStatus": None, "reviewCount": 0, "reviewFeedback": ""}
TUI = {
    "name": "App",
    "description": "An app",
    "userStories": [
        {"id": "US-1", "title": "One", "passes": True, "completionNotes": "was easy"},
        {"id": "US-2", "title": "Two", "passes": False, "labels": ["ui"], "dependsOn": ["US-1"]},
    ],
    "metadata": {"createdAt": "2026-01-31", "version": "1.0.0"},
}
IAN = {
    "version": 1,
    "project": "App",
    "qualityGates": ["make test"],
    "stories": [
        {"id": "US-1", "title": "One", "status": "done", "dependsOn": [], "description": "d"},
        {"id": "US-2", "title": "Two", "status": "in_progress", "startedAt": "2026-01-31"},
        {"id": "US-3", "title": "Three", "status": "open", "dependsOn": ["US-1", "US-2"]},
    ],
}


def fields(form: StoryList, content: Json) -> list[Json]:
    return [dict(item.fields) for item in form.read(as_json(content), "prd.json").items]


# ------------------------------------------------------------------ reading


def test_a_story_is_a_task_that_says_all_an_agent_must_read() -> None:
    """ "Acceptance criteria" are a list there, and the end of what the agent is told here; in
    prd.json priority 1 is the most urgent."""
    content = listing(
        story("US-1", priority=1, passes=True, notes="done well"),
        story(
            "US-2", priority=2, acceptanceCriteria=["one\ntwo"], dependsOn=["US-1"], labels=["x"]
        ),
    )
    assert fields(PRD, content) == [
        {
            "title": "Do US-1",
            "description": "As a user I want US-1\n\n"
            "Acceptance criteria:\n- It works\n- Typecheck passes",
            "status": "done",
            "priority": -1,
            "notes": "done well",
        },
        {
            "title": "Do US-2",
            "description": "As a user I want US-2\n\nAcceptance criteria:\n- one\n  two",
            "status": "pending",
            "priority": -2,
            "tags": ["x"],
            "blockedBy": ["US-1"],
        },
    ]


def test_statuses_of_other_lists() -> None:
    assert [found["status"] for found in fields(IANNUTTALL, IAN)] == [
        "done",
        "in_progress",
        "pending",
    ]


def test_a_review_that_asks_for_changes_is_read_by_the_agent() -> None:
    """R §8: reviewFeedback says what must be fixed."""
    asked = {"reviewStatus": "changes_requested", "reviewCount": 1, "reviewFeedback": "No tests"}
    waits = {"reviewStatus": "needs_review", "reviewCount": 0, "reviewFeedback": ""}
    content = listing(
        story("US-1", **asked), story("US-2", **waits, notes="n"), story("US-3", **REVIEWED)
    )
    found = fields(STORIES, content)
    assert [one["status"] for one in found] == ["pending", "review", "pending"]
    assert found[0]["notes"] == "A review asks for changes:\nNo tests"
    assert written(STORIES, as_json(content)) == as_json(content)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ([], "it holds no JSON object"),
        ({}, "there is no list userStories"),
        ({"userStories": {}}, "there is no list userStories"),
        (listing({"title": "x"}), r"userStories\[0\] has no id"),
        ({"userStories": ["x"]}, r"userStories\[0\] is not an object"),
        (listing(story("a"), story("a")), "the id a is there twice"),
        (listing(story("a", title=" ")), "story a has no title"),
        (listing(story("a", passes="yes")), 'story a: passes must be true or false, not "yes"'),
    ],
)
def test_what_cannot_be_read_is_said_with_its_story(content: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        PRD.read(as_json(content), "prd.json")


@pytest.mark.parametrize("text", ["", "{", "nul\0", "[" * 100_000, '{"a": 1, "a": 2}', "NaN"])
def test_what_is_no_json_is_said(text: str) -> None:
    assert not any(form.fits("prd.json", f'{text}"userStories""stories"') for form in ALL)
    with pytest.raises(ValueError, match=r"it is not valid JSON|no JSON object"):
        PRD.read(text, "prd.json")


def test_a_story_that_waits_for_a_stranger_does_not_wait() -> None:
    """B: an unknown blocker does not block; it is told, and still there on the way back."""
    content = listing(story("US-1", dependsOn=["US-9", "US-2"]), story("US-2"))
    reading = PRD.read(as_json(content), "prd.json")
    assert reading.items[0].fields["blockedBy"] == ["US-2"]
    assert reading.lost == ("US-1 depends on US-9, which is not in the list",)
    assert written(PRD, as_json(content)) == as_json(content)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (listing(story("a")), "prd"),
        (listing(), "prd"),
        (listing(story("a"), story("b", dependsOn=[])), "ralph-tui"),
        (listing(story("a", completionNotes="")), "ralph-tui"),
        (listing(story("a"), metadata={}), "ralph-tui"),
        (TUI, "ralph-tui"),
        (listing(story("a", **REVIEWED, dependsOn=[])), "stories"),
        (IAN, "iannuttall"),
        ({"tasks": []}, None),
        ([story("a")], None),
    ],
)
def test_a_list_is_known_by_what_its_stories_say(content: object, name: str | None) -> None:
    found = [form.name for form in ALL if form.fits("any.json", as_json(content))]
    assert found == ([name] if name else [])


# ------------------------------------------------------------------ writing


@pytest.mark.parametrize(
    ("form", "content"),
    [
        (PRD, listing(story("US-2", priority=2), story("US-1", priority=1, passes=True))),
        (PRD, listing(story("7", priority=0), story("8", priority=3), story("9", priority=1.5))),
        (PRD, listing({**story("x"), "id": 7}, more={"any": ["thing"]})),
        (RALPH_TUI, TUI),
        (STORIES, listing(story("a", **REVIEWED), verifyCommands=["make test"])),
        (IANNUTTALL, IAN),
    ],
)
def test_a_list_is_the_same_text_again(form: StoryList, content: Json) -> None:
    """Also without an end of its last line, as JSON.stringify leaves it."""
    text = as_json(content)
    assert written(form, text) == text
    assert written(form, text.rstrip("\n")) == text.rstrip("\n")


def test_what_was_changed_here_is_changed_and_nothing_else() -> None:
    content = listing(story("US-1", extra={"a": 1}, priority=3), story("US-2", priority=4))
    reading = PRD.read(as_json(content), "prd.json")
    first, second = records_of(reading, "prd")
    first |= {"status": "done", "notes": "by hand"}
    second |= {"description": "Other words", "tags": ["new"], "blockedBy": ["T-0"]}
    content["userStories"][0] |= {"passes": True, "notes": "by hand"}
    changed = {"description": "Other words", "acceptanceCriteria": []}
    content["userStories"][1] |= changed | {"labels": ["new"], "dependsOn": ["US-1"]}
    assert json.loads(PRD.write([first, second], reading.root).text) == content


def test_our_own_tasks_as_stories_in_their_order() -> None:
    """In prd.json priority 1 is the most urgent; ours are the higher the more urgent."""
    tasks: list[Json] = [
        {"id": "T-1", "title": "One", "priority": 5, "status": "in_progress"},
        {"id": "T-2", "title": "Two", "blockedBy": ["T-1", "T-4"], "tags": ["x"]},
        {"id": "T-3", "title": "Three", "priority": -1, "completion": {"type": "explicit"}},
        {"id": "T-4", "title": "Four", "status": "cancelled"},
        {
            "id": "T-5",
            "title": "Five",
            "completion": {"type": "test_passing", "command": "make test"},
            "type": "bug",
        },
    ]
    writing = PRD.write(tasks, {"project": "My App"})
    found = json.loads(writing.text)
    assert {name: found[name] for name in found if name != "userStories"} == {
        "project": "My App",
        "branchName": "ralph/my-app",
        "description": "",
    }
    assert found["userStories"][1] == {
        "id": "T-2",
        "title": "Two",
        "description": "",
        "acceptanceCriteria": [],
        "priority": 6,
        "passes": False,
        "notes": "",
        "labels": ["x"],
        "dependsOn": ["T-1"],
    }
    assert [(s["id"], s["priority"]) for s in found["userStories"]] == [
        ("T-1", 1),
        ("T-2", 6),
        ("T-3", 7),
        ("T-5", 6),
    ]
    assert found["userStories"][3]["acceptanceCriteria"] == ["`make test` exits with 0"]
    assert writing.lost == (
        "cancelled tasks, which are left out: T-4",
        "status in_progress (written as open): T-1",
        "blockers and parents that are not in this list: T-2",
    )


def test_what_ralph_tui_refuses_is_never_written_for_it() -> None:
    """It rejects root `prd`/`tasks` and story `subtasks, estimated_hours, files, status`."""
    refused = {"subtasks": [], "estimated_hours": 2, "files": ["a"], "status": "open"}
    content = listing(story("US-1", **refused, mine=1), prd="x", tasks=[])
    reading = PRD.read(as_json(content), "prd.json")
    writing = RALPH_TUI.write(records_of(reading, "prd"), reading.root)
    assert json.loads(writing.text) == listing(story("US-1", mine=1))
    assert writing.lost[0] == "prd, tasks at the root: ralph-tui refuses a list with that"
    assert writing.lost[1:] == tuple(f"{name}: T-0" for name in refused)


def test_a_list_of_one_kind_as_one_of_another() -> None:
    reading = RALPH_TUI.read(as_json(TUI), "prd.json")
    found = json.loads(PRD.write(records_of(reading, "ralph-tui"), reading.root).text)
    assert (found["project"], found["metadata"]) == ("App", TUI["metadata"])
    assert found["userStories"] == TUI["userStories"]
    reviewed = STORIES.read(as_json(listing(story("a", **REVIEWED))), "tasks.json")
    writing = PRD.write(records_of(reviewed, "stories"), reviewed.root)
    assert json.loads(writing.text) == listing(story("a"))
    assert writing.lost == tuple(f"{name}: T-0" for name in REVIEWED)


def test_what_only_another_kind_of_list_knows_is_named() -> None:
    kept = {"order": ["id", "owner"], "values": {"priority": 1, "owner": "x", "design": "y"}}
    source = {"format": "beads", "path": "issues.jsonl", "key": "bd-1", "kept": kept}
    writing = PRD.write([{"id": "bd-1", "title": "One", "source": source}], {})
    assert writing.lost == ("owner, which only beads knows: bd-1",)


def test_only_a_review_approves_a_story() -> None:
    """R: passes=true without an approval is illegal; what is done here waits for its review."""
    approved = {**REVIEWED, "reviewStatus": "approved", "reviewCount": 1, "passes": True}
    content = listing(story("a", **REVIEWED), story("b", **approved), story("c", **approved))
    reading = STORIES.read(as_json(content), "tasks.json")
    records = records_of(reading, "stories")
    records[0]["status"], records[2]["status"] = "done", "pending"
    found = json.loads(STORIES.write(records, reading.root).text)["userStories"]
    assert [(s["passes"], s["reviewStatus"]) for s in found] == [
        (False, "needs_review"),
        (True, "approved"),
        (False, None),
    ]


# ------------------------------------------------------------------ marking

HAND_MADE = (
    '{"userStories" : [ {"id":"US-1","title":"passes","passes" :false , "notes":"passes: no"},\r\n'
    '\t{ "title": "Two", "id": "US-2", "passes": true },\r\n'
    '\t{ "title": "Three", "id": 3 } ] }'
)


@pytest.mark.parametrize(
    ("key", "done", "old", "new"),
    [
        ("US-1", True, '"passes" :false ,', '"passes" :true ,'),
        ("US-2", False, '"passes": true }', '"passes": false }'),
        ("US-1", False, "", ""),
        ("US-2", True, "", ""),
        ("3", False, "", ""),
    ],
)
def test_only_passes_of_one_story_changes(key: str, done: bool, old: str, new: str) -> None:
    """ "Sync changes only the one checkbox or `passes`": every other byte stays."""
    assert PRD.marked(HAND_MADE, [key], done) == HAND_MADE.replace(old, new, 1)


def test_a_story_that_does_not_say_passes_says_it_then() -> None:
    text = PRD.marked(HAND_MADE, ["3"], True)
    assert json.loads(text)["userStories"][2] == {"title": "Three", "id": 3, "passes": True}
    assert text[: HAND_MADE.index("3 }")] == HAND_MADE[: HAND_MADE.index("3 }")]


@pytest.mark.parametrize("text", [HAND_MADE, "{}", '{"userStories": 7}'])
def test_a_story_that_is_not_there_is_not_marked(text: str) -> None:
    assert PRD.marked(text, ["US-9"], True) == text


def test_marks_of_the_other_kinds() -> None:
    text = as_json(IAN)
    assert IANNUTTALL.marked(text, ["US-2"], True) == text.replace("in_progress", "done")
    assert IANNUTTALL.marked(text, ["US-2"], False) == text
    reviewed = as_json(listing(story("a", **REVIEWED)))
    sent = STORIES.marked(reviewed, ["a"], True)
    assert sent == reviewed.replace("null", '"needs_review"')
    assert STORIES.marked(sent, ["a"], True) == sent
    assert STORIES.marked(sent, ["a"], False) == reviewed
