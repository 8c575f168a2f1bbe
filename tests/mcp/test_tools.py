"""The tools over real runs: started, watched, asked, answered and steered by a client, and refused
to whom they are not for."""

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from backlog_support import COMPLETE, Project, project  # noqa: F401  a fixture
from run_support import Running, facts, journals, prepare, program, ralph

from kits.mcp_client import LONGEST, McpClient
from ralph.files.state_dir import project_dir
from ralph.journal.lock import Lock
from ralph.kernel.facts import Asked
from ralph.mcp import asking, reading
from ralph.testing.scripted_agent.install import calls

UNTIL_TOLD = "until [ -e go ]; do sleep 0.02; done"
PATIENT = {"text": "I wait.", "tools": [{"name": "Bash", "run": UNTIL_TOLD}]}
ASKS = 'echo "<promise>DECIDE: red or blue?</promise>"'


@pytest.fixture
def client(workspace: Path) -> Iterator[McpClient]:
    with McpClient(str(workspace)) as client:
        yield client


def soon(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + LONGEST
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def under_way(workspace: Path, *turns: dict[str, Any]) -> Running:
    agent = prepare(workspace, PATIENT, *(turns or ({"response": "DONE"},)))
    running = Running(workspace, "-p", "Do it", "-m", "5")
    running.await_that(lambda: calls(agent))
    return running


def test_a_run_is_started_and_seen_to_its_end(workspace: Path, client: McpClient) -> None:
    agent = prepare(workspace, {"text": "Not yet."}, {"response": "DONE"})
    assert client.call("status")["runs"] == []
    run = client.call("start", prompt="--Do it", max_iterations=4, max_cost=12345.675)["run"]
    told = client.call("wait", seconds=60)
    assert (told["returned"], told["state"], told["run"]) == ("ended", "completed", run)
    assert (told["iteration"], told["max_iterations"]) == (2, 4)
    assert told["limits"]["cost_usd"] == 12345.675
    assert "report" in told["next"]
    assert calls(agent)[0]["prompt"].startswith("--Do it")
    assert client.call("status", run=run[-4:])["why"] == "nothing is left to do"
    (entry,) = client.call("status")["runs"]
    assert (entry["run"], entry["state"], entry["workspace"]) == (run, "completed", str(workspace))
    report = client.call("report")
    assert run in report["markdown"]
    rest = client.call("report", offset=len(report["markdown"]) - 5)
    assert (rest["markdown"], rest["left"]) == (report["markdown"][-5:], 0)


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({}, "give either a prompt or a loop"),
        ({"prompt": "x", "loop": "tasks"}, "give either a prompt or a loop"),
        ({"loop": "tasks", "until_green": True}, "until_green is not for tasks"),
        ({"loop": "stories"}, "Invalid enum value 'stories'"),
        ({"prompt": "x", "agent": "sh -c 'touch owned'"}, "Invalid enum value"),
        ({"prompt": "x", "max_iterations": 0}, "`int` >= 1"),
        ({"prompt": "x", "iterations": 3}, "unknown field `iterations`"),
        ({"prompt": "x", "directory": "/"}, "/ is outside"),
        ({"prompt": "x", "directory": ".."}, "is outside"),
        ({"prompt": "x", "directory": "out"}, "is outside"),
        ({"prompt": "x", "directory": "none"}, "there is no directory"),
        ({"prompt": "x\0y"}, "holds a NUL character"),
        ({"prompt": "x", "directory": "in\0"}, "holds a NUL character"),
        ({"prompt": "x", "directory": "linked"}, "is outside"),
    ],
)
def test_what_cannot_be_started_is_said(
    workspace: Path, client: McpClient, wish: dict[str, object], words: str
) -> None:
    (workspace / "out").symlink_to(workspace.parent)
    (workspace / "linked").mkdir()
    (workspace / "linked/.ralph").symlink_to(workspace.parent)
    assert words in client.refused("start", **wish)


def test_ralphs_own_refusal_is_told_with_its_remedy(workspace: Path, client: McpClient) -> None:
    running = under_way(workspace)
    refused = client.refused("start", prompt="x")
    assert "another ralph works in this directory" in refused
    assert "ralph stop" in refused
    assert "[ralph]" not in refused
    (workspace / "go").touch()
    assert running.end().code == 0


def test_a_wait_ends_with_the_run_and_holds_nobody_up(workspace: Path, client: McpClient) -> None:
    running = under_way(workspace)
    given_up = client.begin("wait", seconds=60)
    waits = client.begin("wait", token="w", seconds=60)
    assert client.answer(client.ask("ping", {}))["result"] == {}
    assert client.call("status", run=client.call("status")["runs"][0]["run"])["state"] == "running"
    client.cancel(given_up)
    over = client.call("wait", seconds=0)
    assert (over["returned"], "wait" in over["next"]) == ("time", True)
    soon(lambda: client.call("tasks_list") and any("method" in each for each in client.others))
    (workspace / "go").touch()
    assert client.result(waits)["structuredContent"]["returned"] == "ended"
    assert running.end().code == 0
    news = [each["params"] for each in client.others if "method" in each]
    assert all(each["progressToken"] == "w" and each["progress"] > 0 for each in news)
    assert {each.get("id") for each in client.others} == {None}  # none for what was cancelled


def test_a_question_is_answered_and_the_run_goes_on(
    project: Project,  # noqa: F811
) -> None:
    project.tasks({"id": "T-1", "title": "Paint"}, {"id": "T-2", "title": "Wait"})
    until = f'until [ -e "$NOTES/go" ]; do sleep 0.02; done; {COMPLETE}'
    script = f"if [ $id = T-2 ]; then {until}; elif [ $n = 1 ]; then {ASKS}; else {COMPLETE}; fi"
    running = Running(
        project.path, "tasks", "run", "--no-sandbox", "--agent", project.agent(script)
    )
    with McpClient(str(project.path)) as client:
        soon(lambda: client.call("status")["runs"])
        told = client.call("wait", seconds=60)
        assert (told["returned"], told["asks"]) == ("question", ["T-1"])
        assert "answer" in told["next"]
        (question,) = client.call("questions")["questions"]
        assert (question["task"], question["question"]) == ("T-1", "red or blue?")
        assert client.call("wait", seconds=0, ignore_questions=True)["returned"] == "time"
        assert "T-1: red or blue?" in client.refused("answer", task="T-9", text="Blue.")
        assert client.call("answer", text="Blue.")["told"].startswith("T-1 is pending again")
        assert client.call("wait", seconds=0)["returned"] == "time"  # it asks no more
        (project.notes / "go").touch()
        assert client.call("wait", seconds=60)["state"] == "completed"
        assert client.call("questions")["questions"] == []
        listed = client.call("tasks_list")["tasks"]
        assert [(task["id"], task["status"]) for task in listed] == [
            ("T-1", "done"),
            ("T-2", "done"),
        ]
    assert running.end().code == 0
    assert "Blue." in project.prompt("T-1", 2)
    (asked,) = [fact for fact in facts() if isinstance(fact, Asked)]
    assert (asked.request.request, asked.request.origin) == ("answer", "mcp")


def test_a_run_that_ended_with_a_question_is_answered_and_resumed(workspace: Path) -> None:
    once = 'if [ -e asked ]; then echo "<response>DONE</response>"; else touch asked; '
    agent = program(workspace.parent / "asks", f"{once} {ASKS}; fi")
    prepare(workspace, {}, agent={"command": agent})
    assert ralph("run", "-p", "Paint it").code == 3
    with McpClient(str(workspace)) as client:
        told = client.call("status", run=client.call("status")["runs"][0]["run"])
        assert "questions" in told["next"]
        (question,) = client.call("questions")["questions"]
        assert question["question"] == "red or blue?"
        assert "resume" in client.call("answer", text="Blue.")["next"]
        run = client.call("resume")["run"]
        assert client.call("wait", seconds=60)["state"] == "completed"
        assert "it has ended (completed" in client.refused("resume", run=run)
    assert "Blue." in (journals()[0].parent / "002.prompt").read_text()


def test_a_run_is_steered_and_the_journal_says_by_whom(workspace: Path, client: McpClient) -> None:
    running = under_way(workspace, {"text": "On."}, PATIENT)
    assert "iteration 2" in client.call("note", text="Use tabs.")["told"]
    assert "pauses before its next turn" in client.call("pause")["told"]
    (workspace / "go").touch()
    soon(lambda: client.call("wait", seconds=0)["state"] == "paused")
    said = client.result(client.begin("wait", seconds=0))["content"][0]["text"]
    assert "has not ended: paused for" in said
    assert "its limits stay" in client.refused("resume", max_iterations="+3")
    (workspace / "go").unlink()
    assert "goes on" in client.call("resume")["told"]
    soon(lambda: client.call("wait", seconds=0)["iteration"] == 3)
    assert "at once" in client.call("stop", now=True)["told"]
    assert client.call("wait", seconds=60)["state"] == "interrupted"
    assert "does not run" in client.refused("stop")
    assert running.end().code == 130
    asked = [fact.request for fact in facts() if isinstance(fact, Asked)]
    assert [each.request for each in asked] == ["pause", "resume", "note", "stop-now"]
    assert {each.origin for each in asked} == {"mcp"}


def test_a_log_is_told_once_over_any_number_of_servers(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [{"text": f"I say {n}.\nAnd more."} for n in range(6)]
    prepare(workspace, *said, {"response": "DONE"})
    assert ralph("run", "-p", "Do it", "-m", "9").code == 0
    whole = {}
    with McpClient(str(workspace)) as client:
        for events in (False, True):
            told = client.call("log", since="0.0", events=events)
            assert not told["more"]
            whole[events] = told["lines"]
            assert client.call("log", since=told["position"], events=events)["lines"] == []
        assert client.call("log")["lines"] == whole[False][-40:]
        assert "no position" in client.refused("log", since="yesterday")
    assert any("I say 3." in line for line in whole[True])
    assert not any("I say" in line for line in whole[False])
    monkeypatch.setattr(reading, "_LONGEST_LOG", 200)
    for events, lines in whole.items():
        found, position, more = list[str](), "0.0", True
        while more:
            with McpClient(str(workspace)) as client:
                told = client.call("log", since=position, events=events)
            found += told["lines"]
            position, more = told["position"], told["more"]
        assert found == lines


def test_the_log_of_a_run_whose_journal_was_changed_says_so(
    workspace: Path, client: McpClient
) -> None:
    prepare(workspace, {"response": "DONE"})
    assert ralph("run", "-p", "Do it").code == 0
    (journal,) = journals()
    journal.write_text(journal.read_text().replace('"began"', '"begun"'))
    assert "was changed after it was written" in client.call("log")["lines"][-1]


def test_runs_elsewhere_are_neither_shown_nor_steered(workspace: Path) -> None:
    inside, link = workspace / "in", workspace.parent / "link"
    inside.mkdir()
    link.symlink_to(inside)
    running = under_way(workspace)
    run = journals()[0].parent.name
    with McpClient(str(inside)) as client:
        assert client.call("status")["runs"] == []
        for tool in ("status", "wait", "log", "report", "stop", "pause", "resume"):
            assert "there is no run" in client.refused(tool, run=run)
        assert "there is no run" in client.refused("note", run=run, text="x")
        assert "no run was started" in client.refused("wait")
    with McpClient(str(workspace.parent)) as client:  # it is below that
        assert client.call("status")["runs"][0]["run"] == run
    with McpClient(str(link)) as client:
        assert client.call("status")["root"] == str(inside)
    (workspace / "go").touch()
    assert running.end().code == 0


def test_an_agent_of_a_run_may_look_and_add_tasks(workspace: Path) -> None:
    running = under_way(workspace)
    run = journals()[0].parent.name
    with McpClient(str(workspace), {**os.environ, "RALPH_RUN": run}) as client:
        for tool, wish in {
            "start": {"prompt": "x"},
            "stop": {},
            "pause": {},
            "resume": {},
            "note": {"text": "x"},
            "answer": {"text": "x"},
        }.items():
            assert "an agent may not" in client.refused(tool, **wish)
        assert client.call("status", run=run)["state"] == "running"
        assert client.call("wait", seconds=0)["returned"] == "time"
        assert client.call("log")["goes_on"]
        assert client.call("questions")["questions"] == []
        assert client.call("tasks_add", title="Found on the way")["task"] == "T-001"
    (workspace / "go").touch()
    assert running.end().code == 0


def test_beside_a_run_that_is_not_to_be_seen_nobody_steers(
    workspace: Path, client: McpClient
) -> None:
    """An agent in a PID namespace of its own sees the lock of its run, and not who holds it."""
    path = Path(project_dir(os.environ["RALPH_STATE_DIR"], str(workspace)), "run.lock")
    lock = Lock(str(path))
    lock.acquire("20260101-000000-abcd", 1.0)
    assert "there is no such question" in client.refused("answer", text="x")
    path.write_text(json.dumps({**json.loads(path.read_text()), "pid": 1 << 30}))
    for tool in ("answer", "note"):
        assert "that is not to be seen from here" in client.refused(tool, text="x")
    assert client.call("status")["runs"] == []
    lock.release()
    assert "there is no such question" in client.refused("answer", text="x")


def test_tasks_are_added_and_listed_in_parts(
    workspace: Path, client: McpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = client.call(
        "tasks_add", title="-x", completion="test:make", priority=2, tags=["a"], description="How"
    )
    assert added == {"task": "T-001", "title": "-x", "next": "`start` with loop."}
    assert client.call("tasks_add", title="Then", blocked_by=["T-001"])["task"] == "T-002"
    assert "completion" in client.refused("tasks_add", title="x", completion="magic:1")
    monkeypatch.setattr(asking, "_MOST_TASKS", 1)
    first = client.call("tasks_list")
    assert (first["more"], "T-001" in first["next"]) == (1, True)
    (task,) = client.call("tasks_list", after="T-001")["tasks"]
    assert (task["id"], task["waits_for"]) == ("T-002", ["T-001"])
    assert client.call("tasks_list", status="done")["tasks"] == []
    assert "T-7" in client.refused("tasks_list", after="T-7")
    stored = [json.loads(s) for s in (workspace / ".ralph/tasks.jsonl").read_text().splitlines()]
    assert stored[0]["completion"] == {"type": "test_passing", "command": "make"}


def test_tasks_that_are_kept_outside_the_root_are_not_told(workspace: Path) -> None:
    inside = workspace / "in"
    inside.mkdir()
    (workspace / ".ralph").mkdir()
    asking = {"id": "T-1", "title": "x", "status": "blocked", "question": "Red?"}
    (workspace / ".ralph/tasks.jsonl").write_text(json.dumps(asking))
    (inside / ".ralph").symlink_to(workspace / ".ralph")
    with McpClient(str(inside)) as client:
        assert client.call("questions")["questions"] == []
        for tool, wish in {"tasks_list": {}, "tasks_add": {"title": "x"}}.items():
            assert f"{workspace}/.ralph is outside" in client.refused(tool, **wish)
    with McpClient(str(workspace)) as client:
        assert [each["task"] for each in client.call("questions")["questions"]] == ["T-1"]
        assert client.call("tasks_list", directory="in")["tasks"][0]["id"] == "T-1"


def test_what_the_environment_calls_secret_is_told_to_nobody(workspace: Path) -> None:
    secret = "hunter2-and-a-lot-more"
    prepare(workspace, {"text": f"It is {secret}.", "response": "DONE"})
    assert ralph("run", "-p", "Do it").code == 0
    (workspace / ".ralph/tasks.jsonl").write_text(json.dumps({"id": "T-1", "title": secret}))
    with McpClient(str(workspace), {**os.environ, "SHOP_TOKEN": secret}) as client:
        said = [client.call("log", since="0.0", events=True), client.call("tasks_list")]
    assert secret not in json.dumps(said)
    assert "[redacted]" in json.dumps(said)
