"""`ralph prd init`: a project's folder of stories (R §10)."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from prd_support import contents, git
from rights_support import AS_ORDINARY_USER, needs_ordinary_user
from run_support import RALPH, Here, assert_clear, in_shell, ralph

from ralph.loops.stories.prompt import filled
from ralph.review.law import malformed

FILES = ("prompt.md", "prd.md", "tasks.json", "progress.txt")
ROOT = Path(__file__).resolve().parents[3]
TEMPLATES = ROOT / "src" / "ralph" / "loops" / "stories" / "project_files"


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], workspace: Path) -> Here:
    return Here(capsys)


def test_every_file_is_made(here: Here, workspace: Path) -> None:
    """R's verification plan 4: "verify all files created correctly"."""
    done = here("prd", "init")
    assert (done.code, done.err) == (0, "")
    assert sorted(os.listdir(workspace / "ralph")) == sorted(FILES)
    progress = (workspace / "ralph" / "progress.txt").read_text()
    assert re.search(r"^Started: \d{4}-\d\d-\d\d\nPRD: workspace$", progress, re.MULTILINE)
    assert "{{" not in progress
    for name in ("prompt.md", "prd.md"):
        assert (workspace / "ralph" / name).read_text() == (TEMPLATES / name).read_text()
    made = json.loads((workspace / "ralph" / "tasks.json").read_text())
    template = json.loads((TEMPLATES / "tasks.json").read_text())
    assert made == {**template, "project": "workspace"}


def test_what_comes_next_is_said(here: Here) -> None:
    """R §10: "Prints next-steps instructions"; worktrees for parallel features, one run each."""
    said = here("prd", "init").out
    for words in ("prd.md", "/ralph:ralph-plan", "ralph prd check", "ralph prd run"):
        assert words in said
    assert "one run per directory" in said
    assert "git worktree add" in said


@pytest.mark.parametrize(
    "name", ["login", "a/b", "a&b", 'say "hi"', "$RALPH_MODE", "back\\slash", "größer", "a b"]
)
def test_a_name_is_taken_literally(here: Here, workspace: Path, name: str) -> None:
    """R §10: "Sets `branchName` in tasks.json to `ralph/<name>`"."""
    assert here("prd", "init", "--name", name).code == 0
    made = json.loads((workspace / "ralph" / "tasks.json").read_text())
    assert made["branchName"] == f"ralph/{name}"


def test_a_name_that_git_has_no_branch_for_is_noted(here: Here) -> None:
    assert "git has no branches of the name 'ralph/a b'" in here("prd", "init", "--name", "a b").out
    assert "git has no branches" not in here("prd", "init", "--name", "login").out


@pytest.mark.parametrize("name", ["", "  "])
def test_a_blank_name_is_refused(here: Here, workspace: Path, name: str) -> None:
    assert_clear(here("prd", "init", "--name", name), 2, "--name is blank")
    assert os.listdir(workspace) == []


def test_nothing_is_overwritten(here: Here, workspace: Path) -> None:
    """`init` never overwrites a file: exit 0, and it says which it kept."""
    (workspace / "ralph").mkdir()
    (workspace / "ralph" / "prd.md").write_text("mine")
    (workspace / "ralph" / "tasks.json").symlink_to("nowhere")
    done = here("prd", "init", "--name", "login")
    assert done.code == 0
    assert "Kept as they were: ralph/prd.md, ralph/tasks.json" in done.out
    assert "--name changed nothing" in done.out
    assert (workspace / "ralph" / "prd.md").read_text() == "mine"
    assert os.readlink(workspace / "ralph" / "tasks.json") == "nowhere"
    before = {name: text for name, text in contents(workspace).items() if "tasks" not in name}
    again = here("prd", "init", "--json").objects[0]
    assert (again["made"], sorted(again["kept"])) == ([], sorted(FILES))
    assert again["gitignore"] == "there"
    assert before == {n: text for n, text in contents(workspace).items() if "tasks" not in n}


# ------------------------------------------------------------------ .gitignore


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, ".ralph-active\n"),
        ("", ".ralph-active\n"),
        ("a\n", "a\n.ralph-active\n"),
        ("a", "a\n.ralph-active\n"),
        (".ralph-active", ".ralph-active"),
        ("/.ralph-active\n", "/.ralph-active\n"),
        ("my.ralph-active\n", "my.ralph-active\n.ralph-active\n"),
    ],
)
@pytest.mark.parametrize("with_git", [False, True])
def test_the_marker_is_ignored_once(
    here: Here, workspace: Path, before: str | None, after: str, *, with_git: bool
) -> None:
    """R §10: "Adds `.ralph-active` to `.gitignore` if not already there"."""
    if with_git:
        git(workspace, "init", "--quiet")
    if before is not None:
        (workspace / ".gitignore").write_text(before)
    for _ in range(2):
        assert here("prd", "init").code == 0
        assert (workspace / ".gitignore").read_text() == after


@pytest.mark.parametrize("pattern", [".ralph-*\n", ".*\n", "*\n"])
def test_a_broader_pattern_counts(here: Here, repo: Path, pattern: str) -> None:
    (repo / ".gitignore").write_text(pattern)
    assert here("prd", "init", "--json").objects[0]["gitignore"] == "there"
    assert (repo / ".gitignore").read_text() == pattern


# ------------------------------------------------------------------ where it cannot work


def test_another_directory_by_each_of_its_names(here: Here, tmp_path: Path) -> None:
    for number, flag in enumerate(("-C", "-d", "--project-dir")):
        project = tmp_path / f"shop {number}"
        project.mkdir()
        done = here("prd", "init", flag, str(project), "--json")
        assert done.objects[0]["folder"] == str(project / "ralph")
        assert f"PRD: shop {number}\n" in (project / "ralph" / "progress.txt").read_text()


def test_a_directory_that_is_missing(here: Here, workspace: Path) -> None:
    assert_clear(here("prd", "init", "-d", "nowhere"), 2, "nowhere: No such file", "ralph prd init")


@pytest.mark.parametrize(
    ("path", "words"),
    [("ralph", "ralph is not a folder"), (".gitignore/x", ".gitignore is not a file")],
)
def test_something_else_stands_there(here: Here, workspace: Path, path: str, words: str) -> None:
    (workspace / path).parent.mkdir(exist_ok=True)
    (workspace / path).write_text("mine")
    before = contents(workspace)
    assert_clear(here("prd", "init"), 2, words)
    assert contents(workspace) == before


@needs_ordinary_user
def test_a_directory_that_cannot_be_written(workspace: Path) -> None:
    workspace.chmod(0o555)
    try:
        done = ralph("prd", "init", command=(*AS_ORDINARY_USER, *RALPH))
        assert_clear(done, 2, f"{workspace} cannot be written", "chmod u+w")
        assert os.listdir(workspace) == []
    finally:
        workspace.chmod(0o755)


def test_nothing_is_left_half_made(
    here: Here, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full at the third file."""
    synced: list[int] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) == 3:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    assert_clear(here("prd", "init"), 2, "No space left on device", "Free some space.")
    assert os.listdir(workspace) == []


def test_a_file_system_without_links(
    here: Here, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(source: str, target: str) -> None:
        raise PermissionError(1, "Operation not permitted", target)

    monkeypatch.setattr(os, "link", link)
    assert here("prd", "init").code == 0
    assert sorted(os.listdir(workspace / "ralph")) == sorted(FILES)


@pytest.mark.slow
def test_many_begin_at_once(workspace: Path) -> None:
    """Each file is made by one of them, whole, and kept by the others."""
    words = [sys.executable, "-m", "ralph", "prd", "init", "--json"]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE) for _ in range(4)]
    told = [json.loads(process.communicate()[0]) for process in running]
    assert sorted(name for one in told for name in one["made"]) == sorted(FILES)
    assert sorted(os.listdir(workspace / "ralph")) == sorted(FILES)


# ------------------------------------------------------------------ the templates


def test_the_list_is_that_of_the_specification() -> None:
    """R §8: the fields of a list and of a story, which only wait for words."""
    template = json.loads((TEMPLATES / "tasks.json").read_text())
    assert list(template) == [
        "project",
        "branchName",
        "description",
        "verifyCommands",
        "userStories",
    ]
    (one,) = template["userStories"]
    decided = {"passes": False, "reviewStatus": None, "reviewCount": 0, "reviewFeedback": ""}
    texts = {"id": "US-001", "title": "", "description": "", "notes": ""}
    assert one == {**texts, **decided, "acceptanceCriteria": [], "priority": 1, "dependsOn": []}
    assert [words for _, words in malformed(template)] == [
        "Story US-001: 'acceptanceCriteria' must be an array with at least one criterion, not []."
    ]


def test_the_prd_has_its_ten_sections() -> None:
    """R §7."""
    sections = re.findall(r"^## \d+\. (.*)$", (TEMPLATES / "prd.md").read_text(), re.MULTILINE)
    assert sections == [
        *("Summary", "Problem Statement", "Goals", "Non-Goals", "Background & Context"),
        *("Technical Design", "Constraints", "Edge Cases & Error Handling"),
        *("Risks & Mitigations", "Open Questions"),
    ]


def test_the_prompt_is_filled_by_what_a_run_knows() -> None:
    """R §6: the header, the modes, the signals; no variable is left that nobody fills."""
    values = {
        "ITERATION": "3",
        "MAX_ITERATIONS": "15",
        "MODE": "review",
        "STORY": "US-007",
        "REVIEW_CAP": "5",
        "SKIP_REVIEW": "false",
        "DIR": "plans",
    }
    text = filled((TEMPLATES / "prompt.md").read_text(), values)
    assert text.startswith("# Ralph loop: iteration 3 of 15\n")
    assert "RALPH_" not in text
    assert "`plans/prd.md`" in text
    assert "ralph/" not in text.replace(".ralph/", "")
    for words in ("### Mode implement", "### Mode review", "### Mode review-fix"):
        assert f"{words}\n" in text
    for step in range(1, 7):
        assert f"## Step {step}: " in text
    for words in ("COMPLETE", "BLOCKED: why", "DECIDE: question"):
        assert f"<promise>{words}</promise>" in text
    for words in ("[AUTO-APPROVED AT CAP]", "review: [US-007] - approved", "prd.md` is read-only"):
        assert words in text


@pytest.mark.slow
def test_the_wheel_has_the_templates(tmp_path: Path) -> None:
    words = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path))
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {f"ralph/loops/stories/project_files/{name}" for name in FILES} <= {*names}


# ------------------------------------------------------------------ the branch of --name


def test_a_named_feature_gets_its_branch(here: Here, repo: Path) -> None:
    """Where everything is committed it is made and checked out; else what to type is said."""
    on = "symbolic-ref", "--short", "HEAD"
    before = git(repo, *on).strip()
    done = here("prd", "init", "--name", "login")
    assert f"Made the branch ralph/login and checked it out; before: {before}" in done.out
    assert git(repo, *on).strip() == "ralph/login"
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "plan")
    git(repo, "rm", "-q", "-r", "ralph")
    assert "The branch ralph/login is checked out" in here("prd", "init", "--name", "login").out
    git(repo, "reset", "-q", "--hard")
    git(repo, "switch", "-q", before)
    done = here("prd", "init", "--name", "login")
    assert "There is a branch ralph/login already. Work on it: git switch ralph/login" in done.out
    (repo / "ralph" / "tasks.json").unlink()
    told = here("prd", "init", "--name", "it's", "--json").objects[0]
    assert (told["branchName"], told["checkedOut"]) == ("ralph/it's", False)
    assert "not committed" in told["branch"]
    typed = in_shell(told["branch"].partition("Take it along: ")[2])
    assert (typed.code, git(repo, *on).strip()) == (0, "ralph/it's")


def test_no_branch_can_be_made(here: Here, workspace: Path) -> None:
    done = here("prd", "init", "--name", "login")
    assert (done.code, "no git repository here for the branch ralph/login" in done.out) == (0, True)
    (workspace / "ralph" / "tasks.json").unlink()
    git(workspace, "init", "--quiet")
    (workspace / ".git" / "info" / "exclude").write_text("*")
    done = here("prd", "init", "--name", "login")
    assert "Not on ralph/login yet: a branch needs a commit to start from" in done.out
