"""`ralph status` of a run by several workers: at work, paused, interrupted and killed."""

import json
from pathlib import Path

import pytest
from backlog_support import COMPLETE, Project, project  # noqa: F401  a fixture
from run_support import Here, Running, assert_clear, journals

pytestmark = pytest.mark.slow

GO = 'while [ ! -e "$NOTES/go" ]; do sleep 0.02; done'
# The first task is done at once, all others wait.
SECOND = f'[ $id = T-1 ] || {{ echo "$id is here"; {GO}; }}; echo "$id" > "$id"; {COMPLETE}'


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


@pytest.fixture
def running(project: Project) -> Running:  # noqa: F811
    """Four tasks, one of which is done; two workers wait to be told."""
    project.tasks(*({"id": f"T-{n}", "title": f"Task {n}"} for n in range(1, 5)))
    words = ("tasks", "run", "--agent", project.agent(SECOND), "--no-sandbox", "--parallel", "2")
    running = Running(project.path, *words)
    running.await_that(lambda: project.turns("T-2") and project.turns("T-3"))
    running.await_that(lambda: "T-1 is done" in running.err())
    return running


def ended(running: Running, notes: Path) -> int:
    (notes / "go").touch()
    return running.end().code


def test_each_worker_at_work_has_a_line(
    project: Project,  # noqa: F811
    running: Running,
    here: Here,
) -> None:
    """ "`status`, `logs` and the live display show all workers." """
    running.await_that(lambda: here("status").out.count("last output") == 2)
    told = here("status").out
    assert "State      running: 2 workers at work\n" in told
    assert "Workers    T-2 1/10: the agent has worked for " in told
    assert "\n           T-3 1/10: the agent has worked for " in told
    assert "\nTasks      1 of 4 done\nIterations 3\n" in told
    assert "\nTask " not in told
    assert "ralph itself (pid" in told
    assert ended(running, project.notes) == 0
    told = here("status").out
    assert "Workers" not in told
    assert ": 4 tasks done." in told


def test_programs_find_workers_as_reports(
    project: Project,  # noqa: F811
    running: Running,
    here: Here,
) -> None:
    shown = json.loads(here("status", "--json").out)
    assert (shown["state"], shown["task"], shown["iteration"]) == ("running", None, 3)
    assert shown["tasks"] == {"done": 1, "parked": 0, "at_work": 2, "total": 4}
    assert [(w["task"], w["state"], w["phase"]) for w in shown["workers"]] == [
        ("T-2", "running", "turn"),
        ("T-3", "running", "turn"),
    ]
    assert {worker["pid"] for worker in shown["workers"]} == {shown["pid"]}
    assert shown["workers"][0]["run"] == f"{shown['run']}-002"
    assert set(shown["workers"][0]) == set(shown)
    assert ended(running, project.notes) == 0
    shown = json.loads(here("status", "--json").out)
    assert shown["workers"] == []
    assert shown["tasks"] == {"done": 4, "parked": 0, "at_work": 0, "total": None}


def test_a_worker_can_be_named(
    project: Project,  # noqa: F811
    running: Running,
    here: Here,
) -> None:
    """`ralph status <id>-003`; whoever may be meant by less is still the run itself."""
    run = journals()[0].parent.name
    for name in (f"{run}-002", f"{run[-4:]}-002"):
        told = here("status", name).out
        assert f"Run        {run}-002 (tasks)\n" in told
        assert "State      running: the agent has worked for " in told
        assert "Task       T-2: Task 2\nIteration  1\n" in told
        assert f"ralph logs -f {run}-002 " in told
        assert "Processes" not in told, "they are not its own"
    assert f"Run        {run} (tasks)" in here("status", run[-4:]).out
    assert_clear(here("status", f"{run}-0"), 2, "may be any of these runs")
    assert_clear(here("status", f"{run}-9"), 2, "there is no run")
    whose = f"{run}-002 is one worker of the run {run}"
    assert_clear(here("stop", f"{run}-002"), 2, whose, f"ralph stop {run}")
    assert ended(running, project.notes) == 0
    told = here("status", f"{run}-002").out
    assert "State      ended: completed, exit code 0" in told


def test_all_is_one_line_a_run(
    project: Project,  # noqa: F811
    running: Running,
    here: Here,
) -> None:
    heading, row = here("status", "--all").out.splitlines()
    assert heading.split() == ["RUN", "STATE", "PROFILE", "TURNS", "SPENT", "AGE", "WORKSPACE"]
    assert row.split()[1:4] == ["running", "tasks", "3"]
    assert ended(running, project.notes) == 0


def test_who_was_in_the_middle_of_a_killed_run(
    project: Project,  # noqa: F811
    running: Running,
    here: Here,
) -> None:
    running.process.kill()
    running.process.wait()
    (project.notes / "go").touch()
    told = here("status").out
    assert "State      crashed: its process is gone" in told
    assert "Workers    T-2 1/10: in the middle\n           T-3 1/10: in the middle\n" in told
    assert "Tasks      1 done\n" in told
    shown = json.loads(here("status", "--json").out)
    assert [worker["state"] for worker in shown["workers"]] == ["crashed", "crashed"]
    run = shown["workers"][0]["run"]
    assert f"What it did: ralph logs {run}. Go on: ralph resume" in here("status", run).out


def test_who_was_in_the_middle_of_an_interrupted_run(
    project: Project,  # noqa: F811
    running: Running,
    here: Here,
) -> None:
    """What they have used is part of what the run has."""
    running.interrupt()
    assert ended(running, project.notes) == 130
    told = here("status").out
    assert "Workers    T-2 1/10: in the middle\n           T-3 1/10: in the middle\n" in told
    assert "Stopped: asked to stop (interrupted). 3 iterations in " in told
    assert "Stopped: asked to stop (interrupted). 3 iterations in " in running.err()
    assert "Stopped: asked to stop (interrupted). 3 iterations in " in here("logs").out
    assert here("logs", "--json").objects[-1]["iterations"] == 3


def test_it_has_paused_when_all_workers_have(
    project: Project,  # noqa: F811
    running: Running,
    here: Here,
) -> None:
    assert here("pause").code == 0
    assert "Asked      to pause before the next turn" in here("status").out
    (project.notes / "go").touch()
    running.await_that(lambda: "State      paused: for" in here("status").out)
    shown = json.loads(here("status", "--json").out)
    assert {worker["state"] for worker in shown["workers"]} <= {"paused", "ended"}
    assert here("resume").code == 0
    assert running.end().code == 0


def test_a_worker_whose_journal_was_changed_is_told(
    project: Project,  # noqa: F811
    running: Running,
    here: Here,
) -> None:
    """Whatever is wrong with one is part of the report, and the others are told all the same."""
    (broken,) = journals()[0].parent.glob("runs/*-002/journal.jsonl")
    text = broken.read_text()
    broken.write_text(text.replace("Task 2", "Task 9"))
    told = here("status").out
    assert "Workers    T-2: " in told
    assert str(broken) in told
    assert "T-3 1/10: the agent has worked" in told
    broken.write_text(text)
    ended(running, project.notes)
