"""What a run of `ralph tasks` keeps and tells: the list, hooks, prompts, commits (B)."""

import json

import pytest
from backlog_support import COMPLETE, Project, project
from run_support import Running, assert_clear, ralph

from ralph.testing.sandbox_stage import overlay_is_usable

__all__ = ["project"]

A = {"id": "A", "title": "The first"}
C = {"id": "C", "title": "The third", "priority": 9}
CHECKED = {"id": "A", "title": "x", "completion": {"type": "test_passing", "command": "test -f a"}}


# ------------------------------------------------------------------ who edits the list


def test_an_agents_edits_of_its_own_line_are_undone_and_reported(project: Project) -> None:
    project.tasks(CHECKED, {"id": "C", "title": "other", "status": "pending"})
    edits = "s/in_progress/done/; s/pending/done/; s/test -f a/true/"
    script = f"""
    [ $id = A ] && sed -i '{edits}' .ralph/tasks.jsonl
    [ $n = 2 ] && touch a
    touch $id; {COMPLETE}"""
    done = project.run(script)
    assert_clear(done, 0, "tasks.jsonl: edited by the turn, and put back: A was changed")
    assert "C was called done" in done.err
    assert (project.turns("A"), project.turns("C")) == (2, 1)
    assert project.task("A")["completion"]["command"] == "test -f a"


def test_an_agent_that_deletes_the_list_changes_nothing(project: Project) -> None:
    project.tasks(A, {"id": "C", "title": "other"})
    assert_clear(project.run(f"rm .ralph/tasks.jsonl; touch $id; {COMPLETE}"), 0, "was taken out")
    assert project.statuses() == {"A": "done", "C": "done"}


def test_a_task_whose_check_passes_is_done_whatever_the_agent_asks(project: Project) -> None:
    project.tasks(CHECKED)
    done = project.run('touch a; echo "<promise>DECIDE: is it fine?</promise>"')
    assert_clear(done, 0)
    assert project.task("A")["status"] == "done"


@pytest.mark.skipif(not overlay_is_usable(), reason="this machine allows no namespaces")
def test_in_a_sandbox_a_persons_editor_is_known_for_what_it_is(project: Project) -> None:
    """ "a task file edited by ... a person while the run goes on"."""
    project.tasks({**A, "description": "old"}, {"id": "C", "title": "other"})
    path = project.path / ".ralph" / "tasks.jsonl"
    agent = project.agent(f"touch begun; sleep 2; touch $id; {COMPLETE}".replace("$NOTES", "."))
    running = Running(project.path, "tasks", "run", "--agent", agent)
    running.await_that(lambda: "Iteration 1" in running.err())
    check = '"title": "other", "completion": {"type": "test_passing", "command": "test -f C"}'
    path.write_text(path.read_text().replace('"title": "other"', check))
    done = running.end()
    assert_clear(done, 0)
    assert "put back" not in done.err
    assert project.task("C")["evidence"]["kind"] == "test_passing"


def test_an_agent_may_add_tasks(project: Project) -> None:
    project.tasks(A)
    more = """[ $id = A ] && echo '{"id": "N", "title": "found"}' >> .ralph/tasks.jsonl"""
    assert project.run(f"{more}; touch $id; {COMPLETE}").code == 0
    assert (project.turns("N"), project.task("N")["status"]) == (1, "done")


def test_a_person_may_edit_while_the_run_goes_on(project: Project) -> None:
    project.tasks(A, {"id": "C", "title": "other"}, {"id": "D", "title": "more"})
    person = "env -u RALPH_RUN python3 -m ralph tasks"
    script = f"""
    if [ $id = A ]; then
        {person} edit C --status cancelled; {person} edit D --status done
        {person} add "Another" --id E
    fi
    touch $id; {COMPLETE}"""
    done = project.run(script)
    assert_clear(done, 0)
    assert project.statuses() == {"A": "done", "C": "cancelled", "D": "done", "E": "done"}
    assert [project.turns(name) for name in "ACDE"] == [1, 0, 0, 1]


def test_a_script_that_validates_is_not_the_agents_to_change(project: Project) -> None:
    project.tasks({**A, "completion": {"type": "validate", "script": "check.sh"}})
    (project.path / "check.sh").write_text("test -f a && echo a\n")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "check")
    script = f"[ $n = 1 ] && echo true > check.sh || touch a; {COMPLETE}"
    assert_clear(project.run(script), 0, "Protected path check.sh was changed")
    assert project.turns("A") == 2
    assert project.task("A")["evidence"]["artifacts"] == ["a"]


def test_what_a_script_that_validates_leads_to_is_protected_too(project: Project) -> None:
    project.tasks({**A, "completion": {"type": "validate", "script": "check.sh"}})
    (project.path / "real.sh").write_text("test -f a\n")
    (project.path / "check.sh").symlink_to("real.sh")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "check")
    script = f"[ $n = 1 ] && echo true > real.sh || touch a; {COMPLETE}"
    assert_clear(project.run(script), 0, "Protected path real.sh was changed")
    assert project.turns("A") == 2


def test_a_script_that_a_task_makes_is_its_own_until_it_is_done(project: Project) -> None:
    check = {"type": "validate", "script": "check[1].sh"}
    project.tasks({**A, "completion": check}, {"id": "C", "title": "x", "completion": check})
    script = """
    [ $id$n = A1 ] && echo exit 1 > 'check[1].sh'
    [ $id$n = A2 ] && echo test -f c > 'check[1].sh' && touch c
    [ $id$n = C1 ] && rm c && echo true > 'check[1].sh'
    [ $id$n = C2 ] && touch c; true"""
    assert_clear(project.run(script), 0, "Protected path check[1].sh was changed")
    assert (project.turns("A"), project.turns("C")) == (2, 2)


def test_what_proves_another_task_is_not_the_agents_to_change(project: Project) -> None:
    """ "a task that names a check is complete only when the check passes"."""
    other = {
        "id": "C",
        "title": "other",
        "completion": {"type": "test_passing", "command": "false"},
    }
    project.tasks(A, other)
    edit = '[ $id = A ] && sed -i \'s/"false"/"true"/; s/other/better/\' .ralph/tasks.jsonl'
    done = project.run(f"{edit}; touch $id.$n; {COMPLETE}", "--max-iterations", "2")
    assert_clear(done, 3, "C was changed (completion)")
    task = project.task("C")
    assert (task["status"], task["completion"]["command"]) == ("blocked", "false")
    assert task["title"] == "better"  # what proves nothing may be anyone's


def test_an_old_line_is_no_new_edit(project: Project) -> None:
    """What a person wrote once does not count for ever."""
    assert ralph("tasks", "add", "The first", "--id", "A").code == 0
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "tasks")
    assert ralph("tasks", "edit", "A", "--completion", "test:false").code == 0
    back = "git checkout -q HEAD -- .ralph/tasks.jsonl"
    done = project.run(f"{back}; touch $n; {COMPLETE}", "--max-iterations", "1")
    assert_clear(done, 3, "A was changed")
    assert project.task("A")["completion"] == {"type": "test_passing", "command": "false"}


def test_a_person_may_settle_the_task_under_work(project: Project) -> None:
    project.tasks(A, {"id": "C", "title": "other"}, {"id": "D", "title": "more"})
    person = "env -u RALPH_RUN python3 -m ralph tasks"
    script = f"""
    [ $id = A ] && {person} edit A --status cancelled
    [ $id = C ] && {person} edit C --status done
    touch $id; [ $id = D ] && {COMPLETE}"""
    done = project.run(script)
    assert_clear(done, 0, "a person made it cancelled")
    assert project.statuses() == {"A": "cancelled", "C": "done", "D": "done"}
    assert project.subjects() == ["D: more", "C: other", "begin"]
    assert not (project.path / "A").exists()


# ------------------------------------------------------------------ the rest


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


def test_a_run_that_ends_in_the_middle_of_a_task_leaves_a_clean_tree(project: Project) -> None:
    project.tasks(A)
    script = f"[ $n -lt 5 ] && {{ echo $n >> a; exit 1; }}; {COMPLETE}"
    assert project.run(f"[ $n = 1 ] && {{ echo half > half; exit 0; }}; {script}").code == 5
    assert project.dirt() == []
    task = project.task("A")
    assert project.git("show", f"{task['saved']}:half") == "half\n"
    done = project.run(f"ls > seen; {COMPLETE}")
    assert_clear(done, 0, f"What was done for A before is back: {task['saved']}")
    assert (project.path / "seen").read_text() == "README\nhalf\nseen\n"
    assert "saved" not in project.task("A")


def test_a_tasks_limits_go_on_in_the_next_run(project: Project) -> None:
    """A nightly run with a limit of its own must not pay for the same task without end."""
    project.tasks({**A, "limits": {"maxIterations": 3}}, {"id": "C", "title": "other"})
    project.settings(failAfter=1)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "settings")
    assert project.run("echo $n >> a; exit 1").code == 5
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
    project.tasks(A)
    fails = "[ $n = 1 ] && echo half > half || exit 1"
    assert project.run(fails).code == 5
    saved = project.task("A")["saved"]
    project.git("commit", "-q", "--allow-empty", "-m", "mine")
    assert project.run(f"ls > seen; {COMPLETE}").code == 0
    assert (project.path / "seen").read_text() == "README\nseen\n"
    assert f"git show {saved}" in project.prompt("A", 5)


def test_a_killed_run_does_not_go_on_behind_a_later_one(project: Project) -> None:
    project.tasks(A)
    agent = project.agent("touch $NOTES/begun; sleep 600")
    running = Running(project.path, "tasks", "run", "--agent", agent, "--no-sandbox")
    running.await_that((project.notes / "begun").exists)
    running.process.kill()
    running.process.wait()
    assert project.run(f"touch a; {COMPLETE}").code == 0
    assert_clear(ralph("resume"), 2, "has worked on the tasks since", "ralph tasks run")
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
    assert project.subjects() == ["earlier", "begin"]
    assert project.git("symbolic-ref", "HEAD").strip() == "refs/heads/main"


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
    notify = {"command": f"cat > {project.notes}/notified"}
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
    notified = json.loads((project.notes / "notified").read_text())
    assert (notified["event"], notified["taskId"]) == ("blocked", "A")


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
