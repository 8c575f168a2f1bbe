"""`ralph web` over real runs: seen from start to end, killed, steered, by a person and by fifty."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from backlog_support import COMPLETE, Project, project  # noqa: F401  a fixture
from run_support import Running, journals, prepare, ralph

from kits.web_server import Told, WebServer, soon
from ralph.journal.journal import FileJournal, read_journal
from ralph.kernel.facts import Asked, Began, Launching, Started
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Role
from ralph.testing.scripted_agent.install import calls

UNTIL_TOLD = "until [ -e go ]; do sleep 0.02; done"
PATIENT = {"text": "I wait.", "tools": [{"name": "Bash", "run": UNTIL_TOLD}]}
HOSTILE = "\x1b]0;owned\x07\x1b[31mred <script>alert(1)</script> \u202eevil"


@pytest.fixture
def server() -> Iterator[WebServer]:
    served = WebServer(Path(os.environ["RALPH_STATE_DIR"]))
    yield served
    served.close()


def facts_of(told: list[Told]) -> list[object]:
    return outlined([each.data["fact"] for each in told if each.name == "fact"])


def lines_of(told: list[Told]) -> list[str]:
    return [line["text"] for each in told if each.name == "lines" for line in each.data["lines"]]


def journaled(path: Path) -> list[object]:
    """The facts of a journal, in outline."""
    return outlined([json.loads(line) for line in path.read_text().splitlines()])


def outlined(facts: list[Any]) -> list[object]:
    """What cleaning leaves as it is."""
    return [(fact["type"], fact["time"]) for fact in facts]


def test_a_run_is_seen_from_its_start_to_its_end(workspace: Path, server: WebServer) -> None:
    done = {"text": HOSTILE, "response": "DONE"}
    agent = prepare(workspace, {"text": "Not yet."}, {**PATIENT, "text": "Wait"}, done)
    listed = server.events("/api/events")
    running = Running(workspace, "-p", "Do it")
    entry = listed.until("runs")[-1].data["runs"][0]
    running.await_that(lambda: len(calls(agent)) == 2)
    run = f"/api/runs/{entry['run']}"
    before, here = server.get(run), server.events(f"{run}/events", "0.0")
    assert (before["state"], before["asked"], before["pid"]) == (
        "running",
        "Do it",
        running.process.pid,
    )
    (workspace / "go").touch()
    told = here.until("ended", state="completed")
    assert running.end().code == 0
    while any(run["state"] != "completed" for run in listed.until("runs")[-1].data["runs"]):
        pass
    entry = server.get("/api/runs")["runs"][0]
    assert (entry["state"], entry["iteration"], entry["asked"]) == ("completed", 3, "Do it")
    assert (entry["command"], entry["workspace"]) == ("run", str(workspace))
    # The stream has told all that there is: the whole journal, and the whole log.
    (journal,) = journals()
    assert facts_of(told) == journaled(journal)
    log = server.get(f"{run}/log?limit=2000")
    assert lines_of(told) == [line["text"] for line in log["lines"]]
    assert [line["n"] for line in log["lines"]] == [*range(log["total"])]
    assert log["is_whole"] is True
    texts = "\n".join(line["text"] for line in log["lines"])
    assert "red <script>alert(1)</script> evil" in texts
    assert not {"\x1b", "\u202e", "\x07"} & {*texts}
    assert_windows(server, run, log)
    recap = [each.data for each in told if each.name == "recap"][-1]
    after = server.get(run)
    assert recap["state"] == after["state"] == "completed"
    assert [each["number"] for each in after["iterations"]] == [1, 2, 3]
    assert after["iterations"][0]["prompt"] == ""
    whole = server.get(f"{run}/iterations/1")
    assert whole["prompt"].startswith("Do it")
    assert server.ask("GET", f"{run}/iterations/9", headers=server.bearer).status == 404
    page = server.ask("GET", f"{run}/report.html", headers=server.bearer)
    assert page.status == 200
    assert "sandbox" in page.headers["content-security-policy"]
    assert b"<script>alert" not in page.body


def assert_windows(server: WebServer, run: str, log: dict[str, Any]) -> None:
    """Parts of a log are what the whole has there."""
    assert [line["n"] for line in server.get(f"{run}/log?from=-2&limit=5")["lines"]] == [
        log["total"] - 2,
        log["total"] - 1,
    ]
    found = server.get(f"{run}/log?limit=1&q=NOT%20YET")["matches"]
    assert [log["lines"][number]["text"] for number in found] == ["Not yet."]
    days = server.get(f"{run}/log?kinds=day,good")
    assert [line["kind"] for line in days["lines"]][:1] == ["day"]
    assert days["total"] == sum(line["kind"] in ("day", "good") for line in log["lines"])


@pytest.mark.slow
def test_a_client_that_comes_back_goes_on_where_it_was(workspace: Path, server: WebServer) -> None:
    agent = prepare(workspace, {"text": "First."}, PATIENT, {"text": "Last.", "response": "DONE"})
    running = Running(workspace, "-p", "Do it")
    running.await_that(lambda: len(calls(agent)) == 2)
    (journal,) = journals()
    events = f"/api/runs/{journal.parent.name}/events"
    first = server.events(events, "0.0")
    told = []
    for each in first:
        told.append(each)
        if "until" in "".join(lines_of([each])):
            break
    first.close()
    (workspace / "go").touch()
    assert running.end().code == 0
    told += server.events(events, first.position).until("ended")
    assert facts_of(told) == journaled(journal)
    log = server.get(f"/api/runs/{journal.parent.name}/log")
    assert lines_of(told) == [line["text"] for line in log["lines"]]
    # Without a position it begins at the end, and has one at once.
    late = server.events(events).until("ended")
    assert late[0].data == {"from": log["total"], "lines": []}
    assert late[0].position == told[-1].position or late[0].position
    assert facts_of(late) == []


def test_a_killed_run_is_noticed_by_all_who_look(workspace: Path, server: WebServer) -> None:
    agent = prepare(workspace, PATIENT)
    running = Running(workspace, "-p", "Do it")
    running.await_that(lambda: calls(agent))
    (journal,) = journals()
    listed = server.events("/api/events")
    assert listed.until("runs")[-1].data["runs"][0]["state"] == "running"
    events = server.events(f"/api/runs/{journal.parent.name}/events")
    events.until("recap", state="running")
    assert server.get(f"/api/runs/{journal.parent.name}")["state"] == "running"
    running.send(signal.SIGKILL)
    running.process.wait()
    assert listed.until("runs")[-1].data["runs"][0]["state"] == "crashed"
    assert events.until("ended")[-1].data == {"state": "crashed"}
    # Looking has changed nothing: it goes on as if nobody had.
    (workspace / "go").touch()
    assert ralph("resume", "-m", "1").code in (0, 1, 2, 3, 4)
    assert read_journal(str(journal))[0]


@pytest.mark.slow
def test_controls_are_journaled_with_their_origin(workspace: Path, server: WebServer) -> None:
    more = {"text": "Heard.", "tools": [{"name": "Bash", "run": "sleep 60"}]}
    agent = prepare(workspace, PATIENT, more)
    running = Running(workspace, "-p", "Do it")
    running.await_that(lambda: calls(agent))
    (journal,) = journals()
    run = f"/api/runs/{journal.parent.name}"
    events = server.events(f"{run}/events")
    noted = server.post(f"{run}/note", {"text": "Mind the\x1b[31m gap"})
    assert noted.status == 200, noted
    assert server.post(f"{run}/pause").status == 200
    (workspace / "go").touch()
    events.until("recap", state="paused")
    assert server.post(f"{run}/resume").status == 200
    running.await_that(lambda: len(calls(agent)) == 2)
    assert server.post(f"{run}/resume").status == 409
    stopped = server.post(f"{run}/stop", {"now": True})
    assert (stopped.status, "words" in stopped.json) == (200, True)
    assert running.end().code == 130
    events.until("ended")
    asked = [fact.request for fact in read_journal(str(journal))[0] if isinstance(fact, Asked)]
    assert {request.origin for request in asked} == {"web"}
    assert {"note", "pause", "resume"} <= {request.request for request in asked}
    assert any("Mind the gap" in call["prompt"] for call in calls(agent))
    again = server.post(f"{run}/stop")
    assert again.status == 409
    assert "does not run" in again.json["error"]
    assert again.json["remedy"]


def test_a_question_is_answered_in_place(project: Project, server: WebServer) -> None:  # noqa: F811
    project.tasks({"id": "A", "title": "a", "priority": 9}, {"id": "B", "title": "b"})
    wait = 'while [ ! -e "$NOTES/go" ]; do sleep 0.02; done'
    asks = 'echo "<promise>DECIDE: Red or blue?</promise>"'
    agent = project.agent(f"if [ $id = A ] && [ $n = 1 ]; then {asks}; else {wait}; {COMPLETE}; fi")
    running = Running(project.path, "tasks", "run", "--no-sandbox", "--agent", agent)
    running.await_that(lambda: project.turns("B"))
    (entry,) = server.get("/api/runs")["runs"]
    assert (entry["state"], entry["asks"]) == ("asking", ["A"])
    run = f"/api/runs/{entry['run']}"
    assert server.post(f"{run}/answer", {"task": "A"}).status == 400
    assert server.post(f"{run}/answer", {"task": "Z", "text": "Blue"}).status == 409
    answered = server.post(f"{run}/answer", {"task": "A", "text": "Blue"})
    assert answered.status == 200, answered
    (project.notes / "go").touch()
    assert running.end().code == 0
    assert "Blue" in project.prompt("A", 2)
    (journal,) = journals()
    asked = [fact.request for fact in read_journal(str(journal))[0] if isinstance(fact, Asked)]
    assert [(each.request, each.origin, each.task) for each in asked] == [("answer", "web", "A")]


def test_each_worker_has_a_page_of_its_own(project: Project, server: WebServer) -> None:  # noqa: F811
    project.tasks(*({"id": f"T-{n}", "title": f"Task {n}"} for n in (1, 2)))
    done = project.run(f'echo "for $id"; echo "$id" > "$id"; {COMPLETE}', "--parallel", "2")
    assert done.code == 0, done.err
    (lead,) = server.get("/api/runs")["runs"]
    assert (lead["workers"], lead["state"]) == (2, "completed")
    recap = server.get(f"/api/runs/{lead['run']}")
    workers = sorted({each["worker"] for each in recap["iterations"]})
    assert len(workers) == 2
    for worker in workers:
        own = server.get(f"/api/runs/{worker}")
        assert (own["run"], own["lead"]) == (worker, lead["run"])
        texts = [line["text"] for line in server.get(f"/api/runs/{worker}/log")["lines"]]
        assert any(text.startswith("for T-") for text in texts)
        told = server.events(f"/api/runs/{worker}/events", "0.0").until("ended")
        assert lines_of(told) == texts
        assert server.post(f"/api/runs/{worker}/stop").status == 409


def test_fifty_clients_hear_the_same(tmp_path: Path, server: WebServer) -> None:
    """One reader for all of them: a client costs a place, and no memory grows with it."""
    shop = Path(os.environ["RALPH_STATE_DIR"]) / "shop-12345678"
    run = shop / "runs" / "20260101-000000-0000"
    (run / "signals").mkdir(parents=True)
    journal = FileJournal(str(run / "journal.jsonl"))
    journal.record(Started(1.0, run.name, "harness", "/shop", 1, "0"))
    journal.record(Began(2.0, 1, Assignment("prompt", "Do it")))
    stream = run / "001.stream"
    journal.record(Launching(3.0, Role.WORK, "text", str(stream)))
    journal.close()
    heard: list[list[str]] = []

    def listen() -> None:
        told: list[str] = []
        events = server.events(f"/api/runs/{run.name}/events", "0.0")
        for each in events:
            told += lines_of([each])
            if told[-1:] == ["the last"]:
                break
        events.close()
        heard.append(told)

    clients = [threading.Thread(target=listen, daemon=True) for _ in range(50)]
    for client in clients:
        client.start()
    with stream.open("a", buffering=1) as file:
        for number in range(2_000):
            file.write(f"line {number}\n")
        file.write("the last\n")
    for client in clients:
        client.join(30)
    assert len(heard) == 50
    assert heard[0][-2_001:] == [*(f"line {number}" for number in range(2_000)), "the last"]
    assert all(told == heard[0] for told in heard)
    tails = []
    for name in os.listdir(f"/proc/{server.process.pid}/fd"):
        with suppress(FileNotFoundError):  # a client's, which has been closed since
            tails.append(os.readlink(f"/proc/{server.process.pid}/fd/{name}"))
    assert sum("(deleted)" in path for path in tails) == 1  # one spool
    soon(lambda: server.memory() < 80_000)


def test_the_server_ends_at_once_while_clients_listen(workspace: Path, server: WebServer) -> None:
    listening = server.events("/api/events")
    assert server.end(signal.SIGTERM) == 0
    assert [*listening] == []
