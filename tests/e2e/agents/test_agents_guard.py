"""The guard as a hook of the real agents: a refused command does not run, and the model reads why.

ADR 25; how the hosts call it stands in docs/facts.md §4. opencode has no such hook; our own agent
asks by itself.
"""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable

import pytest

from agents.clis import OWN, Json, write_json
from agents.real_agents import DONE, World

pytestmark = pytest.mark.agents

HOOK = {"type": "command", "command": f"{shlex.quote(sys.executable)} -m ralph hook pre-tool"}
AMEND = "git commit --amend --allow-empty -m amended"
WHY = "guard: refused (git-history): it rewrites the last commit; make a new one"


def hooks(event: str, matcher: str) -> Json:
    return {"hooks": {event: [{"matcher": matcher, "hooks": [HOOK]}]}}


def for_claude(world: World) -> tuple[str, ...]:
    write_json(world.root / "hooks.json", hooks("PreToolUse", "Bash"))
    return ("--settings", str(world.root / "hooks.json"))


def for_codex(world: World) -> tuple[str, ...]:
    write_json(world.repo / ".codex" / "hooks.json", hooks("PreToolUse", "Bash"))
    return ("--dangerously-bypass-hook-trust",)


def for_gemini(world: World) -> tuple[str, ...]:
    path = world.root / "home" / ".gemini" / "settings.json"
    write_json(path, json.loads(path.read_text()) | hooks("BeforeTool", "run_shell_command"))
    return ()


INSTALL: dict[str, Callable[[World], tuple[str, ...]]] = {
    "claude": for_claude,
    "codex": for_codex,
    "gemini": for_gemini,
}


def guard(world: World) -> None:
    """Tell the agent to ask the guard before each command."""
    cli, url = world.cli, world.model.url
    flags = [*cli.flags(url), cli.autonomy, *INSTALL[world.kind](world)]
    world.configure(agent={"flags": flags, "env": {"set": {**cli.env(url), "RALPH_GUARD": "1"}}})
    INSTALL[world.kind](world)  # it may stand in a file that was just written anew


@pytest.mark.parametrize("kind", sorted(INSTALL))
def test_a_refused_command_does_not_run_and_the_model_reads_why(world: World) -> None:
    """R §4: direct mode relies on the hook; an allowed command runs."""
    guard(world)
    before = git_log(world)
    world.plays(
        world.shell(AMEND),
        world.shell("echo hello > hello.txt"),
        {"text": f"It is there.\n{DONE}"},
    )
    run = world.run("-m", "1")
    assert run.code == 0, run.err
    assert git_log(world) == before
    assert (world.repo / "hello.txt").read_text() == "hello\n"
    _, after_refusal, after_hello = [json.dumps(call) for call in world.model.main_calls()]
    assert WHY in after_refusal
    assert after_hello.count(WHY) == after_refusal.count(WHY)


def git_log(world: World) -> str:
    command = ["git", "log", "--format=%H %s"]
    return subprocess.run(
        command, cwd=world.repo, env=world.environment(), capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("kind", ["claude", OWN])
@pytest.mark.parametrize("words", [(), ("--no-sandbox",)])
def test_a_run_in_place_is_guarded(world: World, words: tuple[str, ...]) -> None:
    """ADR 25: where nothing contains it, claude takes the guard from its command line."""
    world.plays(world.shell("git commit --no-verify -m other; touch skipped"), {"text": DONE})
    run = world.run("-m", "1", *words)
    assert run.code == 0, run.err
    assert "Sandbox: none (in place). Guard: on for shell commands." in run.err
    assert not (world.repo / "skipped").exists()
    assert "guard: refused (git-history)" in world.asked(1)


@pytest.mark.parametrize("kind", ["claude", OWN])
def test_local_history_is_free_since_the_run_has_kept_what_there_was(world: World) -> None:
    (world.repo / "mine").write_text("mine\n")
    lost = "git commit -q --amend --allow-empty -m other && rm mine"
    world.plays(world.shell(lost), {"text": DONE})
    run = world.run("-m", "1")
    assert run.code == 0, run.err
    assert git_log(world).endswith(" other\n")
    refs = world.git("for-each-ref", "--format=%(refname)", "refs/ralph")
    assert world.git("show", f"{refs}:mine") == "mine"


@pytest.mark.parametrize("kind", ["claude", OWN])
def test_a_person_may_go_without(world: World) -> None:
    world.plays(world.shell("git commit --amend --allow-empty -m o; touch amended"), {"text": DONE})
    run = world.run("-m", "1", "--no-guard")
    assert run.code == 0, run.err
    assert "Sandbox: none (in place). Guard: off (--no-guard)." in run.err
    assert (world.repo / "amended").exists()
