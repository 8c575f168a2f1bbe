"""The loop of a session: P's acceptance tests, and what users of such loops complain about."""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hook_support import RALPH, commit, run
from loop_support import DONE, Session, assistant, call, moment, text

from ralph.loops.session.policy import ULTRAWORK


@pytest.fixture
def session(workspace: Path) -> Session:
    """A session in a project without git."""
    return Session(workspace)


# ------------------------------------------------------------------ P §Acceptance tests


def test_1_stops_on_promise(session: Session) -> None:
    """ "after doing work → loop exits with `PROMISE_ACCEPTED`"."""
    session.starts()
    session.writes(assistant(call()))
    told = "Ralph loop 0/50: PROMISE_ACCEPTED: the promise is believed; no gate is configured"
    assert session.stops(DONE) == {"systemMessage": told}, "shown, and not held"
    assert (session.loop.status, session.loop.iteration) == ("PROMISE_ACCEPTED", 0)
    assert session.stops("and on") == {}, "it is over"


def test_2_blocks_exit_without_promise(session: Session) -> None:
    """ "exit blocked, reinjection occurs"."""
    session.starts("Build\nit")
    told = session.stops("I'm done")
    assert told["decision"] == "block"
    assert told["reason"] == (
        f"You attempted to end the loop, but you did not output the completion promise {DONE}. "
        "Continue working on the original task below. Only output the promise when the task is "
        "fully complete.\n\nOriginal task: Build\nit"
    )
    assert told["systemMessage"].startswith("Ralph loop 1/50: ")
    assert "/ralph:cancel-ralph" in told["systemMessage"]


def test_3_max_iterations(session: Session) -> None:
    """ "exits after N iterations with `MAX_ITERATIONS_REACHED`"."""
    session.starts("Build it --max-iterations=03")
    assert [bool(session.held()) for _ in range(3)] == [True] * 3
    told = session.stops()
    assert list(told) == ["systemMessage"]
    assert told["systemMessage"].startswith("Ralph loop 3/3: MAX_ITERATIONS_REACHED: 3 iterations")
    assert session.stops() == {}
    assert (session.loop.status, session.loop.iteration) == ("MAX_ITERATIONS_REACHED", 3)
    assert len(session.loop.decisions) == 4


def test_4_bypass_rejected(session: Session) -> None:
    """ "zero tool calls → promise rejected; continuation injected"."""
    session.starts("Build it --ulw")
    session.writes(assistant(text(DONE)))
    told = session.held(DONE)
    assert told.startswith(
        f"{ULTRAWORK}\n\nPromise detected, but no tool calls/work were performed"
    )
    assert told.endswith("Original task: Build it")
    (decision,) = session.loop.decisions
    assert (decision.found, decision.accepted) == (True, False)
    assert "bypass" in decision.reason


def test_5_promise_detector_correctness(session: Session) -> None:
    """ "Promise appears in final message → loop must stop"."""
    session.starts()
    session.writes(assistant(call()))
    assert session.held("hm")
    assert not session.held(f"At last.\n\n```\n{DONE}\n```\n")


def test_the_five_as_real_processes(session: Session, workspace: Path) -> None:
    typed = session.event("UserPromptSubmit", prompt="/ralph:ralph-loop Build it")
    began = run((*RALPH, "prompt"), typed, workspace)
    assert b"A Ralph loop has begun" in began.stdout
    sent = session.event("Stop", last_assistant_message=DONE)
    held = [json.loads(run((*RALPH, "stop"), sent, workspace).stdout) for _ in range(2)]
    assert [told["decision"] for told in held] == ["block", "block"]
    session.writes(assistant(call()))
    done = run((*RALPH, "stop"), sent, workspace)
    assert (done.returncode, list(json.loads(done.stdout))) == (0, ["systemMessage"])
    assert b"PROMISE_ACCEPTED" in done.stderr


def test_the_end_of_a_loop_lets_nothing_through_that_stories_hold(
    session: Session, workspace: Path
) -> None:
    """The issue: "the end of a loop is shown in the session"; it holds nothing, and hides nothing
    that does."""
    session.starts()
    session.writes(assistant(call()))
    (workspace / ".ralph-active").write_text("{}")
    assert session.stops(DONE)["decision"] == "block"
    assert session.loop.status == "PROMISE_ACCEPTED"


# ------------------------------------------------------------------ which words count

NEVER = {
    "in prose": "I will say the promise DONE when I am done",
    "not done": "It is not DONE",
    "another case": "<promise>done</promise>",
    "blanks inside": "<promise> DONE </promise>",
    "another tag": "<Promise>DONE</Promise>",
    "cut in two": "<promise>DONE</promise",
    "nothing": "",
}


@pytest.mark.parametrize("words", NEVER.values(), ids=NEVER.keys())
def test_only_the_exact_promise_counts(session: Session, words: str) -> None:
    session.starts()
    session.writes(assistant(call()))
    assert "did not output the completion promise" in session.held(words)


def test_a_near_miss_has_a_sentence_of_its_own(session: Session) -> None:
    session.starts()
    assert f" <promise>done</promise> is not exactly {DONE}." in session.held(
        "<promise>done</promise>"
    )
    assert "is not exactly" in session.loop.decisions[0].reason


FOREIGN = {
    "the user": {"type": "user", "message": {"role": "user", "content": DONE}},
    "a tool": {
        "type": "user",
        "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": DONE}]},
    },
    "a tool's input": assistant({**call("t9"), "input": {"command": f"echo '{DONE}'"}}),
    "a thought": assistant({"type": "thinking", "thinking": DONE}),
    "a helper": assistant(text(DONE), isSidechain=True),
    "an error": assistant(text(DONE), isApiErrorMessage=True),
    "the CLI": assistant(
        text(DONE), message={"model": "<synthetic>", "role": "assistant", "content": [text(DONE)]}
    ),
    "a hook": {"type": "attachment", "attachment": {"type": "hook_success", "content": DONE}},
}


@pytest.mark.parametrize("line", FOREIGN.values(), ids=FOREIGN.keys())
def test_what_others_say_never_counts(session: Session, line: dict[str, object]) -> None:
    """ "text of sub-agents, tools, hooks and the user never counts"."""
    session.starts()
    session.writes(assistant(call()), {**line, "timestamp": moment()})
    assert "did not output the completion promise" in session.held("hm")


def test_a_promise_only_in_tool_output_is_named(session: Session) -> None:
    session.starts()
    session.writes({**FOREIGN["a tool"], "timestamp": moment()})
    assert "stood only in tool output" in session.held("hm")


def test_what_was_before_the_loop_is_neither_promise_nor_work(session: Session) -> None:
    session.writes(assistant(call()), assistant(text(DONE)))
    session.starts()
    assert "did not output" in session.held("hm")
    assert "no tool calls/work" in session.held(DONE)
    assert session.loop.tools == 0


def test_before_goes_by_time_where_nobody_knows_the_place(session: Session) -> None:
    """A loop that was started from a terminal knows no transcript."""
    session.extra = {"transcript_path": None}
    session.starts()
    session.extra = {}
    session.writes(assistant(call("old"), timestamp=moment(60)))
    assert "no tool calls/work" in session.held(DONE)
    session.writes(assistant(call("new")))
    assert not session.held(DONE)
    assert session.loop.tools == 1


def test_a_rejected_promise_is_spent(session: Session) -> None:
    """Also where the transcript was late: its line comes after the block."""
    session.starts()
    late = assistant(text(DONE))
    assert "no tool calls/work" in session.held(DONE)
    session.writes(late, assistant(call()))
    assert "did not output the completion promise" in session.held("Now I did work.")
    assert not session.held(DONE)


def test_a_promise_in_an_earlier_message_counts(session: Session) -> None:
    """P: "Scan all assistant output since loop start"."""
    session.starts()
    session.writes(assistant(call()), assistant(text(DONE)))
    assert not session.held("That was it.")


def test_a_transcript_that_is_late_is_waited_for(session: Session) -> None:
    session.starts()
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(session.held, DONE)
        time.sleep(0.05)
        session.writes(assistant(call()), assistant(text(DONE)))
        assert answer.result() == ""


# ------------------------------------------------------------------ work


@pytest.mark.parametrize(
    ("flags", "held"),
    [
        ("", True),
        ("--min-tool-calls 0", False),
        ("--on-promise-no-work warn", False),
        ("--on-promise-no-work accept", False),
    ],
)
def test_a_promise_without_work(session: Session, flags: str, held: bool) -> None:
    session.starts(f"Build it {flags}")
    session.writes(assistant(text(DONE)))
    assert bool(session.held(DONE)) is held
    assert ("warning" in session.loop.decisions[0].reason) is ("warn" in flags)


def test_calls_add_up_over_stops(session: Session) -> None:
    session.starts("Build it --min-tool-calls 2")
    session.writes(assistant(call("t1")))
    assert session.held("hm")
    session.writes(assistant(call("t2")))
    assert not session.held(DONE)
    assert session.loop.tools == 2


def test_without_a_transcript_changed_files_count_as_work(repo: Path) -> None:
    """ "Transcript missing: judged from `last_assistant_message`; changed files in git count"."""
    session = Session(repo, extra={"transcript_path": None})
    (repo / "dirty").write_text("before")
    session.starts()
    assert "no tool calls/work" in session.held(DONE)
    (repo / "dirty").write_text("and after")
    assert not session.held(DONE)
    session.starts()
    commit(repo)
    assert not session.held(DONE)


# ------------------------------------------------------------------ gates


def test_a_gate_must_pass_before_a_promise_is_accepted(session: Session) -> None:
    session.starts('Build it --gate "echo so; test -e built" --gate "touch ran"')
    assert session.held("hm")
    assert not (session.project / "ran").exists(), "nothing depends on it yet"
    session.writes(assistant(call()))
    told = session.held(DONE)
    assert "`echo so; test -e built` failed with exit code 1. Its output ends with:\nso" in told
    assert "a gate objects" in session.loop.decisions[-1].reason
    (session.project / "built").touch()
    assert not session.held(DONE)
    assert "passed: touch ran" in session.loop.why


def test_a_gate_that_does_not_end_is_ended(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ralph.loops.session import gate

    monkeypatch.setattr(gate, "MOST_SECONDS", 0.2)
    session.starts('Build it --min-tool-calls 0 --gate "sleep 1000"')
    assert "did not end in time" in session.held(DONE)


def test_a_loop_that_is_cancelled_while_a_gate_runs_lets_go(session: Session) -> None:
    ralph = f'"{sys.executable}" -m ralph loop cancel --session s-1; exit 1'
    session.starts(f"Build it --min-tool-calls 0 --gate '{ralph}'")
    assert session.stops(DONE) == {}
    assert session.loop.status == "CANCELLED"
