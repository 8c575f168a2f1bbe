"""`ralph tasks run` (B): select, complete, limit, roll back, commit."""

import shutil
import subprocess
from pathlib import Path

import pytest
from backlog_support import COMPLETE, Project, project
from run_support import assert_clear, assert_replays, ralph

from kits.thorough import dealt

__all__ = ["project"]

A = {"id": "A", "title": "The first"}
B = {"id": "B", "title": "The second", "blockedBy": ["A"]}
C = {"id": "C", "title": "The third", "priority": 9}


def test_every_task_is_worked_on_committed_and_recorded(project: Project) -> None:
    """B §The Loop: pick, iterate, commit with the task's id, learn, next."""
    project.tasks(A, B, C)
    done = project.run(f"echo $id > $id.txt; {COMPLETE}")
    assert_clear(done, 0, "Task C: The third", "Committed: A: The first", ": 3 tasks done.")
    assert project.subjects() == ["B: The second", "A: The first", "C: The third", "begin"]
    assert project.statuses() == {"A": "done", "B": "done", "C": "done"}
    assert project.git("show", "--name-only", "--format=", "HEAD").split() == [
        ".ralph/learning.jsonl",
        ".ralph/progress.jsonl",
        ".ralph/tasks.jsonl",
        "B.txt",
    ]
    assert project.git("status", "--porcelain") == ""
    assert "Ralph-Task: B" in project.git("log", "-1", "--format=%B")
    assert len(project.lines("tasks")) == 3  # compacted
    entries = [e for e in project.lines("progress") if e["type"] == "iteration"]
    assert [(e["taskId"], e["iteration"], e["status"]) for e in entries] == [
        ("C", 1, "complete"),
        ("A", 1, "complete"),
        ("B", 1, "complete"),
    ]
    assert entries[0]["filesystemDelta"] == [{"path": "C.txt", "change": "added"}]
    assert set(entries[0]) >= {"taskId", "iteration", "cost", "status", "reason"}
    assert_replays()


def test_a_run_goes_on_from_any_earlier_commit(project: Project) -> None:
    """ "On a checkout of any earlier commit `ralph tasks run` goes on from what the file says"."""
    project.tasks(A, B)
    work = f"echo $id > $id.txt; {COMPLETE}"
    assert project.run(work).code == 0
    project.git("checkout", "-q", "HEAD~1")
    assert project.statuses() == {"A": "done", "B": "pending"}
    done = project.run(work)
    assert done.code == 0
    assert (project.turns("A"), project.turns("B")) == (1, 2)
    assert project.subjects()[0] == "B: The second"


CHECKED = {"id": "A", "title": "x", "completion": {"type": "test_passing", "command": "test -f a"}}


@pytest.mark.parametrize("words", [COMPLETE, "true"], ids=["claims", "says nothing"])
def test_a_task_with_a_check_is_done_when_the_check_passes(project: Project, words: str) -> None:
    """ "complete only when the check passes, whatever the agent says, and also when it says
    nothing"."""
    project.tasks(CHECKED)
    done = project.run(f"[ $n -lt 3 ] && echo $n > note || touch a; {words}")
    assert_clear(done, 0)
    assert project.turns("A") == 3
    assert "`test -f a` exited with code 1" in project.prompt("A", 2)
    evidence = project.task("A")["evidence"]
    assert (evidence["kind"], evidence["command"]) == ("test_passing", "test -f a")
    assert evidence["exitCode"] == 0
    assert project.git("cat-file", "-t", evidence["tree"]).strip() == "tree"


SCRIPTED = {"id": "A", "title": "x", "completion": {"type": "validate", "script": "a.ts"}}


@pytest.fixture
def no_runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of programs, of which none runs TypeScript, in place of the usual PATH."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("git", "sh", "cat", "sed", "head", "mkdir", "touch", "chmod", "python3", "env"):
        (programs / name).symlink_to(shutil.which(name) or name)
    monkeypatch.setenv("PATH", str(programs))
    return programs


@pytest.mark.usefixtures("no_runner")
@pytest.mark.parametrize("beside", [(), ("--parallel", "2")], ids=["one", "two at a time"])
def test_a_script_that_nothing_here_runs_is_refused_before_a_turn(
    project: Project, beside: tuple[str, ...]
) -> None:
    """The issue: "a missing TypeScript runner is a configuration error when the task is chosen, not
    five paid iterations"."""
    why = "nothing to run a.ts with is installed"
    project.tasks(SCRIPTED)
    done = project.run(COMPLETE, *beside)
    assert_clear(done, 2, "A could not be proven", why, "tsx", "node 22.6 or later")
    project.tasks(SCRIPTED, {"id": "B", "title": "y"})
    assert_clear(project.run(COMPLETE, "--task", "A"), 2, why)
    done = project.run(f"touch b; {COMPLETE}", *beside)
    assert_clear(done, 3, f"A is not begun: {why}", f"A was not begun: {why}")
    assert (project.turns("A"), project.turns("B")) == (0, 1)
    assert project.statuses() == {"A": "pending", "B": "done"}


def test_a_runner_that_an_earlier_task_installs_is_there_for_the_next(
    project: Project, no_runner: Path
) -> None:
    """What can be proven is known when a task is chosen, not when the run begins."""
    project.tasks(SCRIPTED, {"id": "B", "title": "y"})
    tsx = f"printf '#!/bin/sh\\nexit 0\\n' > {no_runner}/tsx; chmod +x {no_runner}/tsx"
    done = project.run(f"[ $id = B ] && {{ {tsx}; }}; touch $id a.ts; {COMPLETE}")
    assert_clear(done, 0)
    assert project.statuses() == {"A": "done", "B": "done"}


def test_the_last_iterations_own_error_is_recorded_beside_the_limit(project: Project) -> None:
    """The issue: "The last iteration's own error is recorded beside the limit"."""
    project.tasks({**A, "limits": {"maxIterations": 1}})
    done = project.run("echo no disk >&2; exit 7")
    error = "exit code 7: no disk"
    told = f"task limit: 1 iteration used up; the last iteration: {error}"
    assert_clear(done, 3, told)
    assert project.task("A")["reason"] == told
    last = next(e for e in reversed(project.lines("progress")) if e["type"] == "iteration")
    assert (last["status"], last["reason"], last["error"]) == ("blocked", told, error)


def test_a_task_without_a_check_needs_the_claim(project: Project) -> None:
    project.tasks({**A, "limits": {"maxIterations": 2}})
    done = project.run("echo COMPLETE; touch done")
    assert_clear(done, 3, "The bare word COMPLETE does not count")
    assert project.task("A")["status"] == "blocked"


def test_a_task_over_its_limit_is_undone_blocked_and_the_next_one_starts(project: Project) -> None:
    """B §On Limit Reached: restored, marked `blocked` with the reason, and the next one."""
    project.tasks(A, {"id": "B", "title": "other"})
    script = f"""
    if [ $id = A ]; then echo $n >> junk; echo x >> README; git add -A; git commit -qm mine; fi
    [ $id = B ] && {{ ls > seen; {COMPLETE}; }}"""
    done = project.run(script, "--max-iterations", "2")
    assert_clear(done, 3, "A is blocked: task limit: 2 iterations used up")
    task = project.task("A")
    assert (task["status"], task["reason"]) == ("blocked", "task limit: 2 iterations used up")
    assert project.subjects() == ["B: other", "begin"]
    assert (project.path / "seen").read_text() == "README\nseen\n"
    assert (project.path / "README").read_text() == "hello\n"
    saved = project.kept()["cut-2"]
    assert project.git("show", f"{saved}:junk") == "1\n2\n"
    assert "mine" in project.git("log", "--format=%s", saved)
    assert project.dirt() == []


def test_a_failed_iteration_is_undone_and_an_unmet_check_is_not(project: Project) -> None:
    """B §Rollback; ADR 21."""
    project.tasks(CHECKED)
    script = """
    case $n in 1) echo kept > kept;; 2) echo bad > bad; exit 7;; 3) ls > seen; touch a;; esac"""
    assert project.run(script).code == 0
    assert (project.path / "seen").read_text() == "README\nkept\nseen\n"
    assert "exit code 7" in project.prompt("A", 3)
    assert "were discarded" in project.prompt("A", 3)
    entries = [e["status"] for e in project.lines("progress") if e["type"] == "iteration"]
    assert entries == ["continue", "failed", "complete"]


def test_who_says_failed_has_failed(project: Project) -> None:
    project.tasks(CHECKED)
    failed = """echo '<result>{"status": "failed", "error": "wrong way"}</result>'"""
    assert project.run(f"touch a; [ $n = 1 ] && {{ touch bad; {failed}; }}").code == 0
    assert project.turns("A") == 2
    assert not (project.path / "bad").exists()


def test_a_question_parks_only_its_task_until_it_is_answered(project: Project) -> None:
    """ "`ralph tasks answer ID` puts the answer into its next prompt"; "the run ends 3"."""
    project.tasks(A, {"id": "C", "title": "other"})
    ask = 'echo "<promise>DECIDE: red or blue?</promise>"'
    script = f"[ $id$n = A1 ] && {{ echo half > half; {ask}; }} || {{ touch $id; {COMPLETE}; }}"
    done = project.run(script)
    assert_clear(done, 3, "A asks: red or blue?", "ralph tasks answer")
    task = project.task("A")
    assert (task["status"], task["question"]) == ("blocked", "red or blue?")
    assert project.subjects() == ["C: other", "begin"]
    assert ralph("tasks", "answer", "A", "blue").code == 0
    assert project.task("A")["status"] == "pending"
    assert project.run(script).code == 0
    assert "A person has answered:\n- blue" in project.prompt("A", 2)
    assert f"git show {task['saved']}" in project.prompt("A", 2)
    assert "question" not in project.task("A")


@pytest.mark.parametrize(
    ("arguments", "code", "worked"),
    dealt(
        [
            (["--task", "B"], 3, {}),
            (["--task", "C"], 0, {"C": 1}),
            (["--tag", "ui"], 0, {"A": 1}),
            (["--tag", "ui", "--tag", "db"], 0, {"A": 1, "C": 1}),
            (["--tag", "none"], 0, {}),
            (["--max-tasks", "2"], 1, {"A": 1, "C": 1}),
            (["--max-tasks", "3"], 0, {"A": 1, "B": 1, "C": 1}),
        ],
        3,
    ),
)
def test_which_tasks_and_how_many(
    project: Project, arguments: list[str], code: int, worked: dict[str, int]
) -> None:
    project.tasks({**A, "tags": ["ui"]}, B, {**C, "tags": ["db"]})
    done = project.run(f"touch $id; {COMPLETE}", *arguments)
    assert_clear(done, code)
    assert {name: n for name in "ABC" if (n := project.turns(name))} == worked


@pytest.mark.parametrize("how", ["continue", "stop", "retry"])
def test_what_follows_a_failed_task(project: Project, how: str) -> None:
    """B §Configuration: `onFailure`."""
    project.tasks(A, {"id": "C", "title": "other"})
    script = f"echo $n > $id; [ $id = C ] && {COMPLETE}"
    done = project.run(script, "--on-failure", how, "--max-iterations", "1")
    assert done.code == 3
    turns = (project.turns("A"), project.turns("C"))
    assert turns == {"continue": (1, 1), "stop": (1, 0), "retry": (2, 1)}[how]


# ------------------------------------------------------------------ bad input


def test_a_dirty_tree_is_refused_with_a_list(project: Project) -> None:
    project.tasks(A)
    (project.path / "README").write_text("mine\n")
    (project.path / "new file").touch()
    done = project.run(COMPLETE)
    assert_clear(done, 2, "README", "new file", "--allow-dirty", "git stash")
    assert project.turns("A") == 0


def test_what_was_dirty_stays_exactly_so(project: Project) -> None:
    """ "`--allow-dirty`, which restores it exactly"; "not part of a task's commit"."""
    (project.path / "staged").write_text("one\n")
    project.git("add", "staged")
    (project.path / "staged").write_text("two\n")
    (project.path / "README").write_text("mine\n")
    (project.path / "new").write_text("new\n")
    before = project.git("status", "--porcelain=v2")
    project.tasks(A, {"id": "C", "title": "other"})
    script = f"""
    if [ $id = A ]; then rm new; echo broken > README; git add -A; git commit -qm x; fi
    [ $id = C ] && {{ echo work > work; {COMPLETE}; }}"""
    done = project.run(script, "--allow-dirty", "--max-iterations", "1")
    assert_clear(done, 3)
    after = project.git("status", "--porcelain=v2")
    ours = [line for line in after.splitlines() if ".ralph" not in line]
    assert ours == [line for line in before.splitlines() if ".ralph" not in line]
    assert (project.path / "staged").read_text() == "two\n"
    assert "work" in project.git("show", "--name-only", "--format=", "HEAD").split()


@pytest.mark.parametrize(
    ("tasks", "arguments", "words"),
    [
        ([{**A, "blockedBy": ["B"]}, B], [], ["A -> B -> A"]),
        ([A], ["--task", "Z"], ["there is no task Z"]),
        ([], ["--task", "Z"], ["there is no task Z"]),
        ([A], ["--max-iterations", "0"], ["--max-iterations: found 0"]),
    ],
)
def test_what_cannot_work_is_refused_before_the_first_turn(
    project: Project, tasks: list[dict[str, object]], arguments: list[str], words: list[str]
) -> None:
    project.tasks(*tasks)
    assert_clear(project.run(COMPLETE, *arguments), 2, *words)
    assert project.turns("A") == 0


def test_a_file_of_the_project_is_not_taken_for_ours(project: Project) -> None:
    """A run keeps a `git.json` in its own directory."""
    (project.path / "git.json").write_text("[]")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "json")
    project.tasks(A)
    assert_clear(project.run(f"touch a; {COMPLETE}"), 0)


def test_no_tasks_at_all(project: Project) -> None:
    assert_clear(project.run(COMPLETE), 2, "there are no tasks here", "ralph tasks add")
    project.tasks()
    assert_clear(project.run(COMPLETE), 0)


def test_a_broken_line_is_named_and_the_rest_works(project: Project) -> None:
    """ "named by line; the rest still works; nothing is deleted"."""
    project.tasks(A)
    path = project.path / ".ralph" / "tasks.jsonl"
    path.write_text("{not json\n" + path.read_text() + '{"id": "C", "status": "odd"}\n')
    done = project.run(f"touch $id; {COMPLETE}")
    assert_clear(done, 0, "line 1", "line 3")
    assert project.turns("A") == 1
    assert "{not json" in path.read_text()
    assert '"odd"' in path.read_text()


def test_a_directory_that_is_no_repository(project: Project) -> None:
    project.tasks(A)
    subprocess.run(("rm", "-rf", ".git"), check=True)
    assert_clear(project.run(COMPLETE), 2, "git init")


def test_a_repository_without_commits(project: Project) -> None:
    subprocess.run(("rm", "-rf", ".git", "README"), check=True)
    project.git("init", "-q", "-b", "main")
    project.git("config", "user.name", "A Person")
    project.git("config", "user.email", "person@example.com")
    project.tasks(A, {"id": "C", "title": "other"})
    script = f"echo $id > $id; [ $id = C ] && {COMPLETE}"
    assert project.run(script, "--max-iterations", "1").code == 3
    assert project.subjects() == ["C: other"]
    assert not (project.path / "A").exists()


def test_a_detached_head(project: Project) -> None:
    project.git("checkout", "-q", "--detach")
    project.tasks(A)
    assert_clear(project.run(f"touch $id; {COMPLETE}"), 0)
    assert project.subjects() == ["A: The first", "begin"]


def test_a_check_that_hangs_ends_with_the_tasks_time(project: Project) -> None:
    """ "Completion checks run under what is left of the task's time"."""
    hangs = {"type": "test_passing", "command": "sleep 600"}
    project.tasks({**A, "completion": hangs, "limits": {"maxTime": 1.5}})
    done = project.run("touch x")
    assert_clear(done, 3, "the task's time is used up")
    assert project.task("A")["status"] == "blocked"


def test_a_dry_run_without_a_turn_says_why(project: Project) -> None:
    project.tasks(
        {"id": "T-1", "title": "one", "status": "blocked"},
        {"id": "T-2", "title": "two", "blockedBy": ["T-1"]},
    )
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "tasks")
    stuck = project.run("", "--dry-run")
    assert_clear(stuck, 2, "T-1 is blocked; T-2 waits for T-1", "ralph tasks list")
    project.tasks({"id": "T-1", "title": "one", "status": "done"})
    project.git("commit", "-q", "-a", "-m", "done")
    done = project.run("", "--dry-run")
    assert (done.code, done.out) == (0, "There is no turn to take: nothing is left to do.\n")


def test_the_work_of_a_task_is_shown(project: Project) -> None:
    """By its commit, without Ralph's records; its evidence in words."""
    project.tasks(
        {"id": "A", "title": "one", "completion": {"type": "test_passing", "command": "test -f a"}},
        {"id": "B", "title": "two", "priority": -1},
        {"id": "C", "title": "three", "status": "blocked"},
    )
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "tasks")
    assert project.run(f"[ $id = B ] || printf 'it\\033[2Jis\\n' > a; {COMPLETE}").code == 3
    said = ralph("tasks", "show", "A").out
    assert "  evidence: `test -f a` exited with 0; ignored files are outside the proof\n" in said
    work = ralph("tasks", "show", "A", "--diff")
    assert (work.code, "\n+itis\n" in work.out, ".ralph" in work.out) == (0, True, False)
    assert work.out.startswith(f"commit {project.git('rev-parse', 'HEAD~1').strip()}")
    shown = ralph("tasks", "show", "A", "--diff", "--json").objects[0]
    assert shown["diff"].rstrip() == work.out.rstrip()
    assert "  evidence: the agent said so" in ralph("tasks", "show", "B").out
    assert_clear(ralph("tasks", "show", "B", "--diff"), 2, "changed nothing but Ralph's records")
    assert_clear(
        ralph("tasks", "show", "C", "--diff"), 2, "there is no work of C yet: it is blocked"
    )


def test_the_work_of_a_try_that_was_undone_is_shown(project: Project) -> None:
    project.tasks({"id": "A", "title": "one"})
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "tasks")
    done = project.run('echo try > a; echo "<promise>BLOCKED: no key</promise>"')
    assert done.code == 3, done.err
    assert project.task("A")["saved"]
    assert "\n+try\n" in ralph("tasks", "show", "A", "--diff").out
