"""`--json`: "only JSON objects go to stdout, each with `type, time, run`" (issue 2, §4)."""

import io
import json
from typing import Any

import pytest

from ralph.kernel.claims import Claim
from ralph.kernel.events import AgentEvent, Failure, Result, Speaker, Text, ToolStart
from ralph.kernel.facts import Began, Decided, Ended, Fact, Returned, Settled, Started
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Spent
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import Accept, Boundary, Continue, Feedback, Placement, Reason, Stop
from ralph.text.redact import know
from ralph.ui.jsonlines import JsonLines, stop_line
from ralph.ui.lines import Reader
from ralph.ui.safe_stream import Channel

STOPPED = Stop(Reason.COMPLETED, "nothing is left to do", ("passed: make test",))
RUN: tuple[Fact, ...] = (
    Started(100.0, "r1", "harness", "/w", 7, "1.0"),
    Began(100.0, 1, Assignment("prompt")),
    Ended(103.5, Turn(claims=(Claim("<response>DONE</response>"),), cost_usd=0.12)),
    Settled(104.0, STOPPED),
)


def written(*facts: Fact, event: AgentEvent | None = None) -> list[dict[str, Any]]:
    out = io.StringIO()
    reader: Reader = JsonLines(Channel(out).write, "r1", clock=lambda: 200.0)
    for fact in facts:
        reader.on_fact(fact)
    if event is not None:
        reader.on_events([event])
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_every_object_has_type_time_and_run_and_they_come_first() -> None:
    objects = written(*RUN, event=Text("Hello"))
    assert [list(o)[:3] for o in objects] == [["type", "time", "run"]] * 5
    assert [o["type"] for o in objects] == ["started", "began", "ended", "settled", "event"]
    assert {o["run"] for o in objects} == {"r1"}
    assert [o["time"] for o in objects] == [100.0, 100.0, 103.5, 104.0, 200.0]


def test_nested_values_are_objects_with_a_type() -> None:
    verdict = Continue((Feedback("fix it", Placement.PREPEND),))
    finding = Finding("make test", "fix it", Placement.PREPEND, 1, "x.log")
    [*_, decided] = written(
        *RUN[:3], Decided(104.0, Boundary.CLOSING, verdict, (finding,), checked=True)
    )
    assert decided["boundary"] == "closing"
    assert decided["verdict"] == {
        "type": "continue",
        "feedback": [{"type": "feedback", "text": "fix it", "placement": "PREPEND"}],
        "after": 0.0,
    }
    assert decided["findings"][0]["code"] == 1


@pytest.mark.parametrize(
    ("event", "name", "fields"),
    [
        (ToolStart("1", "Bash", "ls"), "tool_start", {"id": "1", "name": "Bash"}),
        (Text("Hi", Speaker.HOOK), "text", {"text": "Hi", "speaker": "hook"}),
        (Result(failure=Failure("no", 500)), "result", {"cost_usd": None}),
    ],
)
def test_events(event: AgentEvent, name: str, fields: dict[str, object]) -> None:
    [line] = written(event=event)
    assert (line["type"], line["event"]) == ("event", name)
    assert fields.items() <= line.items()


def test_the_stop_line_is_exactly_what_the_issue_says() -> None:
    out = io.StringIO()
    reader = JsonLines(Channel(out).write, "r1", clock=lambda: 200.0)
    for fact in RUN:
        reader.on_fact(fact)
    reader.stop(STOPPED, "/state/journal.jsonl")
    assert json.loads(out.getvalue().splitlines()[-1]) == {
        "type": "stop",
        "time": 200.0,
        "run": "r1",
        "reason": "completed",
        "exit": 0,
        "iterations": 1,
        "seconds": 4.0,
        "cost_usd": 0.12,
        "evidence": ["passed: make test"],
        "log": "/state/journal.jsonl",
    }


def test_the_stop_line_has_what_workers_used_and_no_secret() -> None:
    """Also of those who were left in the middle; and evidence quotes what commands said."""
    know(["very-secret-99"])
    out = io.StringIO()
    reader = JsonLines(Channel(out).write, "r1", clock=lambda: 200.0)
    for fact in RUN[:3]:
        reader.on_fact(fact)
    evidence = ("passed: login very-secret-99",)
    used = (Spent(2, 50.0, 0.25), Spent(1, 9.0, 0.5))
    reader.stop(Stop(Reason.INTERRUPTED, "", evidence), used=used)
    line = json.loads(out.getvalue().splitlines()[-1])
    assert (line["iterations"], line["seconds"], line["cost_usd"]) == (4, 3.5, 0.87)
    assert line["evidence"] == ["passed: login [redacted]"]


def test_each_line_is_the_runs_and_the_tasks_that_speak() -> None:
    """Whatever run a fact is about."""
    out = io.StringIO()
    reader = JsonLines(Channel(out).write, "r1", clock=lambda: 200.0, task="T-1")
    reader.on_fact(Started(100.0, "r1-001", "tasks", "/w", 7, "1.0"))
    reader.on_fact(Returned(101.0, "T-2", "r1-002", Accept(("passed",)), Spent()))
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(line["run"], line["task"]) for line in lines] == [("r1", "T-1")] * 2


def test_a_run_that_never_began_has_a_stop_line_too() -> None:
    """Issue 2, §4: "also on exit 2 (`run: null`)"."""
    line = stop_line(Reason.CONFIG, time=1.0)
    assert line == (
        '{"type":"stop","time":1.0,"run":null,"reason":"config","exit":2,"iterations":0,'
        '"seconds":0.0,"cost_usd":null,"evidence":[],"log":null}'
    )


def test_seconds_are_not_shown_to_the_nanosecond() -> None:
    assert (
        json.loads(stop_line(Reason.LIMIT, time=1.0, spent=Spent(1, 1.23456)))["seconds"] == 1.235
    )


def test_an_object_is_one_ascii_line_whatever_the_agent_says() -> None:
    out = io.StringIO()
    reader = JsonLines(Channel(out).write, "r1", clock=lambda: 200.0)
    reader.on_events([Text("a\nb\u2028c\x1b[2J✅\ud83d")])
    assert out.getvalue().isascii()
    assert len(out.getvalue().splitlines()) == 1
    assert json.loads(out.getvalue())["text"] == "a\nb\u2028c\x1b[2J✅\ud83d"


@pytest.mark.parametrize("frame", ['X="{}"', "a\n{}", "\\{}", "é {} é", "\t{}\x1b[0m"])
def test_secrets_are_redacted_and_the_line_stays_json(frame: str) -> None:
    """ADR 13."""
    [line] = written(event=ToolStart("1", "Bash", frame.format("sk-ant-0123456789abcdef0123")))
    assert line["summary"] == frame.format("[redacted]")


def test_what_comes_at_once_is_written_at_once() -> None:
    """Whoever reads along on a pipe is woken once, not for each event."""
    pieces: list[str] = []
    out = io.StringIO()
    out.write = pieces.append  # type: ignore[assignment,method-assign]
    JsonLines(Channel(out).write, "r1", clock=lambda: 1.0).on_events([Text("one"), Text("two")])
    assert [piece.count("\n") for piece in pieces] == [2]


def test_a_closed_stdout_is_said_once() -> None:
    losses: list[str] = []
    reader = JsonLines(Channel(None, losses.append).write, "r1", clock=lambda: 1.0)
    for fact in RUN:
        reader.on_fact(fact)
    reader.stop(STOPPED)
    assert losses == ["is closed"]
