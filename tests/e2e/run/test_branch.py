"""`--branch`: work goes to a new branch; the last lines say how to look at it and merge it."""

import json
from typing import Any

import pytest
from backlog_support import COMPLETE, Project
from backlog_support import project as project  # noqa: PLC0414  a fixture
from prd_support import story
from run_support import Done, Running, assert_clear, in_shell, ralph
from story_support import StoryProject
from story_support import project as stories  # noqa: F401  a fixture

from kits.thorough import dealt

WORKS = 'echo done > "work-$$"; echo "<response>DONE</response>"'
FAILS = "exit 1"
COMMITS = {"scm": {"command": "git", "tasks": ["commit"]}}


def loop(project: Project, *arguments: str, script: str = WORKS) -> Done:
    """`ralph run` with an agent that does this."""
    agent = project.agent(script)
    return ralph("run", "-p", "Do it", "--agent", agent, "--no-sandbox", *arguments)


def settled(project: Project, **settings: Any) -> None:  # noqa: ANN401
    """Write settings that are committed."""
    project.settings(**settings)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "settings")


def here(project: Project) -> str:
    return project.git("branch", "--show-current").strip()


def type_last_lines(done: Done) -> None:
    """Type what the last two lines say, as a person would."""
    look, merge = done.err.splitlines()[-2:]
    for line in (look.partition(" Look: ")[2], merge.removeprefix("[ralph] Merge      ")):
        typed = in_shell(line)
        assert typed.code == 0, (line, typed.err)


def test_work_goes_to_a_new_branch_and_is_merged_as_the_last_lines_say(project: Project) -> None:
    settled(project, **COMMITS)
    (project.path / "mine").write_text("not committed")
    done = loop(project, "--branch", "it's-$new")
    assert_clear(done, 0, "Branch: it's-$new, made from main", "1 commit on it's-$new. Look: git")
    assert here(project) == "it's-$new"
    assert project.git("log", "--format=%s", "main").splitlines()[0] == "settings"
    assert project.git("status", "--porcelain") == "?? mine\n"
    type_last_lines(done)
    assert here(project) == "main"
    assert project.git("log", "-1", "--format=%an").strip() == "A Person"
    assert project.git("rev-list", "--count", "main").strip() == "3"


def test_without_a_name_it_is_the_runs(project: Project) -> None:
    settled(project, **COMMITS)
    done = loop(project, "--json", "--branch")
    stop = done.objects[-1]
    assert here(project) == f"ralph/{stop['run']}"
    assert (stop["branch"]["name"], stop["branch"]["base"]) == (f"ralph/{stop['run']}", "main")


def test_a_run_that_commits_nothing_says_what_is_left_to_do(project: Project) -> None:
    settled(project)
    done = loop(project, "--branch", "login")
    assert_clear(done, 0, "Branch     nothing is committed on login. Look: git status")
    assert done.err.splitlines()[-1].endswith(
        "Merge      git add -A && git commit && git switch main && git merge login"
    )
    project.git("stash", "--all")
    project.git("switch", "-q", "main")
    done = loop(project, "--branch", "idle", script='echo "<response>DONE</response>"')
    assert "nothing was done on idle. Go back: git switch main && git branch -d idle" in done.err


def test_names_and_places_where_there_can_be_no_branch(project: Project) -> None:
    def refused(name: str, *words: str) -> None:
        done = loop(project, f"--branch={name}")
        assert_clear(done, 2, *words)
        assert project.git("for-each-ref", "--format=%(refname)", "refs/heads") == before

    project.git("switch", "-q", "-c", "taken")
    project.git("switch", "-q", "main")  # now @{-1} is one
    before = project.git("for-each-ref", "--format=%(refname)", "refs/heads")
    for name in ("", "two words", "@{-1}", "a..b", "x.lock", "HEAD", "a\nb"):
        refused(name, "is no name for a git branch", "git help check-ref-format")
    refused("taken", "there is a branch taken already", "git switch taken", "--branch taken-2")
    refused("taken/below", "git cannot make the branch taken/below", "'refs/heads/taken' exists")
    (project.path / ".git" / "MERGE_HEAD").write_text(project.git("rev-parse", "HEAD"))
    refused("new", "git is in the middle of a merge", "git merge --abort")
    (project.path / ".git" / "MERGE_HEAD").unlink()
    project.git("checkout", "-q", "--orphan", "unborn")
    refused("new", "a branch needs a commit to start from", "git commit")
    (project.path / ".git").rename(project.path / "not.git")
    done = loop(project, "--branch=new")
    assert_clear(done, 2, "is in no git repository", "git init")
    assert not list(project.notes.iterdir())  # no agent was started


def test_from_no_branch(project: Project) -> None:
    settled(project, **COMMITS)
    project.git("checkout", "-q", "--detach")
    commit = project.git("rev-parse", "HEAD")[:12]
    done = loop(project, "--branch", "login")
    assert_clear(done, 0, f"git log -p {commit}..login", "git switch BRANCH && git merge login")


def test_a_dry_run_makes_none(project: Project) -> None:
    done = loop(project, "--branch", "login", "--dry-run")
    assert (done.code, done.out.splitlines()[0]) == (
        0,
        "Branch: login, made from main; it stays checked out",
    )
    done = loop(project, "--branch", "login", "--dry-run", "--json")
    assert (done.objects[0]["branch"], here(project)) == ("login", "main")
    assert_clear(loop(project, "--branch", "main", "--dry-run"), 2, "a branch main already")


def test_resume_goes_on_there_and_nowhere_else(project: Project) -> None:
    settled(project, **COMMITS)
    started, go = project.notes / "started", project.notes / "go"
    waits = f"touch {started}; while [ ! -e {go} ]; do sleep 0.05; done"
    words = ("run", "-p", "Do it", "--agent", project.agent(f"{waits}\n{WORKS}"), "--no-sandbox")
    running = Running(project.path, *words, "--branch", "login")
    running.await_that(started.exists)
    running.interrupt()
    go.touch()
    assert running.end().code == 130
    project.git("switch", "-q", "main")
    done = ralph("resume")
    assert_clear(done, 2, "works on the branch login, and checked out now is main")
    assert "git switch login, then: ralph resume" in done.err
    project.git("switch", "-q", "login")
    done = ralph("resume")
    assert_clear(done, 0, "Branch: login, made from main", "git log -p main..login")
    assert here(project) == "login"


HOW = (("--no-sandbox",), ("--sandbox", "worktree"), ("--no-sandbox", "--parallel", "2"))


@pytest.mark.parametrize("how", dealt([(how,) for how in HOW], 1))
def test_tasks_are_committed_there(project: Project, how: tuple[str, ...]) -> None:
    project.tasks({"id": "T-1", "title": "one"}, {"id": "T-2", "title": "two"})
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "tasks")
    agent = project.agent(f'echo "$id" > "$id"; {COMPLETE}')
    done = ralph("tasks", "run", "--agent", agent, "--branch", "two-tasks", *how)
    assert_clear(done, 0, "2 commits on two-tasks. Look: git log -p main..two-tasks")
    assert here(project) == "two-tasks"
    assert project.git("log", "-1", "--format=%s", "main").strip() == "tasks"
    assert done.err.count("Branch: two-tasks") == 1
    type_last_lines(done)
    assert {"T-1: one", "T-2: two"} <= set(project.subjects())


def test_stories_are_worked_on_there(stories: StoryProject) -> None:  # noqa: F811
    stories.stories(story(1))
    done = stories.run("", "--branch", "ralph/story")
    assert_clear(done, 0, "on ralph/story. Look: git log -p ")
    head = (stories.path / ".git" / "HEAD").read_text()
    assert head == "ref: refs/heads/ralph/story\n"


def test_programs_are_told_of_a_refusal(project: Project) -> None:
    done = loop(project, "--branch", "main", "--json")
    assert (done.code, json.loads(done.out)["reason"]) == (2, "config")
