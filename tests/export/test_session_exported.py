"""A loop in a session for other tools: by the transcript of a real one, and by odd ones."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kits.export import traces, trajectories
from kits.export.exported import atif, otlp, whole
from kits.export.stored import lines
from ralph.agents.streams.dialects import parser_for
from ralph.cli.main import run_command_line
from ralph.export import transcript
from ralph.kernel.events import Usage, Used
from ralph.kernel.value import replace
from ralph.loops.exported import SessionSource
from ralph.loops.session.memory import file_name
from ralph.loops.session.state import (
    CANCELLED,
    EXHAUSTED,
    RUNNING,
    Decision,
    SessionLoop,
    loop_of,
    record_of,
)
from ralph.loops.session.words import Wish

STORED = Path(__file__).resolve().parents[1] / "captures" / "runs" / "session-claude"
BEGAN = 1_795_000_000.0
KEY = "sk-ant-" + "a1b2c3d4e5f6g7h8"
HELD = Decision(0, found=False, accepted=False, reason="missing promise", rule="Remind")
USED = {"input_tokens": 10, "output_tokens": 1}


def line(kind: str, after: float, content: object, **more: object) -> dict[str, object]:
    """A line of a transcript, so many seconds after the loop began."""
    time = datetime.fromtimestamp(BEGAN + after, UTC).isoformat(timespec="milliseconds")
    message = {"content": content}
    message |= {name: more.pop(name) for name in {"id", "usage"} & {*more}}
    return {"type": kind, "timestamp": time, "message": message, **more}


def said(after: float, words: str, **more: object) -> dict[str, object]:
    return line("assistant", after, [{"type": "text", "text": words}], **more)


def feedback(after: float) -> dict[str, object]:
    words = "Stop hook feedback:\nYou did not promise.\n\nOriginal task: Write it"
    return line("user", after, words, isMeta=True)


@pytest.fixture
def real() -> SessionLoop:
    loop = loop_of(json.loads((STORED / "session.loop").read_bytes()))
    return replace(loop, transcript=str(STORED / "transcript.jsonl"))


@pytest.fixture
def loop(tmp_path: Path) -> SessionLoop:
    """A loop that runs, without a transcript yet."""
    transcript = str(tmp_path / "transcript.jsonl")
    return SessionLoop("s-1", Wish("Write it"), started=BEGAN, transcript=transcript)


def told(loop: SessionLoop, *written: object) -> trajectories.Trajectory:
    Path(loop.transcript).write_bytes(lines(*written))
    return atif(SessionSource(loop))


def gaps(found: trajectories.Trajectory) -> list[str]:
    assert found.extra
    return [gap["why"] for gap in found.extra["gaps"]]


def words(found: trajectories.Trajectory, source: str) -> list[str]:
    return [step.message for step in found.of(source)]


def test_a_real_session(real: SessionLoop) -> None:
    found = atif(SessionSource(real))
    assert words(found, "user")[0].startswith("A Ralph loop has begun in this session: at most 50")
    assert [text.split(",")[0] for text in words(found, "user")[1:]] == [
        "Stop hook feedback:\nPromise detected",
        "Stop hook feedback:\nYou attempted to end the loop",
    ]
    done = "All is done. <promise>DONE</promise>"
    assert words(found, "agent") == [done, "Well.", "", done]
    (call,) = [call for step in found.of("agent") for call in step.tool_calls or ()]
    assert call.arguments == {"command": "echo hello > hello.txt"}
    notes = [text for text in words(found, "system") if "Note: " in text]
    assert notes == [f"Note: {decision.reason}" for decision in real.decisions]
    assert all(step.timestamp for step in found.steps)
    assert trajectories.sums(found) == trajectories.final(found) == (400, 80, 0, 0.0)
    assert found.extra
    assert (found.extra["reason"], found.extra["gaps"]) == ("completed", [])
    assert found.of("agent")[0].model_name == "claude-opus-4-8"


def test_a_real_session_as_a_trace_and_whole(real: SessionLoop) -> None:
    source = SessionSource(real)
    tree = traces.tree(otlp(source))
    (run,) = tree[""]
    assert (run.name, run.told["ralph.reason"]) == ("invoke_workflow session", "completed")
    assert [each.name for each in tree[run.spanId]] == [f"iteration {n}" for n in (1, 2, 3)]
    turns = [turn for each in tree[run.spanId] for turn in tree[each.spanId]]
    assert [turn.name for turn in turns] == ["invoke_agent claude"] * 3
    assert [each.name for each in tree[turns[2].spanId]] == ["execute_tool Bash"]
    assert traces.sums(otlp(source)) == (400, 80, 0, 0.0)
    found = whole(source)
    totals: Any = found["totals"]
    assert (totals["usage"]["input"], totals["cost_usd"], totals["turns"]) == (400, None, 3)


def test_only_what_is_the_loops(loop: SessionLoop) -> None:
    """Talk before it began, and after the stop that ended it, is somebody else's."""
    talk = (said(-5, "Before."), said(1, "Work."), feedback(2), said(3, "Done."), said(9, "After."))
    accepted = Decision(1, found=True, accepted=True, reason="believed", rule="Believed")
    decisions = (HELD, accepted)
    loop = replace(loop, iteration=1)
    ended = replace(loop, status="PROMISE_ACCEPTED", since=BEGAN + 4, decisions=decisions)
    assert words(told(ended, *talk), "agent") == ["Work.", "Done."]
    running = told(replace(loop, decisions=(HELD,)), *talk)
    assert words(running, "agent") == ["Work.", "Done.\nAfter."]
    assert running.extra
    assert running.extra["ended"] is False
    cancelled = told(replace(loop, status=CANCELLED, decisions=(HELD,)), *talk)
    assert words(cancelled, "agent") == ["Work.", "Done.\nAfter."]
    assert gaps(cancelled) == [
        "nobody knows when the loop ended: what the session did afterwards may be among this"
    ]


def test_decisions_that_are_forgotten_leave_the_others_in_place(loop: SessionLoop) -> None:
    written = (said(1, "One."), feedback(2), said(3, "Two."), feedback(4), said(5, "Three."))
    found = told(replace(loop, iteration=2, decisions=(HELD,)), *written)
    order = [step.message for step in found.steps if "Note" in step.message or "." in step.message]
    notes = order.index("Note: missing promise")
    assert order.index("Two.") < notes < order.index("Three.")
    assert gaps(found) == []


def test_an_answer_is_counted_once_by_its_last_line(loop: SessionLoop) -> None:
    partly, whole_answer = USED, {**USED, "output_tokens": 50}
    calling = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]
    answering = [{"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}]
    found = told(
        loop,
        said(1, "I look.", id="m1", usage=partly),
        line("assistant", 2, calling, id="m1", usage=whole_answer),
        line("user", 3, answering),
        said(4, "There.", id="m2", usage=USED),
    )
    assert trajectories.final(found)[:2] == (20, 51)
    metrics = [step.metrics for step in found.of("agent")]
    assert [each and each.completion_tokens for each in metrics] == [50, 1]


def test_answers_that_are_mixed_are_counted_once() -> None:
    parser = parser_for("claude-transcript")
    mixed = [said(1, "x", id=f"m{n}", usage=USED) for n in (1, 2, 1, 2, *range(3, 90))]
    told = [*parser.feed(lines(*mixed, said(1, "no usage", id="m90"))), *parser.end()]
    used = [event.usage for event in told if isinstance(event, Used)]
    assert used == [Usage(10, 1)] * 89


def test_subagents_meta_words_and_other_lines_are_not_the_agents(loop: SessionLoop) -> None:
    found = told(
        loop,
        said(1, "I am a sub-agent.", isSidechain=True),
        line("user", 2, "Caveat: these words are the host's", isMeta=True),
        {"type": "attachment", "timestamp": "2026-11-20T00:00:00Z", "attachment": {}},
        line("user", 3, "Hurry up"),
        {**line("system", 4, None), "subtype": "compact_boundary", "message": None},
        said(5, "Yes."),
    )
    assert words(found, "agent") == ["Yes."]
    assert words(found, "user")[1:] == ["Hurry up"]
    assert words(found.subagent_trajectories[0], "agent") == ["I am a sub-agent."]
    assert {"Caveat: these words are the host's", "the context was compacted"} <= {
        *words(found, "system")
    }


def test_secrets_are_redacted(loop: SessionLoop) -> None:
    loop = replace(loop, wish=Wish(f"Write it with {KEY}"), decisions=(HELD,))
    found = told(loop, said(1, f"The key is {KEY}."))
    assert KEY not in json.dumps([words(found, who) for who in ("user", "agent")])
    assert KEY not in json.dumps(whole(SessionSource(loop)))


def pipe(path: Path) -> None:
    os.mkfifo(path)


def codex(path: Path) -> None:
    path.write_bytes(lines({"type": "session_meta"}, {"type": "response_item", "payload": {}}))


def gemini(path: Path) -> None:
    path.write_bytes(lines({"type": "user", "content": "Hello"}, {"type": "gemini"}))


@pytest.mark.parametrize(
    ("make", "gap"),
    [
        (lambda path: None, "the transcript is not there"),
        (lambda path: path.symlink_to("nowhere"), "the transcript is not there"),
        (Path.mkdir, "the transcript cannot be read: Is a directory"),
        (pipe, "the transcript cannot be read: not a regular file"),
        (codex, "the transcript is codex's: only claude's is understood"),
        (gemini, "the transcript is gemini's: only claude's is understood"),
        (lambda path: path.write_bytes(b""), None),
        (
            lambda path: path.write_bytes(b"\0\xff\n[]\n7\n" + b'{"type":"user"'),
            "left out of the transcript, because it makes no sense: 4 lines",
        ),
        (
            lambda path: path.write_bytes(lines({"type": "user", "message": {"content": "x"}})),
            "left out of the transcript, because it makes no sense: 1 line",
        ),
    ],
)
def test_a_transcript_that_is_none(
    loop: SessionLoop, make: Callable[[Path], object], gap: str | None
) -> None:
    """What the loop itself knows is told all the same, and what is missing is said."""
    make(Path(loop.transcript))
    last = replace(HELD, iteration=1, reason="the limit", rule="RunLimit")
    decisions = (HELD, last)
    ended = replace(loop, status=EXHAUSTED, why="the limit", iteration=1, decisions=decisions)
    found = atif(SessionSource(ended))
    placeless = "not found in the transcript, and told behind it: 1 held stop"
    assert gaps(found) == [*([gap] if gap else []), placeless]
    assert "Task:\nWrite it" in words(found, "user")[0]
    notes = [text for text in words(found, "system") if text.startswith("Note: ")]
    assert notes == ["Note: missing promise", "Note: the limit"]
    assert found.extra
    assert found.extra["reason"] == "limit"
    assert trajectories.final(found) == (0, 0, 0, 0.0)
    traces.tree(otlp(SessionSource(ended)))


def test_a_host_that_names_no_transcript(loop: SessionLoop) -> None:
    found = atif(SessionSource(replace(loop, transcript="")))
    assert gaps(found) == ["the host named no transcript"]


def test_a_line_that_is_too_long(loop: SessionLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "_LONGEST", 500)
    found = told(loop, said(1, "I begin."), said(2, "x" * 1800), said(3, "I end."))
    assert words(found, "agent") == ["I begin.\nI end."]
    assert gaps(found) == ["left out of the transcript, because it makes no sense: 1 line"]


# ------------------------------------------------------------------ which one is meant


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loop: SessionLoop) -> list[SessionLoop]:
    """Two sessions of this directory, of which the second began later."""
    Path(loop.transcript).write_bytes(lines(said(1, "Well.")))
    state, here = tmp_path / "state", tmp_path / "here"
    (state / "sessions").mkdir(parents=True)
    here.mkdir()
    monkeypatch.setenv("RALPH_STATE_DIR", str(state))
    monkeypatch.chdir(here)
    loops = [
        replace(loop, session=f"5e55-{n}", started=BEGAN + n, touched=4e9, project=str(here))
        for n in (1, 2)
    ]
    for each in loops:
        path = state / "sessions" / file_name(each.session, "loop")
        path.write_text(json.dumps(record_of(each)))
    return loops


def export(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = run_command_line(["export", *arguments])
    out, err = capsys.readouterr()
    return code, trajectories.trajectory(out).session_id if code == 0 else err


def test_a_session_is_meant_by_its_id_a_part_a_path_or_the_directory(
    kept: list[SessionLoop], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kept[0].status == RUNNING
    assert export(capsys, "5e55-1") == (0, "5e55-1")
    assert export(capsys, "55-1") == (0, "5e55-1")
    assert export(capsys) == (0, "5e55-2"), "the last one here"
    path = tmp_path / "a.loop"
    path.write_text(json.dumps(record_of(kept[0])))
    assert export(capsys, str(path)) == (0, "5e55-1")
    code, why = export(capsys, "5e55")
    assert (code, "may be any of these sessions: 5e55-2, 5e55-1" in why) == (2, True)
    code, why = export(capsys, "5e55-3")
    assert (code, "there is no run '5e55-3'" in why) == (2, True)
    path.write_text(json.dumps({**record_of(kept[0]), "started": 1e300}))
    code, why = export(capsys, str(path))
    assert (code, "the loop of session 5e55-1 has odd times" in why) == (2, True)
    path.write_text("{}")
    code, why = export(capsys, str(path))
    assert (code, "its version is None" in why) == (2, True)


def test_runs_come_first(
    kept: list[SessionLoop], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from ralph.files.state_dir import project_dir

    runs = Path(project_dir(str(tmp_path / "state"), os.getcwd()), "runs")
    (runs / "20261119-000000-5e55").mkdir(parents=True)
    for arguments in ((), ("5e55",)):
        code, why = export(capsys, *arguments)
        assert (code, "run 20261119-000000-5e55 has no journal" in why) == (2, True)
