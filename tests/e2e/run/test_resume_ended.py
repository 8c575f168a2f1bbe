"""`ralph resume` after a limit, a question, a stall or a failure (ADR 35)."""

import json
import os
import pty
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from crash_support import HANDS, KILLED, PYTHON, moments
from run_support import (
    Done,
    Here,
    Running,
    assert_clear,
    assert_replays,
    facts,
    journals,
    prepare,
    program,
    prompts,
    ralph,
)
from test_resume import AGENT, Outcome, Stage

from kits.thorough import dealt
from ralph.kernel.facts import Resumed
from ralph.kernel.state import replay
from ralph.testing.scripted_agent.install import calls

WORKING, FINISHED = {"text": "working", "cost": 0.5}, {"response": "DONE", "cost": 0.5}


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def status(here: Here) -> dict[str, Any]:
    return dict(json.loads(here("status", "--json").out))


def test_ten_more_in_the_morning(workspace: Path, here: Here) -> None:
    """ "`-m 30` is the new total, `-m +10` ten more; what was spent stays counted; without new
    limits it says which one to raise, 2"."""
    agent = prepare(workspace, WORKING, WORKING, WORKING, FINISHED)
    assert here("run", "-p", "Write it\nand more", "-m", "2").code == 1
    (journal,) = journals()
    run = journal.parent.name
    more = f"ralph resume {run} -m +10"
    assert_clear(here("resume"), 2, "is at its limit: 2 iterations used up", f"Raise it: {more}")
    assert status(here)["resume"] == {
        "command": more,
        "would": "goes on with iteration 3, once its limit is raised",
    }
    once = here("resume", "-m", "+1")
    assert_clear(once, 1, f'Run {run}, ralph run, "Write it": limit', "New limits: -m 3 (was 2)")
    assert once.err.index("Spent so far: 2 iterations") < once.err.index("Iteration 3/3 starting")
    assert (status(here)["max_iterations"], status(here)["iteration"]) == (3, 3)
    assert_clear(here("resume", "-m", "3"), 2, "3 iterations used up", "more than it has spent")
    done = here("resume", run, "-m", "30")
    assert_clear(done, 0, "-m 30 (was 3)", "Iteration 4/30", "Completed after 4", "$2.00")
    assert len(calls(agent)) == 4
    raised = [fact.raised for fact in facts() if isinstance(fact, Resumed)]
    assert raised == [(("maximumIterations", 3),), (("maximumIterations", 30),)]
    assert "Iteration 4/30 starting" in here("logs").out
    for named in ((), (run,)):
        done = here("resume", *named, "-m", "+5")
        assert_clear(done, 2, "it has ended (completed", "Start a new one")
    assert status(here)["resume"] is None
    assert len(calls(agent)) == 4
    assert_replays()


@pytest.mark.parametrize(
    ("limit", "needed", "flags"),
    [
        ({"maxCost": 0.4}, "--max-cost +1", ("--max-cost", "+1")),
        ({"maxCost": 0.4}, "--max-cost +1", ("--max-cost", "$7.5")),
        ({"maxTime": 0.001}, "--max-time +1h", ("--max-time", "+90m")),
        ({"maximumIterations": 1}, "-m +10", ("-m", "+1")),
    ],
)
def test_each_limit_has_its_flag(
    workspace: Path, here: Here, limit: dict[str, Any], needed: str, flags: tuple[str, ...]
) -> None:
    slow = {**WORKING, "tools": [{"name": "Bash", "run": "sleep 0.01"}]}
    prepare(workspace, slow, FINISHED, **limit)
    assert here("run", "-p", "x").code == 1
    assert_clear(here("resume"), 2, f"Raise it: ralph resume {journals()[0].parent.name} {needed}")
    assert_clear(here("resume", *flags), 0, "Completed after 2 iterations")


def test_programs_hear_of_new_limits(workspace: Path, here: Here) -> None:
    prepare(workspace, WORKING, FINISHED)
    here("run", "-p", "x", "-m", "1")
    refused = here("resume", "--json")
    assert (refused.code, refused.objects[-1]["type"]) == (2, "error")
    first, *_, last = here("resume", "-m", "5", "--json").objects
    assert (first["type"], first["raised"]) == ("resumed", [["maximumIterations", 5]])
    assert first["limits"]["iterations"] == 5
    assert (last["type"], last["reason"], last["iterations"]) == ("stop", "completed", 2)


def test_what_the_checks_found_last_is_told_in_the_next_prompt(workspace: Path, here: Here) -> None:
    checks = [{"command": "test -e b", "hint": "b is missing"}]
    agent = prepare(workspace, FINISHED, {**FINISHED, "files": {"b": ""}}, guardrails=checks)
    assert here("run", "-p", "Write b", "-m", "1").code == 1
    assert_clear(here("resume", "-m", "+1"), 0)
    assert "b is missing" in prompts(agent)[1]


@pytest.mark.parametrize(
    ("turns", "code", "settings"),
    [
        ([{"text": "<promise>DECIDE: Which port?</promise>"}], 3, {}),
        ([{"exit": 1}, {"exit": 1}], 5, {"failAfter": 2}),
        ([WORKING, WORKING], 4, {"stallAfter": 2}),
        ([{"error": {"status": 401, "message": "log in"}}], 2, {}),
    ],
)
def test_after_another_end_it_simply_goes_on(
    workspace: Path, here: Here, turns: list[dict[str, Any]], code: int, settings: dict[str, Any]
) -> None:
    """A person has seen to it; failures and stalls are counted anew, and settings are read."""
    agent = prepare(workspace, *turns, *turns[:-1], FINISHED, **settings)
    assert here("run", "-p", "x").code == code
    written = workspace / ".ralph" / "settings.json"
    written.write_text(written.read_text().replace("{", '{"maximumIterations": 9,', 1))
    assert status(here)["resume"]["would"].startswith(f"goes on with iteration {len(turns) + 1}")
    number = len(turns) + 1
    assert_clear(here("resume"), 0, f"Iteration {number}/9 starting", "Completed")
    assert len(calls(agent)) == 2 * len(turns)


def test_limits_of_a_run_that_goes_on_stay(workspace: Path, here: Here) -> None:
    agent = prepare(workspace, {"hang": "before"})
    running = Running(workspace, "-p", "x")
    running.await_that(lambda: calls(agent))
    assert_clear(here("resume", "-m", "+5"), 2, "its limits stay", "ralph stop --wait")
    here("stop", "--now")
    running.end()
    assert_clear(here("resume", "--max-tasks", "5"), 2, "--max-tasks is no limit of this run")
    assert_clear(here("resume", "--max-cost", "+5"), 2, "no such limit", "--max-cost 5")
    assert_clear(here("resume", "-m", "+0"), 2, "-m")
    assert_clear(here("resume", "-m", "ten"), 2, "not a whole number")
    assert_clear(here("resume", "--max-time", "+0s"), 2, "'+0s' is nothing")


# ------------------------------------------------------------------ several


def test_of_several_runs_one_must_be_named(workspace: Path, here: Here) -> None:
    """ "with several candidates it lists them and asks (or refuses without a terminal)"."""
    agent = prepare(workspace, WORKING, WORKING, WORKING, FINISHED)
    for prompt in ("first", "second", "second"):
        assert here("run", "-p", prompt, "-m", "1").code == 1
    first, older, second = (journal.parent.name for journal in journals())
    done = here("resume")
    rows = (f"ralph resume {second} -m +10  ralph run, ", f"ralph resume {first} -m +10  ralph")
    assert_clear(done, 2, "several runs here could go on", *rows)
    assert older not in done.err, "a later run has taken its work up"
    assert len(calls(agent)) == 3
    assert_clear(here("resume", first, "-m", "+1"), 0, '"first"', "Completed after 2 iterations")


def test_a_person_at_a_terminal_is_asked(workspace: Path, here: Here) -> None:
    prepare(workspace, WORKING, WORKING, FINISHED)
    for prompt in ("first", "second"):
        assert here("run", "-p", prompt, "-m", "1").code == 1
    done = at_terminal(b"7\n2\n", "resume", "-m", "+1")
    words = ("Several runs here could go on:", "Answer with a number from 1 to 2.", '"first"')
    assert_clear(done, 0, *words, "Completed after 2 iterations")


def at_terminal(typed: bytes, *words: str) -> Done:
    """`ralph` with a terminal as its standard input, at which somebody types."""
    ours, theirs = pty.openpty()
    os.write(ours, typed)
    command = (sys.executable, "-m", "ralph", *words)
    done = subprocess.run(command, stdin=theirs, capture_output=True, timeout=60, check=False)
    os.close(theirs)
    os.close(ours)
    return Done(done.returncode, "", (done.stdout + done.stderr).decode())


def test_runs_from_before_the_last_completed_one_are_left_behind(
    workspace: Path, here: Here
) -> None:
    prepare(workspace, WORKING, FINISHED, WORKING, FINISHED)
    here("run", "-p", "old", "-m", "1")
    here("run", "-p", "between")
    here("run", "-p", "new", "-m", "1")
    assert_clear(here("resume", "-m", "+1"), 0, '"new"', "Completed")
    assert_clear(here("resume"), 2, journals()[0].parent.name, "1 iteration used up")


# ------------------------------------------------------------------ whole projects, kills


def test_uncommitted_work_of_before_is_committed_in_the_end(tmp_path: Path) -> None:
    stage = Stage(tmp_path).prepare()
    told = '{"type":"result","subtype":"success","is_error":false,"result":"Add a file"}'
    program(tmp_path / "claude", AGENT.replace('echo "Add a file"', f"echo '{told}'"))
    assert stage.call(*PYTHON, "run", "-p", "Write a and b.", "-m", "1") == 1
    assert stage.git("log", "--format=%s").splitlines() == ["Begin"]
    assert stage.call(*PYTHON, "run", "-p", "Something else.", "-m", "0") == 2
    assert stage.call(*PYTHON, "resume", "-m", "+3") == 0
    assert stage.git("log", "--format=%s").splitlines() == ["Add a file", "Begin"]
    assert stage.git("show", "--name-only", "--format=").split() == ["a", "b"]


GO_ON = ("resume", "-m", "+4")


@cache
def undisturbed(base: Path) -> tuple[Outcome, int, int]:
    """The end, the calls of the agent and the records since it went on, of a run that nobody
    kills."""
    whole = Stage(base / "undisturbed-resumed").prepare()
    assert whole.call(*PYTHON, "run", "-p", "Write a and b.", "-m", "1") == 1
    before = len(journal_of(whole).read_bytes().splitlines())
    code = whole.call(*PYTHON, *GO_ON)
    records = len(journal_of(whole).read_bytes().splitlines()) - before
    return whole.outcome(code, whole.state()), whole.calls(), records


@pytest.mark.parametrize("hand", dealt(range(HANDS), 1))
def test_killed_at_every_record_of_a_resumed_run(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, hand: int
) -> None:
    """A raised limit is one record: before it the run is at its limit, after it goes on."""
    expected, calls_then, points = undisturbed(tmp_path_factory.getbasetemp())
    assert (expected.code, points > 12) == (0, True)
    for when, number in [("before", 1), *moments(points)][hand::HANDS]:
        stage = Stage(tmp_path / f"{number}-{when}").prepare()
        stage.call(*PYTHON, "run", "-p", "Write a and b.", "-m", "1")
        assert stage.call(sys.executable, "-c", KILLED, when, str(number), *GO_ON) == -9
        state = stage.state()
        if (number, when) == (1, "before"):
            assert (state.limits.iterations, state.stop is not None) == (1, True)
            code = stage.call(*PYTHON, *GO_ON)
        elif state.stop is None:
            assert state.limits.iterations == 5
            code = stage.call(*PYTHON, "resume")
        else:
            code = 0
        assert stage.outcome(code, stage.state()) == expected, number
        assert stage.calls() - calls_then in (0, 1), number


def journal_of(stage: Stage) -> Path:
    (journal,) = (stage.root / "state").glob("*/runs/*/journal.jsonl")
    return journal


def test_in_an_empty_directory_there_is_nothing_to_resume(workspace: Path) -> None:
    assert_clear(ralph("resume", "-m", "+10"), 2, "no run was started in")
    assert replay([]).limits.iterations is None
