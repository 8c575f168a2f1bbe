"""P's five acceptance tests with the real codex and gemini, and claude without the plugin, by the
hooks that `ralph plugin install` wrote, on the scripted model."""

import html
import json

import pytest

from agents.clis import Json
from agents.real_agents import World
from agents.test_agents_loop import fates
from agents.test_agents_plugin_install import TRUST, TRUSTED, ralph

pytestmark = [
    pytest.mark.agents,
    pytest.mark.parametrize("kind", ["claude", "codex", "gemini"]),
]

DONE = {"text": "All is done. <promise>DONE</promise>"}


@pytest.fixture
def looping(world: World) -> World:
    """An agent with the hooks of its project."""
    kind, cli, url = world.kind, world.cli, world.model.url
    flags = [*cli.flags(url), cli.autonomy, *TRUST.get(kind, ())]
    world.configure(
        agent={"flags": flags, "env": {"set": {**cli.env(url), **TRUSTED.get(kind, {})}}}
    )
    ralph(world, "plugin", "install", "--agent", kind)
    return world


def typed(world: World, prompt: str) -> Json:
    """The loop that a prompt has begun, when its session is over."""
    world.run("-p", prompt, "-m", "1", "--no-tell-completion")  # the command gets all of it
    [found] = json.loads(ralph(world, "loop", "list", "--json"))
    assert isinstance(found, dict)
    return found


def test_1_stops_on_promise(looping: World) -> None:
    """Acceptance 1: "after doing work → loop exits with PROMISE_ACCEPTED"."""
    looping.plays(looping.shell("echo hello > hello.txt"), DONE)
    found = typed(looping, '/ralph-loop "Write $(hello) --- now"')
    assert (found["status"], found["iteration"]) == ("PROMISE_ACCEPTED", 0)
    assert (found["task"], fates(found)) == ("Write $(hello) --- now", [(0, True, True)])


def test_2_blocks_exit_without_promise(looping: World) -> None:
    """Acceptance 2: "exit blocked, reinjection occurs"."""
    looping.plays({"text": "I'm done"}, looping.shell("echo hello > hello.txt"), DONE)
    found = typed(looping, "/ralph-loop Write hello.txt --max-iterations=08")
    told = html.unescape(looping.asked(1))  # codex quotes it as XML
    assert "you did not output the completion promise <promise>DONE</promise>" in told
    assert "Original task: Write hello.txt" in told
    assert (found["status"], found["max_iterations"]) == ("PROMISE_ACCEPTED", 8)
    assert fates(found) == [(0, False, False), (1, True, True)]


def test_3_max_iterations(looping: World) -> None:
    """Acceptance 3: "exits after N iterations with MAX_ITERATIONS_REACHED"."""
    looping.plays({"text": "not yet"})
    found = typed(looping, "/ralph-loop --max-iterations 3 Write hello.txt")
    assert (found["status"], found["iteration"]) == ("MAX_ITERATIONS_REACHED", 3)
    assert len(looping.model.main_calls()) == 4


def test_4_bypass_rejected(looping: World) -> None:
    """Acceptance 4: "in first response with zero tool calls → promise rejected"."""
    looping.plays(DONE, looping.shell("echo hello > hello.txt"), DONE)
    found = typed(looping, "/ralph-loop Write hello.txt")
    assert "Promise detected, but no tool calls/work were performed" in looping.asked(1)
    assert fates(found) == [(0, True, False), (1, True, True)]


def test_5_promise_detector_correctness(looping: World) -> None:
    """Acceptance 5: "Promise appears in final message → loop must stop"."""
    fenced = {"text": "There it is:\n\n```\n<promise>DONE</promise>\n```\n"}
    looping.plays(looping.shell("echo '<promise>DONE</promise>'"), {"text": "hm"}, fenced)
    found = typed(looping, "/ralph-loop Write hello.txt")
    assert fates(found) == [(0, False, False), (1, True, True)]
