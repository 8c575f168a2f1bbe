"""`ralph tasks export`: the tasks as a list that another tool reads, and all the way back."""

import json
from pathlib import Path

import pytest
from list_support import issue, prd, story
from run_support import Here, assert_clear


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], workspace: Path) -> Here:
    return Here(capsys)


def test_a_list_comes_back_as_it_was(here: Here, workspace: Path) -> None:
    """ "In prd.json priority 1 is the most urgent and is kept"."""
    text = prd(workspace / "prd.json", story("US-2", priority=2), story("US-1", passes=True, x=[1]))
    here("tasks", "import", "prd.json")
    done = here("tasks", "export", "--format", "prd")
    assert (done.code, done.out, done.err) == (0, text, "")
    assert here("tasks", "export", "--format", "prd", "-o", "prd.json").out == (
        "prd.json: 2 tasks, as before\n"
    )


BEADS = (
    '{"id":"bd-1","title":"One","status":"open","priority":1,"issue_type":"bug","owner":"x"}\n'
    '{"id":"bd-2","title":"Two","status":"closed","priority":2,"issue_type":"task",'
    '"closed_at":"2026-01-02T00:00:00Z","dependencies":[{"issue_id":"bd-2",'
    '"depends_on_id":"bd-1","type":"blocks"}]}\n'
)
LISTS = [
    (
        "markdown",
        "fix_plan.md",
        "# Plan\n\nWords.\n\n## High Priority\n- [ ] One\n  more\n- [x] Two\n",
    ),
    ("beads", "issues.jsonl", BEADS),
    ("ralphy", "tasks.yaml", "tasks:\n  - title: One  # first\n    completed: false\n"),
    ("github", "issues.json", json.dumps([issue(1), issue(2, state="CLOSED")], indent=2) + "\n"),
]


@pytest.mark.parametrize(("name", "path", "text"), LISTS, ids=[name for name, _, _ in LISTS])
def test_every_list_comes_back_as_it_was(
    here: Here, workspace: Path, name: str, path: str, text: str
) -> None:
    """ "Round trips lose nothing", and an import again changes nothing."""
    (workspace / path).write_text(text)
    assert here("tasks", "import", path).code == 0
    assert here("tasks", "export", "--format", name).out == text
    before = (workspace / ".ralph" / "tasks.jsonl").read_bytes()
    again = here("tasks", "import", path).out.splitlines()[0]
    assert (f"({name})" in again, "0 added, 0 updated" in again) == (True, True)
    assert (workspace / ".ralph" / "tasks.jsonl").read_bytes() == before


def test_what_the_format_cannot_hold_is_named(here: Here, workspace: Path) -> None:
    here("tasks", "add", "One", "--type", "bug", "--tag", "x")
    here("tasks", "add", "Two", "--blocked-by", "T-001")
    lost = "times (createdAt, completedAt): T-001, T-002"
    done = here("tasks", "export", "--format", "prd", "-o", "out.json")
    assert (done.code, done.out) == (0, "out.json: 2 tasks\n")
    assert done.err == f"[ralph] prd cannot hold {lost}\n"
    found = json.loads((workspace / "out.json").read_text())
    assert found["project"] == "workspace"
    assert found["userStories"][0]["ralph"] == {"type": "bug"}
    assert [(s["id"], s["priority"]) for s in found["userStories"]] == [("T-001", 1), ("T-002", 1)]
    told = json.loads(here("tasks", "export", "--format", "prd", "--json").out)
    assert (told["lost"], told["tasks"]) == ([lost], 2)
    assert json.loads(told["text"]) == found


def test_another_file_is_not_overwritten(here: Here, workspace: Path) -> None:
    here("tasks", "add", "One")
    path = workspace / "prd.json"
    path.write_text("mine")
    path.chmod(0o600)
    command = ("tasks", "export", "--format", "prd", "-o", "prd.json")
    assert_clear(here(*command), 2, "prd.json is there and says something else")
    assert path.read_text() == "mine"
    assert here(*command, "--force").code == 0
    assert json.loads(path.read_text())["userStories"][0]["title"] == "One"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_stays_a_link(here: Here, workspace: Path) -> None:
    here("tasks", "add", "One")
    (workspace / "link.json").symlink_to("prd.json")
    for title in ("Two", "Three"):
        here("tasks", "add", title)
        assert here("tasks", "export", "--format", "prd", "-o", "link.json", "--force").code == 0
        assert title in (workspace / "prd.json").read_text()
        assert (workspace / "link.json").is_symlink()


@pytest.mark.parametrize("output", ["no/where.json", "."])
def test_a_place_that_cannot_be_written_is_named(here: Here, output: str) -> None:
    here("tasks", "add", "One")
    done = here("tasks", "export", "--format", "prd", "-o", output)
    assert_clear(done, 2, f"cannot write {output}")


def test_only_what_is_asked_for_is_written(here: Here) -> None:
    for title, tag in (("One", "x"), ("Two", "y"), ("Three", "x")):
        here("tasks", "add", title, "--tag", tag)
    here("tasks", "edit", "T-001", "--status", "done")
    command = ("tasks", "export", "--format", "prd")
    for more, ids in (
        (("--tag", "x"), ["T-001", "T-003"]),
        (("--status", "pending"), ["T-002", "T-003"]),
        (("--status", "pending", "--tag", "x"), ["T-003"]),
    ):
        stories = json.loads(here(*command, *more).out)["userStories"]
        assert [found["id"] for found in stories] == ids


def test_what_a_second_list_says_of_itself_is_named(here: Here, workspace: Path) -> None:
    prd(workspace / "a.json", story("US-1"))
    prd(workspace / "b.json", story("US-1"))
    here("tasks", "import", "a.json")
    here("tasks", "import", "b.json")
    done = here("tasks", "export", "--format", "prd")
    assert done.err == "[ralph] prd cannot hold what b.json says of itself\n"
    assert [s["id"] for s in json.loads(done.out)["userStories"]] == ["US-1", "US-2"]
