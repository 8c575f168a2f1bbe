"""What git has to do with `ralph tasks run`: commits of agents, locks, haste (ADR 28)."""

import subprocess

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
