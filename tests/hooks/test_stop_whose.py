"""`ralph hook stop`: whose stop it is, and how often one is held (R §5b)."""

import os
from pathlib import Path

import pytest
from hook_support import begin, event, listing, marker, reason, story

from ralph.hooks.stop import answer


def test_without_a_marker_everybody_may_stop(repo: Path) -> None:
    (repo / "new").touch()
    assert reason(repo) == ""


@pytest.mark.parametrize(
    ("own", "theirs", "holds"),
    [(None, "a", True), ("a", "a", True), ("a", "b", False), ("a", "", False), (5, "5", False)],
)
def test_a_marker_that_names_a_run_acts_only_there(
    repo: Path, monkeypatch: pytest.MonkeyPatch, own: object, theirs: str, holds: bool
) -> None:
    """ADR 20: a person's own session in the project is not the run's."""
    monkeypatch.setenv("RALPH_RUN", theirs)
    begin(repo, marker(run=own), listing(story(passes=True)))
    assert bool(reason(repo)) is holds


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 99_999])
def test_a_marker_that_cannot_be_read_lets_go_and_says_why(
    repo: Path, content: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    begin(repo, None, listing(story(passes=True)))
    (repo / ".ralph-active").write_bytes(content)
    assert reason(repo) == ""
    assert "the stop is not checked, because of" in capfd.readouterr().err


def test_a_marker_that_is_no_file_lets_go_and_says_why(
    repo: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    begin(repo, None, listing(story(passes=True)))
    place = repo / ".ralph-active"
    place.rename(repo / "real")
    place.symlink_to("real")
    assert reason(repo) == ""
    assert "it is a symbolic link" in capfd.readouterr().err
    place.unlink()
    os.mkfifo(place)
    assert reason(repo) == ""
    assert "it is not a file" in capfd.readouterr().err


def test_the_project_is_the_nearest_that_is_marked(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The issue's contract: "the project is the nearest parent of `cwd` with `.ralph-active`"."""
    begin(repo, None, listing(story(passes=True)))
    inner = repo / "src" / "deep"
    assert reason(inner), "a directory that is gone has parents too"
    assert reason(Path("relative")) == ""
    assert answer({}, dict(os.environ), str(inner)), "then the process has the say"
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(repo))
    assert reason(Path("/")), "the agent went elsewhere"


def test_helpers_of_a_session_may_stop(repo: Path) -> None:
    begin(repo, None, listing(story(passes=True)))
    assert reason(repo, hook_event_name="SubagentStop") == ""
    assert reason(repo, agent_id="a1") == ""


def test_a_stop_is_not_held_for_ever(repo: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """After eight holds in a row a host ends it and loses its answer (docs/facts.md §4)."""
    begin(repo, None, listing(story(passes=True)))
    assert reason(repo)
    holds = [bool(reason(repo, stop_hook_active=True)) for _ in range(6)]
    assert holds == [True] * 4 + [False] * 2
    assert "let go after 5 holds in a row" in capfd.readouterr().err
    assert reason(repo, stop_hook_active=True, session_id="s-2"), "each session has its own count"
    assert reason(repo), "and a stop that is the first one begins anew"
    assert reason(repo, stop_hook_active=True)


def test_a_stop_that_was_let_go_ends_the_count(repo: Path) -> None:
    for _ in range(4):
        begin(repo, None, listing(story(passes=True)))
        assert reason(repo, stop_hook_active=True)
        assert reason(repo, stop_hook_active=True)
        begin(repo)
        assert reason(repo, stop_hook_active=True) == ""


def test_a_host_without_session_ids_is_counted_by_project(repo: Path) -> None:
    begin(repo, None, listing(story(passes=True)))
    holds = [bool(reason(repo, session_id=None, stop_hook_active=True)) for _ in range(6)]
    assert holds == [True] * 5 + [False]


def test_what_cannot_be_counted_is_held_once(
    repo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    begin(repo, None, listing(story(passes=True)))
    (tmp_path / "file").touch()
    environ = {"PATH": os.environ["PATH"], "RALPH_STATE_DIR": str(tmp_path / "file")}
    environ["TMPDIR"] = environ["RALPH_STATE_DIR"]
    assert answer(event(repo), environ, "/")
    assert answer(event(repo, stop_hook_active=True), environ, "/") == ""
    assert "cannot be counted" in capfd.readouterr().err
