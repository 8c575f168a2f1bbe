"""`ralph tasks sync`: "a two-way conflict is reported, never overwritten"."""

import json
from pathlib import Path

import pytest
from list_support import FakeGh, issue, prd, story
from run_support import Here, assert_clear


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], workspace: Path) -> Here:
    return Here(capsys)


@pytest.fixture
def gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGh:
    return FakeGh(tmp_path / "github", monkeypatch)


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


def test_an_issue_is_closed_with_the_evidence(here: Here, gh: FakeGh) -> None:
    """ "`gh issue close` with the evidence as a comment", once it works again."""
    gh.has(issue(1), issue(2))
    here("tasks", "import", "github:some/where")
    here("tasks", "edit", "T-001", "--status", "done")
    gh.breaks()
    done = here("tasks", "sync")
    words = "gh failed (1): error connecting to api.github.com"
    assert (done.code, done.out) == (1, f"1 failed\n  ! T-001: github:some/where#1: {words}\n")
    gh.works()
    done = here("tasks", "sync")
    assert (done.code, done.out) == (
        0,
        "1 marked\n  + T-001: github:some/where#1 is closed\n",
    )
    assert (gh.issue(1)["state"], gh.issue(2)["state"]) == ("CLOSED", "OPEN")
    asked = ["issue", "close", "1", "--repo=some/where"]
    assert gh.asked("close") == [[*asked, "--comment=Done by ralph: T-001: Issue 1"]]
    assert here("tasks", "sync").out == "1 marked before\n"
    assert len(gh.asked("close")) == 1


@pytest.mark.parametrize(
    ("now", "code", "words"),
    [
        (issue(1, state="CLOSED"), 0, "1 marked before"),
        (issue(1, body="Other"), 1, "1 in conflict"),
        (issue(1, title="Other"), 1, "1 in conflict"),
        (issue(2), 1, "1 failed"),
        (issue(1, labels=[{"name": "new"}]), 0, "1 marked"),
    ],
)
def test_an_issue_that_is_another_by_now(
    here: Here, gh: FakeGh, now: dict[str, object], code: int, words: str
) -> None:
    gh.has(issue(1))
    here("tasks", "import", "github:some/where")
    here("tasks", "edit", "T-001", "--status", "done")
    gh.has(now)
    done = here("tasks", "sync")
    assert (done.code, done.out.splitlines()[0]) == (code, words)
    assert len(gh.asked("close")) == (words == "1 marked")


def test_without_gh_it_is_told(
    here: Here, gh: FakeGh, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gh.has(issue(1))
    here("tasks", "import", "github:some/where")
    here("tasks", "edit", "T-001", "--status", "done")
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert_clear(here("tasks", "import", "github:some/where"), 2, "gh")
    done = here("tasks", "sync")
    assert (done.code, "gh failed (127)" in done.out) == (1, True)
