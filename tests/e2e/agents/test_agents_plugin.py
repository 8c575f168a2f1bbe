"""The plugin in the real claude: validated, installed without a network, and its hooks at work."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agents.clis import write_json
from agents.real_agents import PATIENCE, World
from agents.test_agents_prd import (
    APPROVE,
    COMPLETE,
    OWN,
    REJECT,
    RESUBMIT,
    SUBMIT,
    fates,
    modes,
    stories,
    turn,
)
from agents.test_agents_prd import work as prd_run

pytestmark = [pytest.mark.agents, pytest.mark.parametrize("kind", ["claude"])]

ROOT = Path(__file__).resolve().parents[3]
STORY = {"id": "US-001", "title": "t", "acceptanceCriteria": ["c"], "priority": 1, "notes": "n"}
STORY |= {"passes": False, "reviewStatus": None, "reviewCount": 0, "reviewFeedback": ""}
FRESH = {"passes": False, "reviewStatus": None, "reviewCount": 0}
MARKER = {"mode": "direct", "skipReview": False, "reviewCap": 5, "iterationMode": "implement"}
APPROVES = (
    'sed -i \'s/"passes": false/"passes": true/; s/"reviewStatus": null/"reviewStatus": '
    '"approved"/\' ralph/tasks.json && git commit -qam approved'
)
TAKES_BACK = "git revert --no-edit HEAD"


def clone(world: World) -> Path:
    """The repository as a marketplace has it: without what git does not know."""
    place = world.root / "a clone"
    for name in (".claude-plugin", "plugin", "src"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    return place


def claude(world: World, *words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    env = {**world.environment(), **world.cli.env(world.model.url), **environ}
    return subprocess.run(
        ["claude", *words],
        cwd=world.repo,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def install(world: World) -> None:
    """Claude gets the plugin from a local marketplace, without a network."""
    place = clone(world)
    for words in (("marketplace", "add", str(place)), ("install", "ralph@ralph")):
        done = claude(world, "plugin", *words)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def installed(world: World) -> World:
    """A project of stories, and claude with the plugin."""
    install(world)
    listing = {"project": "p", "branchName": "b", "description": "d", "userStories": [STORY]}
    (world.repo / "ralph").mkdir()
    (world.repo / "ralph" / "tasks.json").write_text(json.dumps(listing, indent=1))
    (world.repo / ".gitignore").write_text(".ralph-active\n.ralph/\n")
    world.git("add", "--all")
    world.git("commit", "-qm", "Plan")
    return world


def mark(world: World, **changes: object) -> None:
    snapshot = {"preIterationSnapshot": {"US-001": FRESH}}
    write_json(world.repo / ".ralph-active", {**MARKER, **snapshot, **changes})


def work(world: World, **environ: str) -> str:
    """One turn; what it says at its end."""
    done = claude(world, "-p", "Work.", world.cli.autonomy, **environ)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_real_validator_passes_it(world: World) -> None:
    place = clone(world)
    for path in (place, place / ".claude-plugin" / "plugin.json"):
        done = claude(world, "plugin", "validate", "--strict", str(path))
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Validation passed" in done.stdout


def test_a_turn_that_approves_its_own_story_is_held(installed: World) -> None:
    """R §Verification 9: "blocked by the stop hook (Check 2.5 …, not just Check 2)"."""
    mark(installed)
    installed.plays(
        installed.shell(APPROVES),
        {"text": "All is done."},
        installed.shell(TAKES_BACK),
        {"text": "Taken back."},
    )
    assert "Taken back." in work(installed)
    assert "Implement iterations cannot set passes=true" in installed.asked(2)
    assert len(installed.model.main_calls()) == 4


def test_uncommitted_changes_are_held(installed: World) -> None:
    """R §5b, check 3."""
    mark(installed)
    installed.plays(
        installed.shell("echo hello > hello.txt"),
        {"text": "All is done."},
        installed.shell("git add hello.txt && git commit -qm hello"),
        {"text": "Committed."},
    )
    assert "Committed." in work(installed)
    assert "uncommitted changes: hello.txt" in installed.asked(2)
    assert len(installed.model.main_calls()) == 4


def test_how_full_the_context_is_reaches_the_next_request(installed: World) -> None:
    """R §5a: "which gets injected into Claude's context", once a threshold."""
    written = "find ~/.claude/projects -name '*.jsonl' -size +1k | grep -q ."
    call = installed.shell(f"until {written}; do sleep 0.1; done")  # claude writes it when it likes
    installed.plays(call, call, {"text": "Done."})
    work(installed, CLAUDE_CONTEXT_WINDOW="50")
    assert "CRITICAL: more than 100% of the context window is used" in installed.asked(1)
    assert installed.asked(2).count("CRITICAL: more") == 1


def test_the_guard_refuses_in_place(installed: World) -> None:
    """R §4: the PreToolUse blocklist is the fallback where there is no sandbox."""
    mark(installed)
    installed.plays(
        installed.shell("git commit --amend -m other; touch amended"), {"text": "Well."}
    )
    work(installed)
    assert "guard: refused (git-history)" in installed.asked(1)
    assert not (installed.repo / "amended").exists()


def test_beside_a_run_the_plugin_is_silent(installed: World) -> None:
    """ "Installed beside `prd run`, each hook runs once"."""
    mark(installed)
    installed.plays(installed.shell("touch new"), {"text": "All is done."})
    work(installed, RALPH_HOOKS="stop,post-tool", CLAUDE_CONTEXT_WINDOW="50")
    assert len(installed.model.main_calls()) == 2
    assert "CRITICAL" not in installed.asked(1)


def test_a_marker_of_another_run_leaves_a_session_alone(installed: World) -> None:
    mark(installed, run="20261115-000000-abcd")
    installed.plays(installed.shell("git commit --amend -m other"), {"text": "All is done."})
    work(installed)
    assert len(installed.model.main_calls()) == 2
    assert "guard: refused" not in installed.asked(1)
    installed.plays(installed.shell("touch new"), {"text": "All is done."})
    work(installed, RALPH_RUN="20261115-000000-abcd")
    assert "uncommitted changes: new" in installed.asked(4)


def test_a_plugin_whose_files_are_gone_lets_claude_work(installed: World) -> None:
    """ "a missing file: the hook lets the agent go on and says why"."""
    mark(installed)
    for place in (installed.root / "a clone", installed.root / "home" / ".claude" / "plugins"):
        for scripts in place.rglob("plugin/hooks/scripts"):
            shutil.rmtree(scripts)
    installed.plays(installed.shell("touch new"), {"text": "All is done."})
    assert "All is done." in work(installed, RALPH_GUARD="1")
    assert os.path.exists(installed.repo / "new")
    assert len(installed.model.main_calls()) == 2


def test_the_skill_is_offered(installed: World) -> None:
    """R §11: by its phrases, and as a command."""
    installed.plays({"text": "Hello."})
    work(installed)
    assert "ralph:ralph-plan" in installed.asked(0)
    claude(installed, "-p", "/ralph:ralph-plan a page", installed.cli.autonomy)
    assert "Mode 2: derive the stories" in installed.asked(1)


def test_a_story_survives_its_review_beside_the_plugin(world: World) -> None:
    """R §Verification 9, and "Installed beside `prd run`, each hook runs once"."""
    stories(world, 1)
    install(world)
    world.plays(
        *turn(world, 1, OWN),
        *turn(world, 1, {"passes": False, **SUBMIT}),
        *turn(world, 1, {"reviewCount": 1, **REJECT}),
        *turn(world, 1, RESUBMIT),
        *turn(world, 1, {"reviewCount": 2, **APPROVE}, COMPLETE),
    )
    run = prd_run(world, "--no-sandbox")
    assert run.code == 0, run.err
    assert modes(run) == ["implement", "review", "review-fix", "review"]
    assert fates(world) == [(True, "approved", 2)]
    assert world.asked(2).count("You cannot stop yet.") == 1
