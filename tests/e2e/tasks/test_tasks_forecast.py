"""ADR 46: what is likely left of a backlog, and a task that leaves its interval."""

import json
import re
from pathlib import Path

import pytest
from backlog_support import COMPLETE, Project
from parallel_support import run, tasks
from run_support import ralph

TWICE = f'echo "$n" > "$id.$n"; [ "$n" -lt 2 ] || {COMPLETE}'
THEN_STUCK = f'echo "$n" > "$id.$n"; [ "$n" -lt 2 ] || [ "$id" = L-1 ] || {COMPLETE}'


@pytest.fixture
def project(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(workspace, monkeypatch)
    made.quick()
    return made


def add(project: Project, *names: str) -> None:
    """Add tasks to those that there are, and commit them."""
    path = project.path / ".ralph" / "tasks.jsonl"
    path.parent.mkdir(exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps({'id': name, 'title': name})}\n" for name in names)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "more")


def test_earlier_tasks_tell_what_the_others_will_take(project: Project) -> None:
    add(project, *(f"E-{number}" for number in range(6)))
    first = project.run(TWICE)
    assert first.code == 0
    assert "Forecast" not in first.err
    add(project, "L-1", "L-2", "L-3")
    second = project.run(THEN_STUCK, "-m", "5", "--max-tasks", "2")
    (line,) = [line for line in second.err.splitlines() if "Forecast" in line]
    assert line.startswith("[ralph] Forecast: 5 to 7 iterations (about 6), ")
    assert line.endswith("the limit of 2 tasks will likely not hold (by 6 earlier tasks).")
    # Its time may be what is out of the ordinary first, on a machine that is busy.
    anomaly = (
        r"in L-1, iteration (3: the task has taken 3 iterations|\d: the task has taken [\d.]+s), "
    )
    assert re.search(rf"Anomaly \(forecast\) {anomaly}more than", second.err)
    assert second.err.count("Anomaly (forecast) in L-1") == 1
    found = [entry for entry in project.lines("progress") if entry.get("kind") == "forecast"]
    assert [(entry["type"], entry["taskId"]) for entry in found] == [("anomaly", "L-1")]
    told = json.loads(ralph("status", "--json").out)["forecast"]
    assert told["of"] == "tasks"
    assert told["iterations"]["median"] >= 2


@pytest.mark.slow
def test_a_crew_shares_the_time(project: Project) -> None:
    tasks(project, *(f"E-{number}" for number in range(6)))
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "plan")
    assert run(project, TWICE).code == 0
    add(project, *(f"L-{number}" for number in range(8)))
    done = run(project, TWICE)
    assert done.code == 0
    (line,) = [line for line in done.err.splitlines() if "Forecast" in line]
    assert line.startswith("[ralph] Forecast: 15 to 18 iterations (about 16), ")
    assert line.endswith("; the limits will likely hold (by 6 earlier tasks).")
