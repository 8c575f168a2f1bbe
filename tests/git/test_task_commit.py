"""A task's commit: its work and the records, nothing of a person's (B §State Persistence)."""

import os
import subprocess
from itertools import product
from pathlib import Path
from typing import cast

import pytest

from kits.thorough import dealt
from kits.work_tree import git, new_repository, state, work_of
from ralph.errors import AbortedError, StateError
from ralph.files.state_dir import ensure_ralph_dir
from ralph.git.checkpoint import files
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.commit import commit_records, in_one_line
from ralph.git.checkpoint.proven_commit import ProvenCommit, patient
from ralph.kernel.ports import Committed
from ralph.kernel.value import replace
from ralph.kernel.verdict import Cut
from ralph.processes.child import Child, Command, Reader, Starter, start

HOOK = "#!/bin/sh\n"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "top")


def hook(top: Path, name: str, script: str) -> Path:
    path = top / ".git" / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(HOOK + script)
    path.chmod(0o755)
    return path


def committed(top: Path, commit: str = "HEAD") -> list[str]:
    """The paths that a commit changed."""
    words = ("diff-tree", "--root", "-r", "-z", "--name-only", "--no-commit-id", "--no-renames")
    return sorted(git(top, *words, commit).split("\0")[:-1])


def test_everything_that_changed_is_in_it_under_the_tasks_id(top: Path) -> None:
    """B §The Loop: "Git commit with task ID"; new, modified and deleted files."""
    work = work_of(top)
    since = work.checkpoint()
    (top / "new\nline").write_text("new")
    (top / "-n").write_text("dash")
    (top / "a" / "one").write_text("two\n")
    (top / "tool").unlink()
    made = work.commit("T-1: Do it", "T-1", since)
    assert made == Committed(commit=git(top, "rev-parse", "HEAD"))
    assert committed(top) == ["-n", "a/one", "new\nline", "tool"]
    said = git(top, "log", "-1", "--format=%B")
    assert said == "T-1: Do it\n\nRalph-Run: run-1\nRalph-Task: T-1"
    assert git(top, "status", "--porcelain") == ""
    assert work.left_out == ()


def test_the_records_are_in_it_and_the_rest_of_ralphs_files_not(top: Path) -> None:
    """B §State Persistence: "Updated tasks.jsonl", "Learning data"."""
    work = work_of(top)
    since = work.checkpoint()
    ralph = Path(ensure_ralph_dir(str(top)))
    for name in ("tasks.jsonl", "progress.jsonl", "learning.jsonl", "settings.json", "log"):
        (ralph / name).write_text("{}\n")
    assert work.commit("T-1: x", "T-1", since).ok
    names = ("learning.jsonl", "progress.jsonl", "tasks.jsonl")
    assert committed(top) == [f".ralph/{name}" for name in names]
    (ralph / "tasks.jsonl").unlink()
    (ralph / "settings.json").write_text("{ }\n")
    assert work.commit("T-2: x", "T-2", work.checkpoint()).ok
    assert committed(top) == [".ralph/tasks.jsonl"]


def test_records_that_git_ignores_stay_out(top: Path) -> None:
    (top / ".gitignore").write_text(".ralph/\n.env\nbuild/\n")
    git(top, "commit", "--quiet", "--all", "--message", "Ignore")
    work = work_of(top)
    since = work.checkpoint()
    ralph = Path(ensure_ralph_dir(str(top)))
    (ralph / "tasks.jsonl").write_text("{}\n")
    head = git(top, "rev-parse", "HEAD")
    assert work.commit("T-1: x", "T-1", since) == Committed(commit=head)


def dirty(top: Path) -> None:
    """A person's work: changed, staged, staged and changed, staged and put back, new, deleted."""
    (top / "a" / "one").write_text("a person's\n")
    (top / "staged").write_text("staged\n")
    (top / "b").write_text("staged\n")
    git(top, "add", "staged", "b")
    (top / "b").write_text("b\n")
    (top / "both").write_text("one\n")
    git(top, "add", "both")
    (top / "both").write_text("two\n")
    (top / "untracked").write_text("new\n")
    (top / "tool").unlink()


def test_a_persons_files_are_left_out_and_stay_as_they_are(top: Path) -> None:
    """The issue: "a person's uncommitted files are not part of a task's commit"."""
    dirty(top)
    work = work_of(top)
    since, before = work.checkpoint(), state(top)
    (top / "theirs").write_text("the agent's\n")
    (top / "link").unlink()
    made = work.commit("T-1: x", "T-1", since)
    assert made == Committed(commit=git(top, "rev-parse", "HEAD"))
    assert committed(top) == ["link", "theirs"]
    after = state(top)
    gone = {"link", "theirs"}
    assert persons(before["status"], gone) == persons(after["status"], gone)
    assert work.left_out == ()
    assert {*git(top, "diff", "--cached", "--name-only").split()} == {"b", "both", "staged"}


def persons(status: str, without: set[str]) -> list[str]:
    return [line for line in status.split("\0") if line.rpartition(" ")[2] not in without]


def test_a_persons_file_that_the_agent_changed_is_left_out_and_named(top: Path) -> None:
    dirty(top)
    work = work_of(top)
    since = work.checkpoint()
    (top / "untracked").write_text("changed by the agent\n")
    (top / "both").unlink()
    (top / "theirs").write_text("x")
    assert work.commit("T-1: x", "T-1", since).ok
    assert committed(top) == ["theirs"]
    assert work.left_out == ("both", "untracked")
    assert (top / "untracked").read_text() == "changed by the agent\n"


def test_a_file_that_a_person_staged_and_removed_and_the_agent_made_is_left_out(top: Path) -> None:
    """It is in the index alone; the issue: "a person's uncommitted files are not part of a task's
    commit"."""
    (top / "new").write_text("mine")
    git(top, "add", "new")
    (top / "new").unlink()
    work = work_of(top)
    since = work.checkpoint()
    (top / "new").write_text("the agent's")
    (top / "other").write_text("x")
    assert work.commit("T-1: x", "T-1", since).ok
    assert committed(top) == ["other"]
    assert work.left_out == ("new",)
    assert git(top, "show", ":new") == "mine"


def test_a_killed_run_finds_its_commit_again(top: Path) -> None:
    """ADR 21, and: a commit "carries trailers and is looked up first"."""
    work = work_of(top)
    since = work.checkpoint()
    (top / "new").write_text("x")
    made = work.commit("T-1: x", "T-1", since)
    (top / "later").write_text("a second commit must not be made of this")
    assert work_of(top).commit("T-1: x", "T-1", since) == made
    assert work_of(top).commit("T-2: x", "T-2", since).commit != made.commit
    assert work_of(top, "run-2").commit("T-1: x", "T-1", since).commit != made.commit


def test_what_the_agent_committed_stays(top: Path) -> None:
    work = work_of(top)
    since = work.checkpoint()
    (top / "new").write_text("x")
    git(top, "add", "new")
    git(top, "commit", "--quiet", "--message", "The agent's")
    head = git(top, "rev-parse", "HEAD")
    assert work.commit("T-1: x", "T-1", since) == Committed(commit=head)
    Path(ensure_ralph_dir(str(top)), "tasks.jsonl").write_text("{}\n")
    assert work.commit("T-1: x", "T-1", since).ok
    assert git(top, "rev-parse", "HEAD~1") == head
    assert committed(top) == [".ralph/tasks.jsonl"]


def test_a_hook_that_refuses_is_told_and_the_next_try_works(top: Path) -> None:
    """ADR 21: "a commit refused by the user's own git hook goes back to the agent"."""
    refusing = hook(top, "pre-commit", "echo 'tabs are forbidden' >&2\nexit 1\n")
    work = work_of(top)
    since = work.checkpoint()
    (top / "new").write_text("\t")
    assert work.commit("T-1: x", "T-1", since) == Committed(False, "tabs are forbidden")
    assert git(top, "rev-parse", "HEAD") == since.head
    (top / "new").unlink()
    (top / "other").write_text("x")
    refusing.write_text(HOOK)
    assert work.commit("T-1: x", "T-1", since).ok
    assert committed(top) == ["other"]


def test_a_commit_of_the_agents_after_a_refusal_is_not_taken_for_ours(top: Path) -> None:
    """It goes round the hook, and takes our words: what it leaves out would never be committed."""
    refusing = hook(top, "pre-commit", "exit 1\n")
    work = work_of(top)
    since = work.checkpoint()
    (top / "new").write_text("x")
    assert not work.commit("T-1: x", "T-1", since).ok
    git(top, "add", "new")
    forged = ("T-1: x", "Ralph-Run: run-1\nRalph-Task: T-1")
    words = (word for paragraph in forged for word in ("--message", paragraph))
    git(top, "commit", "--quiet", "--no-verify", *words)
    (top / "rest").write_text("x")
    refusing.unlink()
    assert work.commit("T-1: x", "T-1", since).ok
    assert committed(top) == ["rest"]
    assert git(top, "status", "--porcelain") == ""


def test_the_agents_commit_below_ours_is_not_taken_for_it_after_a_kill(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody can write our words, but an agent not on top of what we were about to commit on."""
    work = work_of(top)
    since = work.checkpoint()
    words = ("--message", "x", "--message", "Ralph-Run: run-1\nRalph-Task: T-1")
    git(top, "commit", "--quiet", "--allow-empty", *words)
    (top / "new").write_text("x")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ProvenCommit, "_commit", killed)
        with pytest.raises(KeyboardInterrupt):
            work.commit("T-1: x", "T-1", since)
    assert work_of(top).commit("T-1: x", "T-1", since).ok
    assert committed(top) == ["new"]


@pytest.mark.parametrize("mine", [False, True])
def test_a_list_is_in_the_commit_unless_a_person_had_changed_it(top: Path, *, mine: bool) -> None:
    """The host has ticked it; a person's own changes are never committed with that."""
    if mine:
        (top / "b").write_text("a person's\n")
    work = work_of(top)
    since = work.checkpoint()
    (top / "new").write_text("x")
    proven = work.trees.look()
    (top / "b").write_text("ticked\n")
    assert work.commit("T-1: x", "T-1", since, proven, (str(top / "b"),)).ok
    assert committed(top) == (["new"] if mine else ["b", "new"])


def test_settings_of_ralphs_are_not_committed_as_a_turn_left_them(top: Path) -> None:
    """Though a person keeps them in git."""
    own = Path(ensure_ralph_dir(str(top)), "settings.json")
    own.write_text("{}\n")
    git(top, "add", "--force", str(own))
    git(top, "commit", "--quiet", "--message", "Settings")
    work = work_of(top)
    since = work.checkpoint()
    own.write_text('{"guardrails": []}\n')
    (top / "new").write_text("x")
    assert work.commit("T-1: x", "T-1", since).ok
    assert committed(top) == ["new"]


def test_a_refusal_with_a_persons_files_leaves_them_staged(top: Path) -> None:
    dirty(top)
    refusing = hook(top, "commit-msg", "echo no >&2\nexit 1\n")
    work = work_of(top)
    since, before = work.checkpoint(), state(top)
    (top / "theirs").write_text("x")
    assert work.commit("T-1: x", "T-1", since) == Committed(False, "no")
    assert persons(before["status"], set()) == persons(state(top)["status"], {"theirs"})
    refusing.unlink()
    assert work.commit("T-1: x", "T-1", since).ok
    assert committed(top) == ["theirs"]


def test_a_hook_runs_as_it_does_for_the_user(top: Path) -> None:
    """It finds no other repository in its environment and no terminal. What it stages was not
    proven: the commit is taken back, and made of what is there then (ADR 33)."""
    script = """echo "$GIT_DIR|$GIT_WORK_TREE" > .git/seen
echo formatted > new && git add new
tty >> .git/seen; exit 0
"""
    hook(top, "pre-commit", script)
    work = work_of(top)
    since = work.checkpoint()
    (top / "new").write_text("x")
    assert work.commit("T-1: x", "T-1", since) == Committed(altered=("new",))
    assert (top / ".git" / "seen").read_text() == "|\nnot a tty\n"
    assert git(top, "rev-parse", "HEAD") == since.head
    assert work.commit("T-1: x", "T-1", since).ok
    assert git(top, "show", "HEAD:new") == "formatted"
    assert git(top, "status", "--porcelain") == ""


def test_an_agent_does_not_get_rid_of_a_hook_by_a_setting(top: Path) -> None:
    hook(top, "pre-commit", "echo no >&2\nexit 1\n")
    work = work_of(top)
    since = work.checkpoint()
    (top / "new").write_text("x")
    git(top, "config", "core.hooksPath", "/dev/null")
    assert work.commit("T-1: x", "T-1", since) == Committed(False, "no")


def test_a_hook_that_hangs_is_ended(top: Path) -> None:
    hook(top, "pre-commit", "sleep 1000\n")
    given = work_of(top)
    cut = replace(patient(3600) or Cut("never"), grace=0.1)
    work = WorkTree(str(top), os.environ, given.run_dir, starter=start, watch=lambda _: cut)
    since = work.checkpoint()
    (top / "new").write_text("x")
    made = work.commit("T-1: x", "T-1", since)
    commit, refusal = made.commit, made.said
    assert commit == ""
    assert refusal.startswith("the commit's hooks took too long")


def test_someone_in_a_hurry_refuses_nothing(top: Path) -> None:
    """ADR 7: what Ctrl+C cuts is gone on with later."""
    slow = hook(top, "pre-commit", "sleep 1000\n")
    given, hurry = work_of(top), Cut("asked to stop at once", grace=0.1)
    work = WorkTree(str(top), os.environ, given.run_dir, starter=start, watch=lambda _: hurry)
    since = work.checkpoint()
    (top / "new").write_text("x")
    with pytest.raises(AbortedError, match="in the middle of a commit") as caught:
        work.commit("T-1: x", "T-1", since)
    assert "ralph resume" in caught.value.remedy
    slow.unlink()
    assert work_of(top).commit("T-1: x", "T-1", since).ok
    assert committed(top) == ["new"]


def test_a_locked_index_is_no_refusal(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an agent cannot mend does not go back to it: waited for, then told."""
    monkeypatch.setattr(files, "_LOCKED_FOR", 0.0)
    work = work_of(top)
    since = work.checkpoint()
    (top / "new").write_text("x")
    (top / ".git" / "index.lock").touch()
    with subprocess.Popen(["git", "cat-file", "--batch"], cwd=top, stdin=subprocess.PIPE) as other:
        with pytest.raises(StateError, match=r"another git is at work.* rm .*index\.lock"):
            work.commit("T-1: x", "T-1", since)
        other.communicate()
    (top / ".git" / "index.lock").unlink()
    assert work.commit("T-1: x", "T-1", since).ok
    assert committed(top) == ["new"]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="nobody can tell who is at work")
def test_a_lock_of_a_killed_git_does_not_stop_a_commit(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_LOCKED_FOR", 0.0)
    work = work_of(top)
    since = work.checkpoint()
    (top / "new").write_text("x")
    (top / ".git" / "index.lock").touch()
    assert work.commit("T-1: x", "T-1", since).ok


def test_a_hook_may_speak_of_other_locks(top: Path) -> None:
    hook(top, "pre-commit", "echo \"'a/index.lock' is out of date, as is poetry.lock\"; exit 1\n")
    work = work_of(top)
    since = work.checkpoint()
    (top / "new").write_text("x")
    assert "out of date" in work.commit("T-1: x", "T-1", since).said


def test_a_commit_that_meets_a_lock_is_tried_again(top: Path) -> None:
    """Somebody's `git add` between the staging and the commit, which has a hook to run."""
    hook(top, "post-commit", "")
    work = work_of(top)
    since = work.checkpoint()
    (top / "new").write_text("x")
    starts: list[Command] = []

    def starter(command: Command, *readers: Reader) -> Child:
        starts.append(command)
        words = f"echo '»{top}/.git/HEAD.lock« ist da'; exit 128"
        locked = Command(("sh", "-c", words), "/", os.environ)
        return start(command if len(starts) > 1 else locked, *readers)

    tried = WorkTree(str(top), os.environ, work.run_dir, starter=cast("Starter", starter))
    assert tried.commit("T-1: x", "T-1", since).ok
    assert committed(top) == ["new"]
    assert len(starts) == 2


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_EDITOR"])
def test_the_environment_does_not_lead_elsewhere(
    top: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "/nowhere")
    work = work_of(top)
    since = work.checkpoint()
    (top / "new").write_text("x")
    made = work.commit("T-1: x", "T-1", since)
    commit, refusal = made.commit, made.said
    monkeypatch.delenv(name)
    assert (commit, refusal) == (git(top, "rev-parse", "HEAD"), "")


def test_an_editor_is_never_opened(top: Path) -> None:
    git(top, "config", "core.editor", "touch .git/opened; false")
    git(top, "config", "commit.verbose", "true")
    work = work_of(top)
    since = work.checkpoint()
    (top / "new").write_text("x")
    assert work.commit("T-1: x", "T-1", since).ok
    assert not (top / ".git" / "opened").exists()


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("T-1: two\nlines", "T-1: two lines"),
        ("T-1: a\0b\x1b[31m\tc", "T-1: a b [31m c"),
        ("#7: not a comment", "#7: not a comment"),
        ("--amend: -m x", "--amend: -m x"),
        ("T-1: " + "ä" * 300, "T-1: " + "ä" * 195),
        ("  ", "T-1"),
    ],
)
def test_a_subject_is_one_line(top: Path, subject: str, expected: str) -> None:
    work = work_of(top)
    since = work.checkpoint()
    (top / "new").write_text("x")
    assert work.commit(subject, "T-1", since).ok
    assert git(top, "log", "-1", "--format=%s") == expected
    assert git(top, "log", "-1", "--format=%(trailers:key=Ralph-Task,valueonly)") == "T-1"


def test_a_line_is_never_empty_at_its_end() -> None:
    assert in_one_line("a" * 199 + " bc") == "a" * 199


@pytest.mark.parametrize("mine", [False, True])
def test_the_first_commit_of_a_repository(tmp_path: Path, *, mine: bool) -> None:
    """The issue: "a repository without commits"."""
    top = tmp_path / "top"
    top.mkdir()
    for words in (
        ("init", "--quiet"),
        ("config", "user.name", "x"),
        ("config", "user.email", "x@y"),
    ):
        git(top, *words)
    if mine:
        (top / "mine").write_text("x")
        git(top, "add", "mine")
    work = work_of(top)
    since = work.checkpoint()
    assert work.commit("T-0: nothing", "T-0", since) == Committed()
    (top / "new").write_text("x")
    assert work.commit("T-1: x", "T-1", since) == Committed(commit=git(top, "rev-parse", "HEAD"))
    assert committed(top) == ["new"]
    assert git(top, "status", "--porcelain") == ("A  mine" if mine else "")


def test_a_detached_head_is_committed_on(top: Path) -> None:
    git(top, "checkout", "--quiet", "--detach")
    work = work_of(top)
    since = work.checkpoint()
    (top / "new").write_text("x")
    assert work.commit("T-1: x", "T-1", since).ok
    assert git(top, "rev-parse", "main") == since.head
    assert git(top, "rev-parse", "HEAD~1") == since.head


@pytest.mark.parametrize(
    ("begun", "message"),
    dealt(
        product(
            ["new", "unborn", "detached", "sha256"],
            [
                "One\n\nmore",
                "\n \x0b\nx\r\n \ny\x1c\n\n",
                "  # a  \n\n\n\n b\t\nc\n\n",
                "-m",
                " ",
                "\udcff",
            ],
        ),
        9,
    ),
)
def test_it_is_the_commit_that_git_commit_makes(
    tmp_path: Path, begun: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where git would run nothing of the user's it is not asked to commit; with a hook it is."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_DATE", "2026-01-31T12:00:00+0100")
    kind = "sha256" if begun == "sha256" else "sha1"
    made = []
    for name in ("plain", "by git"):
        top = tmp_path / name / "top"
        top.mkdir(parents=True)
        git(top, "init", "-q", "-b", "main", f"--object-format={kind}")
        git(top, "config", "user.name", "Somebody")
        git(top, "config", "user.email", "somebody@ralph.invalid")
        if begun != "unborn":
            (top / "old").write_text("old")
            git(top, "add", "-A")
            git(top, "commit", "-q", "-m", "begin")
        if begun == "detached":
            git(top, "checkout", "-q", "--detach")
        if name == "by git":
            hook(top, "pre-commit", "")
        work = work_of(top)
        (top / "new").write_text("x\n")
        commit = ProvenCommit(work.trees)(work.trees.look(), (message,))
        said = (commit.ok, commit.said, commit.commit)
        log = git(top, "reflog", "--format=%H %gs") if commit.ok and begun != "unborn" else ""
        made.append((*said, log, git(top, "status", "--porcelain"), git(top, "diff-files")))
    assert made[0] == made[1]
    assert made[0][0] is bool(message.strip())


def test_what_is_changed_after_the_proof_is_not_staged(top: Path) -> None:
    """The user's index knows the commit, and nothing that came after it."""
    work = work_of(top)
    since = work.checkpoint()
    (top / "new").write_text("proven\n")
    (top / "b").unlink()
    stand = work.trees.look()
    (top / "new").write_text("later\n")
    (top / "b").write_text("again\n")
    assert work.commit("T-1: x", "T-1", since, stand).ok
    assert git(top, "show", ":new") == "proven"
    assert git(top, "status", "--porcelain").splitlines() == [" M new", "?? b"]


@pytest.mark.parametrize("size", [10, 300_000])
def test_the_users_index_knows_records_when_the_run_ends(top: Path, size: int) -> None:
    """Long ones are not read after every task."""
    work, records = work_of(top), top / ".ralph" / "progress.jsonl"
    records.parent.mkdir()
    since = work.checkpoint()
    (top / "new").write_text("x\n")
    records.write_text(f'"{"x" * size}"\n')
    made = work.commit("T-1: x", "T-1", since)
    commit_records(str(top), os.environ, work.run_dir, pytest.fail)
    assert git(top, "diff-files") == ""
    assert git(top, "rev-parse", "HEAD") == made.commit
    records.write_text("more\n")
    commit_records(str(top), os.environ, work.run_dir, pytest.fail)
    assert committed(top) == [".ralph/progress.jsonl"]


def test_settings_of_commits_are_obeyed(top: Path) -> None:
    """One that is to be signed, and a program that does not sign."""
    git(top, "config", "commit.gpgSign", "true")
    git(top, "config", "gpg.program", "false")
    work = work_of(top)
    since = work.checkpoint()
    (top / "new").write_text("x\n")
    made = work.commit("T-1: x", "T-1", since)
    assert not made.ok
    assert "gpg failed to sign" in made.said


def test_a_repository_that_the_agent_made_is_left_out_and_named(top: Path) -> None:
    work = work_of(top)
    since = work.checkpoint()
    git(top, "init", "--quiet", "vendor")
    (top / "vendor" / "x").write_text("x")
    (top / "new").write_text("x")
    assert work.commit("T-1: x", "T-1", since).ok
    assert committed(top) == ["new"]
    assert work.left_out == ("vendor/",)


def test_a_change_that_cancels_itself_is_nothing_to_commit(top: Path) -> None:
    work = work_of(top)
    since = work.checkpoint()
    (top / "b").write_text("other\n")
    git(top, "add", "b")
    (top / "b").write_text("b\n")
    assert work.commit("T-1: x", "T-1", since) == Committed(commit=since.head)


@pytest.mark.parametrize("automatic", dealt([True, False], 1))
def test_a_long_run_leaves_a_pack(top: Path, *, automatic: bool) -> None:
    """A task leaves half a dozen objects; whoever wants no help with them gets none."""
    if not automatic:
        git(top, "config", "gc.auto", "0")
    work = work_of(top)
    some = "".join(f"{number}\n" for number in range(2000))
    folder = top / "many"
    folder.mkdir()
    for number in some.split():
        (folder / number).write_text(number)
    assert work.commit("T-1: x", "T-1", work.checkpoint()).ok
    work.end()
    left = [path for path in (top / ".git" / "objects").glob("??/*") if path.is_file()]
    assert (len(left) < 100) is automatic
    assert git(top, "status", "--porcelain") == ""
    git(top, "fsck", "--strict")
