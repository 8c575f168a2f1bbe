"""`ralph list` as its users see it: the runs of every directory, whatever state they are in."""

import json
import os
import signal
from pathlib import Path

import pytest
from backlog_support import COMPLETE, Project, project
from run_support import Here, Running, assert_clear, await_gone, journals, prepare, ralph

from ralph.testing.scripted_agent.install import calls

__all__ = ["project"]
FIRST = {"text": "I look around.", "cost": 0.25}
UNTIL_TOLD = "until [ -e go ]; do sleep 0.02; done"
PATIENT = {"tools": [{"name": "Bash", "run": UNTIL_TOLD}], "response": "DONE"}


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def test_there_are_none_yet(workspace: Path, here: Here) -> None:
    assert "There are no runs yet. Start one: ralph run -p" in here("list").out
    assert json.loads(here("list", "--json").out) == []


def test_runs_of_every_directory_newest_first(
    workspace: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At work, ended, crashed, half written and unreadable ones."""
    agent = prepare(workspace, FIRST, {"hang": "before"})
    assert here("-p", "x", "-m", "1").code == 1
    running = Running(workspace, "-p", "x")
    running.await_that(lambda: len(calls(agent)) == 2)
    running.send(signal.SIGKILL)
    running.end()
    await_gone(*(call["pid"] for call in calls(agent)))
    other = workspace.parent / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    agent = prepare(other, PATIENT)
    running = Running(other, "-p", "x", "-m", "7")
    running.await_that(lambda: len(calls(agent)) == 1)
    runs = journals()[0].parent.parent
    (runs / "20200101-000000-0000").mkdir()
    (runs / "20200102-000000-0000").mkdir()
    (runs / "20200102-000000-0000" / "journal.jsonl").write_text("no fact\n")
    told = json.loads(here("list", "--json").out)
    assert [entry["state"] for entry in told] == [
        *("running", "crashed", "limit", "unknown", "crashed")
    ]
    assert (told[0]["workspace"], told[0]["max_iterations"]) == (str(other), 7)
    assert (told[2]["cost_usd"], told[2]["iterations"], told[2]["exit"]) == (0.25, 1, 1)
    assert told[2]["command"] == "run"
    shown = here("list").out.splitlines()
    assert [line.split()[0] for line in shown[1:6]] == [entry["run"] for entry in told]
    assert "0.25" in shown[3]
    assert "this line was changed after it was written" in shown[6]
    shown = here("list", "-n", "1").out.splitlines()
    assert len(shown) == 3
    assert shown[2] == "4 more: ralph list -a"
    assert len(here("list", "-a").out.splitlines()) == 7
    (other / "go").touch()
    running.end()


def test_a_run_with_a_question_asks(project: Project, here: Here) -> None:
    project.tasks({"id": "A", "title": "a", "priority": 9}, {"id": "B", "title": "b"})
    ask = "echo '<promise>DECIDE: Which?</promise>'"
    agent = project.agent(f"if [ $id = A ]; then {ask}; else {UNTIL_TOLD}; {COMPLETE}; fi")
    running = Running(
        project.path, "tasks", "run", "--no-sandbox", "--agent", agent, "--no-stream-agent-output"
    )
    running.await_that((project.notes / "B").exists)
    (told,) = json.loads(here("list", "--json").out)
    assert (told["state"], told["asks"]) == ("asking", ["A"])
    assert f'asks: ralph tasks -C {project.path} answer A "..."' in here("list").out
    (project.path / "go").touch()
    running.end()
    (told,) = json.loads(here("list", "--json").out)
    assert (told["state"], told["asks"]) == ("blocked", [])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("-a", "-n", "3"), "-a and -n exclude each other"),
        (("-n", "0"), "0 is less than 1"),
        (("now",), "unexpected extra argument"),
    ],
)
def test_bad_input(workspace: Path, here: Here, words: tuple[str, ...], why: str) -> None:
    assert_clear(here("list", *words), 2, why)


def test_a_state_directory_that_cannot_be_read(workspace: Path) -> None:
    file = workspace / "file"
    file.touch()
    done = ralph("list", env={"RALPH_STATE_DIR": str(file)})
    assert "There are no runs yet" in done.out
    assert os.path.isfile(file)
