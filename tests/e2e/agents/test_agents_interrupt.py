"""Real agents interrupted: the first signal waits for them, the next ends them, nothing is left.

The CLIs run each tool command in a session of its own, and gemini and opencode never end theirs;
the keeper does (ADR 23).
"""

import signal

import pytest

from agents.real_agents import DONE, World

pytestmark = pytest.mark.agents

NOTICE = "[ralph] Received signal, shutting down after this turn. Press Ctrl+C again to stop now."


def test_the_first_signal_lets_the_turn_finish(world: World) -> None:
    """H §Signal Handling: allow it to finish current response, then exit with code 130."""
    world.configure(guardrails=[{"command": "touch checked"}])
    world.plays({"text": f"Let me think about it for a while. {DONE}", "hang": 2})
    process = world.start("-m", "3")
    world.until(world.model.main_calls, "the model is asked")
    process.send_signal(signal.SIGINT)
    run = world.finish(process)
    assert run.code == 130, run.err
    assert NOTICE in run.err
    (turn,) = run.turns
    assert (turn["ending"], turn["exit_code"], turn["failure"]) == ("exited", 0, None)
    assert [claim["raw"] for claim in turn["claims"]] == [DONE]
    # ADR 2: after a signal the answer is 130 whatever was claimed: gates no longer run.
    assert run.verdicts == ["stop"]
    assert not (world.repo / "checked").exists()


def test_the_second_signal_ends_the_agent(world: World) -> None:
    """ADR 7: second: end the tree now."""
    world.plays({"text": "Let me think about it for ever.", "hang": 300})
    process = world.start("-m", "3")
    world.until(world.model.main_calls, "the model is asked")
    process.send_signal(signal.SIGINT)
    world.until(lambda: NOTICE in world.said(), "the first signal is heard")
    process.send_signal(signal.SIGINT)
    run = world.finish(process)
    assert run.code == 130, run.err
    assert [turn["ending"] for turn in run.turns] == ["cut"]
    assert not world.sweep()


def test_a_running_tool_command_ends_with_its_agent(world: World) -> None:
    """ADR 7: `--stop-grace S` bounds the first; INT, 5 s, TERM, 5 s, KILL."""
    world.plays(world.shell("touch started; sleep 300"), {"text": DONE})
    process = world.start("-m", "3", "--stop-grace", "1s")
    world.until((world.repo / "started").exists, "the command runs")
    process.send_signal(signal.SIGTERM)
    run = world.finish(process)
    endings = [turn["ending"] for turn in run.turns]
    if (run.code, endings) != (130, ["cut"]):
        pytest.fail(run.err)  # not what is expected to fail
    assert not world.sweep()


def test_a_command_that_left_the_agents_session_ends_with_the_turn(world: World) -> None:
    """ADR 7: after a turn everything ends."""
    world.plays(world.shell("setsid sleep 300 < /dev/null > /dev/null 2>&1 &"), {"text": DONE})
    run = world.run("-m", "1")
    if run.code != 0:
        pytest.fail(run.err)  # not what is expected to fail
    assert not world.sweep()
