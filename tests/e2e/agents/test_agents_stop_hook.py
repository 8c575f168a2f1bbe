"""`ralph hook stop` in the hosts that have such a hook: the agent is held, mends it, and may stop.

opencode cannot be held; there the checks after its exit do it alone (ADR 20).
"""

import json
import shlex
import sys
from collections.abc import Callable

import pytest

from agents.clis import Json, write_json
from agents.real_agents import DONE, World

pytestmark = pytest.mark.agents

HOOK = {"type": "command", "command": f"{shlex.quote(sys.executable)} -m ralph hook stop"}
LISTING = {"project": "p", "branchName": "b", "description": "d", "userStories": []}


def hook_for(event: str) -> Json:
    return {"hooks": {event: [{"hooks": [HOOK]}]}}


def for_claude(world: World) -> tuple[str, ...]:
    write_json(world.root / "hooks.json", hook_for("Stop"))
    return ("--settings", str(world.root / "hooks.json"))


def for_codex(world: World) -> tuple[str, ...]:
    write_json(world.repo / ".codex" / "hooks.json", hook_for("Stop"))
    return ("--dangerously-bypass-hook-trust",)


def for_gemini(world: World) -> tuple[str, ...]:
    path = world.root / "home" / ".gemini" / "settings.json"
    write_json(path, json.loads(path.read_text()) | hook_for("AfterAgent"))
    return ()


INSTALL: dict[str, Callable[[World], tuple[str, ...]]] = {
    "claude": for_claude,
    "codex": for_codex,
    "gemini": for_gemini,
}


@pytest.mark.parametrize("kind", sorted(INSTALL))
def test_a_stop_with_uncommitted_changes_is_held_until_they_are(world: World) -> None:
    """R §5b, check 3: "Claude must address the feedback and try stopping again"."""
    cli, url = world.cli, world.model.url
    world.configure(agent={"flags": [*cli.flags(url), cli.autonomy, *INSTALL[world.kind](world)]})
    INSTALL[world.kind](world)  # it may stand in a file that was just written anew
    write_json(world.repo / "ralph" / "tasks.json", LISTING)
    (world.repo / ".gitignore").write_text(".ralph-active\n.ralph/\n.codex/\n")
    world.git("add", "--all")
    world.git("commit", "-qm", "Plan")
    write_json(world.repo / ".ralph-active", {"mode": "sandbox", "skipReview": True})
    world.plays(
        world.shell("echo hello > hello.txt"),
        {"text": f"It is there. {DONE}"},
        world.shell("git add hello.txt && git commit -qm hello"),
        {"text": f"Committed. {DONE}"},
    )
    run = world.run("-m", "1")
    assert run.code == 0, run.err
    assert "uncommitted changes: hello.txt" in world.asked(2)
    assert world.git("log", "-1", "--format=%s") == "hello"
    assert len(world.model.main_calls()) == 4
