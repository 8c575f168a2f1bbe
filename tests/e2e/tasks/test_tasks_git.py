"""What git has to do with `ralph tasks run`: commits of agents, locks, haste (ADR 28)."""

import subprocess

import pytest
from backlog_support import COMPLETE, Project, project
from run_support import Running, assert_clear, ralph

__all__ = ["project"]

A = {"id": "A", "title": "x"}
CHECKED = {**A, "completion": {"type": "test_passing", "command": "test -f a"}}


def test_an_agent_that_commits_everything_leaves_a_persons_files_alone(project: Project) -> None:
    """ "With `--allow-dirty` a person's uncommitted files are not part of a task's commit"."""
    project.tasks(A)
    (project.path / "README").write_text("half\n")
    (project.path / "wip").write_text("mine\n")
    project.git("add", "wip")
    dirt = project.dirt()
    script = f"echo n > new; git add -A; git commit -qm agent; {COMPLETE}"
    done = project.run(script, "--allow-dirty")
    assert_clear(done, 0, "The agent committed what you had not: README, wip", "commits-1")
    assert project.subjects() == ["A: x", "begin"]
    assert "new" in project.git("show", "--format=", "--name-only", "HEAD").split()
    assert project.dirt() == dirt
    assert "agent" in project.git("log", "-1", "--format=%s", project.kept()["commits-1"])


@pytest.mark.slow
def test_a_locked_index_costs_no_turn(project: Project) -> None:
    """What an agent cannot mend is waited for, then told with the remedy; the run goes on later."""
    project.tasks(A)
    lock = project.path / ".git" / "index.lock"
    words = ["git", "cat-file", "--batch"]
    with subprocess.Popen(words, cwd=project.path, stdin=subprocess.PIPE) as other:
        done = project.run(f"echo n > new; touch .git/index.lock; {COMPLETE}")
        other.communicate()
    assert_clear(done, 2, "another git is at work", "rm ", "ralph resume")
    lock.unlink()
    assert ralph("resume").code == 0
    assert project.turns("A") == 1
    assert project.subjects() == ["A: x", "begin"]


def test_ctrl_c_twice_in_a_commit_is_no_refusal(project: Project) -> None:
    """ADR 7: the run goes on with the commit, and pays no turn for it."""
    project.tasks(A)
    hook = project.path / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ntouch "$NOTES/hook"; sleep 600\n')
    hook.chmod(0o755)
    agent = project.agent(f"echo n > new; {COMPLETE}")
    running = Running(project.path, "tasks", "run", "--agent", agent, "--no-sandbox")
    running.await_that((project.notes / "hook").exists)
    running.interrupt()
    running.interrupt()
    assert_clear(running.end(), 130, "ralph resume")
    hook.unlink()
    assert ralph("resume").code == 0
    assert project.turns("A") == 1
    assert project.subjects() == ["A: x", "begin"]


def test_a_blocked_task_leaves_ignored_files_branches_and_stashes(project: Project) -> None:
    """ "a person's uncommitted work at the start is never touched"; what was undone is told."""
    (project.path / ".gitignore").write_text(".env\n")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "rules")
    (project.path / ".env").write_text("SECRET\n")
    project.git("branch", "other")
    (project.path / "README").write_text("later\n")
    project.git("stash", "push", "-q")
    project.tasks(CHECKED)
    script = """rm .env; git branch -qD other; git stash drop -q
    echo n > new; git add new; git commit -qm "agent: new"; echo m > more"""
    done = project.run(script, "--max-iterations", "1")
    assert_clear(done, 3, "1 commit left the branch", "agent: new", "other", ".env", "stash")
    assert (project.path / ".env").read_text() == "SECRET\n"
    assert project.git("branch", "--list", "other").split() == ["other"]
    assert len(project.git("stash", "list").splitlines()) == 1
    assert project.subjects() == ["Record what became of the tasks", "rules", "begin"]


def test_the_branch_of_before_gets_the_task(project: Project) -> None:
    project.tasks(A, {"id": "B", "title": "y"})
    done = project.run(f"git checkout -qb work-$id; echo n > $id; {COMPLETE}")
    assert_clear(done, 0, "The agent went to work-A: its work is on main")
    assert project.subjects() == ["B: y", "A: x", "begin"]
    assert project.git("symbolic-ref", "HEAD") == "refs/heads/main\n"


def test_a_commit_with_our_words_leaves_nothing_over(project: Project) -> None:
    project.tasks(A)
    run = "Ralph-Run: $(basename $(ls -d $RALPH_STATE_DIR/*/runs/*))"
    words = f'-m x -m "{run}\nRalph-Task: A"'
    script = f"echo n > new; git add new; git commit -q {words}; echo m > more; {COMPLETE}"
    assert project.run(script).code == 0
    assert project.subjects() == ["A: x", "x", "begin"]
    runs = project.git("log", "-2", "--format=%(trailers:key=Ralph-Run,valueonly)").split()
    assert runs[0] == runs[1]
    assert project.dirt() == []


@pytest.mark.parametrize(
    "deed",
    ["echo other > README; rm mine; echo 2 >> staged", "git checkout -q .; git clean -fq", "true"],
)
def test_a_persons_files_are_as_before_when_a_task_is_done(project: Project, deed: str) -> None:
    """ "`--allow-dirty`, which restores it exactly"."""
    (project.path / "README").write_text("half done\n")
    (project.path / "mine").write_text("hours of work\n")
    (project.path / "staged").write_text("one\n")
    project.git("add", "staged")
    before = project.git("status", "--porcelain=v2")
    project.tasks(A)
    done = project.run(f"{deed}; echo n > new; {COMPLETE}", "--allow-dirty")
    assert_clear(done, 0)
    after = project.git("status", "--porcelain=v2")
    assert [line for line in after.splitlines() if ".ralph" not in line] == before.splitlines()
    assert (project.path / "README").read_text() == "half done\n"
    assert (project.path / "mine").read_text() == "hours of work\n"
    assert (project.path / "staged").read_text() == "one\n"
    assert ("left-1" in project.kept()) is (deed != "true")
    assert "new" in project.git("show", "--name-only", "--format=", "HEAD").split()
