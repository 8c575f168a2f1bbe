"""`ralph status` as its users see it: live, ended, crashed and broken runs."""

import json
import signal
import time
from pathlib import Path

import pytest
from run_support import (
    Here,
    Running,
    assert_clear,
    await_gone,
    in_shell,
    journals,
    prepare,
    ralph,
)

from ralph.testing.scripted_agent.install import calls

UNTIL_TOLD = "until [ -e go ]; do sleep 0.02; done"
PATIENT = {"tools": [{"name": "Bash", "run": UNTIL_TOLD}], "response": "DONE"}
FIRST = {"text": "I look around.", "cost": 0.25, "usage": {"input": 10, "output": 5}}


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def test_a_run_at_work(workspace: Path, here: Here) -> None:
    """The state in words, the iteration, what was spent, the last actions, the processes."""
    rails = [{"command": "test -e go"}]
    agent = prepare(workspace, FIRST, PATIENT, guardrails=rails)
    running = Running(workspace, "-p", "Make it good\nall of it", "-m", "5", "--max-time", "2h")
    running.await_that(lambda: len(calls(agent)) == 2)
    running.await_that(lambda: "until" in here("status").out)
    told = here("status").out
    assert "running: the agent has worked for " in told
    assert "Task       prompt: Make it good\nIteration  2 of 5\n" in told
    assert " of 2h, $0.25, 10 tokens in, 5 out" in told
    assert "Found      test -e go: exit code 1, output in .ralph/" in told
    assert f"Last       Bash({UNTIL_TOLD})" in told
    assert f"ralph itself (pid {running.process.pid})" in told
    assert "Follow it: ralph logs -f" in told
    shown = json.loads(here("status", "--json").out)
    assert (shown["state"], shown["phase"], shown["exit"]) == ("running", "turn", None)
    assert shown["pid"] == running.process.pid
    assert shown["tree"]["processes"] >= 1
    assert shown["state_dir"] == str(journals()[0].parent)
    (workspace / "go").touch()
    assert running.end().code == 0
    shown = json.loads(here("status", "--json").out)
    assert (shown["state"], shown["reason"], shown["exit"]) == ("ended", "completed", 0)
    assert shown["pid"] is None
    assert shown["tree"] is None


def test_a_guardrail_at_work(workspace: Path, here: Here) -> None:
    prepare(workspace, {"response": "DONE"}, guardrails=[{"command": UNTIL_TOLD}])
    running = Running(workspace, "-p", "x")
    running.await_that(lambda: f"checking `{UNTIL_TOLD}` for" in here("status").out)
    assert json.loads(here("status", "--json").out)["phase"] == "checking"
    (workspace / "go").touch()
    running.end()


def test_a_run_that_waits_for_a_rate_limit(workspace: Path, here: Here) -> None:
    until = time.time() + 3600
    prepare(workspace, {"error": {"status": 429, "resets_at": until}})
    running = Running(workspace, "-p", "x")
    running.await_that(lambda: "waiting: for the rate limit until" in here("status").out)
    shown = json.loads(here("status", "--json").out)
    assert shown["wake_at"] == pytest.approx(until, abs=120)
    running.send(signal.SIGINT)
    assert running.end().code == 130


def test_how_it_ended_and_what_to_do_next(workspace: Path, here: Here) -> None:
    prepare(workspace, FIRST)
    assert here("-p", "x", "-m", "1").code == 1
    done = here("status")
    assert done.code == 0
    assert "ended: limit, exit code 1, " in done.out
    assert "Stopped: 1 iteration used up (limit)." in done.out
    assert f"Journal    {journals()[0]}" in done.out
    assert "Next       ralph resume -m +10" in done.out


def test_a_crash_is_told(workspace: Path, here: Here) -> None:
    """ "crashed (no stop, owner process gone)"; there is neither a reason nor an exit code."""
    agent = prepare(workspace, {"hang": "before"})
    running = Running(workspace, "-p", "x")
    running.await_that(lambda: calls(agent))
    running.send(signal.SIGKILL)
    running.end()
    told = here("status").out
    assert "crashed: its process is gone without a last word" in told
    assert "Go on: ralph resume" in told
    shown = json.loads(here("status", "--json").out)
    assert (shown["state"], shown["reason"], shown["exit"]) == ("crashed", None, None)
    await_gone(*(call["pid"] for call in calls(agent)))


# ------------------------------------------------------------------ which run


def test_no_run_is_exit_2_with_a_remedy(workspace: Path, here: Here) -> None:
    assert_clear(here("status"), 2, f"no run was started in {workspace}", "ralph run -p")


def test_a_run_of_a_directory_above_is_pointed_at(
    workspace: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(workspace, FIRST)
    here("-p", "x", "-m", "1")
    (workspace / "sub").mkdir()
    monkeypatch.chdir(workspace / "sub")
    assert_clear(here("status"), 2, f"ralph status -C {workspace}")
    assert here("status", "-C", str(workspace)).code == 0
    elsewhere = workspace.parent / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert_clear(here("status"), 2, "ralph status --all")
    run = journals()[0].parent.name
    assert f"Run        {run}" in here("status", run[-4:]).out, "looked for in all projects"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("zzzz",), "there is no run 'zzzz'"),
        (("",), "the run's name is empty"),
        (("a", "--all"), "--all is about every run"),
        (("a", "--spending"), "--spending is about every run"),
        (("a", "b"), "unexpected extra argument"),
        (("-C", "/none"), "No such file or directory"),
    ],
)
def test_bad_input(workspace: Path, here: Here, arguments: tuple[str, ...], words: str) -> None:
    assert_clear(here("status", *arguments), 2, words)


# ------------------------------------------------------------------ all of them


def test_all_runs_in_a_table(workspace: Path, here: Here) -> None:
    """One broken run must not break `--all`."""
    assert "There are no runs yet" in here("status", "--all").out
    assert json.loads(here("status", "--all", "--json").out) == []
    prepare(workspace, FIRST)
    for _ in range(3):
        here("-p", "x", "-m", "1")
    first, second, _ = journals()
    first.write_bytes(first.read_bytes().replace(b"claude", b"Claude"))
    second.unlink()
    done = here("status", "--all")
    assert done.code == 0
    rows = [row.split()[:2] for row in done.out.splitlines()]
    third = journals()[-1].parent.name
    assert sorted(rows[1:4]) == sorted(
        [
            [third, "limit"],
            [second.parent.name, "crashed"],
            [first.parent.name, "unknown"],
        ]
    )
    assert f"{first}:1: this line was changed after it was written" in done.out
    assert str(workspace) in done.out, "in a pipe nothing is cut"
    shown = json.loads(here("status", "--all", "--json").out)
    assert len(shown) == 3
    assert {s["state"] for s in shown} == {"ended", "crashed", "unknown"}


@pytest.mark.parametrize(
    "lock", ['{"pid": Infinity}', '{"pid": 1e999, "start": 1, "run": 1, "since": 1}', "\0", "[[["]
)
def test_nonsense_in_a_lock_names_nobody(workspace: Path, here: Here, lock: str) -> None:
    prepare(workspace, FIRST)
    here("-p", "x", "-m", "1")
    (journals()[0].parents[2] / "run.lock").write_text(lock)
    for arguments in ((), ("--all",), ("--all", "--json")):
        assert_clear(here("status", *arguments), 0)


def test_turns_of_unknown_cost_are_told(workspace: Path, here: Here) -> None:
    """Beside money that is known; an agent that never tells any is not mentioned."""
    prepare(workspace, {"text": "Hello", "cost": 0.5}, {"text": "Hello", "frame": False})
    here("-p", "x", "-m", "2")
    assert "$0.50 and 1 turn of unknown cost" in here("status").out
    assert json.loads(here("status", "--json").out)["spent"]["uncounted"] == 1
    prepare(workspace, {"text": "Hello"}, kind="text")
    here("-p", "x", "-m", "1")
    assert "unknown cost" not in here("status").out


def test_a_changed_journal_is_told_and_not_fatal(workspace: Path, here: Here) -> None:
    prepare(workspace, FIRST)
    here("-p", "x", "-m", "1")
    journal = journals()[0]
    journal.write_bytes(journal.read_bytes().replace(b"look", b"Look"))
    done = here("status")
    assert done.code == 0
    assert "unknown: no process of it is seen and its journal cannot be read" in done.out
    assert "this line was changed after it was written" in done.out
    assert "Agent      claude" in done.out, "what stands before it is told"


@pytest.mark.parametrize("more", [(), ("--all",)])
def test_what_was_spent(workspace: Path, here: Here, more: tuple[str, ...]) -> None:
    """By day and by run, from the ledger."""
    assert here("status", "--spending", *more).code == 0, "nothing yet is no error"
    prepare(workspace, FIRST)
    here("-p", "x", "-m", "2")
    told = here("status", "--spending", *more).out
    assert "$0.50" in told
    assert journals()[0].parent.name in told
    shown = json.loads(here("status", "--spending", "--json", *more).out)
    assert shown["total"]["cost_usd"] == 0.5


# ------------------------------------------------------------------ hard surroundings


@pytest.mark.parametrize("command", ["status", "status --all", "status --json"])
def test_a_closed_pipe_ends_it_quietly(workspace: Path, here: Here, command: str) -> None:
    prepare(workspace, FIRST)
    here("-p", "x", "-m", "1")
    done = in_shell(f"ralph {command} | true")
    assert (done.code, done.err) == (0, "")


def test_a_full_disk_is_named(workspace: Path, here: Here) -> None:
    prepare(workspace, FIRST)
    here("-p", "x", "-m", "1")
    assert_clear(in_shell("ralph status > /dev/full"), 2, "stdout cannot be written")


def test_no_state_directory_at_all(workspace: Path) -> None:
    done = ralph("status", "--all", env={"RALPH_STATE_DIR": str(workspace / "none")})
    assert done.code == 0
    assert "There are no runs yet" in done.out
    assert not (workspace / "none").exists(), "looking makes nothing"


def test_help_ends_with_examples(here: Here) -> None:
    assert "Examples:\n" in here("status", "--help").out
