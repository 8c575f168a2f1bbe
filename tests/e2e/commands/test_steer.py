"""`ralph stop`, `pause` and `resume` on real runs (ADR 7); no process is left after any."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from run_support import (
    Done,
    Here,
    Running,
    assert_clear,
    await_gone,
    facts,
    journals,
    nothing_runs,
    prepare,
    program,
    turns,
)

from ralph.files.state_dir import make_run_dir, project_dir
from ralph.journal.lock import Lock
from ralph.kernel.facts import Settled
from ralph.kernel.turn import Ending
from ralph.kernel.verdict import Reason, Stop
from ralph.testing.scripted_agent.install import calls

UNTIL_TOLD = "until [ -e go ]; do sleep 0.02; done"
PATIENT = {"tools": [{"name": "Bash", "run": UNTIL_TOLD}], "response": "DONE"}
STUBBORN = {"ignore": ["INT", "TERM"], "hang": "before", "spawn": ["sleep 600"]}


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def under_way(workspace: Path, agent: str, *arguments: str) -> Running:
    running = Running(workspace, "-p", "x", *arguments)
    running.await_that(lambda: calls(agent))
    return running


def state(here: Here) -> str:
    return str(json.loads(here("status", "--json").out)["state"])


def assert_interrupted(done: Done, agent: str) -> None:
    """The run ended with 130 and said so, its journal too, and nothing is left."""
    assert_clear(done, 130, "asked to stop (interrupted)")
    last = facts()[-1]
    assert isinstance(last, Settled)
    assert isinstance(last.verdict, Stop)
    assert last.verdict.reason is Reason.INTERRUPTED
    assert nothing_runs(agent)


# ------------------------------------------------------------------ stop


def test_stop_lets_the_agent_finish_its_turn(workspace: Path, here: Here) -> None:
    """ "`stop` = first signal -> the run finishes its current operation and ends 130"."""
    agent = prepare(workspace, PATIENT, guardrails=[{"command": "echo > ran"}])
    running = under_way(workspace, agent)
    done = here("stop")
    assert done.code == 0
    assert "stops after its current operation.\nSee: ralph status. At once: ralph stop" in done.out
    running.await_that(lambda: "Asked to stop: the run ends after the current" in running.err())
    assert running.process.poll() is None
    assert "Asked      to stop after the current operation" in here("status").out
    assert "(it was asked before)" in here("stop").out
    (workspace / "go").touch()
    assert_interrupted(running.end(), agent)
    assert [t.turn.ending for t in turns()] == [Ending.EXITED]
    assert not (workspace / "ran").exists(), "gates no longer run (ADR 2)"


def test_stop_now_ends_everything_at_once(workspace: Path, here: Here) -> None:
    """ "`--now` = second": also a stubborn agent."""
    agent = prepare(workspace, STUBBORN)
    running = under_way(workspace, agent)
    assert "ends at once" in here("stop", "--now").out
    assert_interrupted(running.end(), agent)
    assert [t.turn.ending for t in turns()] == [Ending.CUT]


def test_a_second_stop_with_now_hurries_the_first(workspace: Path, here: Here) -> None:
    agent = prepare(workspace, STUBBORN)
    running = under_way(workspace, agent)
    here("stop")
    running.await_that(lambda: "Asked to stop" in running.err())
    done = here("stop", "--now", "--wait", "--json")
    (shown,) = done.objects
    assert (shown["asked"], shown["state"], shown["exit"]) == ("stop-now", "ended", 130)
    assert_interrupted(running.end(), agent)


def test_stop_while_paused_ends_it_at_once(workspace: Path, here: Here) -> None:
    agent = prepare(workspace, PATIENT)
    running = under_way(workspace, agent, "-c", "NEVER")
    here("pause")
    (workspace / "go").touch()
    running.await_that(lambda: state(here) == "paused")
    assert "is paused and ends at once." in here("stop").out
    assert_interrupted(running.end(), agent)
    assert len(calls(agent)) == 1


def test_stop_while_waiting_for_a_rate_limit_ends_it_at_once(workspace: Path, here: Here) -> None:
    agent = prepare(workspace, {"error": {"status": 429, "resets_at": time.time() + 3600}})
    running = under_way(workspace, agent)
    running.await_that(lambda: state(here) == "waiting")
    assert "is waiting and ends at once." in here("stop").out
    assert_interrupted(running.end(), agent)
    assert len(calls(agent)) == 1


def test_stop_during_a_guardrail_lets_it_finish(workspace: Path, here: Here) -> None:
    rail = {"command": f"touch began; {UNTIL_TOLD}; touch done"}
    agent = prepare(workspace, {"response": "DONE"}, guardrails=[rail, {"command": "touch next"}])
    running = under_way(workspace, agent)
    running.await_that((workspace / "began").exists)
    here("stop")
    (workspace / "go").touch()
    assert_interrupted(running.end(), agent)
    assert (workspace / "done").exists()
    assert not (workspace / "next").exists()


def test_stop_wait_comes_back_when_the_run_is_gone(workspace: Path, here: Here) -> None:
    agent = prepare(workspace, {"hang": "before"})
    running = under_way(workspace, agent, "--stop-grace", "0.1")
    done = here("stop", "--wait")
    assert done.code == 0
    assert "has ended: interrupted, exit code 130." in done.out
    assert_interrupted(running.end(), agent)


def beside(workspace: Path, *arguments: str) -> Running:
    """A second `ralph` beside a run, with output of its own."""
    directory = workspace.parent / "beside"
    directory.mkdir()
    return Running(directory / "unused", *arguments)


def test_ctrl_c_leaves_the_wait_and_not_the_request(workspace: Path) -> None:
    agent = prepare(workspace, PATIENT)
    running = under_way(workspace, agent)
    waiting = beside(workspace, "stop", "--wait")
    running.await_that(lambda: "Asked to stop" in running.err())
    waiting.send(signal.SIGINT)
    assert waiting.end().code == 130
    (workspace / "go").touch()
    assert_interrupted(running.end(), agent)


def test_a_run_that_is_just_starting_can_be_stopped(workspace: Path, here: Here) -> None:
    """ "lock held, no journal yet": the request waits for the run's directory."""
    project = project_dir(os.environ["RALPH_STATE_DIR"], str(workspace))
    lock = Lock(os.path.join(project, "run.lock"))
    lock.acquire("20260101-000000-abcd", time.time())
    assert "running: just starting" in here("status").out
    assert here("logs").code == 0
    asking = beside(workspace, "stop")
    directory = make_run_dir(project, "20260101-000000-abcd")
    assert_clear(asking.end(), 0)
    assert os.listdir(os.path.join(directory, "signals")) == ["stop"]
    lock.release()


def test_a_stop_before_the_first_turn_starts_no_agent(workspace: Path, here: Here) -> None:
    """The probe of the agent takes its time: the run has a directory, but has not started."""
    agent = program(
        workspace.parent / "claude", "touch probed; until [ -e go ]; do sleep 0.02; done"
    )
    prepare(workspace, {"response": "DONE"}, agent={"command": agent})
    running = Running(workspace, "-p", "x")
    running.await_that(journals)
    here("stop")
    (workspace / "go").touch()
    assert running.end().code == 130


# ------------------------------------------------------------------ pause and resume


def test_pause_and_resume(workspace: Path, here: Here) -> None:
    agent = prepare(workspace, PATIENT, {"response": "DONE"})
    running = under_way(workspace, agent, "-c", "NEVER", "-m", "2")
    done = here("pause")
    assert done.code == 0
    assert "pauses before its next turn.\nSee: ralph status. Go on: ralph resume" in done.out
    running.await_that(lambda: "Asked to pause" in running.err())
    assert "Asked      to pause before the next turn" in here("status").out
    (workspace / "go").touch()
    running.await_that(lambda: state(here) == "paused")
    assert "paused: for " in here("status").out
    assert "is paused already" in here("pause").out
    assert len(calls(agent)) == 1
    (shown,) = here("resume", "--json").objects
    assert (shown["asked"], shown["state"]) == ("resume", "running")
    done = running.end()
    assert_clear(done, 1, "Asked to go on", "Iteration 2/2 starting")
    assert len(calls(agent)) == 2


def test_resume_takes_back_a_pause_that_is_not_in_force(workspace: Path, here: Here) -> None:
    agent = prepare(workspace, PATIENT, {})
    running = under_way(workspace, agent, "-m", "2", "-c", "NEVER")
    assert_clear(here("resume"), 2, "is going on (pid", "and is not paused")
    here("pause")
    done = here("resume")
    assert done.code == 0
    assert "had not paused yet; it goes on without a pause." in done.out
    (workspace / "go").touch()
    assert running.end().code == 1


def test_a_pause_after_a_stop_says_what_will_happen(workspace: Path, here: Here) -> None:
    agent = prepare(workspace, PATIENT)
    running = under_way(workspace, agent)
    here("stop")
    assert "it ends instead of pausing" in here("pause").out
    (workspace / "go").touch()
    assert_interrupted(running.end(), agent)


@pytest.mark.parametrize(("command", "asked"), [("stop", "stop"), ("pause", "pause")])
def test_json_is_one_object(workspace: Path, here: Here, command: str, asked: str) -> None:
    agent = prepare(workspace, PATIENT)
    running = under_way(workspace, agent)
    (shown,) = here(command, "--json").objects
    assert shown == {"run": journals()[0].parent.name, "asked": asked, "state": "running"}
    here("resume")
    here("stop", "--now")
    running.end()
    assert nothing_runs(agent)


# ------------------------------------------------------------------ nobody to ask


@pytest.mark.parametrize("command", ["stop", "pause", "resume"])
def test_without_any_run(workspace: Path, here: Here, command: str) -> None:
    assert_clear(here(command), 2, "no run was started in", "ralph run -p")


@pytest.mark.parametrize("command", ["stop", "pause", "resume"])
def test_a_run_that_has_ended(workspace: Path, here: Here, command: str) -> None:
    prepare(workspace, {"response": "DONE"})
    here("-p", "x")
    done = here(command)
    assert_clear(done, 2, "does not run: it has ended (completed, ", "Start a new one: ralph run")
    assert not os.listdir(journals()[0].parent / "signals"), "nothing is left behind"


@pytest.mark.parametrize("command", ["stop", "pause", "resume"])
def test_a_run_is_closed_to_its_own_agent(
    workspace: Path, here: Here, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """ADR 10, also while nobody answers: "An agent must not end, pause or resume"."""
    prepare(workspace, {"response": "DONE"})
    here("-p", "x")
    monkeypatch.setenv("RALPH_RUN", journals()[0].parent.name)
    assert_clear(here(command), 2, f"may not {command} its own run: RALPH_RUN names it")


@pytest.mark.parametrize("command", ["stop", "pause"])
def test_a_run_that_crashed(workspace: Path, here: Here, command: str) -> None:
    words = "What it did: ralph logs"
    agent = prepare(workspace, {"hang": "before"})
    running = under_way(workspace, agent)
    running.send(signal.SIGKILL)
    running.end()
    assert_clear(here(command), 2, "its process is gone without a last word", words)
    await_gone(*(call["pid"] for call in calls(agent)))


def test_the_refusal_of_a_second_run_names_stop(workspace: Path, here: Here) -> None:
    agent = prepare(workspace, PATIENT)
    running = under_way(workspace, agent)
    assert_clear(here("-p", "y"), 2, "end it: ralph stop (or kill -INT")
    here("stop", "--now")
    running.end()


def test_a_run_elsewhere_is_steered_by_its_name(
    workspace: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = prepare(workspace, PATIENT)
    running = under_way(workspace, agent)
    monkeypatch.chdir(workspace.parent)
    name = journals()[0].parent.name[-4:]
    done = here("stop", name)
    assert f"See: ralph status {name}. At once: ralph stop --now {name}" in done.out
    monkeypatch.chdir(workspace)
    (workspace / "go").touch()
    assert_interrupted(running.end(), agent)


@pytest.mark.parametrize("command", ["stop", "pause", "resume"])
def test_help_ends_with_examples(here: Here, command: str) -> None:
    assert "Examples:\n" in here(command, "--help").out
