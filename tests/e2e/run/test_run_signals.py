"""Signals to a real run (H §Signal Handling, ADR 7); no process is left after any."""

import signal
import time
from pathlib import Path

import pytest
import run_support
from run_support import (
    Running,
    assert_clear,
    await_gone,
    facts,
    is_alive,
    nothing_runs,
    prepare,
    program,
    turns,
)

from ralph.kernel.facts import Checked, Settled
from ralph.kernel.turn import Ending
from ralph.kernel.verdict import Reason, Stop
from ralph.testing.scripted_agent.install import calls

NOTICE = "[ralph] Received signal, shutting down after this turn. Press Ctrl+C again to stop now."
UNTIL_TOLD = "until [ -e go ]; do sleep 0.02; done"
# It works until the file `go` is there, then claims to be done.
PATIENT = {"tools": [{"name": "Bash", "run": UNTIL_TOLD}], "response": "DONE"}
STUBBORN = {"ignore": ["INT", "TERM"], "hang": "before", "spawn": ["sleep 600"]}
GUARDRAILS = [{"command": "echo ran >> ran"}]


def under_way(workspace: Path, agent: str, *arguments: str) -> Running:
    """A run whose agent is at work."""
    running = Running(workspace, "-p", "x", *arguments)
    running.await_that(lambda: calls(agent))
    return running


def assert_interrupted() -> None:
    """The journal ends with the reason."""
    last = facts()[-1]
    assert isinstance(last, Settled)
    assert isinstance(last.verdict, Stop)
    assert last.verdict.reason is Reason.INTERRUPTED


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_lets_the_agent_finish_its_turn(
    workspace: Path, number: signal.Signals
) -> None:
    """H: "If agent is running: allow it to finish current response, then exit"; 130."""
    agent = prepare(workspace, PATIENT, guardrails=GUARDRAILS)
    running = under_way(workspace, agent)
    running.send(number)
    running.await_that(lambda: NOTICE in running.err())
    assert running.process.poll() is None
    (workspace / "go").touch()
    done = running.end()
    assert_clear(
        done,
        130,
        NOTICE,
        "asked to stop (interrupted)",
        "ralph resume  # what was finished is kept",
    )
    assert "<response>DONE</response>" in done.out, "the agent was heard to its end"
    assert not (workspace / "ran").exists(), "gates no longer run after a signal (ADR 2)"
    assert [t.turn.ending for t in turns()] == [Ending.EXITED]
    assert_interrupted()
    assert nothing_runs(agent)


def test_the_second_signal_ends_the_agent_at_once(workspace: Path) -> None:
    """ADR 7: "Second, or SIGHUP: end the tree now"."""
    agent = prepare(workspace, STUBBORN, guardrails=GUARDRAILS)
    running = under_way(workspace, agent)
    running.interrupt()
    running.send(signal.SIGINT)
    assert_clear(running.end(), 130, NOTICE, "asked to stop at once")
    assert [t.turn.ending for t in turns()] == [Ending.CUT]
    assert not (workspace / "ran").exists()
    assert nothing_runs(agent)


def test_the_notice_is_printed_once(workspace: Path) -> None:
    agent = prepare(workspace, STUBBORN)
    running = under_way(workspace, agent)
    running.interrupt()
    running.send(signal.SIGTERM)
    assert running.end().err.count(NOTICE) == 1


def test_a_hangup_ends_the_agent_at_once(workspace: Path) -> None:
    agent = prepare(workspace, STUBBORN)
    running = under_way(workspace, agent)
    running.send(signal.SIGHUP)
    assert_clear(running.end(), 130, "asked to stop at once")
    assert nothing_runs(agent)


IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
BY_NOHUP = ("sh", "-c", 'trap "" INT QUIT HUP; exec "$@"', "sh")


def test_what_runs_in_the_background_can_be_ended(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`nohup ralph run &` in a script has SIGINT and SIGQUIT ignored: it hears SIGINT all the same,
    and nothing that it starts inherits them. A hangup is what nohup is for."""
    monkeypatch.setattr(run_support, "RALPH", (*BY_NOHUP, *run_support.RALPH))
    look = {"command": "grep SigIgn /proc/self/status > ignored"}
    agent = prepare(workspace, {"text": "begun"}, PATIENT, guardrails=[look])
    running = under_way(workspace, agent)
    running.await_that(lambda: len(calls(agent)) > 1)
    mask = int((workspace / "ignored").read_text().split()[1], 16)
    assert [number for number in IGNORED if mask >> (number - 1) & 1] == []
    running.send(signal.SIGHUP)
    running.interrupt()
    (workspace / "go").touch()
    assert running.end().code == 130
    assert "at once" not in running.err()


def test_stop_grace_bounds_the_first_signal(workspace: Path) -> None:
    """ADR 7: "`--stop-grace S` bounds the first"."""
    agent = prepare(workspace, {"hang": "before"})
    running = under_way(workspace, agent, "--stop-grace", "0.2")
    running.interrupt()
    words = "did not end within 0.2s of being asked to stop"
    assert_clear(running.end(), 130, words)
    assert nothing_runs(agent)


def test_stop_grace_bounds_a_guardrail_too(workspace: Path) -> None:
    """ADR 7: "for the agent, a guardrail and an SCM task alike"."""
    prepare(workspace, {"response": "DONE"}, guardrails=[{"command": "touch begun; sleep 300"}])
    running = Running(workspace, "-p", "x", "--stop-grace", "0.2")
    running.await_that((workspace / "begun").exists)
    running.interrupt()
    assert_clear(running.end(), 130, "Guardrail exited with code")


def test_end_grace_bounds_each_step_of_the_end(workspace: Path) -> None:
    """`endGrace`: "Seconds between INT, TERM and KILL"; who tidies up for longer is ended."""
    tidy = "sleep 3; touch tidied; exit"
    script = f"trap '{tidy}' INT; touch begun; while :; do sleep 0.05; done"
    agent = program(workspace.parent / "agent", script)
    prepare(workspace, agent={"command": agent, "kind": "text"}, endGrace=0.1)
    running = Running(workspace, "-p", "x", "--stop-grace", "0.2")
    running.await_that((workspace / "begun").exists)
    running.interrupt()
    assert_clear(running.end(), 130, "did not end within 0.2s of being asked to stop")
    assert not (workspace / "tidied").exists()


def test_a_signal_during_a_wait_stops_at_once(workspace: Path) -> None:
    """ADR 7: "during a wait: stop at once"."""
    limited = {"error": {"status": 429, "resets_at": time.time() + 3600}}
    agent = prepare(workspace, limited)
    running = under_way(workspace, agent)
    running.await_that(lambda: "waiting until" in running.err())
    running.interrupt()
    assert_clear(running.end(), 130, "asked to stop (interrupted)")
    assert len(calls(agent)) == 1
    assert_interrupted()


def test_a_signal_during_a_guardrail_lets_it_finish(workspace: Path) -> None:
    """H: "If guardrail is running: allow it to finish, then exit"; the next one is not begun."""
    first = {"command": f"echo began > began; {UNTIL_TOLD}; echo done > done"}
    agent = prepare(workspace, {"response": "DONE"}, guardrails=[first, *GUARDRAILS])
    running = under_way(workspace, agent)
    running.await_that((workspace / "began").exists)
    running.interrupt()
    (workspace / "go").touch()
    assert_clear(running.end(), 130, "Guardrail exited with code 0")
    assert (workspace / "done").exists()
    assert not (workspace / "ran").exists()
    checked = [fact.gate for fact in facts() if isinstance(fact, Checked)]
    assert checked == ["protect", first["command"]]


def test_a_second_signal_during_a_guardrail_ends_it(workspace: Path) -> None:
    command = "trap '' INT TERM; echo $$ > pid; while :; do sleep 0.05; done"
    agent = prepare(workspace, {"response": "DONE"}, guardrails=[{"command": command}])
    running = under_way(workspace, agent)
    running.await_that(lambda: (workspace / "pid").exists() and (workspace / "pid").read_text())
    running.interrupt()
    running.send(signal.SIGINT)
    assert_clear(running.end(), 130)
    assert not is_alive(int((workspace / "pid").read_text()))


def test_a_signal_commits_nothing(repo: Path) -> None:
    """The issue: SCM "only if the turn ended by itself and every gate ran and passed"."""
    import subprocess

    agent = prepare(repo, {**PATIENT, "files": {"new": "x"}}, scm={"tasks": ["commit"]})
    running = under_way(repo, agent)
    running.interrupt()
    (repo / "go").touch()
    assert running.end().code == 130
    count = subprocess.run(["git", "rev-list", "--count", "HEAD"], check=True, capture_output=True)
    assert count.stdout == b"1\n"
    assert len(calls(agent)) == 1


def test_earlier_iterations_are_kept(workspace: Path) -> None:
    """ "never loses a finished iteration"."""
    agent = prepare(workspace, {"files": {"one": "1"}}, {"files": {"two": "2"}}, STUBBORN)
    running = under_way(workspace, agent)
    running.await_that(lambda: len(calls(agent)) == 3)
    running.interrupt()
    running.send(signal.SIGINT)
    assert_clear(running.end(), 130, "3 iterations")
    assert len(turns()) == 3
    assert (workspace / "one").exists()
    assert (workspace / "two").exists()


def test_a_run_that_is_killed_leaves_a_journal_and_a_free_lock(workspace: Path) -> None:
    """ADR 9, ADR 10: every record survives kill -9, a dead owner is taken over."""
    agent = prepare(workspace, {"files": {"one": "1"}}, {"hang": "before"}, {"response": "DONE"})
    running = under_way(workspace, agent)
    running.await_that(lambda: len(calls(agent)) == 2)
    running.process.kill()
    running.end()
    assert len(turns()) == 1
    await_gone(*(call["pid"] for call in calls(agent)))
    after = Running(workspace, "-p", "x")
    assert after.end().code == 0
