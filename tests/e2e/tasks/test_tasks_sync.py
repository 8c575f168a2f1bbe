"""`ralph tasks sync`: "a two-way conflict is reported, never overwritten"."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from list_support import closed, has, hub, open_issue, prd, story
from run_support import Here, assert_clear

from kits.forge import FakeForge, Issue

__all__ = ["hub"]


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], workspace: Path) -> Here:
    return Here(capsys)


def test_a_file_is_told_what_is_done(here: Here, workspace: Path) -> None:
    text = prd(workspace / "prd.json", story("US-1"), story("US-2"))
    here("tasks", "import", "prd.json")
    here("tasks", "edit", "US-1", "--status", "done")
    dry = here("tasks", "sync", "--dry-run")
    assert dry.out == "1 to mark\n  + US-1: prd.json: US-1 is done\nNothing was written.\n"
    assert (workspace / "prd.json").read_text() == text
    assert here("tasks", "sync").out == "1 marked\n  + US-1: prd.json: US-1 is done\n"
    assert (workspace / "prd.json").read_text() == text.replace("false", "true", 1)
    assert here("tasks", "sync").out == "1 marked before\n"
    assert here("tasks", "import", "prd.json").out.splitlines() == [
        "prd.json (prd): 0 added, 0 updated, 2 unchanged"
    ]


def test_an_item_that_somebody_changed_is_left_alone(here: Here, workspace: Path) -> None:
    prd(workspace / "prd.json", story("US-1"))
    here("tasks", "import", "prd.json")
    here("tasks", "edit", "US-1", "--status", "done")
    text = prd(workspace / "prd.json", story("US-1", acceptanceCriteria=["It works", "fast"]))
    done = here("tasks", "sync")
    assert (done.code, done.out.splitlines()[0]) == (1, "1 in conflict")
    assert (workspace / "prd.json").read_text() == text
    assert json.loads(here("tasks", "sync", "--json").out)[0]["how"] == "conflict"


def test_who_opens_an_item_again_is_heard(here: Here, workspace: Path) -> None:
    text = prd(workspace / "prd.json", story("US-1"))
    here("tasks", "import", "prd.json")
    here("tasks", "edit", "US-1", "--status", "done")
    here("tasks", "sync")
    (workspace / "prd.json").write_text(text)
    done = here("tasks", "sync")
    assert (done.code, "opened again" in done.out) == (1, True)
    assert (workspace / "prd.json").read_text() == text


def test_nothing_to_tell(here: Here) -> None:
    here("tasks", "add", "One")
    here("tasks", "edit", "T-001", "--status", "done")
    done = here("tasks", "sync")
    assert (done.code, done.out) == (
        0,
        "Nothing to tell: no task that is done came from a list.\n",
    )


def test_an_agent_tells_nobody(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RALPH_RUN", "20260131-120000-abcd")
    assert_clear(here("tasks", "sync"), 2, "an agent may not tell other lists what is done")


# ------------------------------------------------------------------ issues


def test_an_issue_is_closed_with_the_evidence(here: Here, hub: FakeForge) -> None:
    """As a comment, once it works again."""
    has(hub, open_issue(2), open_issue(1))
    here("tasks", "import", "github:some/where", "--state", "all")
    here("tasks", "edit", "T-001", "--status", "done")
    hub.trouble(status=403, body={"message": "no"})
    done = here("tasks", "sync")
    words = "GitHub refuses GET /repos/some/where/issues/2: no. The token needs"
    assert (done.code, done.out[:8]) == (1, "1 failed")
    assert f"  ! T-001: github:some/where#2: {words}" in done.out
    done = here("tasks", "sync")
    assert (done.code, done.out) == (
        0,
        "1 marked\n  + T-001: github:some/where#2 is closed\n",
    )
    one, two = hub.issue(1), hub.issue(2)
    assert (one.state, two.state, two.reason) == ("open", "closed", "completed")
    assert two.comments == ["Done by ralph: T-001: Issue 2"]
    assert here("tasks", "sync").out == "1 marked before\n"
    assert len(closed(hub)) == 1


def test_a_comment_is_made_once_although_closing_failed(here: Here, hub: FakeForge) -> None:
    has(hub, open_issue(1))
    here("tasks", "import", "github:some/where")
    here("tasks", "edit", "T-001", "--status", "done")
    hub.trouble("PATCH", status=403)
    assert here("tasks", "sync").code == 1
    assert here("tasks", "sync").code == 0
    assert (hub.issue(1).state, len(hub.issue(1).comments)) == ("closed", 1)


@pytest.mark.parametrize(
    ("now", "code", "words"),
    [
        (open_issue(1, state="closed"), 0, "1 marked before"),
        (open_issue(1, body="Other"), 1, "1 in conflict"),
        (open_issue(1, title="Other"), 1, "1 in conflict"),
        (open_issue(2), 1, "1 failed"),
        (open_issue(1, labels=["new"]), 0, "1 marked"),
    ],
)
def test_an_issue_that_is_another_by_now(
    here: Here, hub: FakeForge, now: Issue, code: int, words: str
) -> None:
    has(hub, open_issue(1))
    here("tasks", "import", "github:some/where")
    here("tasks", "edit", "T-001", "--status", "done")
    has(hub, replace(now))
    done = here("tasks", "sync")
    assert (done.code, done.out.splitlines()[0]) == (code, words)
    assert len(closed(hub)) == (words == "1 marked")


def test_who_is_not_there_is_asked_once_for_all_issues(here: Here, hub: FakeForge) -> None:
    """Each would wait as long, and for nothing."""
    has(hub, *map(open_issue, range(1, 9)))
    here("tasks", "import", "github:some/where")
    for number in range(1, 9):
        here("tasks", "edit", f"T-00{number}", "--status", "done")
    hub.requests.clear()
    hub.trouble(status=429, headers={"Retry-After": "600"}, times=99)
    done = here("tasks", "sync")
    assert (done.code, done.out.splitlines()[0]) == (1, "8 failed")
    assert done.out.count("GitHub asks to wait for 10m: trouble") == 8
    assert len(hub.requests) == 1


def test_without_a_token_it_is_told(
    here: Here, hub: FakeForge, monkeypatch: pytest.MonkeyPatch
) -> None:
    has(hub, open_issue(1))
    here("tasks", "import", "github:some/where")
    here("tasks", "edit", "T-001", "--status", "done")
    monkeypatch.delenv("GITHUB_TOKEN")
    hub.public = True
    done = here("tasks", "sync")
    assert (done.code, "does not let in anybody without a token" in done.out) == (1, True)
    assert hub.issue(1).state == "open"
