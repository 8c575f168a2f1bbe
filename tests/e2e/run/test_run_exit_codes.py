"""Every exit code of a run (README §Exit codes), each by a real one; no process is left."""

import time
from pathlib import Path
from typing import Any

import pytest
from run_support import Here, Json, assert_clear, journals, nothing_runs, prepare, prompts, ralph

from kits.thorough import dealt
from ralph.testing.scripted_agent.install import calls

DONE = {"response": "DONE"}
TABLE: list[tuple[int, list[Json], dict[str, Any], tuple[str, ...], tuple[str, ...]]] = [
    (0, [DONE], {}, (), ("Completed after 1 iteration",)),
    (1, [{"text": "x"}], {}, ("-m", "2"), ("2 iterations used up (limit)",)),
    (2, [{"error": {"status": 401}}], {}, (), ("credential was refused", "Invalid API key")),
    (3, [{"text": "<promise>BLOCKED: no key</promise>"}], {}, (), ("no key (blocked)",)),
    (3, [{"text": "<promise>DECIDE: a or b?</promise>"}], {}, (), ("a or b?",)),
    (4, [{"text": "x"}], {"stallAfter": 2}, (), ("2 iterations without any progress (stalled)",)),
    (5, [{"exit": 9, "stderr": "no"}], {}, (), ("3 agent failures in a row", "code 9: no")),
    (5, [{"error": {"status": 400}}], {"failAfter": 2}, (), ("2 agent failures in a row", "400")),
]


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


@pytest.mark.parametrize(("code", "turns", "settings", "arguments", "words"), TABLE)
def test_an_exit_code_by_a_real_run(
    workspace: Path,
    code: int,
    turns: list[Json],
    settings: dict[str, Any],
    arguments: tuple[str, ...],
    words: tuple[str, ...],
) -> None:
    """README §Exit codes; 130 is in test_run_signals, 70 in test_command_line."""
    agent = prepare(workspace, *turns, **settings)
    assert_clear(ralph("-p", "x", *arguments), code, *words, str(journals()[0]))
    assert nothing_runs(agent)


def test_progress_resets_the_stall(here: Here, workspace: Path) -> None:
    work = [{"files": {f"{n}.txt": "x"}} for n in range(3)]
    prepare(workspace, *work, DONE, stallAfter=2)
    assert here("-p", "x").code == 0


def test_a_success_resets_the_failures(here: Here, workspace: Path) -> None:
    bad = {"exit": 1}
    prepare(workspace, bad, bad, {"text": "x"}, bad, bad, DONE)
    assert here("-p", "x").code == 0


def test_the_time_of_the_run_is_limited_while_the_agent_works(workspace: Path) -> None:
    agent = prepare(workspace, {"hang": "before"})
    done = ralph("-p", "x", "--max-time", "0.3")
    assert_clear(done, 1, "the run's 0.3s are used up", "0.3s of time used up (limit)")
    assert nothing_runs(agent)


@pytest.mark.parametrize(
    ("flag", "words"),
    dealt([("--timeout", "timed out after 1.0s"), ("--idle-timeout", "silent for 1.0s")], 1),
)
def test_a_turn_that_takes_too_long_is_cut_and_fed_back(
    workspace: Path, flag: str, words: str
) -> None:
    agent = prepare(workspace, {"hang": "before"}, DONE)
    assert_clear(ralph("-p", "x", flag, "1"), 0, "Agent was cut off", words, "2 iterations")
    assert prompts(agent)[1] == f"x\n\nThe previous iteration failed: {words}"
    assert nothing_runs(agent)


def test_an_agent_that_hangs_after_its_result_still_completes(workspace: Path) -> None:
    """ADR 6; docs/facts.md §4: "an agent that is done and never exits"."""
    agent = prepare(workspace, {**DONE, "hang": 600, "spawn": ["sleep 600"]}, resultGrace=0.1)
    assert_clear(ralph("-p", "x"), 0, "Completed after 1 iteration")
    assert nothing_runs(agent)


@pytest.mark.parametrize(
    ("status", "words"),
    dealt([(429, ("Rate limited",)), (529, ("Provider not available", "(try 1 of 10)"))], 1),
)
def test_a_rate_limit_is_waited_for_and_the_same_iteration_taken_again(
    here: Here, workspace: Path, status: int, words: tuple[str, ...]
) -> None:
    """ADR 11: to the stated reset; "the same iteration is taken again"; 5xx "wait the same way"."""
    limited = {"error": {"status": status, "resets_at": time.time() + 1.5}}
    agent = prepare(workspace, limited, DONE)
    done = here("-p", "x", "-m", "1")
    assert_clear(done, 0, *words, "waiting until", "Iteration 1/1 starting again")
    assert len(calls(agent)) == 2


def test_waiting_is_limited(here: Here, workspace: Path) -> None:
    agent = prepare(workspace, {"error": {"status": 429, "message": "too many"}})
    assert_clear(here("-p", "x", "--max-wait", "5"), 1, "waiting used up (5.0s)", "too many")
    assert len(calls(agent)) == 1


def test_words_about_rate_limits_are_no_rate_limit(here: Here, workspace: Path) -> None:
    """ADR 11: "never from assistant text, tool output, guardrails or stderr"."""
    words = "429 rate limit reached, try again in 5 hours"
    tools = [{"name": "Bash", "run": f"echo {words}"}]
    prepare(workspace, {"text": words, "tools": tools, "stderr": words, **DONE})
    assert_clear(here("-p", "x"), 0, "Completed after 1 iteration")
