"""What a run of `ralph tasks` keeps and tells: the list, hooks, prompts, commits (B)."""

import json

import pytest
from backlog_support import COMPLETE, Project, project
from run_support import Running, assert_clear, journals, ralph

pytestmark = pytest.mark.slow

__all__ = ["project"]

A = {"id": "A", "title": "The first"}
C = {"id": "C", "title": "The third", "priority": 9}
GOES_AWAY = 'echo half > half; rm "$0"'  # so that it cannot be started again
CHECKED = {"id": "A", "title": "x", "completion": {"type": "test_passing", "command": "test -f a"}}


def test_a_commit_that_the_users_hook_refuses_goes_back_to_the_agent(project: Project) -> None:
    hook = project.path / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\ntest -f tidy || { echo not tidy; exit 1; }\n")
    hook.chmod(0o755)
    project.tasks(A)
    done = project.run(f"touch a; [ $n = 2 ] && touch tidy; {COMPLETE}")
    assert_clear(done, 0, "commit failed: not tidy")
    assert "not tidy" in project.prompt("A", 2)
    assert project.subjects() == ["A: The first", "begin"]


def test_a_commit_that_nobody_can_mend_ends_the_run(project: Project) -> None:
    hook = project.path / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho no key; exit 1\n")
    hook.chmod(0o755)
    project.tasks(A, {"id": "C", "title": "other"})
    done = project.run(f"echo $n > a; {COMPLETE}")
    assert_clear(done, 3, "the commit was refused: no key")
    assert (project.turns("A"), project.turns("C")) == (2, 0)
    task = project.task("A")
    assert task["status"] == "in_progress"
    assert project.git("show", f"{task['saved']}:a") == "2\n"
    assert project.dirt() == []


@pytest.mark.parametrize("flags", [(), ("--parallel", "2")], ids=["one", "two"])
def test_what_became_of_blocked_tasks_is_committed(
    project: Project, flags: tuple[str, ...]
) -> None:
    """ "A run's records of blocked tasks are committed at the end of the run": nothing else is."""
    (project.path / "mine").write_text("staged\n")
    project.tasks(A, C)
    project.git("add", "mine")
    script = 'echo "$id" > "$id"; echo "<promise>BLOCKED: no key</promise>"'
    done = project.run(script, "--allow-dirty", *flags)
    assert done.code == 3, done.err
    assert project.git("status", "--porcelain") == "A  mine\n"
    assert project.subjects() == ["Record what became of the tasks", "begin"]
    names = project.git("show", "--format=", "--name-only", "HEAD").split()
    assert names == [f".ralph/{name}.jsonl" for name in ("learning", "progress", "tasks")]
    assert "Ralph-Run: " in project.git("log", "-1", "--format=%b")


def test_records_that_git_ignores_are_not_committed(project: Project) -> None:
    project.tasks(A)
    (project.path / ".git" / "info" / "exclude").write_text(".ralph/\n")
    done = project.run('echo "<promise>BLOCKED: no key</promise>"')
    assert done.code == 3, done.err
    assert project.subjects() == ["begin"]


def test_a_run_that_ends_in_the_middle_of_a_task_leaves_a_clean_tree(project: Project) -> None:
    project.quick()
    project.tasks(A)
    assert project.run(GOES_AWAY).code == 2
    assert project.dirt() == []
    task = project.task("A")
    assert project.git("show", f"{task['saved']}:half") == "half\n"
    done = project.run(f"ls > seen; {COMPLETE}")
    assert_clear(done, 0, f"What was done for A before is back: {task['saved']}")
    assert (project.path / "seen").read_text() == "README\nhalf\nseen\n"
    assert "saved" not in project.task("A")


@pytest.mark.parametrize("flags", [(), ("--parallel", "2")], ids=["one", "two"])
def test_a_task_whose_agent_crashes_does_not_keep_the_others(
    project: Project, flags: tuple[str, ...]
) -> None:
    """ "One task whose agent crashes is parked and the rest goes on"; "the next run does not take
    it first again for ever"."""
    project.tasks({**A, "priority": 9}, {"id": "B", "title": "Two"}, {"id": "D", "title": "Four"})
    project.settings(failAfter=2)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "settings")
    script = f'[ $id != A ] || {{ echo $n >> a; exit 1; }}; touch "$id"; {COMPLETE}'
    done = project.run(script, *flags)
    assert done.code == 3, done.err
    assert project.statuses() == {"A": "blocked", "B": "done", "D": "done"}
    assert "2 agent failures in a row; the last: exit code 1" in project.task("A")["reason"]
    assert project.dirt() == []
    assert project.run(script, *flags).code == 3
    assert project.turns("A") == 2


@pytest.mark.parametrize("flags", [(), ("--parallel", "2")], ids=["one", "two"])
def test_a_broken_agent_blocks_no_task(project: Project, flags: tuple[str, ...]) -> None:
    """ "Two tasks in a row without one successful turn end the run (5) and stay pending"."""
    project.tasks(*({"id": f"T{number}", "title": "x"} for number in range(6)))
    project.settings(failAfter=2)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "settings")
    done = project.run("echo $n >> a; exit 1", *flags)
    assert_clear(done, 5, "the agent failed in T0, T1" if not flags else "the agent failed in T")
    assert set(project.statuses().values()) == {"pending"}
    assert project.dirt() == []
    assert sum(project.turns(f"T{number}") for number in range(6)) <= 8
    if not flags:
        assert "pending again: T0, T1" in done.err
        project.run("echo $n >> a; exit 1")
        assert project.turns("T2") == 2, "the next run does not take the same ones first for ever"


def test_a_tasks_limits_go_on_in_the_next_run(project: Project) -> None:
    """A nightly run with a limit of its own must not pay for the same task without end."""
    project.tasks({**A, "limits": {"maxIterations": 3}}, {"id": "C", "title": "other"})
    project.settings(failAfter=1)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "settings")
    assert project.run("echo $n >> a; exit 1").code == 5
    assert project.statuses() == {"A": "pending", "C": "pending"}
    assert project.run("echo $n >> a; exit 1").code == 5
    done = project.run(f"[ $id = A ] || {COMPLETE}; touch $id")
    assert_clear(
        done, 3, "Iteration 3/3 starting", "A is blocked: task limit: 3 iterations used up"
    )
    assert "Iteration 3 of 3" in project.prompt("A", 3)
    assert "spent" not in project.task("A")


def test_what_the_run_before_left_is_only_named_if_the_project_has_changed(
    project: Project,
) -> None:
    project.quick()
    project.tasks(A)
    assert project.run(GOES_AWAY).code == 2
    saved = project.task("A")["saved"]
    (project.path / "README").write_text("mine\n")
    project.git("commit", "-q", "-a", "-m", "mine")
    assert project.run(f"ls > seen; {COMPLETE}").code == 0
    assert (project.path / "seen").read_text() == "README\nseen\n"
    assert f"git show {saved}" in project.prompt("A", 2)


def test_a_killed_run_does_not_go_on_behind_a_later_one(project: Project) -> None:
    project.tasks(A)
    agent = project.agent("touch $NOTES/begun; sleep 600")
    running = Running(project.path, "tasks", "run", "--agent", agent, "--no-sandbox")
    running.await_that((project.notes / "begun").exists)
    running.process.kill()
    running.process.wait()
    (killed,) = journals()
    assert project.run(f"touch a; {COMPLETE}").code == 0
    assert_clear(ralph("resume"), 2, "it has ended (completed", "ralph tasks run")
    assert_clear(
        ralph("resume", killed.parent.name), 2, "has worked on the tasks since", "ralph tasks run"
    )
    assert project.subjects() == ["A: The first", "begin"]


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ("git reset -q --hard HEAD~1", "Commits of before the task are gone from the branch"),
        ("git commit -q --allow-empty --amend -m other", "Commits of before the task are gone"),
    ],
)
def test_what_was_committed_before_stays_on_the_branch(
    project: Project, deed: str, words: str
) -> None:
    """A task that ends done must not take others' commits away."""
    project.git("commit", "-q", "--allow-empty", "-m", "earlier")
    project.tasks(A)
    done = project.run(f"{deed}; touch a; {COMPLETE}", "--max-iterations", "1")
    assert_clear(done, 3, f"history: {words}")
    assert project.subjects() == ["Record what became of the tasks", "earlier", "begin"]
    assert project.git("symbolic-ref", "HEAD").strip() == "refs/heads/main"


def test_a_hook_that_does_not_end_is_ended_with_the_run(project: Project) -> None:
    hook = project.path / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\nsleep 600\n")
    hook.chmod(0o755)
    project.tasks(A)
    done = project.run(f"touch a; {COMPLETE}", "--max-time", "2s")
    assert_clear(done, 1, "the commit's hooks took too long")
    assert project.dirt() == []


def test_what_an_interrupted_run_left_is_not_taken_for_a_persons(project: Project) -> None:
    project.tasks(A)
    agent = project.agent("[ $n = 2 ] && { touch $NOTES/begun; sleep 600; }; echo $n >> work")
    running = Running(project.path, "tasks", "run", "--agent", agent, "--no-sandbox")
    running.await_that((project.notes / "begun").exists)
    running.process.kill()
    running.process.wait()
    for flags in ((), ("--allow-dirty",)):
        done = project.run(COMPLETE, *flags)
        assert_clear(done, 2, "did not end", "ralph resume", "work")


def test_a_merge_that_is_not_ended_is_no_work_done(project: Project) -> None:
    """Git itself refuses to commit conflicts."""
    for branch, text in (("other", "o"), ("main", "m")):
        project.git("checkout", "-q", "-B", branch, "HEAD" if branch == "other" else "HEAD~1")
        (project.path / "README").write_text(text)
        project.git("commit", "-qam", text)
    project.tasks(A)
    done = project.run(f"git merge -q other; {COMPLETE}", "--max-iterations", "1")
    assert_clear(done, 3, "history: Git is in the middle of a merge")
    assert (project.path / "README").read_text() == "m"
    assert project.dirt() == []


def test_a_persons_files_do_not_come_back_with_the_saved_work(project: Project) -> None:
    (project.path / "mine").write_text("secret")
    project.tasks(A)
    ask = 'echo "<promise>DECIDE: red or blue?</promise>"'
    script = f"echo $n >> work; [ $n = 1 ] && {ask} || {COMPLETE}"
    assert project.run(script, "--allow-dirty").code == 3
    (project.path / "mine").unlink()
    assert ralph("tasks", "answer", "A", "blue").code == 0
    assert_clear(project.run(script), 0, "Not brought back")
    assert "mine" not in project.git("show", "--name-only", "--format=", "HEAD").split()
    assert not (project.path / "mine").exists()


def test_hooks_and_notifications_are_told_as_json(project: Project) -> None:
    """ "commands in settings (JSON on stdin); a failing hook never ends the run"."""
    said = f"cat >> {project.notes}/said"
    names = ("onTaskStart", "onIterationStart", "onIterationEnd", "onTaskEnd")
    hooks = {**dict.fromkeys(names, said), "onAnomaly": "exit 3"}
    notify = {"command": f"cat >> {project.notes}/notified"}
    project.settings(hooks=hooks, notify=notify)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "settings")
    project.tasks(A, {"id": "C", "title": "other"})
    done = project.run(f"touch $id; [ $id = C ] && {COMPLETE}", "--max-iterations", "1")
    assert_clear(done, 3)
    text = (project.notes / "said").read_text()
    heard = [json.loads(part) for part in text.replace("}{", "}\n{").splitlines()]
    assert [(h["hook"], h["task"]["id"]) for h in heard] == [
        *((name, "A") for name in names),
        *((name, "C") for name in names),
    ]
    assert [h["success"] for h in heard if h["hook"] == "onTaskEnd"] == [False, True]
    notified, ended = map(json.loads, (project.notes / "notified").read_text().splitlines())
    assert (notified["event"], notified["taskId"]) == ("blocked", "A")
    assert (ended["event"], ended["tasks_done"]) == ("ended", ["C"])


def test_the_prompt_has_the_projects_papers_and_what_was_learned(project: Project) -> None:
    (project.path / "AGENTS.md").write_text("Use tabs.\n")
    (project.path / "implementation-plan.md").write_text("First the parser.\n")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "papers")
    project.tasks({**CHECKED, "description": "Make it so.", "type": "feature"})
    assert project.run("[ $n = 2 ] && touch a; touch $n").code == 0
    prompt = project.prompt("A", 2)
    for words in (
        "Use tabs.",
        "First the parser.",
        "Make it so.",
        "Iteration 2 of 10",
        "Iteration 1",
    ):
        assert words in prompt
    learned = ralph("tasks", "learn", "--json")
    assert "feature" in learned.out


def test_a_dry_run_shows_the_next_prompt(project: Project) -> None:
    project.tasks(A, C)
    done = project.run(COMPLETE, "--dry-run")
    assert done.code == 0
    assert "Task C: The third" in done.out
    assert project.turns("C") == 0


def test_a_run_that_is_stopped_goes_on(project: Project) -> None:
    project.tasks(CHECKED, {"id": "C", "title": "other"})
    agent = project.agent(f"""
    if [ $id$n = A1 ]; then echo half > half; touch $NOTES/begun; sleep 600; fi
    ls > seen.$id; touch a; {COMPLETE}""")
    running = Running(project.path, "tasks", "run", "--agent", agent, "--no-sandbox")
    running.await_that((project.notes / "begun").exists)
    running.interrupt()
    running.interrupt()
    assert running.end().code == 130
    assert project.dirt() == []  # what a cut-off turn did is undone
    assert ralph("resume").code == 0
    assert project.subjects() == ["C: other", "A: x", "begin"]
    assert not (project.path / "half").exists()
    assert "was cut off" in project.prompt("A", 2)


@pytest.mark.parametrize("flags", [(), ("--parallel", "2")], ids=["one", "two"])
def test_what_is_changed_outside_of_the_project_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    """A commit keeps to the project's directory; what else a task changes must not be lost."""
    inner = project.path / "inner"
    (inner / ".ralph").mkdir(parents=True)
    lines = (json.dumps({"id": name, "title": name}) for name in ("A", "B"))
    (inner / ".ralph" / "tasks.jsonl").write_text("\n".join(lines) + "\n")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "inner")
    monkeypatch.chdir(inner)
    done = project.run(
        f"[ $n = 2 ] || echo x > ../$id; [ $n = 1 ] || rm -f ../$id; touch $id; {COMPLETE}", *flags
    )
    assert done.code == 0, done.err
    assert "Files outside inner/ were changed: " in done.err
    assert {*project.git("ls-files").split()} >= {"inner/A", "inner/B"}
    assert not project.git("status", "--porcelain")
