"""`ralph resume` of a run over a backlog that has ended: limits, answers, tasks at their limit."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from backlog_support import COMPLETE, Project, project
from parallel_support import assert_tidy, run, tasks
from run_support import assert_clear, assert_replays, journals, ralph

from kits.thorough import dealt
from ralph.journal.journal import read_journal
from ralph.kernel.facts import Resumed
from ralph.kernel.state import RunState, replay
from ralph.testing.scripted_agent.install import install_agent

__all__ = ["project"]

A, B, C = ({"id": name, "title": f"It is {name}"} for name in "ABC")
WRITE = f'echo "$n" > "$id"; {COMPLETE}'


def state() -> RunState:
    """Of the only run."""
    (journal,) = journals()
    return replay(read_journal(str(journal))[0])


def status() -> dict[str, Any]:
    return dict(json.loads(ralph("status", "--json").out))


def test_more_tasks(project: Project) -> None:
    project.tasks(A, B, C)
    assert project.run(WRITE, "--max-tasks", "1").code == 1
    run_id = journals()[0].parent.name
    more = f"ralph resume {run_id} --max-tasks +10"
    assert_clear(ralph("resume"), 2, "1 task taken up", more)
    assert status()["resume"]["command"] == more
    (project.path / "mine").write_text("a person's\n")
    assert_clear(ralph("resume", "--max-tasks", "+1"), 1, "the tasks in .ralph/tasks.jsonl")
    assert_clear(ralph("resume", "--max-tasks", "9"), 0, "Completed", "3 tasks done")
    assert project.subjects() == ["C: It is C", "B: It is B", "A: It is A", "begin"]
    assert project.dirt() == ["?? mine"]
    assert state().done == {"A", "B", "C"}


def test_a_task_that_a_limit_left_in_the_middle_goes_on(project: Project) -> None:
    """Its work is back, and what it has used is counted once."""
    project.tasks(A)
    turns = [
        {"files": {f"f{n}": "x"}, "text": "working", "cost": 0.4, "tools": [{"name": "Bash"}]}
        for n in range(4)
    ]
    done = {"text": "<promise>COMPLETE</promise>", "cost": 0.4}
    agent = install_agent(str(project.path.parent / "bin"), [*turns, done], kind="claude")
    words = ("tasks", "run", "--no-sandbox", "--agent", agent, "--max-cost", "0.7")
    assert_clear(ralph(*words), 1, "$0.7 used up (spent $0.80)")
    assert project.task("A")["status"] == "in_progress"
    assert_clear(ralph("resume"), 2, "--max-cost +1")
    again = ralph("resume", "--max-cost", "+0.6")
    assert_clear(again, 1, "Iteration 3/10 starting", "$1.3 used up (spent $1.60)")
    assert sum(used["iterations"] for used in project.task("A")["spent"].values()) == 4
    assert_clear(ralph("resume", "--max-cost", "9"), 0, "Iteration 5/10 starting")
    held = project.git("show", "--name-only", "--format=").split()
    assert {"f0", "f1", "f2", "f3"} <= set(held)
    assert project.subjects()[0] == "A: It is A"
    assert "spent" not in project.task("A")


@pytest.mark.parametrize("workers", dealt([((),), (("--parallel", "2"),)], 1))
def test_tasks_at_their_limit_go_on_with_a_higher_one(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.tasks(A, {**B, "limits": {"maxIterations": 2}})
    script = f'echo "$n" >> "$id"; [ "$n" -lt 4 ] || {COMPLETE}'
    done = project.run(script, "-m", "2", *workers)
    assert_clear(done, 3, "A is blocked: task limit: 2 iterations used up")
    assert_clear(ralph("resume"), 2, "cannot go on yet: A is blocked", "ralph tasks list")
    done = ralph("resume", "-m", "+3")
    assert_clear(done, 3, "since their limit is raised: A\n", "3/5 starting", "B is blocked")
    assert (project.turns("A"), project.turns("B")) == (4, 2)
    assert (project.path / "A").read_text() == "1\n2\n3\n4\n"
    assert project.statuses() == {"A": "done", "B": "blocked"}


def test_an_answer_and_then_resume(project: Project) -> None:
    project.tasks(A)
    ask = f'[ "$n" -gt 1 ] && {COMPLETE} || echo "<promise>DECIDE: Which port?</promise>"'
    assert project.run(ask).code == 3
    assert_clear(ralph("resume"), 2, "cannot go on yet: A asks: Which port?")
    assert ralph("tasks", "answer", "A", "8080").code == 0
    assert_clear(ralph("resume"), 0, "Completed")
    assert "8080" in project.prompt("A", 2)


def test_a_broken_agent_that_was_fixed(project: Project) -> None:
    project.tasks(A, B)
    project.quick()
    assert project.run("exit 1").code == 5
    project.agent(WRITE)
    assert_clear(ralph("resume"), 0, "failing", "Completed")
    assert project.statuses() == {"A": "done", "B": "done"}


@pytest.mark.slow
def test_several_at_once(project: Project) -> None:
    tasks(project, *"ABCD")
    script = f"meet 2\n{WRITE}"
    assert run(project, script, "--max-tasks", "2", workers=2).code == 1
    assert_clear(ralph("resume", "--max-tasks", "+5"), 0, "Completed")
    assert project.statuses() == dict.fromkeys("ABCD", "done")
    assert_tidy(project)


def test_a_new_day_has_its_own_money(project: Project) -> None:
    """What the run had spent on the day before does not count against today's limit."""
    project.settings(loop={"maxCostPerDay": 0.5})
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "settings")
    project.tasks(A, B)
    done = {"text": "<promise>COMPLETE</promise>", "cost": 0.6}
    agent = install_agent(str(project.path.parent / "bin"), [done, done], kind="claude")
    assert ralph("tasks", "run", "--no-sandbox", "--agent", agent).code == 1
    assert_clear(ralph("resume"), 2, "the day's $0.5 are used up", "Go on tomorrow")
    assert status()["resume"]["would"] == "goes on"
    (ledger,) = Path(os.environ["RALPH_STATE_DIR"]).glob("*/ledger.jsonl")
    entry = json.loads(ledger.read_text())
    ledger.write_text(json.dumps({**entry, "time": time.time() - 86_400}) + "\n")
    done_now = ralph("resume")
    assert_clear(done_now, 0, "2 tasks done")
    assert_replays()


def test_a_raised_limit_is_told_to_readers_of_the_journal(project: Project) -> None:
    project.tasks(A)
    project.run("true", "-m", "1")
    ralph("resume", "-m", "3")
    assert "Iteration 3/3 starting" in ralph("logs").out
    facts = read_journal(str(journals()[0]))[0]
    (raised,) = [fact.raised for fact in facts if isinstance(fact, Resumed)]
    assert raised == (("loop.maxIterationsPerTask", 3),)
