"""`ralph loop`: the loop of a session from a terminal."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ralph.cli.main import run_command_line
from ralph.hooks import stop
from ralph.loops.session.store import load


def ralph(*words: str) -> int:
    return run_command_line(["loop", *words])


def status(capsys: pytest.CaptureFixture[str], session: str = "s-1") -> dict[str, Any]:
    capsys.readouterr()
    assert ralph("status", "--session", session, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def stops(words: str, session: str = "s-1") -> str:
    event = {"session_id": session, "hook_event_name": "Stop", "last_assistant_message": words}
    return stop.answer(event, dict(os.environ), "/")


@pytest.fixture(autouse=True)
def _here(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)


TASK = "---\niteration: 3\n---\nsay \"hi\" $(date) `x` 'y' \\n"


@pytest.mark.parametrize(
    ("words", "task"),
    [
        ((TASK,), TASK),
        (("Build", "it"), "Build it"),
        (("- one\n- two, with help",), "- one\n- two, with help"),
        (("--verbose is broken",), "--verbose is broken"),
        (("a", "---", "b", "---"), "a --- b ---"),
        (("--", "--verbose"), "--verbose"),
    ],
)
def test_a_task_arrives_unchanged(
    words: tuple[str, ...], task: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """ "it never meets a shell and arrives unchanged"."""
    assert ralph("start", "--session", "s-1", *words) == 0
    assert f"Task:\n{task}\n" in capsys.readouterr().out
    assert status(capsys)["task"] == task


def test_programs_are_told_what_has_begun(capsys: pytest.CaptureFixture[str]) -> None:
    """README: `ralph loop start|status|cancel [--session ID] [--json]`."""
    assert ralph("start", "--session", "s-1", "--json", "Build it") == 0
    told = json.loads(capsys.readouterr().out)
    opening = told.pop("opening")
    assert told == status(capsys)
    assert (told["status"], "Task:\nBuild it" in opening) == ("RUNNING", True)


def test_values_of_flags_may_begin_with_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--completion-promise", "- all done -", "--gate", "- true")
    assert ralph("start", "--session", "s-1", *flags, "Build it") == 0
    found = status(capsys)
    assert (found["promise"], found["gates"]) == ("- all done -", ["- true"])


def test_flags_stand_before_or_after_the_task(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--gate", "make test", "--gate=true", "--ulw", "--on-promise-no-work=warn")
    more = ("--completion-promise", "ALL GREEN", "--min-tool-calls", "0")
    assert ralph("start", *flags, "Build it", *more, "--max-iterations=08", "--session=s-1") == 0
    found = status(capsys)
    assert (found["max_iterations"], found["min_tool_calls"]) == (8, 0)
    assert (found["promise"], found["gates"]) == ("ALL GREEN", ["make test", "true"])
    assert (found["on_promise_no_work"], found["ulw"]) == ("warn", True)


@pytest.mark.parametrize(
    "words",
    [
        (),
        (" ",),
        ("x", "--max-iterations", "-1"),
        ("x", "--max-iterations", "1.5"),
        ("x", "--max-iterations="),
        ("x", "--min-tool-calls", "few"),
        ("x", "--on-promise-no-work", "maybe"),
        ("x", "--completion-promise", ""),
        ("x", "--gate", ""),
        ("x", "--forever"),
        ("x", "--session", " "),
    ],
)
def test_what_is_no_loop_is_2(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """ "negative, fractional or empty numbers, unknown flags and a blank task: 2, no loop"."""
    assert ralph("start", "--session", "s-1", *words) == 2
    assert "[ralph] " in capsys.readouterr().err
    assert load("s-1", os.environ) is None


def test_status_tells_every_decision_also_after_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ralph("start", "--session", "s-1", "--max-iterations", "1", "Build it")
    assert stops("hm")
    stops("hm")
    found = status(capsys)
    assert (found["session"], found["status"]) == ("s-1", "MAX_ITERATIONS_REACHED")
    assert (found["iteration"], found["max_iterations"]) == (1, 1)
    assert [set(d) for d in found["decisions"]] == [
        {"iteration", "found", "accepted", "reason"}
    ] * 2
    assert ralph("status", "--session", "s-1") == 0
    assert "MAX_ITERATIONS_REACHED" in capsys.readouterr().out


def test_cancel_cancels(capsys: pytest.CaptureFixture[str]) -> None:
    """Complaint: "cancel not cancelling"."""
    ralph("start", "--session", "s-1", "Build it")
    assert ralph("start", "--session", "s-1", "Another") == 2
    assert "ralph loop cancel --session s-1" in capsys.readouterr().err
    assert ralph("cancel", "--session", "s-1") == 0
    assert "CANCELLED" in capsys.readouterr().out
    assert stops("hm") == ""
    assert ralph("cancel", "--session", "s-1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["status"] == "CANCELLED"
    assert ralph("start", "--session", "s-1", "Another") == 0, "it replaces one that has ended"
    assert status(capsys)["decisions"] == []


@pytest.mark.parametrize("command", ["status", "cancel"])
def test_a_session_without_a_loop_is_2(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ralph(command, "--session", "s-1") == 2
    assert "session s-1 has no loop" in capsys.readouterr().err
    assert ralph(command) == 2
    assert "--session ID" in capsys.readouterr().err


def test_the_session_may_be_the_hosts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """ "`--session` defaults to the host's session variable"."""
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "s-9")
    assert ralph("start", "Build it") == 0
    assert status(capsys, "s-9")["status"] == "RUNNING"
    assert ralph("cancel") == 0
    assert status(capsys, "s-9")["why"] == "cancelled from within its session"


def test_all_loops_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert ralph("list") == 0
    assert capsys.readouterr().out == ""
    for name in ("s-1", "s-2"):
        ralph("start", "--session", name, "Build\nit")
    (Path(os.environ["RALPH_STATE_DIR"]) / "sessions" / "x.loop").write_text("{")
    capsys.readouterr()
    assert ralph("list", "--json") == 0
    said = capsys.readouterr()
    assert [found["session"] for found in json.loads(said.out)] == ["s-2", "s-1"]
    assert "x.loop" in said.err
    assert ralph("list") == 0
    assert "s-1  RUNNING  0/50  Build it" in capsys.readouterr().out


def test_a_broken_state_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    ralph("start", "--session", "s-1", "Build it")
    (path,) = (Path(os.environ["RALPH_STATE_DIR"]) / "sessions").glob("*.loop")
    path.write_text("")
    assert ralph("status", "--session", "s-1") == 2
    assert f"{path}: it is empty" in capsys.readouterr().err


def test_a_transcript_that_is_there_is_known_from_the_start(tmp_path: Path) -> None:
    """What came before counts neither as promise nor as work, and costs nothing."""
    place = Path(os.environ["HOME"]) / ".claude" / "projects" / "p"
    place.mkdir(parents=True)
    (place / "s-1.jsonl").write_text("x\n")
    ralph("start", "--session", "s-1", "Build it")
    loop = load("s-1", os.environ)
    assert loop is not None
    assert (loop.transcript, loop.offset) == (str(place / "s-1.jsonl"), 2)


def test_without_a_word_it_helps(capsys: pytest.CaptureFixture[str]) -> None:
    assert ralph() == 2
    assert "ralph loop start" in capsys.readouterr().out
