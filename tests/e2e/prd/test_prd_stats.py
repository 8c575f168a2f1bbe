"""`ralph prd stats`: the reviews of each story, and what they caught (R §8, plan 11)."""

import json
import os
import time
from pathlib import Path

import pytest
from prd_support import approved, story, write_stories
from run_support import Here, assert_clear

from ralph.files.state_dir import project_dir
from ralph.journal.journal import FileJournal
from ralph.kernel.facts import Fact, Started, Step
from ralph.loops.stories.review_report import HOW_TO_READ

SENTENCE = (
    "2 of 3 stories done; 7 reviews, 3.5 a story; 0 approved by the first review, 1 at the cap."
)
CAP = "[AUTO-APPROVED AT CAP]"


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], workspace: Path) -> Here:
    return Here(capsys)


def journal(workspace: Path, run: str, *facts: Fact, profile: str = "reviewed") -> Path:
    """The journal of a run here that told these facts."""
    state = project_dir(os.environ["RALPH_STATE_DIR"], str(workspace))
    directory = Path(state) / "runs" / run
    directory.mkdir(parents=True)
    written = FileJournal(str(directory / "journal.jsonl"))
    written.record(Started(1.0, run, profile, str(workspace), 1, "0"))
    for fact in facts:
        written.record(fact)
    written.close()
    return directory / "journal.jsonl"


def review(name: str, outcome: str, count: int, feedback: str = "", at: float = 2.0) -> Step:
    """A legal review, as a run records it."""
    told = {"story": name, "outcome": outcome, "count": count, "feedback": feedback}
    return Step(at, "review", detail=json.dumps({**told, "list": "ralph/login"}))


def caught(here: Here) -> list[list[str]]:
    (said,) = here("prd", "stats", "--json").objects
    return [[found["text"] for found in one["caught"]] for one in said["stories"]]


def test_reviews_and_what_they_caught(here: Here, workspace: Path) -> None:
    last = approved(2, reviews=5, reviewFeedback=f"{CAP} still slow")
    write_stories(workspace, approved(1, reviews=2), last, story(3))
    journal(workspace, "1", review("US-001", "changes_requested", 1, "no test\nfor zero"))
    journal(workspace, "2", review("US-001", "approved", 2))
    done = here("prd", "stats")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "STORY   REVIEWS  OUTCOME              TITLE",
        "US-001        2  approved             Story 1",
        "US-002        5  approved at the cap  Story 2",
        "US-003        0  to do                Story 3",
        "",
        SENTENCE,
        "The stories count 7 reviews, the journals here 2.",
        "",
        "What reviews caught:",
        "  US-001, review 1: no test for zero",
        "  US-002, review 5: still slow",
        "",
        HOW_TO_READ,
    ]


def test_the_same_for_programs(here: Here, workspace: Path) -> None:
    write_stories(workspace, approved(1), story(2))
    journal(workspace, "1", review("US-001", "approved", 1))
    (said,) = here("prd", "stats", "--json").objects
    assert said["stories"][0] == {
        "id": "US-001",
        "title": "Story 1",
        "reviews": 1,
        "recorded": 1,
        "outcome": "approved",
        "done": True,
        "cap_hit": False,
        "caught": [],
    }
    totals = {name: number for name, number in said.items() if name != "stories"}
    counts = {"total": 2, "done": 1, "reviews": 1, "recorded": 1}
    assert totals == {**counts, "average": 1.0, "first_time": 1, "cap_hits": 0}


def test_before_the_first_review(here: Here, workspace: Path) -> None:
    write_stories(workspace, story(1))
    assert here("prd", "stats").out.splitlines()[-1] == "0 of 1 story done, no reviews yet."
    write_stories(workspace)
    assert "There are no stories yet" in here("prd", "stats").out


def test_only_reviews_of_this_list_count(here: Here, workspace: Path) -> None:
    write_stories(workspace, approved(1, reviews=2))
    other = {
        "story": "US-001",
        "outcome": "changes_requested",
        "count": 1,
        "feedback": "other list",
    }
    journal(
        workspace,
        "1",
        Step(2.0, "review", detail=json.dumps({**other, "list": "ralph/other"})),
        Step(2.0, "commit", detail=json.dumps({**other, "list": "ralph/login"})),
        Step(2.0, "review", detail="nonsense"),
    )
    journal(workspace, "2", review("US-001", "changes_requested", 1, "loop"), profile="tasks")
    assert caught(here) == [[]]


@pytest.mark.parametrize("says_when", [True, False])
def test_only_reviews_since_the_last_archive_count(
    here: Here, workspace: Path, *, says_when: bool
) -> None:
    """A checkout makes files look new: what a summary says comes before the file's time."""
    write_stories(workspace, approved(1, reviews=2))
    now = time.time()
    journal(workspace, "1", review("US-001", "changes_requested", 1, "old", now - 200))
    journal(workspace, "2", review("US-001", "changes_requested", 2, "new", now))
    summary = workspace / "ralph-archive" / "2026-11-01-a" / "summary.md"
    summary.parent.mkdir(parents=True)
    when = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(now - 100))
    summary.write_text(f"# A\n\nArchived: {when}\n" if says_when else "# A\n")
    os.utime(summary, (now + 100, now + 100) if says_when else (now - 100, now - 100))
    assert caught(here) == [["new"]]


def test_a_journal_that_was_edited_tells_what_stands_before(here: Here, workspace: Path) -> None:
    write_stories(workspace, approved(1, reviews=2))
    path = journal(
        workspace,
        "1",
        review("US-001", "changes_requested", 1, "true"),
        review("US-001", "changes_requested", 2, "false"),
    )
    path.write_text(path.read_text().replace('\\"false\\"', '\\"forged\\"'))
    assert caught(here) == [["true"]]


def test_words_of_an_agent_are_shown_safely(here: Here, workspace: Path) -> None:
    shouting = "\x1b[31mred\x07 " + "x" * 1000
    wrong = {"reviewStatus": "changes_requested", "reviewCount": 1, "reviewFeedback": shouting}
    write_stories(workspace, story(1, title="a\nb", **wrong))
    said = here("prd", "stats").out
    assert "\x1b" not in said
    assert "a b" in said
    assert max(map(len, said.splitlines())) < 600


def test_without_a_list(here: Here, workspace: Path) -> None:
    assert_clear(here("prd", "stats"), 2, "ralph prd init")
    (write_stories(workspace) / "tasks.json").write_text("{")
    assert_clear(
        here("prd", "stats"), 2, "ralph/tasks.json: it is not valid JSON", "ralph prd check"
    )
    (workspace / "ralph" / "tasks.json").write_text("{}")
    assert_clear(here("prd", "stats"), 2, "no list of stories", "ralph prd check")
