"""B §Concurrency: `ralph tasks run --parallel N`, with real git and an agent that is a script."""

import json
import os
import signal
import sys

import pytest
from backlog_support import COMPLETE, Project, project
from parallel_support import MEET, assert_tidy, run, tasks
from run_support import Running, assert_replays, ralph
from story_support import IN_OVERLAY

from kits.thorough import dealt

__all__ = ["project"]

RESOLVE = "grep -v '^[<=>]\\{7\\}' shared > both; mv both shared"


@pytest.fixture(autouse=True)
def _where(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROJECT", str(project.path))


@pytest.mark.parametrize("sandbox", dealt([False, True], 1))
def test_independent_tasks_are_worked_on_at_the_same_time(
    project: Project,
    sandbox: bool,
) -> None:
    """Four turns that wait for each other end; each task is one commit on the branch."""
    tasks(project, "a", "b", "c", "d")
    meet = "" if sandbox else "meet 4;"
    flags = ("--sandbox", "worktree") if sandbox else ()
    script = f'{meet} echo "$id" > "$id.txt"; {COMPLETE}'
    done = run(project, script, *flags, sandbox=sandbox)
    assert done.code == 0, done.err
    assert set(project.statuses().values()) == {"done"}
    assert sorted(project.subjects()) == sorted([*(f"{n}: It is {n}" for n in "abcd"), "begin"])
    assert project.git("log", "--merges", "--oneline") == ""
    for name in "abcd":
        assert (project.path / f"{name}.txt").read_text() == f"{name}\n"
    assert "b | [ralph] Committed: b: It is b" in done.err
    assert ": 4 tasks done." in done.err
    assert_tidy(project)
    assert_replays()


@IN_OVERLAY
def test_that_an_agent_cannot_commit_is_no_alarm(project: Project) -> None:
    """Every worker is in a work tree, whose repository lies outside; the host commits for it."""
    tasks(project, "a", "b")
    done = run(project, f'echo "$id" > "$id.txt"; {COMPLETE}', "--sandbox", "overlay", sandbox=True)
    assert done.code == 0, done.err
    assert "nothing can be committed" not in done.err


def test_commits_of_an_agents_own_become_part_of_its_task(project: Project) -> None:
    """B: "once per task, subject `<id>: <title>`", also when it had to be put on newer work."""
    tasks(project, "a", "b")
    script = f"""meet 2; echo 1 > "$id"; git add -A; git commit -qm mine; echo 2 >> "$id"
    [ $id = a ] || merged a; {COMPLETE}"""
    assert run(project, script).code == 0
    assert project.subjects() == ["b: It is b", "a: It is a", "begin"]
    assert (project.path / "b").read_text() == "1\n2\n"
    assert_tidy(project)


def test_dependents_start_from_what_their_blockers_merged(project: Project) -> None:
    """ "A later task starts from what earlier ones merged." """
    tasks(project, "a", "b", "c", c={"blockedBy": ["a"]}, b={"blockedBy": ["c"]})
    done = run(project, f'cat a c > "$id.seen" 2>/dev/null; echo "$id" > "$id"; {COMPLETE}')
    assert done.code == 0, done.err
    assert project.subjects() == ["b: It is b", "c: It is c", "a: It is a", "begin"]
    assert (project.path / "c.seen").read_text() == "a\n"
    assert (project.path / "b.seen").read_text() == "a\nc\n"
    assert_tidy(project)


def test_a_conflict_goes_back_to_the_agent_once(project: Project) -> None:
    """It finds both versions in the file, resolves them, and the task is merged."""
    tasks(project, "a", "b")
    script = f"""if [ $n = 1 ]; then echo "$id" > shared; meet 2; [ $id = a ] || merged shared
    else {RESOLVE}; fi; {COMPLETE}"""
    done = run(project, script)
    assert done.code == 0, done.err
    assert sorted((project.path / "shared").read_text().split()) == ["a", "b"]
    assert project.subjects() == ["b: It is b", "a: It is a", "begin"]
    told = project.prompt("b", 2)
    assert "conflict with theirs in shared." in told
    assert "CONFLICT (add/add): Merge conflict in shared" in told
    assert (project.turns("a"), project.turns("b")) == (1, 2)
    assert_tidy(project)


def test_an_unresolved_conflict_is_parked_and_its_branch_is_kept(project: Project) -> None:
    """Markers that an agent leaves are never committed; what it did is on `ralph/<task>`."""
    tasks(project, "a", "b", "c", c={"blockedBy": ["b"]})
    script = f"""if [ $n = 1 ]; then echo "$id" > shared; meet 2; [ $id = a ] || merged shared; fi
    echo "$id $n" > "$id.txt"; {COMPLETE}"""
    done = run(project, script)
    assert done.code == 3, done.err
    assert project.statuses() == {"a": "done", "b": "blocked", "c": "pending"}
    assert "conflicts are left in shared" in project.task("b")["reason"]
    assert (project.path / "shared").read_text() == "a\n"
    assert not (project.path / "b.txt").exists()
    assert project.git("show", "ralph/b:b.txt") == "b 2\n"
    assert "<<<<<<<" in project.git("show", "ralph/b:shared")
    assert project.git("log", "--format=%s", "main..ralph/b") == "b: It is b\n"
    assert ".ralph" not in project.git("diff", "--name-only", "main...ralph/b")
    assert_tidy(project, "ralph/b")


def test_gates_run_on_the_merged_tree(project: Project) -> None:
    """Each task passes alone; together they do not: back to the agent once, then parked."""
    project.settings(guardrails=[{"command": "! { test -e a && test -e b; }"}])
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "settings")
    tasks(project, "a", "b")
    done = run(project, f'echo "$id" > "$id"; meet 2; [ $id = a ] || merged a; {COMPLETE}')
    assert done.code == 3, done.err
    assert project.statuses() == {"a": "done", "b": "blocked"}
    assert "Other tasks were merged while you worked" in project.prompt("b", 2)
    assert project.turns("b") == 2
    assert not (project.path / "b").exists()
    assert project.git("show", "ralph/b:b") == "b\n"
    assert_tidy(project, "ralph/b")


def test_a_persons_commit_meanwhile_is_no_trouble(project: Project) -> None:
    """The work is put on top of it."""
    tasks(project, "a", "b")
    script = f"""echo "$id" > "$id"; if [ $id = a ]; then cd "$PROJECT"; echo mine > mine
    git add mine; git commit -qm "by a person"; fi; [ $id = a ] || merged mine; {COMPLETE}"""
    done = run(project, script)
    assert done.code == 0, done.err
    assert project.subjects()[-2:] == ["by a person", "begin"]
    assert {*project.subjects()} >= {"a: It is a", "b: It is b"}
    assert (project.path / "mine").read_text() == "mine\n"
    assert_tidy(project)


def test_what_a_person_has_not_committed_is_not_overwritten(project: Project) -> None:
    """Such a task is parked; others are merged beside the changes."""
    (project.path / "README").write_text("mine\n")
    tasks(project, "a", "b")
    script = f"if [ $id = a ]; then echo theirs > README; else echo b > b; fi; {COMPLETE}"
    done = run(project, script, "--allow-dirty")
    assert done.code == 3, done.err
    assert project.statuses() == {"a": "blocked", "b": "done"}
    assert (
        "uncommitted changes in the project are in the way: README" in project.task("a")["reason"]
    )
    assert (project.path / "README").read_text() == "mine\n"
    assert project.git("show", "ralph/a:README") == "theirs\n"
    assert project.dirt() == [" M README"]


def test_tasks_that_two_agents_add_have_two_ids(project: Project) -> None:
    """Each adds to the list that it sees; the project has both."""
    tasks(project, "T-1", "T-2")
    project.git("add", "-fA")
    project.git("commit", "-q", "-m", "list")
    script = f"""case $id in T-1|T-2) "$PYTHON" -m ralph tasks add "by $id" >/dev/null;; esac
    meet 2; {COMPLETE}"""
    os.environ["PYTHON"] = sys.executable
    done = run(project, script)
    assert done.code == 0, done.err
    titles = {task["title"] for task in project.lines("tasks")}
    assert titles == {"It is T-1", "It is T-2", "by T-1", "by T-2"}
    assert set(project.statuses().values()) == {"done"}


def test_an_interrupted_run_goes_on_with_what_it_had(project: Project) -> None:
    """Ctrl+C, then `ralph resume`: nothing is lost, and nothing is left behind."""
    tasks(project, "a", "b", "c", "d")
    script = f"""{MEET}
    echo "$n" >> "$id.txt"; meet 2; while [ ! -e "$NOTES/go" ]; do sleep 0.02; done; {COMPLETE}"""
    agent = project.agent(script)
    words = ("tasks", "run", "--agent", agent, "--no-sandbox", "--parallel", "2")
    running = Running(project.path, *words)
    running.await_that(lambda: len(list(project.notes.glob("here-*"))) == 2)
    running.send(signal.SIGINT)
    running.await_that(lambda: "shutting down" in running.err())
    (project.notes / "go").touch()
    assert running.process.wait(30) == 130
    done = ralph("resume")
    assert done.code == 0, done.err
    assert set(project.statuses().values()) == {"done"}
    assert [project.turns(name) for name in "abcd"] == [1, 1, 1, 1]
    assert (project.path / "a.txt").read_text() == "1\n"
    assert_tidy(project)


@pytest.mark.parametrize("workers", dealt(["1", "2"], 1))
def test_a_killed_run_that_is_not_resumed_loses_no_work(project: Project, workers: str) -> None:
    """The next run finds its worktrees, keeps what is in them, and goes on with it."""
    tasks(project, "a", "b")
    script = f"""{MEET}
    echo "$n" >> "$id.txt"; meet 2; while [ ! -e "$NOTES/go" ]; do sleep 0.02; done; {COMPLETE}"""
    agent = project.agent(script)
    words = ("tasks", "run", "--agent", agent, "--no-sandbox", "--parallel", "2")
    running = Running(project.path, *words)
    running.await_that(lambda: len(list(project.notes.glob("here-*"))) == 2)
    running.process.kill()
    running.process.wait()
    (project.notes / "go").touch()
    done = ralph(*words[:-1], workers)
    assert done.code == 0, done.err
    assert "a was left in the middle by an earlier run" in done.err
    assert (project.path / "a.txt").read_text() == "1\n2\n"
    assert set(project.statuses().values()) == {"done"}
    assert len(project.git("worktree", "list").splitlines()) == 1


def test_programs_get_objects_of_every_worker(project: Project) -> None:
    """`--json`: each line is whole, and the last one tells how all of it ended."""
    tasks(project, "a", "b", "c")
    done = run(project, f'echo "$id" > "$id"; {COMPLETE}', "--json")
    assert done.code == 0
    runs = {line["run"] for line in done.objects if line["type"] == "began"}
    sent = [line for line in done.objects if line["type"] == "assigned"]
    assert {line["assignment"]["task"] for line in sent} == {*"abc"}
    assert runs == {line["worker"] for line in done.objects if line["type"] == "returned"}
    assert [line["type"] for line in done.objects].count("stop") == 1
    assert done.objects[-1]["type"] == "stop"
    assert done.objects[-1]["iterations"] == 3


def test_an_agent_is_named_by_its_way_from_the_project(project: Project) -> None:
    """From a worktree `../agent.sh` would be another."""
    tasks(project, "a", "b")
    project.agent(f'echo "$id" > "$id"; {COMPLETE}')
    words = ("--agent", "../agent.sh", "--no-sandbox", "--parallel", "2")
    done = ralph("tasks", "run", *words)
    assert done.code == 0, done.err
    assert_tidy(project)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--parallel", "0"), "a whole number, 1 or more"),
        (("--parallel", "many"), "many"),
    ],
)
def test_a_number_of_workers_that_cannot_be(
    project: Project,
    flags: tuple[str, ...],
    words: str,
) -> None:
    """Bad input is refused."""
    tasks(project, "a")
    done = project.run(COMPLETE, *flags)
    assert done.code == 2
    assert words in done.err


def test_a_branch_that_is_in_the_way_is_named(project: Project) -> None:
    """Before anything begins."""
    tasks(project, "a", "b")
    project.git("branch", "ralph")
    done = run(project, COMPLETE)
    assert done.code == 2
    assert "git branch -m ralph" in done.err
    assert (
        json.loads((project.path / ".ralph/tasks.jsonl").read_text().splitlines()[0])["id"] == "a"
    )


def test_a_new_worktree_is_set_up_first(project: Project) -> None:
    """`loop.setup`: what git ignores is not in a worktree, and a task may need it."""
    (project.path / ".gitignore").write_text("tools\n")
    project.settings(loop={"setup": "mkdir tools && echo hammer > tools/one"})
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "settings")
    tasks(project, "a", "b")
    done = run(project, f'cat tools/one > "$id"; {COMPLETE}')
    assert done.code == 0, done.err
    assert (project.path / "b").read_text() == "hammer\n"
    project.settings(loop={"setup": "echo no such package; exit 7"})
    project.git("commit", "-q", "-am", "broken")
    tasks(project, "c", "d")
    done = run(project, COMPLETE)
    assert done.code == 2
    assert "loop.setup failed in a new worktree (exit code 7): no such package" in done.err
