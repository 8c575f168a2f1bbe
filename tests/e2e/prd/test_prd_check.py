"""`ralph prd check`: what is wrong with the stories, for people and for CI (R §5b)."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from prd_support import Json, approved, commit_all, git, story, write_stories
from run_support import Here, assert_clear

SNAPSHOT = {"US-001": {"passes": False, "reviewStatus": None, "reviewCount": 0}}


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], workspace: Path) -> Here:
    return Here(capsys)


def findings(here: Here, *flags: str) -> list[tuple[str, str | None, str]]:
    """Each finding's check, story and text."""
    done = here("prd", "check", "--json", *flags)
    (said,) = done.objects
    assert done.code == (0 if said["ok"] else 1)
    assert said["ok"] is not bool(said["findings"])
    return [(f["check"], f["story"], f["text"]) for f in said["findings"]]


def mark(project: Path, **fields: Any) -> None:  # noqa: ANN401
    """The marker of a run, as R §3 has it."""
    marker = {"pid": 1, "max_iterations": 15, "mode": "direct", **fields}
    (project / ".ralph-active").write_text(json.dumps(marker))


def test_what_is_right_is_counted(here: Here, workspace: Path) -> None:
    sent_back = {"reviewStatus": "changes_requested", "reviewFeedback": "no test", "reviewCount": 1}
    waiting = story(2, reviewStatus="needs_review")
    write_stories(workspace, approved(1), waiting, story(3, **sent_back), story(4), story(5))
    done = here("prd", "check")
    assert (done.code, done.err) == (0, "")
    assert done.out == "5 stories: 1 approved, 1 to review, 1 to fix, 2 to do\n"
    (said,) = here("prd", "check", "--json").objects
    counts = {"approved": 1, "passed": 0, "to_review": 1, "to_fix": 1, "to_do": 2}
    assert said == {"ok": True, "findings": [], "stories": {"total": 5, **counts}}


CASES: list[tuple[str, Json, tuple[str, str]]] = [
    ("a field of another kind", story(passes="yes"), ("1", "'passes' must be true or false")),
    ("true is no count", story(reviewCount=True), ("1", "'reviewCount' must be an integer")),
    ("no criteria", story(acceptanceCriteria=[]), ("1", "at least one criterion")),
    ("passes without notes", approved(notes=""), ("1", "'notes' are empty")),
    ("passes, never reviewed", story(passes=True, notes="n"), ("2", "not 'approved'")),
    ("approved, out of sync", approved(passes=False), ("2", "out of sync")),
    (
        "sent back without a word",
        story(reviewStatus="changes_requested", reviewCount=1),
        ("2", "feedback required"),
    ),
    ("more reviews than the cap allows", approved(reviews=7), ("2", "the review cap of 5")),
    ("no title", story(title=" "), ("title", "'title' is empty")),
    ("waits for a stranger", story(dependsOn=["US-9"]), ("dependencies", "names US-9")),
    ("waits for itself", story(dependsOn=["US-001"]), ("dependencies", "wait for each other")),
]


@pytest.mark.parametrize(("wrong", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_what_is_wrong_is_named(
    here: Here, workspace: Path, wrong: Json, expected: tuple[str, str]
) -> None:
    """R §5b, checks 1 and 2: "specific error describing which field/story is malformed"."""
    write_stories(workspace, wrong)
    found = findings(here)
    check, words = expected
    assert any((c, s) == (check, "US-001") and words in text for c, s, text in found), found
    plain = here("prd", "check")
    assert plain.code == 1
    assert plain.out.splitlines() == [text for _, _, text in found]


def test_a_circle_is_named_whole(here: Here, workspace: Path) -> None:
    circle = [story(1, dependsOn=["US-002"]), story(2, dependsOn=["US-001"])]
    write_stories(workspace, *circle)
    ((check, _, text),) = findings(here)
    assert check == "dependencies"
    assert "US-001 → US-002 → US-001" in text


def test_a_story_that_is_done_waits_for_nobody(here: Here, workspace: Path) -> None:
    write_stories(workspace, approved(1, dependsOn=["US-002"]), story(2, dependsOn=["US-001"]))
    assert findings(here) == []


def test_an_empty_list_is_a_finding(here: Here, workspace: Path) -> None:
    write_stories(workspace)
    assert [f[0] for f in findings(here)] == ["empty"]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"{", "not valid JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[]", "must hold a JSON object"),
        (b"{}", "'userStories' must be an array"),
        (None, "cannot be read: No such file"),
        ("link", "symbolic link"),
    ],
)
def test_a_list_that_is_none(
    here: Here, workspace: Path, raw: bytes | str | None, words: str
) -> None:
    """R §5b, check 1: "File exists and is valid JSON"."""
    tasks = write_stories(workspace) / "tasks.json"
    tasks.unlink()
    if isinstance(raw, bytes):
        tasks.write_bytes(raw)
    elif raw is not None:
        tasks.symlink_to("prd.md")
    found = findings(here)
    assert any(check == "1" and words in text for check, _, text in found), found


@pytest.mark.parametrize("name", ["prompt.md", "prd.md"])
@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (None, "is missing"),
        (b" \n", "is empty"),
        (b"a\0b", "NUL byte"),
        (b"\xff", "not UTF-8"),
        ("folder", "Is a directory"),
    ],
)
def test_a_text_that_is_none(
    here: Here, workspace: Path, name: str, raw: bytes | str | None, words: str
) -> None:
    path = write_stories(workspace, story()) / name
    path.unlink()
    if isinstance(raw, bytes):
        path.write_bytes(raw)
    elif raw is not None:
        path.mkdir()
    ((check, one, text),) = findings(here)
    assert (check, one) == (name.removesuffix(".md"), None)
    assert text.startswith(f"ralph/{name}: ")
    assert words in text


def test_without_a_folder(here: Here, workspace: Path) -> None:
    assert_clear(here("prd", "check"), 2, "./ralph is not there", "ralph prd init")
    (workspace / "ralph").write_text("")
    assert_clear(here("prd", "check"), 2, "./ralph is not a folder")
    (said,) = here("prd", "check", "--json").objects
    assert said["type"] == "error"


def test_another_folder_of_another_project(here: Here, workspace: Path) -> None:
    write_stories(workspace, story()).rename(workspace / "plan")
    os.chdir("/")
    assert findings(here, "-d", str(workspace), "--ralph-dir", "plan") == []
    assert findings(here, "--ralph-dir", str(workspace / "plan")) == []


def test_the_cap_and_the_lack_of_reviews_can_be_said(here: Here, workspace: Path) -> None:
    write_stories(workspace, approved(reviews=7))
    assert findings(here, "--review-cap", "7") == []
    for given in ("0", "-1", "x"):
        assert_clear(here("prd", "check", "--review-cap", given), 2, "--review-cap")
    write_stories(workspace, story(passes=True, notes="n"))
    assert findings(here, "--skip-review") == []
    assert here("prd", "check", "--skip-review").out == "1 story: 1 passed\n"


# ------------------------------------------------------------------ while a run is on


def test_what_a_turn_may_not_have_done(here: Here, workspace: Path) -> None:
    """R §5b, check 2.5: an implement turn that approves its own story."""
    write_stories(workspace, approved(1, reviews=0))
    assert findings(here) == []
    mark(workspace, iterationMode="implement", preIterationSnapshot=SNAPSHOT)
    found = findings(here)
    assert {check for check, _, _ in found} == {"2.5"}
    assert "Only review iterations may approve" in found[0][2]


@pytest.mark.parametrize(
    ("fields", "checks"),
    [
        ({"preIterationSnapshot": SNAPSHOT, "iterationMode": "implement"}, []),
        ({"preIterationSnapshot": {}, "iterationMode": "implement"}, ["2.5"]),
        ({"preIterationSnapshot": {"US-9": {}}, "iterationMode": "implement"}, ["2.5", "2.5"]),
        ({"iterationMode": "implement"}, []),
        ({"preIterationSnapshot": SNAPSHOT, "iterationMode": "dance"}, []),
        ({"preIterationSnapshot": {"US-001": 1}, "iterationMode": "implement"}, []),
        ({"preIterationSnapshot": {}, "iterationMode": "review", "skipReview": True}, []),
    ],
)
def test_the_snapshot_of_a_run(
    here: Here, workspace: Path, fields: Json, checks: list[str]
) -> None:
    """Snapshot missing: 2.5 is skipped with a warning on stderr; `{}`: every story is new."""
    write_stories(workspace, story(reviewStatus="needs_review"))
    mark(workspace, **fields)
    assert [check for check, _, _ in findings(here)] == checks
    is_whole = "preIterationSnapshot" in fields and fields["iterationMode"] != "dance"
    is_whole = is_whole and fields["preIterationSnapshot"] != {"US-001": 1}
    assert ("is not checked" in here("prd", "check").err) is not is_whole


def test_a_run_of_other_stories_says_nothing_about_these(here: Here, workspace: Path) -> None:
    write_stories(workspace, approved(1))
    for folder, checks in (("plan", []), ("ralph", ["2.5"]), ("./ralph/", ["2.5"])):
        mark(workspace, iterationMode="review", preIterationSnapshot={}, ralphDir=folder)
        assert sorted({check for check, _, _ in findings(here)}) == checks


def test_a_folder_that_is_reached_by_a_link(here: Here, workspace: Path) -> None:
    """A run names its folder as it is; people name it as they see it."""
    write_stories(workspace, story(1, reviewStatus="approved", passes=True, reviewCount=1))
    (workspace / "docs").mkdir()
    (workspace / "ralph").rename(workspace / "docs" / "ralph")
    (workspace / "ralph").symlink_to("docs/ralph")
    mark(workspace, iterationMode="implement", preIterationSnapshot={}, ralphDir="docs/ralph")
    assert here("prd", "check").code == 1


def test_the_cap_of_a_run(here: Here, workspace: Path) -> None:
    write_stories(workspace, approved(reviews=7))
    mark(workspace, reviewCap=7)
    assert findings(here) == []
    for cap in (True, "7", 0):
        mark(workspace, reviewCap=cap)
        assert [check for check, _, _ in findings(here)] == ["2"]


def test_what_is_not_committed_counts_only_while_a_run_is_on(here: Here, repo: Path) -> None:
    """R §5b, check 3; a person who is still writing may commit later."""
    write_stories(repo, story())
    (repo / ".gitignore").write_text(".ralph-active\n")
    assert findings(here) == []
    mark(repo)
    ((check, one, text),) = findings(here)
    assert (check, one) == ("3", None)
    assert "Not committed: " in text
    assert "ralph/" in text
    commit_all(repo)
    assert findings(here) == []


def test_a_marker_left_behind_is_told(here: Here, repo: Path) -> None:
    write_stories(repo, story())
    mark(repo)
    git(repo, "add", "ralph")
    git(repo, "commit", "--quiet", "--message", "Plan")
    done = here("prd", "check")
    assert done.code == 0
    assert ".ralph-active is there, but no run is on" in done.err


@pytest.mark.parametrize("raw", ["{", "[]", "link"])
def test_a_marker_that_is_none_is_left_out(here: Here, workspace: Path, raw: str) -> None:
    write_stories(workspace, story())
    if raw == "link":
        (workspace / ".ralph-active").symlink_to("ralph/tasks.json")
    else:
        (workspace / ".ralph-active").write_text(raw)
    done = here("prd", "check")
    assert done.code == 0
    assert ".ralph-active" in done.err


def test_words_of_an_agent_stay_on_one_line(here: Here, workspace: Path) -> None:
    write_stories(workspace, story(dependsOn=["x\n\x1b[31mUS-9"]))
    done = here("prd", "check")
    assert len(done.out.splitlines()) == 1
    assert "\x1b" not in done.out
