"""P's five acceptance tests with the real claude, the plugin installed, on the scripted model."""

import json
import shlex
import sys
import time

import pytest

from agents.clis import Json
from agents.real_agents import PATIENCE, World
from agents.test_agents_plugin import claude, install
from agents.test_agents_plugin_install import ralph

pytestmark = [pytest.mark.agents, pytest.mark.parametrize("kind", ["claude"])]

SESSION = "11111111-2222-4333-8444-555555555555"
DONE = {"text": "All is done. <promise>DONE</promise>"}


@pytest.fixture
def looping(world: World) -> World:
    """Claude with the plugin."""
    install(world)
    return world


def types(world: World, prompt: str, **environ: str) -> str:
    """What claude says at the end of a prompt."""
    done = claude(world, "-p", prompt, world.cli.autonomy, "--session-id", SESSION, **environ)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def loop(world: World, *words: str) -> str:
    return ralph(world, "loop", *words)


def status(world: World) -> Json:
    found = json.loads(loop(world, "status", "--session", SESSION, "--json"))
    assert isinstance(found, dict)
    return found


def fates(found: Json) -> list[tuple[int, bool, bool]]:
    return [(d["iteration"], d["found"], d["accepted"]) for d in found["decisions"]]


def test_1_stops_on_promise(looping: World) -> None:
    """Acceptance 1: "after doing work → loop exits with PROMISE_ACCEPTED"."""
    looping.plays(looping.shell("echo hello > hello.txt"), DONE)
    assert "All is done." in types(looping, '/ralph:ralph-loop "Write $(hello) --- now"')
    assert "Task:\nWrite $(hello) --- now" in looping.asked(0)
    found = status(looping)
    assert (found["status"], found["iteration"]) == ("PROMISE_ACCEPTED", 0)
    assert (found["task"], fates(found)) == ("Write $(hello) --- now", [(0, True, True)])
    assert len(looping.model.main_calls()) == 2


def test_2_blocks_exit_without_promise(looping: World) -> None:
    """Acceptance 2: "exit blocked, reinjection occurs"."""
    looping.plays({"text": "I'm done"}, looping.shell("echo hello"), DONE)
    types(looping, "/ralph:ulw-loop Write hello.txt --max-iterations=08")
    told = looping.asked(1)
    assert "you did not output the completion promise <promise>DONE</promise>" in told
    assert "Original task: Write hello.txt" in told
    assert "ultrawork mode" in told
    found = status(looping)
    assert (found["status"], found["max_iterations"]) == ("PROMISE_ACCEPTED", 8)
    assert fates(found) == [(0, False, False), (1, True, True)]


def test_3_max_iterations(looping: World) -> None:
    """Acceptance 3: "exits after N iterations with MAX_ITERATIONS_REACHED"."""
    looping.plays({"text": "not yet"})
    types(looping, "/ralph:ralph-loop --max-iterations 3 Write hello.txt")
    found = status(looping)
    assert (found["status"], found["iteration"]) == ("MAX_ITERATIONS_REACHED", 3)
    assert len(looping.model.main_calls()) == 4


def test_4_bypass_rejected(looping: World) -> None:
    """Acceptance 4: "in first response with zero tool calls → promise rejected"."""
    looping.plays(DONE, {"text": "Well."}, looping.shell("echo hello"), DONE)
    types(looping, "/ralph:ralph-loop Write hello.txt")
    assert "Promise detected, but no tool calls/work were performed" in looping.asked(1)
    assert "you did not output the completion promise" in looping.asked(2), "it is spent"
    assert fates(status(looping)) == [(0, True, False), (1, False, False), (2, True, True)]


def test_5_promise_detector_correctness(looping: World) -> None:
    """Acceptance 5: "Promise appears in final message → loop must stop"."""
    fenced = {"text": "There it is:\n\n```\n<promise>DONE</promise>\n```\n"}
    looping.plays(looping.shell("echo '<promise>DONE</promise>'"), {"text": "hm"}, fenced)
    types(looping, "/ralph:ralph-loop Write hello.txt")
    assert fates(status(looping)) == [(0, False, False), (1, True, True)]


def test_what_was_said_before_the_loop_is_neither_promise_nor_work(looping: World) -> None:
    looping.plays(looping.shell("echo work"), DONE)
    types(looping, "Work.")
    looping.plays({"text": "Well."}, DONE, looping.shell("echo"), DONE)
    done = claude(
        looping, "-p", "/ralph:ralph-loop Go on", looping.cli.autonomy, "--resume", SESSION
    )
    assert done.returncode == 0, done.stderr
    listed = json.loads(loop(looping, "list", "--json"))
    assert [fates(found) for found in listed] == [
        [(0, False, False), (1, True, False), (2, True, True)]
    ]


def test_a_wish_that_is_none_does_not_reach_the_model(looping: World) -> None:
    looping.plays({"text": "hm"})
    claude(looping, "-p", "/ralph:ralph-loop x --max-iterations -1", looping.cli.autonomy)
    assert not looping.model.main_calls()
    assert json.loads(loop(looping, "list", "--json")) == []


def test_its_state_is_shown_without_a_turn(looping: World) -> None:
    """The issue: "`/ralph-status` needs a model turn (answer in the prompt hook)"."""
    looping.plays({"text": "hm"})
    done = claude(looping, "-p", "/ralph:ralph-status", looping.cli.autonomy)
    assert "There is no Ralph loop in this session." in done.stdout + done.stderr
    assert not looping.model.main_calls()


def test_a_loop_is_cancelled_from_a_terminal_and_shown(looping: World) -> None:
    looping.plays(
        looping.shell(f"{shlex.quote(sys.executable)} -m ralph loop cancel --session {SESSION}"),
        {"text": "not yet"},
    )
    types(looping, "/ralph:ralph-loop Write hello.txt")
    assert len(looping.model.main_calls()) == 2
    assert status(looping)["status"] == "CANCELLED"


def test_when_the_cap_of_the_host_strikes_the_state_says_so(looping: World) -> None:
    """After eight blocks in a row without a tool call Claude Code goes its own way."""
    looping.plays({"text": "not yet"})
    types(looping, "/ralph:ralph-loop Write hello.txt")
    found = status(looping)
    assert found["status"] == "RUNNING"
    assert "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP" in found["why"]
    assert "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP" in found["decisions"][-1]["reason"]


def test_the_cap_can_be_lifted(looping: World) -> None:
    looping.plays({"text": "not yet"})
    lifted = {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "0"}
    types(looping, "/ralph:ralph-loop Write hello.txt --max-iterations 12", **lifted)
    assert status(looping)["status"] == "MAX_ITERATIONS_REACHED"


def test_an_error_of_the_service_counts_nothing(looping: World) -> None:
    """Claude 2.1.197 does not call a plugin's StopFailure in `-p`, so a setting names it."""
    looping.plays({"error": {"status": 400}})
    hook = {
        "type": "command",
        "command": f"{shlex.quote(sys.executable)} -m ralph hook stop-failure",
    }
    settings = json.dumps({"hooks": {"StopFailure": [{"hooks": [hook]}]}})
    words = ("-p", "/ralph:ralph-loop Go", "--session-id", SESSION, "--settings", settings)
    claude(looping, *words, looping.cli.autonomy)
    end = time.monotonic() + PATIENCE
    while not (found := status(looping))["why"] and time.monotonic() < end:
        time.sleep(0.05)  # claude does not wait for it
    assert (found["status"], found["iteration"]) == ("RUNNING", 0)
    assert "ended the turn: API Error: 400" in found["why"]


def test_two_sessions_in_one_project_have_their_own_loops(looping: World) -> None:
    other = "99999999-2222-4333-8444-555555555555"
    loop(looping, "start", "--session", other, "Something else")
    looping.plays({"text": "Hello."})
    types(looping, "Hello?")
    assert len(looping.model.main_calls()) == 1, "nothing holds this session"
    looping.plays(looping.shell("echo"), DONE)
    claude(looping, "-p", "/ralph:ralph-loop Go", looping.cli.autonomy)
    listed = json.loads(loop(looping, "list", "--json"))
    assert [found["status"] for found in listed] == ["PROMISE_ACCEPTED", "RUNNING"]
