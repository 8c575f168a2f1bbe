"""Runs in every state, exported: cut off, gone on, with workers, with streams that are short or
gone, with journals that were changed, and with secrets."""

import os
from pathlib import Path
from typing import Any

import pytest

from kits.export import traces, trajectories
from kits.export.exported import assert_sums, atif, otlp, whole
from kits.export.stored import BEGAN, RUN, Stored, lines
from ralph.agents.turn_files import LEFT_OUT, MOST_SAVED
from ralph.journal.journal import FileJournal, read_journal
from ralph.kernel.events import Failure, Usage
from ralph.kernel.facts import (
    Asked,
    Assigned,
    Began,
    Checked,
    Checking,
    Decided,
    Ended,
    Fared,
    Resumed,
    Returned,
    Sent,
    Settled,
    Step,
)
from ralph.kernel.findings import Finding
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Ending, Role, Turn
from ralph.kernel.verdict import Accept, Boundary, Continue, Park, Reason, Stop
from ralph.kernel.world import Request

KEY = "sk-ant-" + "a1b2c3d4e5f6g7h8"
TASK = Assignment("T-001", "Add greet")
PAID = Turn(cost_usd=0.5, usage=Usage(100, 20, 30, 4), text="Done.")


def test_a_run_that_was_cut_off_and_went_on(tmp_path: Path) -> None:
    """The turn that was lost is told, and costs what was accounted for it: nothing, or later."""
    stored = Stored(tmp_path).begin()
    stored.add(Began(stored.now, 1, TASK))
    stored.launch("claude", lines({"type": "assistant", "message": {"content": "I begin."}}))
    assert_sums(stored)
    running = traces.tree(otlp(stored))
    assert [span.told.get("ralph.unfinished") for span in running[""]] == [True]
    stored.add(Resumed(stored.now + 9, 8), Ended(stored.now + 10, PAID))
    stored.add(Began(stored.now, 1, TASK))
    stored.launch("text", b"Again.")
    stored.add(Ended(stored.now + 1, PAID), Settled(stored.now + 2, Stop(Reason.FAILING, "twice")))
    assert_sums(stored)
    found = atif(stored)
    assert [step.message for step in found.of("agent")] == ["I begin.", "", "Again."]
    assert found.extra
    assert (found.extra["reason"], found.extra["exit"]) == ("failing", 5)
    run = traces.tree(otlp(stored))[""][0]
    assert run.told["error.type"] == "failing"
    assert run.status
    assert run.status.code == 2


def test_workers_have_trajectories_and_spans_of_their_own(tmp_path: Path) -> None:
    lead = Stored(tmp_path).begin("tasks").turn("text", b"I plan.", turn=PAID)
    names = [f"{RUN}-{number:03d}" for number in (1, 2)]
    lead.add(*(Assigned(lead.now + 1, TASK, name) for name in names))
    worker = Stored(tmp_path, names[0], lead).begin("tasks")
    worker.turn("text", b"I work.", turn=PAID)
    worker.add(Settled(worker.now + 1, Stop(Reason.COMPLETED)))
    lead.add(Returned(lead.now + 99, "T-001", names[0], Accept(("passed",))))
    lead.end()
    assert_sums(lead)
    assert lead.spent[3] == 1.0
    found = atif(lead)
    assert [each.trajectory_id for each in found.subagent_trajectories] == names
    refs = [
        ref.trajectory_id
        for step in found.of("system")
        for result in (step.observation.results if step.observation else ())
        for ref in result.subagent_trajectory_ref or ()
    ]
    assert refs == names
    tree = traces.tree(otlp(lead))
    below = [span.name for span in tree[tree[""][0].spanId]]
    assert below == ["iteration 1", "worker T-001"]
    own = atif(worker)  # a worker may be exported alone
    assert trajectories.final(own)[3] == 0.5


def test_subagents_have_trajectories_of_their_own(tmp_path: Path) -> None:
    """Claude's, by the call that sent them; their model is the turn's, where that is another."""

    def line(who: str, parent: str, **block: object) -> dict[str, object]:
        message = {"content": [block]}
        return {"type": who, "message": message, "parent_tool_use_id": parent or None}

    def calling(call: str, parent: str = "") -> dict[str, object]:
        return line("assistant", parent, type="tool_use", id=call, name="Task", input={"a": 1})

    def answering(call: str, parent: str = "") -> dict[str, object]:
        return line("user", parent, type="tool_result", tool_use_id=call, content="found")

    stream = lines(
        calling("t1"),
        line("assistant", "t1", type="text", text="I search."),
        calling("t2", "t1"),
        answering("t2", "t1"),
        answering("t1"),
        line("assistant", "", type="text", text="Thanks."),
    )
    stored = Stored(tmp_path).begin(model="opus").add(Began(BEGAN, 1, TASK))
    for _ in range(2):
        stored.launch("claude", stream, model="haiku")
        stored.add(Ended(stored.now + 1, PAID))
    assert_sums(stored)
    found = atif(stored)
    names = [f"{RUN}/turn-{number}/subagents" for number in (1, 2)]
    assert [each.trajectory_id for each in found.subagent_trajectories] == names
    assert [step.message for step in found.subagent_trajectories[0].steps] == ["I search."]
    task = found.of("agent")[0]
    assert task.model_name == "haiku"
    assert task.observation
    refs = task.observation.results[0].subagent_trajectory_ref or []
    assert [ref.trajectory_id for ref in refs] == names[:1]
    tools = [span for span in otlp(stored) if span.name == "execute_tool Task"]
    assert [span.told.get("ralph.subagent") for span in tools] == [True, None] * 2


def test_attempts_on_other_machines(tmp_path: Path) -> None:
    stored = Stored(tmp_path).begin("tasks").add(Began(BEGAN, 1, TASK), Sent(BEGAN, 1, "r", "c"))
    stored.add(Fared(BEGAN + 1, 1, "placed", "m1"))
    stored.launch("text", b"First.")
    stored.add(Fared(stored.now + 1, 1, "lost", "m1"), Sent(stored.now + 2, 2, "r2", "c"))
    stored.launch("text", b"Second.")
    stored.add(Ended(stored.now + 3, PAID), Settled(stored.now + 4, Continue())).end()
    assert_sums(stored)
    steps = atif(stored).of("agent")
    assert [(step.message, step.metrics is not None) for step in steps] == [
        ("First.", False),
        ("Second.", True),
    ]
    iteration = next(span for span in otlp(stored) if span.name == "iteration 1")
    assert [event.name for event in iteration.events] == [
        *("ralph.sent", "ralph.fared", "ralph.fared", "ralph.sent")
    ]


def test_the_tree_of_a_turn_its_checks_and_what_settled_it(tmp_path: Path) -> None:
    stored = Stored(tmp_path).begin(model="opus").add(Began(BEGAN, 1, TASK))
    stored.launch("codex", b"", model="gpt-5.5")
    failed = Turn(Ending.CUT, None, "too long", failure=Failure("limit", 429))
    finding = Finding("make test", f"1 failed: {KEY}")
    stored.add(
        Asked(stored.now + 1, Request("r1", "note", text="be quick")),
        Ended(stored.now + 2, failed),
        Checking(stored.now + 3, "make test"),
        Checked(stored.now + 13, "make test", 10.0, (finding,)),
        Decided(stored.now + 14, Boundary.CLOSING, Park("asks: which?"), (finding,), rule="Asks"),
    )
    stored.launch("text", b"Add it", role=Role.MESSAGE)
    stored.add(Step(stored.now + 1, "scm:message", cost_usd=0.25, usage=Usage(5, 1)))
    stored.add(Step(stored.now + 2, "scm:commit", ok=False, detail="refused"))
    stored.add(Settled(stored.now + 3, Park("asks: which?"))).end(Reason.BLOCKED)
    assert_sums(stored)
    spans = otlp(stored)
    tree = traces.tree(spans)
    named = {span.name: span for span in spans}
    iteration = named["iteration 1"]
    assert [span.name for span in tree[iteration.spanId]] == [
        *("invoke_agent codex", "gate make test", "invoke_agent text"),
        *("settle scm:message", "settle scm:commit"),
    ]
    turn = named["invoke_agent codex"]
    assert turn.told["gen_ai.provider.name"] == "openai"
    assert turn.told["gen_ai.request.model"] == "gpt-5.5"
    assert turn.told["error.type"] == "429"
    gate = named["gate make test"]
    assert int(gate.endTimeUnixNano) - int(gate.startTimeUnixNano) == 10_000_000_000
    assert gate.told["error.type"] == "finding"
    assert named["settle scm:commit"].told["error.type"] == "step_failed"
    note, decided = iteration.events
    assert note.told == {"ralph.request": "note", "ralph.origin": "cli"}
    assert decided.told["ralph.verdict"] == "park"
    assert decided.told["ralph.rule"] == "Asks"
    assert decided.told["ralph.findings"] == ["make test"]
    assert atif(stored).of("agent")[0].model_name is None  # nobody knows that of a message turn


def test_words_are_in_a_trace_only_where_they_are_asked_for(tmp_path: Path) -> None:
    words = ("Write hello.txt", "I wrote it", "which?", "is wrong", "secret.py", "its content")
    stream = lines(
        {
            "type": "assistant",
            "message": {
                "content": [
                    {"type": "tool_use", "id": "t", "name": "Read", "input": {"p": "secret.py"}}
                ]
            },
        },
        {
            "type": "user",
            "timestamp": "2026-11-18T11:06:50Z",
            "message": {
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": "its content"}]
            },
        },
    )
    stored = Stored(tmp_path).begin().add(Began(BEGAN, 1, TASK))
    stored.launch("claude", stream)
    finding = Finding("g", "is wrong")
    stored.add(
        Ended(stored.now + 60, Turn(text="I wrote it")),
        Checked(stored.now + 61, "g", 1.0, (finding,)),
        Decided(stored.now + 62, Boundary.CLOSING, Park("which?"), (finding,)),
        Settled(stored.now + 63, Park("which?")),
    )
    without = str([span.told for span in otlp(stored)])
    without += str([event.told for span in otlp(stored) for event in span.events])
    told = otlp(stored, content=True)
    within = str([(span.told, [event.told for event in span.events]) for span in told])
    assert [word for word in words if word in without] == []
    assert [word for word in words if word not in within] == []


def test_a_tool_has_the_times_that_its_stream_tells(tmp_path: Path) -> None:
    at = int(BEGAN + 10) * 1000

    def tool(number: int, start: int) -> dict[str, object]:
        state = {"status": "completed", "input": {}, "output": ""}
        part = {"callID": f"c{number}", "tool": "bash", "state": state}
        return {"type": "tool_use", "timestamp": start, "sessionID": "s", "part": part}

    stored = Stored(tmp_path).begin().add(Began(BEGAN, 1, TASK))
    stored.launch("opencode", lines(tool(1, at), tool(2, at + 500)))
    stored.launch("codex", lines(*({"type": f"item.{how}", "item": ITEM} for how in HOWS)))
    tools = [span for span in otlp(stored) if span.name.startswith("execute_tool")]
    assert [int(span.startTimeUnixNano) for span in tools[:2]] == [at * 10**6, (at + 500) * 10**6]
    assert [span.told["ralph.times"] for span in tools] == ["stream", "stream", "order"]
    assert tools[2].startTimeUnixNano == tools[2].endTimeUnixNano


ITEM = {"id": "i", "type": "command_execution", "command": "ls", "exit_code": 0}
HOWS = ("started", "completed")


def test_an_export_twice_is_the_same_trace(tmp_path: Path) -> None:
    stored = Stored(tmp_path).begin().turn("text", b"Done.")
    before = otlp(stored)
    stored.turn("text", b"And more.").end()
    after = otlp(stored)
    ids = {(span.name, span.traceId, span.spanId) for span in after}
    assert {(span.name, span.traceId, span.spanId) for span in before} <= ids


def test_streams_that_are_gone_short_or_unreadable(tmp_path: Path) -> None:
    """It is said, and never an error."""
    stored = Stored(tmp_path).begin()
    kept = MOST_SAVED // 4
    mark = LEFT_OUT % 123
    short = b"a\n" * (kept // 2) + mark + b"The end.\n"
    stored.launch("text", None, prompt=None)
    stored.launch("text", short)
    gone = stored.launch("text", b"x")
    os.unlink(gone.stream)
    os.mkdir(gone.stream)
    found = atif(stored)
    assert found.extra
    assert [(gap["turn"], gap["bytes"]) for gap in found.extra["gaps"]] == [
        (1, 0),
        (2, 123),
        (3, 0),
    ]
    user = [step.extra or {} for step in found.of("user")]
    assert ["gap" in extra for extra in user] == [True, False, False]
    said = found.of("agent")[-1].message
    assert said.endswith("The end.\n")
    assert "are left out here" not in said
    events = [event for span in otlp(stored) for event in span.events]
    assert [event.told["why"] for event in events] == [gap["why"] for gap in found.extra["gaps"]]
    entries = whole(stored)["entries"]
    assert isinstance(entries, list)
    assert [entry["bytes"] for entry in entries if "gap" in entry] == [0, 123, 0]


def test_a_journal_that_was_changed_is_told_up_to_there(tmp_path: Path) -> None:
    stored = Stored(tmp_path).begin().turn("text", b"Done.").end()
    path = Path(stored.run.journal)
    path.write_text(path.read_text().replace('"it is over"', '"all is well"'))
    found = atif(stored)
    assert found.extra
    assert "was changed after it was written" in found.extra["problem"]
    assert "changed" in str(whole(stored)["problem"])
    run = traces.tree(otlp(stored))[""][0]
    assert "changed" in run.told["ralph.problem"]
    assert run.told["ralph.unfinished"] is True


def test_facts_that_make_no_sense_end_the_tale(tmp_path: Path) -> None:
    stored = Stored(tmp_path).begin().turn("text", b"Done.", turn=PAID)
    soon: Any = "soon"
    journal = FileJournal(stored.run.journal, read_journal(stored.run.journal)[1])
    journal.record(Resumed(soon, 8))
    journal.record(Settled(soon, Continue()))
    journal.close()
    assert_sums(stored)
    found = atif(stored)
    assert found.extra
    assert "make no sense" in found.extra["problem"]


def test_a_run_that_goes_on_has_not_ended(tmp_path: Path) -> None:
    stored = Stored(tmp_path).begin().turn("text", b"Done.").end(Reason.LIMIT)
    stored.add(Resumed(stored.now + 1, 8))
    run = traces.tree(otlp(stored))[""][0]
    assert (run.told.get("ralph.reason"), run.told["ralph.unfinished"]) == (None, True)
    found = atif(stored)
    assert found.extra
    assert found.extra["ended"] is False


def test_an_empty_journal_is_a_trajectory_too(tmp_path: Path) -> None:
    assert [step.message for step in atif(Stored(tmp_path)).steps] == [
        "Nothing is told of this run."
    ]


@pytest.mark.parametrize("content", [True, False])
def test_nothing_tells_a_secret(tmp_path: Path, content: bool) -> None:
    stored = Stored(tmp_path).begin()
    stored.turn("text", f"It is {KEY}\nand \udc80\n".encode("utf-8", "surrogateescape"), KEY)
    call = {"type": "tool_use", "id": "t", "name": "Put", "input": {"keys": [{KEY: 1}]}}
    stored.turn("claude", lines({"type": "assistant", "message": {"content": [call]}}))
    told = str([atif(stored), otlp(stored, content=content), whole(stored)])
    assert KEY not in told
    assert "[redacted]" in told


def test_bytes_that_never_were_text(tmp_path: Path) -> None:
    stored = Stored(tmp_path).begin()
    launch = stored.launch("text", b"\xff\xfe \xed\xa0\x80\n", prompt=None)
    Path(launch.stream.replace(".stream", ".prompt")).write_bytes(b"do \xff it \xf0\x9f\x98\x80")
    found = atif(stored)
    assert found.of("user")[0].message == "do ? it \U0001f600"
    assert whole(stored)
    assert otlp(stored, content=True)
