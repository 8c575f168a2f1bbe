"""R with the real claude and codex: stories through implement, review, fix and approval."""

import json
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from agents.clis import Json
from agents.real_agents import Run, World
from kits.sandbox.stage import overlay_is_usable

COMPLETE = "<promise>COMPLETE</promise>"
IN_OVERLAY = pytest.mark.skipif(not overlay_is_usable(), reason="this machine allows no namespaces")
# Changes fields of a story, as a model would with its editor, and commits everything.
EDIT = """import json, subprocess, sys
name, fields = sys.argv[1], json.loads(sys.argv[2])
listing = json.load(open("ralph/tasks.json"))
[story] = [s for s in listing["userStories"] if s["id"] == name]
story.update(fields)
json.dump(listing, open("ralph/tasks.json", "w"), indent=2)
open("work.txt", "a").write(f"{name} {fields}\\n")
who = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
subprocess.run(["git", "add", "-A"], check=True)
subprocess.run(["git", *who, "commit", "-q", "-m", f"{name}"], check=True)
"""
STORY = {
    "title": "Say hello",
    "description": "",
    "acceptanceCriteria": ["hello is said"],
    "passes": False,
    "reviewStatus": None,
    "reviewCount": 0,
    "reviewFeedback": "",
    "notes": "",
}
SUBMIT = {"reviewStatus": "needs_review", "notes": "done"}
REJECT = {"reviewStatus": "changes_requested", "reviewFeedback": "say it louder"}
RESUBMIT = {"reviewStatus": "needs_review", "reviewFeedback": ""}
APPROVE = {"reviewStatus": "approved", "passes": True}
OWN = {"notes": "done", **APPROVE}  # which only a review may

pytestmark = pytest.mark.agents


def stories(world: World, count: int, *, free: bool = True) -> None:
    """A project with so many stories, committed."""
    world.configure(free=free)
    folder = world.repo / "ralph"
    folder.mkdir()
    listed = [{"id": f"US-{n}", "priority": n, **STORY} for n in range(1, count + 1)]
    top = {"project": "p", "branchName": "ralph/p", "description": "", "verifyCommands": []}
    (folder / "tasks.json").write_text(json.dumps({**top, "userStories": listed}))
    for name in ("prompt.md", "prd.md", "progress.txt"):
        (folder / name).write_text(f"This is {name}.\n")
    (world.repo / "edit.py").write_text(EDIT)
    (world.repo / ".gitignore").write_text(".ralph-active\n.ralph\n")
    world.git("add", "-A")
    world.git("-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-qm", "stories")


def edit(world: World, number: int, fields: Json) -> Json:
    """A model's answer: change a story and commit."""
    given = json.dumps(fields)
    return world.shell(f"python3 edit.py US-{number} '{given}'")


def turn(world: World, number: int, fields: Json, text: str = "Done.") -> tuple[Json, Json]:
    """A model's two answers of a turn."""
    return edit(world, number, fields), {"text": text}


def work(world: World, *flags: str) -> Run:
    """Run `ralph prd run --json` to its end."""
    command = (sys.executable, "-m", "ralph", "prd", "run", "--json", *flags)
    with open(world.root / "out", "wb") as out, open(world.root / "err", "wb") as err:
        process = subprocess.Popen(
            command, cwd=world.repo, env=world.environment(), stdout=out, stderr=err
        )
    world.started.append(process)
    return world.finish(process)


def fates(world: World) -> list[tuple[object, ...]]:
    """What the reviews decided."""
    listing = json.loads((world.repo / "ralph" / "tasks.json").read_text())
    fields = ("passes", "reviewStatus", "reviewCount")
    return [tuple(story[field] for field in fields) for story in listing["userStories"]]


def modes(run: Run) -> list[str]:
    return [fact["assignment"]["mode"] for fact in run.facts("began")]


@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_a_story_survives_its_review(world: World) -> None:
    """R Verification Plan 9, with a real CLI."""
    stories(world, 1)
    world.plays(
        *turn(world, 1, SUBMIT),
        *turn(world, 1, {"reviewCount": 1, **REJECT}),
        *turn(world, 1, RESUBMIT),
        *turn(world, 1, {"reviewCount": 2, **APPROVE}, COMPLETE),
    )
    run = work(world, "--no-sandbox")
    assert run.code == 0, run.err
    assert modes(run) == ["implement", "review", "review-fix", "review"]
    assert fates(world) == [(True, "approved", 2)]
    assert not (world.repo / ".ralph-active").exists()
    assert world.git("status", "--short") == ""


@pytest.mark.parametrize("kind", ["claude"])
def test_claude_is_held_when_it_approves_its_own_story(world: World) -> None:
    """R §5b Check 2.5 at the stop hook: mended in the same turn."""
    stories(world, 1)
    world.plays(
        *turn(world, 1, OWN),
        *turn(world, 1, {"passes": False, **SUBMIT}),
        *turn(world, 1, {"reviewCount": 1, **APPROVE}, COMPLETE),
    )
    run = work(world, "--no-sandbox")
    assert run.code == 0, run.err
    assert modes(run) == ["implement", "review"]
    assert "Implement iterations cannot set passes=true or approve stories" in world.asked(2)
    assert not [finding for closing in run.closings for finding in closing["findings"]]
    assert fates(world) == [(True, "approved", 1)]


@pytest.mark.parametrize("kind", ["codex"])
def test_where_nothing_holds_the_host_corrects(world: World) -> None:
    """ "where there is no stop hook, the closing checks alone enforce everything"."""
    stories(world, 1)
    world.plays(
        *turn(world, 1, OWN, COMPLETE),
        *turn(world, 1, SUBMIT),
        *turn(world, 1, {"reviewCount": 1, **APPROVE}, COMPLETE),
    )
    run = work(world, "--no-sandbox")
    assert run.code == 0, run.err
    assert modes(run) == ["implement", "implement", "review"]
    assert fates(world) == [(True, "approved", 1)]
    assert "ralph: correct tasks.json (iteration 1)" in world.git("log", "--format=%s")
    assert "Implement iterations cannot set passes=true" in world.asked(2)


@IN_OVERLAY
@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_three_stories_in_a_sandbox(world: World) -> None:
    """R Verification Plan 10: end to end, each turn in an overlay."""
    stories(world, 3)
    answers = [
        answer
        for n in (1, 2, 3)
        for fields in (SUBMIT, {"reviewCount": 1, **APPROVE})
        for answer in turn(world, n, fields)
    ]
    answers[-1] = {"text": COMPLETE}
    world.plays(*answers)
    model = urlsplit(world.model.url).netloc
    run = work(world, "--sandbox", "overlay", "--network", model)
    assert run.code == 0, run.err
    assert modes(run) == ["implement", "review"] * 3
    assert fates(world) == [(True, "approved", 1)] * 3
    assert world.git("status", "--short") == ""


@IN_OVERLAY
@pytest.mark.parametrize("kind", ["claude"])
def test_claude_is_held_in_a_sandbox_too(world: World) -> None:
    """The hook runs where the agent runs, which needs no leave: "the sandbox is the permission"."""
    stories(world, 1, free=False)
    world.plays(
        *turn(world, 1, OWN),
        *turn(world, 1, {"passes": False, **SUBMIT}),
        *turn(world, 1, {"reviewCount": 1, **APPROVE}, COMPLETE),
    )
    model = urlsplit(world.model.url).netloc
    run = work(world, "--sandbox", "overlay", "--network", model)
    assert run.code == 0, run.err
    assert modes(run) == ["implement", "review"]
    assert "Implement iterations cannot set passes=true" in world.asked(2)


@pytest.mark.parametrize("kind", ["claude"])
def test_another_vendor_reviews(world: World) -> None:
    """Reviewer independence: `--review-agent`; only reviews are its turns."""
    stories(world, 1)
    reviewer = world.root / "reviewer"
    given = json.dumps({"reviewCount": 1, **APPROVE})
    reviewer.write_text(f"#!/bin/sh\npython3 edit.py US-1 '{given}'\necho reviewed\n")
    reviewer.chmod(0o755)
    world.plays(*turn(world, 1, SUBMIT))
    run = work(world, "--no-sandbox", "--review-agent", str(reviewer))
    assert run.code == 0, run.err
    assert (modes(run), fates(world)) == (["implement", "review"], [(True, "approved", 1)])
    assert len(world.model.main_calls()) == 2
