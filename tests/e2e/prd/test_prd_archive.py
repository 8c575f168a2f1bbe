"""`ralph prd archive`: put stories away, and begin anew (R §10)."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from archive_support import here as here  # noqa: PLC0414  a fixture
from archive_support import project as project  # noqa: PLC0414  a fixture
from prd_support import approved, commit_all, contents, git, story, write_stories
from run_support import Here, assert_clear, program, ralph

from kits.fork_server import run
from kits.thorough import dealt
from ralph.files.state_dir import project_dir
from ralph.journal.lock import Lock

MOVED = ("prd.md", "tasks.json", "progress.txt")
# Kill the program when it has done something for the nth time.
KILLED = """
import os, signal, sys
name, count = sys.argv[1], int(sys.argv[2])
real, calls = getattr(os, name), []
def watched(*args, **kwargs):
    done = real(*args, **kwargs)
    calls.append(1)
    if len(calls) == count:
        os.kill(os.getpid(), signal.SIGKILL)
    return done
setattr(os, name, watched)
from ralph.cli.main import run_command_line
sys.exit(run_command_line(sys.argv[3:]))
"""


def today() -> str:
    return time.strftime("%Y-%m-%d")


def its_name() -> str:
    """What an archive of today is called."""
    return f"{today()}-ralph-login"


def archived(project: Path, name: str = "") -> dict[str, bytes]:
    return contents(project / "ralph-archive" / (name or its_name()))


def test_everything_is_put_away_and_committed(here: Here, project: Path) -> None:
    """R's verification plan 7: "verify archive structure and clean reset"."""
    before = contents(project / "ralph")
    done = here("prd", "archive")
    assert (done.code, done.err) == (0, "")
    assert f"Archived to ralph-archive/{its_name()}: 1 of 2 stories done\n" in done.out
    kept = archived(project)
    assert {name: kept[name] for name in MOVED} == {name: before[name] for name in MOVED}
    fresh = contents(project / "ralph")
    assert fresh["prompt.md"] == before["prompt.md"]
    assert json.loads(fresh["tasks.json"])["branchName"] == "ralph/feature-name"
    assert f"Started: {today()}".encode() in fresh["progress.txt"]
    assert b"## 4. Non-Goals" in fresh["prd.md"]
    assert git(project, "status", "--porcelain") == ""
    assert (
        git(project, "log", "-1", "--format=%s") == f"Archive {its_name()}: 1 of 2 stories done\n"
    )


def test_the_summary(here: Here, project: Path) -> None:
    """R §10: "stories completed vs total, date range"; and review analytics."""
    assert here("prd", "archive").code == 0
    summary = archived(project)["summary.md"].decode()
    assert summary.startswith("# shop · ralph/login\n\nArchived: ")
    assert f"Dates: 2026-11-01 to {today()}\n" in summary
    assert "Stories: 1 of 2 done\n" in summary
    assert "| US-001 | Story 1 | 2 | approved |\n| US-002 | Story 2 | 0 | to do |\n" in summary
    assert "2 reviews, 2 a story" in summary


def test_the_rest_of_the_work_stays_as_it_is(here: Here, project: Path) -> None:
    """Only these paths are committed; the user's other changes and index stay as they are."""
    (project / "staged.txt").write_text("staged")
    git(project, "add", "staged.txt")
    (project / "staged.txt").write_text("and changed")
    (project / "README.md").write_text("changed")
    (project / "new.txt").write_text("new")
    before = git(project, "status", "--porcelain")
    assert here("prd", "archive").code == 0
    assert git(project, "status", "--porcelain") == before
    changed = git(project, "show", "--name-only", "--format=", "HEAD").split()
    assert {name.partition("/")[0] for name in changed} == {"ralph", "ralph-archive"}
    assert git(project, "show", ":staged.txt") == "staged"


def test_what_was_never_committed_is_committed_now(here: Here, repo: Path) -> None:
    folder = write_stories(repo, approved(1))
    (folder / "prd.md").unlink()
    assert here("prd", "archive").code == 0
    assert sorted(archived(repo)) == ["progress.txt", "summary.md", "tasks.json"]
    assert git(repo, "status", "--porcelain") == "?? ralph/prompt.md\n"


def test_a_repository_without_a_commit(here: Here, workspace: Path) -> None:
    git(workspace, "init", "--quiet")
    git(workspace, "config", "user.name", "A Person")
    git(workspace, "config", "user.email", "person@example.com")
    write_stories(workspace, approved(1))
    assert here("prd", "archive").code == 0
    assert git(workspace, "status", "--porcelain") == "?? ralph/prompt.md\n"


def test_without_git(here: Here, workspace: Path) -> None:
    write_stories(workspace, approved(1))
    done = here("prd", "archive")
    assert done.code == 0
    assert "Nothing is committed: this is not a git repository" in done.out
    assert sorted(archived(workspace)) == ["prd.md", "progress.txt", "summary.md", "tasks.json"]


def test_what_git_ignores_is_not_committed(here: Here, repo: Path) -> None:
    (repo / ".gitignore").write_text("ralph*/\n")
    commit_all(repo)
    write_stories(repo, approved(1))
    done = here("prd", "archive")
    assert "Nothing is committed: git ignores these files" in done.out
    assert git(repo, "status", "--porcelain") == ""
    assert "summary.md" in archived(repo)


def test_a_project_within_a_repository(here: Here, repo: Path) -> None:
    inner = repo / "shops" / "[a] *"
    inner.mkdir(parents=True)
    write_stories(inner, approved(1))
    (repo / "shops" / "a").mkdir()
    (repo / "shops" / "a" / "other").write_text("other")
    done = here("prd", "archive", "-d", str(inner), "--json")
    (said,) = done.objects
    assert said["commit"] == git(repo, "rev-parse", "HEAD").strip()
    left = git(repo, "status", "--porcelain", "-z", "-uall").split("\0")
    assert left == ["?? shops/[a] */ralph/prompt.md", "?? shops/a/other", ""]


# ------------------------------------------------------------------ names


@pytest.mark.parametrize(
    "label",
    ["", " ", "a/b", "/tmp/x", "..", "../x", "a..b", ".hidden", "-x", "a\nb", "a\\b", "x" * 101],
)
def test_a_label_cannot_leave_the_archive(here: Here, project: Path, label: str) -> None:
    """`archive --label` with `/`, `..` or empty: 2 and nothing moves."""
    before = contents(project.parent)
    assert_clear(here("prd", "archive", f"--label={label}"), 2, "--label", "ralph prd archive")
    assert contents(project.parent) == before


@pytest.mark.parametrize("label", ["login", "größer", "a b", "v1.2", "$(id)&"])
def test_a_label_is_taken_literally(here: Here, project: Path, label: str) -> None:
    (said,) = here("prd", "archive", "--label", label, "--json").objects
    assert said["archive"] == f"ralph-archive/{today()}-{label}"
    assert (said["done"], said["total"], said["finished"]) == (1, 2, False)
    assert "summary.md" in archived(project, f"{today()}-{label}")
    assert git(project, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("branch", "name"),
    [
        ("ralph/a/b", "ralph-a-b"),
        ("../../x", "x"),
        ("", "stories"),
        ("a\nb", "a-b"),
        ("/", "stories"),
    ],
)
def test_a_branch_becomes_a_name(here: Here, workspace: Path, branch: str, name: str) -> None:
    write_stories(workspace, approved(1), branch=branch)
    assert here("prd", "archive").code == 0
    assert os.listdir(workspace / "ralph-archive") == [f"{today()}-{name}"]


def test_an_archive_is_never_overwritten(here: Here, project: Path) -> None:
    assert here("prd", "archive").code == 0
    first = archived(project)
    for number in (2, 3):
        write_stories(project, approved(number))
        (said,) = here("prd", "archive", "--json").objects
        assert said["archive"] == f"ralph-archive/{its_name()}-{number}"
    assert archived(project) == first
    assert git(project, "status", "--porcelain") == ""


# ------------------------------------------------------------------ refusals


def test_nothing_is_archived_twice(here: Here, project: Path) -> None:
    assert here("prd", "archive").code == 0
    before = contents(project)
    assert_clear(here("prd", "archive"), 2, "nothing to archive", "/ralph:ralph-plan")
    assert contents(project) == before


def test_what_was_made_on_another_day_is_as_fresh(here: Here, workspace: Path) -> None:
    assert here("prd", "init", "--name", "login").code == 0
    assert here("prd", "archive").code == 0, "what nobody has written to can be put away once"
    progress = workspace / "ralph" / "progress.txt"
    progress.write_text(progress.read_text().replace(today(), "2026-01-01"))
    assert_clear(here("prd", "archive"), 2, "nothing to archive")
    progress.write_text(f"{progress.read_text()}## Iteration 1\n")
    assert here("prd", "archive", "--label", "late").code == 0
    [late] = (workspace / "ralph-archive").glob("*-late")
    assert b"Started: 2026-01-01" in (late / "progress.txt").read_bytes()


def test_an_index_with_conflicts_elsewhere(here: Here, project: Path) -> None:
    """What a stash left behind is the user's to resolve, and nothing of ours."""
    (project / "README.md").write_text("one\n")
    git(project, "stash")
    (project / "README.md").write_text("two\n")
    git(project, "commit", "--quiet", "--all", "--message", "Two")
    assert subprocess.run(["git", "stash", "pop"], capture_output=True, check=False).returncode
    assert here("prd", "archive").code == 0
    assert git(project, "status", "--porcelain") == "UU README.md\n"
    assert git(project, "show", "HEAD:README.md") == "two\n"


def test_while_a_run_is_on(here: Here, project: Path) -> None:
    state = project_dir(os.environ["RALPH_STATE_DIR"], str(project))
    lock = Lock(os.path.join(state, "run.lock"))
    lock.acquire("20261115-1", 1.0)
    before = contents(project)
    try:
        assert_clear(here("prd", "archive"), 2, "another ralph works", "ralph stop")
    finally:
        lock.release()
    assert contents(project) == before
    assert here("prd", "archive").code == 0


def test_an_agent_may_not(here: Here, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RALPH_RUN", "1")
    assert_clear(here("prd", "archive"), 2, "an agent may not archive")


def test_a_hook_that_refuses(here: Here, project: Path) -> None:
    (project / "staged.txt").write_text("staged")
    git(project, "add", "staged.txt")
    (project / "ralph" / "progress.txt").write_text("more")
    hook = project / ".git" / "hooks" / "pre-commit"
    program(hook, "echo 'not on a Sunday' >&2; exit 1")
    before, status = contents(project), git(project, "status", "--porcelain")
    assert_clear(here("prd", "archive"), 2, "everything is as it was: not on a Sunday", "again")
    assert contents(project) == before
    assert git(project, "status", "--porcelain") == status
    hook.unlink()
    assert here("prd", "archive").code == 0


def test_in_the_middle_of_a_merge(here: Here, project: Path) -> None:
    git(project, "checkout", "--quiet", "-b", "other")
    git(project, "commit", "--quiet", "--allow-empty", "-m", "Other")
    git(project, "checkout", "--quiet", "main")
    git(project, "merge", "--quiet", "--no-commit", "--no-ff", "other")
    before = contents(project)
    assert_clear(here("prd", "archive"), 2, "in the middle of a merge", "git merge --abort")
    assert contents(project) == before


def test_a_repository_that_git_refuses_is_not_taken_for_none(here: Here, project: Path) -> None:
    (project / ".git" / "config").write_text("[broken\n")
    before = contents(project)
    assert_clear(here("prd", "archive"), 2, "bad config line 1", "Fix that and run again.")
    assert contents(project) == before


@pytest.mark.parametrize("kind", ["file", "link"])
def test_no_folder_for_archives(here: Here, project: Path, tmp_path: Path, kind: str) -> None:
    if kind == "file":
        (project / "ralph-archive").write_text("")
    else:
        (project / "ralph-archive").symlink_to(tmp_path)
    before = contents(project / "ralph")
    assert_clear(here("prd", "archive"), 2, "ralph-archive is not a folder")
    assert contents(project / "ralph") == before


def test_a_list_that_cannot_be_read(here: Here, project: Path) -> None:
    (project / "ralph" / "tasks.json").write_text("{")
    before = contents(project)
    assert_clear(here("prd", "archive"), 2, "not valid JSON", "ralph prd check")
    assert contents(project) == before


def test_a_full_disk(here: Here, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever write fails, everything is as it was."""
    before, real = contents(project), os.fsync
    for most in range(7):
        left = [most]

        def fsync(descriptor: int, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == -1:
                raise OSError(28, "No space left on device")
            real(descriptor)

        monkeypatch.setattr(os, "fsync", fsync)
        assert_clear(here("prd", "archive"), 2, "No space left on device")
        monkeypatch.setattr(os, "fsync", real)
        assert contents(project) == before, most
        assert not (project / "ralph-archive").exists()


# ------------------------------------------------------------------ killed half-way


@pytest.mark.parametrize(
    ("call", "count"),
    dealt(
        [
            *(("fsync", n) for n in range(1, 8)),
            ("rename", 1),
            *(("replace", n) for n in range(1, 4)),
        ],
        2,
    ),
)
@pytest.mark.parametrize("with_git", [True, False])
def test_killed_half_way(repo: Path, call: str, count: int, *, with_git: bool) -> None:
    """Nothing is lost, and a second call finishes."""
    write_stories(repo, approved(1, reviews=2), story(2))
    if with_git:
        commit_all(repo)
    else:
        subprocess.run(["rm", "-rf", ".git"], cwd=repo, check=True)
    before = contents(repo / "ralph")
    words = [sys.executable, "-c", KILLED, call, str(count), "prd", "archive"]
    code, _, err = run(words)
    assert code == -signal.SIGKILL, err
    there = contents(repo).values()
    assert all(content in there for content in before.values())
    done = ralph("prd", "archive")
    # Without git there is nothing to see of a call that was killed after all its work.
    if done.code == 2 and not with_git:
        assert "nothing to archive" in done.err
    else:
        assert done.code == 0, done.err
    assert os.listdir(repo / "ralph-archive") == [its_name()]
    kept = archived(repo)
    assert {name: kept[name] for name in MOVED} == {name: before[name] for name in MOVED}
    assert b"US-001" in contents(repo / "ralph")["tasks.json"]
    assert b"it works" not in contents(repo / "ralph")["tasks.json"]
    assert [name for name in contents(repo) if name.endswith(".tmp")] == []
    if with_git:
        assert git(repo, "status", "--porcelain") == ""


def test_the_commit_alone_was_missing(here: Here, project: Path) -> None:
    assert here("prd", "archive").code == 0
    git(project, "reset", "--quiet", "HEAD~1")
    (said,) = here("prd", "archive", "--json").objects
    assert (said["archive"], said["done"], said["total"]) == (f"ralph-archive/{its_name()}", 1, 2)
    assert said["finished"]
    assert git(project, "status", "--porcelain") == ""
    assert (
        git(project, "log", "-1", "--format=%s") == f"Archive {its_name()}: 1 of 2 stories done\n"
    )
