"""Source control (H §SCM Tasks, ADR 8): real git, and a command that only listens."""

import os
import subprocess
from pathlib import Path

import pytest

from kits.adapters import nobody_asks
from ralph.errors import ConfigError
from ralph.git.checkpoint.trees import trees_of_run
from ralph.git.scm import ScmCommand, task_words
from ralph.kernel.facts import Proved
from ralph.kernel.ports import Committed
from ralph.kernel.state import NEW
from ralph.kernel.value import replace
from ralph.kernel.world import Signals

RECORDER = """#!/bin/sh
printf '<%s>' "$@" >> "$RECORD"; echo >> "$RECORD"; echo recorded
"""


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


class Project:
    """A repository in which a run has begun."""

    def __init__(self, top: Path) -> None:
        run_dir = top.parent / "run"
        run_dir.mkdir()
        trees = trees_of_run(str(top), os.environ, str(run_dir))
        assert trees is not None
        trees.begin()
        self.top, self._trees = top, trees
        self._scm = replace(scm(top), trees=trees)

    def _proof(self) -> Proved | None:
        return self._trees.proved(0.0, self._trees.look(), ())

    def commit(self, message: str, task: str = "commit") -> tuple[bool, str]:
        """Prove what is there now, and commit it."""
        made = self._scm.commit(task, message, self._proof())
        return made.ok, made.said

    def has_changes(self) -> tuple[bool, str]:
        return self._scm.has_changes(self._proof())


def scm(workspace: Path, command: str = "git", *tasks: str) -> ScmCommand:
    return ScmCommand(command, tasks, str(workspace), os.environ, nobody_asks)


@pytest.fixture
def project(repo: Path) -> Project:
    return Project(repo)


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A command that is not git; what it was called with is in the file `record`."""
    path = tmp_path / "hg"
    path.write_text(RECORDER)
    path.chmod(0o755)
    monkeypatch.setenv("RECORD", str(tmp_path / "record"))
    return path


def recorded(recorder: Path) -> str:
    return (recorder.parent / "record").read_text()


def test_commit_takes_new_changed_and_deleted_files(project: Project) -> None:
    """ADR 8: "`-am` alone silently loses new files"."""
    repo = project.top
    (repo / "new.txt").write_text("new")
    (repo / "folder").mkdir()
    (repo / "folder" / "deep.txt").write_text("deep")
    (repo / "README.md").unlink()
    assert project.commit("Add things") == (True, "Add things")
    assert git("log", "-1", "--format=%s") == "Add things"
    assert git("ls-files").split() == ["folder/deep.txt", "new.txt"]
    assert git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    "message",
    ["'; rm -rf $HOME #", "--amend", "-x", "$(echo no) `no`", "Subject\n\nBody", "Grüße 😀"],
)
def test_a_message_is_an_argument_and_never_goes_through_a_shell(
    project: Project, message: str
) -> None:
    """ADR 8: "with an argument vector, never a shell"."""
    (project.top / "new.txt").write_text("new")
    assert project.commit(message) == (True, message)
    assert git("log", "-1", "--format=%B") == message
    assert git("rev-list", "--count", "HEAD") == "2"


def test_a_clean_tree_has_no_changes(project: Project) -> None:
    assert project.has_changes() == (False, "")


def test_before_the_first_commit_an_empty_tree_is_no_change(tmp_path: Path) -> None:
    """DESIGN §4.9: "A clean tree skips the message turn and `commit`"."""
    top = tmp_path / "unborn"
    git("init", "--quiet", str(top))
    project = Project(top)
    assert project.has_changes() == (False, "")
    (top / "first.txt").write_text("first")
    assert project.has_changes() == (True, "")


@pytest.mark.parametrize("change", ["new", "changed", "deleted", "staged"])
def test_changes_are_seen(project: Project, change: str) -> None:
    repo = project.top
    if change in ("new", "staged"):
        (repo / "new name").write_text("new")
    if change == "staged":
        git("add", "--all")
    if change == "changed":
        (repo / "README.md").write_text("other")
    if change == "deleted":
        (repo / "README.md").unlink()
    assert project.has_changes() == (True, "")


def test_what_a_killed_run_had_committed_is_no_failure(project: Project) -> None:
    """The port: "What a killed run did already is no failure when it is asked for again"."""
    assert project.commit("Again") == (True, "Again")
    assert git("rev-list", "--count", "HEAD") == "1"


def test_a_directory_that_is_no_repository_is_told_in_gits_words(workspace: Path) -> None:
    changed, problem = scm(workspace).has_changes(None)
    assert not changed
    assert "not a git repository" in problem
    done = scm(workspace).commit("commit", "x", None)
    assert not done.ok
    assert "not a git repository" in done.said


def test_a_hook_that_refuses_is_a_failure_with_its_words(project: Project) -> None:
    hook = project.top / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'tabs are forbidden' >&2\nexit 1\n")
    hook.chmod(0o755)
    (project.top / "new.txt").write_text("new")
    assert project.commit("x") == (False, "tabs are forbidden")
    assert git("rev-list", "--count", "HEAD") == "1"


def test_a_repository_that_was_made_meanwhile_gets_everything(repo: Path) -> None:
    """ADR 8: "where there was no repository when the run began"; again after a kill."""
    (repo / "new.txt").write_text("new")
    (repo / "README.md").unlink()
    assert scm(repo).has_changes(None) == (True, "")
    for _ in range(2):
        assert scm(repo).commit("commit", "Add", None) == Committed(True, "Add")
    assert git("ls-files") == "new.txt"
    assert git("rev-list", "--count", "HEAD") == "2"
    assert scm(repo).has_changes(None) == (False, "")


def test_tasks_are_split_like_shell_words(repo: Path) -> None:
    """The issue: "A task is split like shell words"."""
    assert scm(repo).run("tag -a v1 -m 'the first one'", NEW) == Committed()
    assert git("tag", "--list", "-n", "v1").split(maxsplit=1)[1] == "the first one"


def test_a_commit_may_have_flags_of_its_own(project: Project) -> None:
    (project.top / "new.txt").write_text("new")
    assert project.commit("x", "commit --no-verify --author='A B <a@b.invalid>'")[0]
    assert git("log", "-1", "--format=%an") == "A B"


def test_a_task_with_half_a_quote_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"scm\.tasks: tag 'half: No closing quotation"):
        task_words("tag 'half")


def test_another_command_than_git_gets_exactly_commit_am_and_the_message(
    workspace: Path, recorder: Path
) -> None:
    """H §SCM Tasks: "For commit, use `-am` with the agent-provided message"; no `add -A`."""
    hg = scm(workspace, str(recorder))
    assert hg.has_changes(None) == (True, "")
    assert hg.commit("commit", "Two words", None) == Committed(True, "Two words")
    assert hg.run("push --force origin", NEW) == Committed(True, "recorded")
    assert recorded(recorder) == "<commit><-am><Two words>\n<push><--force><origin>\n"


def test_the_tasks_are_run_in_the_order_of_the_settings(workspace: Path) -> None:
    assert scm(workspace, "git", "commit", "push").tasks() == ("commit", "push")


def test_a_command_that_fails_without_a_word_is_named(workspace: Path) -> None:
    assert scm(workspace, "false").run("push", NEW) == Committed(False, "false exited with code 1")


@pytest.mark.parametrize(
    ("command", "message", "said"),
    [
        ("no-such-scm", "x", "no-such-scm: No such file or directory"),
        ("true", "nul\0", "true: embedded null byte"),
    ],
)
def test_a_command_that_cannot_run_is_a_failure(
    workspace: Path, command: str, message: str, said: str
) -> None:
    assert scm(workspace, command).commit("commit", message, None) == Committed(False, said)


def test_git_never_asks_at_the_terminal(workspace: Path) -> None:
    script = 'echo "$GIT_TERMINAL_PROMPT $(cat)"'
    sh = ScmCommand(
        "sh", (), str(workspace), {**os.environ, "GIT_TERMINAL_PROMPT": "1"}, nobody_asks
    )
    assert sh.run(f"-c '{script}'", NEW) == Committed(True, "0")


def test_the_second_signal_ends_a_task(workspace: Path) -> None:
    sh = ScmCommand("sh", (), str(workspace), os.environ, lambda: Signals(cancels=2))
    assert sh.run("-c 'sleep 60'", NEW) == Committed(False, "sh exited with code 130")
