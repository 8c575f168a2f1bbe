"""Who may edit the task list while a run goes on, and how (B)."""

import pytest
from backlog_support import COMPLETE, Project, project
from person_support import person
from run_support import Running, assert_clear, ralph

from kits.sandbox.stage import overlay_is_usable

__all__ = ["project"]

A = {"id": "A", "title": "The first"}
C = {"id": "C", "title": "The third", "priority": 9}
CHECKED = {"id": "A", "title": "x", "completion": {"type": "test_passing", "command": "test -f a"}}


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
@pytest.mark.slow
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


@pytest.mark.skipif(not overlay_is_usable(), reason="this machine allows no namespaces")
def test_in_a_sandbox_the_list_is_watched_too(project: Project) -> None:
    project.tasks(CHECKED, {"id": "C", "title": "other", "status": "pending"})
    edits = "s/in_progress/done/; s/pending/done/; s/test -f a/true/"
    script = f"[ -f x ] && touch a; touch x; sed -i '{edits}' .ralph/tasks.jsonl; {COMPLETE}"
    done = project.run(script, sandbox=True)
    assert_clear(done, 0, "put back: A was changed", "C was called done")
    assert project.task("A")["completion"]["command"] == "test -f a"
    assert project.subjects() == ["C: other", "A: x", "begin"]


@pytest.mark.skipif(not overlay_is_usable(), reason="this machine allows no namespaces")
@pytest.mark.slow
def test_in_a_sandbox_tasks_can_be_added_while_a_person_edits(project: Project) -> None:
    project.tasks(A)
    add = """[ -f N ] || echo '{"id": "N", "title": "found"}' >> .ralph/tasks.jsonl"""
    agent = project.agent(f"{add}; sleep 2; touch N x; {COMPLETE}")
    running = Running(project.path, "tasks", "run", "--agent", agent)
    running.await_that(lambda: "Iteration 1" in running.err())
    assert ralph("tasks", "edit", "A", "--note", "mind the gap").code == 0
    assert_clear(running.end(), 0, "Not applied: .ralph/tasks.jsonl")
    assert project.statuses() == {"A": "done", "N": "done"}


def test_what_an_agent_adds_is_open_and_waits_for_no_circle(project: Project) -> None:
    """Only the host calls a task done."""
    project.tasks(A, {"id": "C", "title": "other"})
    lines = (
        '{"id": "M", "title": "m", "status": "done", "evidence": {"kind": "x"}}',
        '{"id": "Z", "title": "z", "blockedBy": ["Z"]}',
    )
    adds = "; ".join(f"echo '{line}' >> .ralph/tasks.jsonl" for line in lines)
    done = project.run(f"[ $id = A ] && {{ {adds}; }}; touch $id; {COMPLETE}")
    assert_clear(done, 0, "M was added as it may not be", "Z was added as it may not be")
    assert [project.turns(name) for name in "ACMZ"] == [1, 1, 1, 1]


def test_an_agent_may_add_tasks(project: Project) -> None:
    project.tasks(A)
    more = """[ $id = A ] && echo '{"id": "N", "title": "found"}' >> .ralph/tasks.jsonl"""
    assert project.run(f"{more}; touch $id; {COMPLETE}").code == 0
    assert (project.turns("N"), project.task("N")["status"]) == (1, "done")


def test_a_person_may_edit_while_the_run_goes_on(project: Project) -> None:
    project.tasks(A, {"id": "C", "title": "other"}, {"id": "D", "title": "more"})
    script = f"""
    if [ $id = A ]; then
        person tasks edit C --status cancelled; person tasks edit D --status done
        person tasks add "Another" --id E
    fi
    touch $id; {COMPLETE}"""
    with person(project.path.parent / "person") as asked:
        done = project.run(f"{asked}{script}")
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
    script = f"""
    [ $id = A ] && person tasks edit A --status cancelled
    [ $id = C ] && person tasks edit C --status done
    touch $id; [ $id = D ] && {COMPLETE}"""
    with person(project.path.parent / "person") as asked:
        done = project.run(f"{asked}{script}")
    assert_clear(done, 0, "a person made it cancelled")
    assert project.statuses() == {"A": "cancelled", "C": "done", "D": "done"}
    assert project.subjects() == ["D: more", "C: other", "begin"]
    assert not (project.path / "A").exists()
