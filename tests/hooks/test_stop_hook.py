"""`ralph hook stop`: an agent is held until its list is legal and its work committed (R §5b)."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from hook_support import (
    RALPH,
    Json,
    begin,
    commit,
    event,
    fields,
    listing,
    marker,
    reason,
    run,
    story,
)

NEEDS, CHANGES, APPROVED = "needs_review", "changes_requested", "approved"


def after(project: Path, mark: Json, *stories: Json) -> str:
    begin(project, mark, listing(*stories))
    return reason(project)


# ------------------------------------------------------------------ R's verification plan


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"passes": True}, "not 'approved'"),
        ({"passes": True, "reviewStatus": NEEDS}, "not 'approved'"),
        ({"passes": True, "reviewStatus": CHANGES, "reviewFeedback": "x"}, "not 'approved'"),
        ({"passes": True, "reviewStatus": APPROVED, "reviewCount": 1}, ""),
        ({"reviewStatus": CHANGES}, "feedback required"),
        ({"reviewStatus": APPROVED}, "out of sync"),
        ({"reviewCount": -1}, "must be an integer from 0 on, not -1"),
        ({"reviewCount": True}, "must be an integer from 0 on, not true"),
    ],
)
def test_check_2_holds_what_contradicts_itself(repo: Path, changes: Json, words: str) -> None:
    """R §Verification 3, "Review integrity enforcement tests"; no transition is judged here."""
    now = story(**changes)
    same = {name: now[name] for name in ("passes", "reviewStatus", "reviewCount")}
    said = after(repo, marker(preIterationSnapshot={"US-001": same}), now)
    assert words in said
    assert bool(said) is bool(words)


REVIEWED: Json = {"reviewStatus": APPROVED, "passes": True}
TRANSITIONS = [
    ("implement", {}, {"passes": True}, "Implement iterations cannot set passes=true"),
    ("implement", {}, REVIEWED, "Only review iterations may approve"),
    ("implement", {}, {"reviewCount": 1}, "cannot increment reviewCount"),
    ("implement", {}, {"reviewStatus": NEEDS}, ""),
    ("implement", {}, {}, ""),
    (
        "review",
        {"reviewStatus": NEEDS, "reviewCount": 1},
        {**REVIEWED, "reviewCount": 2},
        "",
    ),
    (
        "review",
        {"reviewStatus": NEEDS, "reviewCount": 1},
        {"reviewStatus": CHANGES, "reviewCount": 2, "reviewFeedback": "Fix a.py."},
        "",
    ),
    (
        "review",
        {"reviewStatus": NEEDS, "reviewCount": 1},
        {**REVIEWED, "reviewCount": 1},
        "review must increment reviewCount",
    ),
    ("review", {"reviewStatus": NEEDS}, {"reviewStatus": NEEDS}, "no story was reviewed"),
    ("review", {}, {**REVIEWED, "reviewCount": 1}, "can be reviewed, not null"),
    (
        "review-fix",
        {"reviewStatus": CHANGES, "reviewCount": 1},
        {**REVIEWED, "reviewCount": 1},
        "Review-fix iterations cannot approve",
    ),
    (
        "review-fix",
        {"reviewStatus": CHANGES, "reviewCount": 1},
        {"reviewStatus": NEEDS, "reviewCount": 1},
        "",
    ),
    (
        "review-fix",
        {"reviewStatus": CHANGES, "reviewCount": 1},
        {"reviewStatus": NEEDS, "reviewCount": 2},
        "cannot increment reviewCount",
    ),
    (
        "review-fix",
        {"reviewStatus": CHANGES, "reviewCount": 1},
        {"reviewStatus": NEEDS, "reviewCount": 1, "reviewFeedback": "old"},
        "clear its reviewFeedback",
    ),
]


@pytest.mark.parametrize(("mode", "before", "now", "words"), TRANSITIONS)
def test_check_25_holds_what_the_mode_does_not_allow(
    repo: Path, mode: str, before: Json, now: Json, words: str
) -> None:
    """R §Verification 3, "Transition validation tests (Check 2.5)"."""
    mark = marker(iterationMode=mode, preIterationSnapshot={"US-001": fields(**before)})
    said = after(repo, mark, story(**now))
    assert words in said
    assert bool(said) is bool(words)


def test_a_review_is_of_one_story(repo: Path) -> None:
    """R: "TWO stories' review fields changed → should block"."""
    before = fields(reviewStatus=NEEDS)
    mark = marker(iterationMode="review", preIterationSnapshot={"A": before, "B": before})
    done = {**REVIEWED, "reviewCount": 1}
    assert "may only modify one story" in after(repo, mark, story("A", **done), story("B", **done))


@pytest.mark.parametrize(
    ("born", "words"),
    [
        ({}, ""),
        ({"passes": True}, "new stories must start incomplete"),
        ({**REVIEWED, "reviewCount": 1}, "new stories must start incomplete"),
    ],
)
def test_new_stories_start_incomplete(repo: Path, born: Json, words: str) -> None:
    said = after(repo, marker(), story(), story("US-002", **born))
    assert words in said
    assert bool(said) is bool(words)


def test_a_deleted_story_is_missed(repo: Path) -> None:
    mark = marker(preIterationSnapshot={"US-001": fields(), "US-002": fields()})
    assert "Story US-002 was deleted" in after(repo, mark, story())


@pytest.mark.parametrize("snapshot", [None, "x", [], {"US-001": 5}])
def test_without_a_snapshot_only_transitions_are_not_checked(
    repo: Path, snapshot: object, capfd: pytest.CaptureFixture[str]
) -> None:
    """R §5b: "Check 2.5 is skipped with a warning but Check 2 still runs"."""
    mark = marker(preIterationSnapshot=snapshot)
    assert after(repo, mark, story(**REVIEWED, reviewCount=1)) == ""
    assert "warning: what this turn changed is not checked" in capfd.readouterr().err
    assert "not 'approved'" in after(repo, mark, story(passes=True))


@pytest.mark.parametrize("mode", [None, "other", 5, []])
def test_without_a_known_mode_only_transitions_are_not_checked(
    repo: Path, mode: object, capfd: pytest.CaptureFixture[str]
) -> None:
    assert after(repo, marker(iterationMode=mode), story(reviewCount=1)) == ""
    assert "no iterationMode" in capfd.readouterr().err


def test_after_an_empty_snapshot_every_story_is_new(repo: Path) -> None:
    mark = marker(preIterationSnapshot={})
    assert after(repo, mark, story()) == ""
    assert "is new" in after(repo, mark, story(**REVIEWED, reviewCount=1))


def test_skip_review_leaves_the_schema_only(repo: Path) -> None:
    """R: "Check 2 and 2.5 should be skipped entirely"."""
    assert after(repo, marker(skipReview=True), story(passes=True)) == ""
    assert "'notes' are empty" in after(repo, marker(skipReview=True), story(passes=True, notes=""))
    assert "not 'approved'" in after(repo, marker(skipReview="true"), story(passes=True))


@pytest.mark.parametrize(
    ("cap", "count", "holds"), [(1, 3, True), (9, 9, False), (0, 9, True), (True, 7, True)]
)
def test_the_review_cap_is_the_markers(repo: Path, cap: object, count: int, holds: bool) -> None:
    """R §5b: reviewCount "must not exceed the configured review cap + 1"; nonsense is 5."""
    mark = marker(reviewCap=cap, preIterationSnapshot=None)
    assert ("review cap" in after(repo, mark, story(reviewCount=count))) is holds


# ------------------------------------------------------------------ check 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b"[]", "must hold a JSON object"),
        (b'{"userStories": [NaN]}', "NaN is not a number"),
        (b'{"userStories": [{"id": "NaN"}]}', "Story NaN: 'title' is missing"),
        (b'\xef\xbb\xbf{"userStories": 1}', "'userStories' must be an array"),
        (b"{}", "'userStories' must be an array"),
        (b"[" * 100_000, "nested too deeply"),
        (json.dumps(listing(story(), story())).encode(), "ids must be unique"),
        (json.dumps(listing(story(acceptanceCriteria=[]))).encode(), "at least one criterion"),
        (json.dumps(listing(story(title=5))).encode(), "Story US-001: 'title' must be a string"),
    ],
)
def test_check_1_names_what_is_malformed(repo: Path, content: bytes, words: str) -> None:
    """R §5b: "block with specific error describing which field/story is malformed"."""
    begin(repo)
    (repo / "ralph" / "tasks.json").write_bytes(content)
    commit(repo)
    assert words in reason(repo)


def test_a_list_that_is_gone_or_no_file_holds(repo: Path) -> None:
    begin(repo)
    tasks = repo / "ralph" / "tasks.json"
    tasks.rename(repo / "ralph" / "other.json")
    assert "No such file" in reason(repo)
    tasks.symlink_to("other.json")
    assert "it is a symbolic link" in reason(repo)
    tasks.unlink()
    os.mkfifo(tasks)
    assert "it is not a file" in reason(repo)
    tasks.unlink()
    tasks.mkdir()
    assert "it is not a file" in reason(repo)


def test_many_problems_are_told_in_one_reason_and_then_counted(repo: Path) -> None:
    said = after(repo, marker(), *(story(f"S{number}", title=5) for number in range(30)))
    assert said.count("'title' must be") == 20
    assert "and 11 more" in said, "and US-001 was deleted"


def test_the_list_may_lie_elsewhere(repo: Path) -> None:
    begin(repo, marker(ralphDir="plans/one"))
    assert "Put plans/one/tasks.json right" in reason(repo)
    (repo / "plans").mkdir()
    (repo / "ralph").rename(repo / "plans" / "one")
    commit(repo)
    assert reason(repo) == ""
    for nonsense in (5, "", "a\0b"):
        (repo / ".ralph-active").write_text(json.dumps(marker(ralphDir=nonsense)))
        assert "Put ralph/tasks.json right" in reason(repo)


def test_a_long_list_is_read_as_the_host_reads_it(repo: Path) -> None:
    """One limit: what the host takes must not hold every stop."""
    begin(repo, tasks=listing(story(notes="x" * (17 << 20))))
    assert reason(repo) == ""


# ------------------------------------------------------------------ check 3


def test_uncommitted_changes_hold_and_ralphs_own_files_do_not(repo: Path) -> None:
    """R §5b, check 3: three steps; `.ralph-active` need not be ignored by git."""
    begin(repo)
    (repo / ".gitignore").unlink()
    commit(repo)
    (repo / ".ralph").mkdir()
    (repo / ".ralph" / "x").touch()
    (repo / ".ralph-active").write_text(json.dumps(marker()))
    assert reason(repo) == ""
    (repo / "new file").touch()
    (repo / "README.md").write_text("changed")
    said = reason(repo)
    assert "uncommitted changes: README.md, new file." in said
    (repo / ".ralph-active").write_text(json.dumps(marker(hostCommits=True)))
    assert reason(repo) == "", "where the agent cannot commit, nobody asks it to"
    (repo / ".ralph-active").write_text(json.dumps(marker(leftAlone=["new file"])))
    assert "uncommitted changes: README.md." in reason(repo), "what a person left is the person's"
    for step in ("1. Add to ralph/progress.txt", "2. Consider", "CLAUDE.md", "3. Commit ALL"):
        assert step in said


def test_everything_is_told_at_once(repo: Path) -> None:
    begin(repo, None, listing(story(passes=True)))
    (repo / "new").touch()
    said = reason(repo)
    assert "not 'approved'" in said
    assert "uncommitted changes: new." in said


def test_without_a_repository_or_git_the_rest_is_checked(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ralph").mkdir()
    (tmp_path / "ralph" / "tasks.json").write_text(json.dumps(listing(story())))
    (tmp_path / ".ralph-active").write_text(json.dumps(marker()))
    assert reason(tmp_path) == ""
    assert "not looked for: it is no repository" in capfd.readouterr().err
    done = run((*RALPH, "stop"), event(tmp_path), tmp_path, PATH="/nowhere")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"git does not start: No such file" in done.stderr


def test_looking_takes_no_lock(repo: Path) -> None:
    """A commit beside us must not fail because a hook looked."""
    begin(repo)
    os.utime(repo / "README.md", (1, 1))  # git would like to write that down
    before = (repo / ".git" / "index").read_bytes()
    assert reason(repo) == ""
    assert (repo / ".git" / "index").read_bytes() == before
    assert not (repo / ".git" / "index.lock").exists()
    subprocess.run(["git", "fsck", "--no-progress"], cwd=repo, check=True, capture_output=True)
