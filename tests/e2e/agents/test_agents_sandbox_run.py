"""Real agents in `ralph run --sandbox`: they work in layers, and what destroys is undone."""

from urllib.parse import urlsplit

import pytest

from agents.clis import OWN
from agents.real_agents import DONE, World
from kits.sandbox.stage import overlay_is_usable

pytestmark = [
    pytest.mark.agents,
    pytest.mark.skipif(not overlay_is_usable(), reason="this machine allows no namespaces"),
]

# The others are held against the sandbox itself, in test_agents_sandbox.
both = pytest.mark.parametrize("kind", ["claude", "codex", OWN])


def in_sandbox(world: World) -> tuple[str, ...]:
    """opencode's settings name its provider in a file, which Ralph does not read."""
    return ("--sandbox", "overlay", "--network", urlsplit(world.model.url).netloc)


@both
def test_work_lands_and_the_guardrail_that_judges_it_is_contained(world: World) -> None:
    """Issue: "with the real `claude` and `codex` inside"."""
    world.configure(guardrails=[{"command": "test -f hello.txt"}])
    world.plays(
        world.shell("echo hello > hello.txt; echo gone > $HOME/note; echo gone > /tmp/note"),
        {"text": DONE},
    )
    run = world.run("-m", "2", *in_sandbox(world))
    assert run.code == 0, run.err
    assert (world.repo / "hello.txt").read_text() == "hello\n"
    assert not (world.root / "home" / "note").exists()
    (landed,) = run.facts("landed")
    assert (landed["kept"], landed["spared"]) == (True, [])


@both
def test_a_turn_that_destroys_the_project_and_fails_is_undone(world: World) -> None:
    """Issue: "a run in which an iteration does `rm -rf` on the project and is discarded"."""
    (world.repo / "precious.txt").write_text("precious\n")
    failing = {"error": {"status": 400, "type": "api_error", "message": "boom"}}
    world.plays(
        world.shell("rm precious.txt; echo x > x"),  # codex refuses rm -rf by itself
        failing,
        world.shell("cat precious.txt > hello.txt"),
        {"text": DONE},
    )
    run = world.run("-m", "3", *in_sandbox(world))
    assert run.code == 0, run.err
    assert [fact["kept"] for fact in run.facts("landed")] == [False, True]
    assert (world.repo / "hello.txt").read_text() == "precious\n"
    asked = map(world.asked, range(len(world.model.main_calls())))
    assert any("was thrown away" in prompt for prompt in asked)


@both
def test_the_commit_message_is_asked_for_inside(world: World) -> None:
    """H §SCM Tasks; some CLIs write their last words to a file. Claude has no tools there, codex
    a sandbox in the sandbox."""
    world.configure(scm={"command": "git", "tasks": ["commit"]})
    world.plays(
        world.shell("echo hello > hello.txt"),
        {"text": DONE},
        message=({"text": "Say hello to everybody"},),
    )
    run = world.run("-m", "1", *in_sandbox(world))
    assert run.code == 0, run.err
    assert world.git("log", "-1", "--format=%s").strip() == "Say hello to everybody"
    files = world.git("show", "--name-only", "--format=").split()
    assert files == ["hello.txt"]


@both
def test_whom_it_called_in_vain_is_named(world: World) -> None:
    call = "curl -s -m 5 http://ralph.invalid/ || true"
    world.plays(world.shell(call), {"text": DONE})
    run = world.run("-m", "1", *in_sandbox(world))
    assert run.code == 0, run.err
    if world.kind != "codex":  # its own sandbox does not even let the proxy be called
        assert "ralph.invalid" in run.facts("landed")[0]["refused"]
        assert "Not allowed to call: " in run.err
