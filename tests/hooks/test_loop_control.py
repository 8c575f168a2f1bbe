"""The loop of a session: limits, control, whose it is, and what may go wrong around it."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from hook_support import RALPH, begin, listing, story
from loop_support import DONE, Session, assistant, call

from ralph.kernel.value import replace
from ralph.loops.session.policy import ULTRAWORK
from ralph.loops.session.state import TIME_TO_LIVE, SessionLoop
from ralph.loops.session.store import Store


@pytest.fixture
def session(workspace: Path) -> Session:
    """A session in a project without git."""
    return Session(workspace)


# ------------------------------------------------------------------ limits and control


def test_at_the_limit_a_valid_promise_wins(session: Session) -> None:
    session.starts("Build it --max-iterations 1")
    session.writes(assistant(call()))
    assert session.held()
    assert not session.held(DONE)
    assert session.loop.status == "PROMISE_ACCEPTED"


def test_stop_hook_active_is_no_reason_to_let_go(session: Session) -> None:
    session.starts()
    assert session.held()
    assert session.held(stop_hook_active=True)
    assert session.loop.iteration == 2


def test_cancel_and_status_in_the_session(session: Session) -> None:
    session.starts()
    assert session.held()
    shown = session.types("/ralph-status")  # claude shows it, and takes no turn
    assert shown["decision"] == "block"
    assert "RUNNING\niteration 1/50" in shown["reason"]
    of_codex = session.types("/ralph-status", turn_id="t")["hookSpecificOutput"]
    assert of_codex["additionalContext"] == shown["reason"]
    told = session.types("/ralph:cancel-ralph")["hookSpecificOutput"]
    assert told["hookEventName"] == "UserPromptSubmit"
    assert "CANCELLED" in told["additionalContext"]
    assert session.stops() == {}
    assert "ended already" in str(session.types("/cancel-ralph"))
    session.starts("Another")
    assert session.held().endswith("Original task: Another"), "it replaces one that has ended"


def test_a_running_loop_is_not_replaced(session: Session) -> None:
    session.starts()
    told = session.types("/ralph-loop Another")
    assert told["decision"] == "block"
    assert "ralph loop cancel --session s-1" in told["reason"]
    assert session.loop.wish.task == "Build it"


@pytest.mark.parametrize("words", ["", "--max-iterations -1 x", "x --nope"])
def test_a_wish_that_is_none_does_not_reach_the_model(session: Session, words: str) -> None:
    told = session.types(f"/ralph:ralph-loop {words}")
    assert told["decision"] == "block"
    assert told["reason"].startswith("No Ralph loop: ")
    assert "There is no Ralph loop" in str(session.types("/ralph-status"))
    assert "There is no Ralph loop" in str(session.types("/cancel-ralph"))


@pytest.mark.parametrize("words", ["Hello", "what is /ralph-loop?", "/other", "/", "", "/ralph"])
def test_other_prompts_pass(session: Session, words: str) -> None:
    assert session.types(words) == {}


@pytest.mark.parametrize("words", ["/ulw-loop x", "/ralph:ulw-loop\nx", " /ralph-loop --ulw x"])
def test_ultrawork_is_in_every_continuation(session: Session, words: str) -> None:
    session.types(words)
    assert session.held().startswith(ULTRAWORK)
    assert session.held(DONE).startswith(ULTRAWORK)


# ------------------------------------------------------------------ ownership


def test_only_the_session_that_began_it_is_held(session: Session, workspace: Path) -> None:
    """Complaints: "Wrong session captured by a stop hook; two loops overwriting each other"."""
    other = Session(workspace, "s-2")
    session.starts()
    assert other.stops() == {}
    other.starts("Another")
    assert session.held().endswith("Original task: Build it")
    assert other.held().endswith("Original task: Another")
    other.types("/cancel-ralph")
    assert session.held()


def test_a_stop_without_a_session_is_let_go(
    session: Session, capfd: pytest.CaptureFixture[str]
) -> None:
    session.starts()
    assert session.stops(session_id=None) == {}
    assert "the event has no session_id" in capfd.readouterr().err
    session.extra = {"session_id": None}
    assert "names no session" in session.types("/ralph-loop x")["reason"]


def test_an_id_is_never_a_path(workspace: Path) -> None:
    session = Session(workspace, "../../../etc/x\n\udcff")
    session.starts()
    assert session.held()
    assert session.state.parent.name == "sessions"
    assert list(workspace.iterdir()) == [], "nothing is written to the workspace"


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"version": 1}', "\0" * 100])
def test_a_state_that_cannot_be_read_lets_go_and_says_so(
    session: Session, content: str, capfd: pytest.CaptureFixture[str]
) -> None:
    session.starts()
    session.state.write_text(content)
    assert session.stops() == {}
    assert "its state cannot be read" in capfd.readouterr().err
    session.starts()
    assert session.held(), "a new loop takes its place"


def test_a_state_that_cannot_be_written_lets_go(
    session: Session, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A frozen counter would hold for ever."""
    session.starts()

    def full(_: Store, __: SessionLoop) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Store, "write", full)
    assert session.stops() == {}
    assert "No space left" in capfd.readouterr().err


def test_a_state_directory_that_cannot_be_is_said(session: Session, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    session.environ["RALPH_STATE_DIR"] = str(tmp_path / "file")
    assert "cannot be kept" in session.types("/ralph-loop x")["reason"]
    assert session.stops() == {}


def test_it_is_found_after_cd(session: Session, workspace: Path) -> None:
    """ "found from subdirectories and through `$CLAUDE_PROJECT_DIR`"."""
    session.environ |= {"RALPH_STATE_DIR": ".state", "CLAUDE_PROJECT_DIR": str(workspace)}
    session.starts()
    assert session.held(cwd=str(workspace / "deep"))
    assert session.held(cwd="/")


def test_helpers_may_stop(session: Session) -> None:
    session.starts()
    assert session.stops(agent_id="a1") == {}
    assert session.stops(hook_event_name="SubagentStop") == {}
    assert session.loop.iteration == 0


def test_a_loop_that_nobody_heard_of_for_a_day_is_released(session: Session) -> None:
    session.starts()
    with Store("s-1", session.environ) as store:
        store.write(replace(session.loop, touched=time.time() - TIME_TO_LIVE - 1))
    assert "RELEASED" in session.stops()["systemMessage"]
    assert session.loop.status == "RELEASED"
    assert session.stops() == {}, "it is told once"


def test_a_failed_turn_counts_nothing(session: Session) -> None:
    """On an API error StopFailure runs instead of Stop."""
    session.fails()
    session.starts()
    session.fails()
    assert (session.loop.iteration, session.loop.status) == (0, "RUNNING")
    assert "API Error: 400" in session.loop.why
    assert session.held()


def test_the_cap_of_the_host_is_named_when_it_strikes(session: Session) -> None:
    session.starts()
    session.held()
    for _ in range(7):
        session.held(stop_hook_active=True)
    assert session.loop.why == "", "so many the host lets us hold"
    session.held(stop_hook_active=True)
    assert "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP" in session.loop.why
    session.held(stop_hook_active=False)
    assert session.loop.why == "", "a person has said something"
    session.writes(assistant(call()))
    session.held()
    assert (session.loop.why, session.loop.unanswered) == ("", 1)
    session.environ["CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"] = "0"
    for _ in range(9):
        session.held(stop_hook_active=True)
    assert session.loop.why == ""


def test_stops_at_the_same_time_are_all_counted(session: Session, workspace: Path) -> None:
    """Complaint: "counter frozen"."""
    session.starts()
    sent = json.dumps(session.event("Stop", last_assistant_message="hm")).encode()
    started = [
        subprocess.Popen(
            (*RALPH, "stop"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=workspace
        )
        for _ in range(6)
    ]
    said = [process.communicate(sent)[0] for process in started]
    assert all(b'"block"' in one for one in said)
    assert session.loop.iteration == 6


def test_gemini_repeats_what_was_said_before(session: Session) -> None:
    """Its `prompt_response` grows: what was rejected is in it again."""
    session.starts("x --min-tool-calls 1")
    usual = {"hook_event_name": "AfterAgent", "transcript_path": None}
    assert "no tool calls" in session.held(None, prompt_response=f"a {DONE}", **usual)
    again = {**usual, "stop_hook_active": True}
    assert "did not output" in session.held(None, prompt_response=f"a {DONE}\nhm", **again)


def test_the_stories_of_a_run_have_their_say_after_a_loop(repo: Path) -> None:
    begin(repo, None, listing(story(passes=True)))
    session = Session(repo)
    session.starts("x --min-tool-calls 0")
    assert "Put ralph/tasks.json right" in session.held(DONE)
    assert session.loop.status == "PROMISE_ACCEPTED"
    assert os.path.exists(repo / ".ralph-active")
