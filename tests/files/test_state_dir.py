"""Where Ralph keeps things (ADR 9), and where a prompt comes from (H §Loop Behavior)."""

import os
import pwd
import re
import stat
import subprocess
from pathlib import Path

import pytest

from ralph.errors import ConfigError, StateError
from ralph.files.state_dir import (
    PromptFile,
    ensure_ralph_dir,
    ensure_state_root,
    is_inside,
    make_run_dir,
    project_dir,
    prompt_text,
    ralph_dir_problem,
    shown_path,
    state_root,
    writable_dir,
    write_atomically,
)
from ralph.journal.run_id import new_run_id
from ralph.kernel.tasks.task import Backlog


def text_of(backlog: Backlog) -> str:
    assert backlog.problem is None
    return backlog.tasks[0].text


# ------------------------------------------------------------------ .ralph/


def test_the_gitignore_hides_all_but_what_git_keeps(repo: Path) -> None:
    """ "`*`, `!settings.json`, `!tasks.jsonl`, …, which hides itself too"."""
    directory = Path(ensure_ralph_dir(str(repo)))
    for name in ("settings.json", "settings.local.json", "guardrail_001_x.log", "tasks.jsonl"):
        (directory / name).write_text("x")
    status = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all"], check=True, capture_output=True
    )
    assert status.stdout.split() == [b"??", b".ralph/settings.json", b"??", b".ralph/tasks.jsonl"]


def test_a_gitignore_of_the_user_is_left_alone(workspace: Path) -> None:
    (workspace / ".ralph").mkdir()
    (workspace / ".ralph" / ".gitignore").write_text("mine")
    ensure_ralph_dir(str(workspace))
    assert (workspace / ".ralph" / ".gitignore").read_text() == "mine"


def test_a_ralph_directory_that_cannot_be_written_is_told_with_the_remedy(workspace: Path) -> None:
    assert ralph_dir_problem(str(workspace)) == ""
    blocked = workspace / "blocked"
    blocked.mkdir()
    (blocked / ".ralph").write_text("a file in the way")
    with pytest.raises(ConfigError, match=r"cannot write .*/\.ralph: File exists"):
        ensure_ralph_dir(str(blocked))
    assert "chmod u+w .ralph" in ralph_dir_problem(str(blocked))
    assert writable_dir(str(blocked), "/fallback") == "/fallback"
    assert writable_dir(str(workspace), "/fallback") == str(workspace / ".ralph")


def test_a_workspace_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        ensure_ralph_dir(str(tmp_path / "gone"))
    assert not (tmp_path / "gone").exists()


def test_paths_in_the_workspace_are_shown_as_people_write_them() -> None:
    assert shown_path("/ws/.ralph/x.log", "/ws") == ".ralph/x.log"
    assert shown_path("/ws-other/x.log", "/ws") == "/ws-other/x.log"


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(str(path), "new \ud800")
    assert path.read_text() == "old"
    write_atomically(str(path), "new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["file"]


# ------------------------------------------------------------------ the state directory


@pytest.mark.parametrize(
    ("environ", "root"),
    [
        ({"RALPH_STATE_DIR": "/a", "XDG_STATE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"XDG_STATE_HOME": "/b", "HOME": "/c"}, "/b/ralph"),
        ({"HOME": "/c"}, "/c/.local/state/ralph"),
        ({"RALPH_STATE_DIR": "", "XDG_STATE_HOME": "", "HOME": "/c"}, "/c/.local/state/ralph"),
    ],
)
def test_the_state_directory(environ: dict[str, str], root: str) -> None:
    assert state_root(environ) == root


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}])
def test_without_home_the_users_own_entry_decides(environ: dict[str, str]) -> None:
    home = pwd.getpwuid(os.getuid()).pw_dir
    assert state_root(environ) == f"{home}/.local/state/ralph"


def test_without_any_home_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user whom the system's list does not know, as in some containers."""
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    with pytest.raises(StateError, match="there is no home directory") as caught:
        state_root({})
    assert "RALPH_STATE_DIR" in caught.value.remedy


def test_a_relative_state_directory_is_where_it_was_named(workspace: Path) -> None:
    assert state_root({"RALPH_STATE_DIR": "here"}) == str(workspace / "here")


def test_a_project_is_its_name_and_a_hash_of_its_real_path(tmp_path: Path) -> None:
    """ "`<project> = basename-<8 hex of the real path>`"."""
    (tmp_path / "app").mkdir()
    (tmp_path / "link").symlink_to("app")
    directory = project_dir("/state", str(tmp_path / "app"))
    assert re.fullmatch(r"/state/app-[0-9a-f]{8}", directory)
    assert project_dir("/state", str(tmp_path / "link")) == directory
    assert project_dir("/state", str(tmp_path)) != directory
    assert re.fullmatch(r"/state/root-[0-9a-f]{8}", project_dir("/state", "/"))


def test_run_ids_sort_by_time_and_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{4}", new_run_id(n)) for n in (0.0, 1e9))
    assert new_run_id(1e9) < new_run_id(1e9 + 1)
    assert len({new_run_id(0.0) for _ in range(20)}) > 1


def test_a_run_directory_is_for_its_owner_only(tmp_path: Path) -> None:
    run = Path(make_run_dir(str(tmp_path), "run"))
    assert run == tmp_path / "runs" / "run"
    assert (run / "signals").is_dir()
    with pytest.raises(StateError, match="cannot write the state directory"):
        make_run_dir(str(tmp_path), "run")


# ------------------------------------------------------------------ prompts


def test_a_prompt_text_is_used_as_it_is() -> None:
    """H: "`--prompt` uses the value as-is"."""
    assert text_of(prompt_text("  do it\n\n")()) == "  do it\n\n"


def test_the_title_is_the_first_line() -> None:
    backlog = prompt_text(f"\n\n{'x' * 100}\nmore")()
    assert backlog.tasks[0].title == "x" * 80


def test_a_prompt_file_is_read_anew_each_time(workspace: Path) -> None:
    """H: "`--prompt-file` is re-read each iteration"."""
    (workspace / "p.md").write_text("one")
    prompt = PromptFile("p.md")
    assert text_of(prompt()) == "one"
    (workspace / "p.md").write_text("two")
    assert text_of(prompt()) == "two"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xef\xbb\xbfwith a mark", "with a mark"),
        (b"line\r\nends", "line\r\nends"),
        ("Grüße 😀".encode(), "Grüße 😀"),
    ],
)
def test_what_a_prompt_file_may_hold(workspace: Path, data: bytes, text: str) -> None:
    (workspace / "p.md").write_bytes(data)
    assert text_of(PromptFile("p.md")()) == text


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "the prompt file p.md is empty"),
        (b" \n\t\n", "the prompt file p.md is empty"),
        (b"\xef\xbb\xbf", "the prompt file p.md is empty"),
        (b"ab\xff", r"the prompt file p.md is not UTF-8 text \(byte 2\)"),
        (b"a\0b", "the prompt file p.md contains a NUL byte"),
    ],
)
def test_what_a_prompt_file_may_not_hold(workspace: Path, data: bytes, problem: str) -> None:
    (workspace / "p.md").write_bytes(data)
    assert re.match(problem, PromptFile("p.md")().problem or "")


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("missing.md", "cannot read the prompt file missing.md: No such file or directory"),
        (".", "cannot read the prompt file .: Is a directory"),
        ("pipe", "pipe is a pipe: the prompt is read again before each turn"),
    ],
)
def test_what_a_prompt_file_may_not_be(workspace: Path, path: str, problem: str) -> None:
    os.mkfifo("pipe")
    assert (PromptFile(path)().problem or "").startswith(problem)


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_an_empty_prompt_is_a_problem(text: str) -> None:
    assert prompt_text(text)().problem == "the prompt is empty: write down what the agent should do"


def test_the_state_directory_is_private_and_never_committed(repo: Path) -> None:
    """It may lie in a workspace, as where that is HOME, or be one."""
    for root in (repo / "state", repo):
        ensure_state_root(str(root))
        make_run_dir(str(root / "project"), "run")
    (repo / "project" / "runs" / "run" / "journal.jsonl").write_text("{}")
    (repo / "new").write_text("x")
    assert stat.S_IMODE((repo / "state").stat().st_mode) == 0o700
    status = ["git", "-C", str(repo), "status", "--porcelain"]
    assert subprocess.check_output(status, text=True) == "?? new\n"


@pytest.mark.parametrize(
    ("path", "directory", "inside"),
    [("/a/b", "/a", True), ("/a", "/a", True), ("/ab", "/a", False), ("/a", "/a/b", False)],
)
def test_what_lies_in_a_directory(path: str, directory: str, inside: bool) -> None:
    assert is_inside(path, directory) is inside


def test_later_runs_sort_later_also_within_a_second() -> None:
    """The last run of a directory is the one with the greatest id."""
    ids = [new_run_id(1_800_000_000 + tick / 1000) for tick in range(0, 3000, 7)]
    assert ids == sorted(ids)
