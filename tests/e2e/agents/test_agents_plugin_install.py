"""`ralph plugin install` for the real claude, codex and gemini: the hooks of a project at work."""

import subprocess
import sys

import pytest

from agents.clis import write_json
from agents.real_agents import DONE, PATIENCE, World
from agents.test_agents_plugin import install as install_plugin

pytestmark = pytest.mark.agents

HOSTS = ["claude", "codex", "gemini"]
LISTING = {"project": "p", "branchName": "b", "description": "d", "userStories": []}
TRUST = {"codex": ("--dangerously-bypass-hook-trust",)}  # it runs no other hooks
TRUSTED = {"gemini": {"GEMINI_CLI_TRUST_WORKSPACE": "true"}}  # --skip-trust comes too late
HELD = "You cannot stop yet."


def ralph(world: World, *words: str) -> str:
    """What a command says in the agent's world."""
    command = [sys.executable, "-m", "ralph", *words]
    done = subprocess.run(
        command,
        cwd=world.repo,
        env=world.environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def prepare(world: World, *scope: str, trusted: bool = True) -> None:
    """A project of stories with a marker made by hand, and the hooks in place."""
    kind, cli, url = world.kind, world.cli, world.model.url
    flags = [*cli.flags(url), cli.autonomy, *(TRUST.get(kind, ()) if trusted else ())]
    env = {**cli.env(url), **(TRUSTED.get(kind, {}) if trusted else {})}
    world.configure(agent={"flags": flags, "env": {"set": env}})
    ralph(world, "plugin", "install", "--agent", world.kind, *scope)
    write_json(world.repo / "ralph" / "tasks.json", LISTING)
    (world.repo / ".gitignore").write_text(".ralph-active\n.ralph/\n")
    world.git("add", "--all")
    world.git("commit", "-qm", "Plan")
    write_json(world.repo / ".ralph-active", {"mode": "direct", "skipReview": True})


def forgets_to_commit(world: World) -> None:
    world.plays(
        world.shell("echo hello > hello.txt"),
        {"text": f"It is there. {DONE}"},
        world.shell("git add hello.txt && git commit -qm hello"),
        {"text": f"Committed. {DONE}"},
    )


@pytest.mark.parametrize(
    ("kind", "scope"),
    [(kind, "--project") for kind in HOSTS]
    + [("claude", "--shared"), ("codex", "--user"), ("gemini", "--user")],
)
def test_a_stop_is_held(world: World, scope: str) -> None:
    """R §5b, check 3, by the hooks that `ralph plugin install` wrote."""
    prepare(world, scope)
    forgets_to_commit(world)
    run = world.run("-m", "1")
    assert run.code == 0, run.err
    assert world.asked(2).count(HELD) == 1
    assert world.git("log", "-1", "--format=%s") == "hello"
    assert len(world.model.main_calls()) == 4


@pytest.mark.parametrize("kind", HOSTS)
def test_the_guard_is_asked(world: World) -> None:
    """R §4: a marker of direct mode turns it on."""
    prepare(world)
    world.plays(world.shell("git commit --no-verify -m other; touch skipped"), {"text": DONE})
    world.run("-m", "1")
    assert "guard: refused (git-history)" in world.asked(1)
    assert not (world.repo / "skipped").exists()


@pytest.mark.parametrize("kind", HOSTS)
def test_after_uninstall_nothing_is_held(world: World) -> None:
    prepare(world)
    ralph(world, "plugin", "uninstall", "--agent", world.kind)
    world.plays(world.shell("echo hello > hello.txt"), {"text": f"It is there. {DONE}"})
    world.run("-m", "1")
    assert len(world.model.main_calls()) == 2


@pytest.mark.parametrize("kind", ["codex", "gemini"])
def test_what_nobody_has_trusted_is_skipped(world: World) -> None:
    """What `install` says about it is so."""
    prepare(world, trusted=False)
    forgets_to_commit(world)
    world.run("-m", "1")
    assert len(world.model.main_calls()) == 2


@pytest.mark.parametrize(
    ("kind", "arrives"),
    [("claude", "Ralph's hook has read this command"), ("gemini", "/ralph-loop build it --max")],
)
def test_the_bare_commands_are_known(world: World, arrives: str) -> None:
    """ "so that `/ralph-loop` works without the namespace"; gemini passes its words to the hook."""
    prepare(world)
    (world.repo / ".ralph-active").unlink()
    world.plays({"text": DONE})
    world.run("-m", "1", "-p", "/ralph-loop build it --max-iterations 3")
    assert arrives in world.asked(0)


@pytest.mark.parametrize("kind", ["claude"])
def test_beside_the_plugin_each_hook_runs_once(world: World) -> None:
    """ "Installed beside the plugin …: each hook runs once"."""
    prepare(world)
    install_plugin(world)
    forgets_to_commit(world)
    world.run("-m", "1")
    assert world.asked(2).count(HELD) == 1
    assert len(world.model.main_calls()) == 4
