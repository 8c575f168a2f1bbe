"""`ralph tasks plan` with the real claude, codex and our own agent: their words become tasks."""

import json
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from agents.clis import OWN, Json
from agents.real_agents import Run, World
from kits.sandbox.stage import overlay_is_usable

USAGE = {"input": 1000, "output": 50}
PARSER = {"title": "Parse it", "completion": {"type": "test_passing", "command": "make test"}}
ANSWER = f"I have looked.\n<tasks>\n{json.dumps(PARSER)}\n</tasks>"
IN_OVERLAY = pytest.mark.skipif(not overlay_is_usable(), reason="this machine allows no namespaces")

pytestmark = [
    pytest.mark.agents,
    pytest.mark.parametrize("kind", ["claude", "codex", OWN]),
    pytest.mark.parametrize("where", ["in-place", pytest.param("overlay", marks=IN_OVERLAY)]),
]


def plan(world: World, where: str) -> Run:
    model = urlsplit(world.model.url).netloc
    place = ("--no-sandbox",) if where == "in-place" else ("--sandbox", where, "--network", model)
    command = (
        sys.executable,
        "-m",
        "ralph",
        "tasks",
        "plan",
        "Import statements",
        "--json",
        "--yes",
    )
    with open(world.root / "out", "wb") as out, open(world.root / "err", "wb") as err:
        process = subprocess.Popen(
            (*command, *place), cwd=world.repo, env=world.environment(), stdout=out, stderr=err
        )
    world.started.append(process)
    return world.finish(process)


def test_its_words_become_tasks_and_its_work_is_undone(world: World, where: str) -> None:
    before = world.git("status", "--porcelain")
    # A list that only a tool prints is no plan.
    world.plays(
        world.shell('echo \'<tasks>{"title": "Sneaky"}</tasks>\' | tee new.txt', usage=USAGE),
        {"text": ANSWER, "usage": USAGE},
    )
    run = plan(world, where)
    assert run.code == 0, run.err
    told: Json = json.loads((world.root / "out").read_text())
    assert [each["task"]["title"] for each in told["tasks"]] == ["Parse it"]
    assert told["tasks"][0]["host_checks"] is True
    assert told["added"] == ["T-001"]
    assert told["cost_usd"] > 0
    assert "<goal>\nImport statements\n</goal>" in world.asked(0)
    assert not (world.repo / "new.txt").exists()
    assert world.git("status", "--porcelain", "--", ":!.ralph") == before.replace("?? .ralph/", "")


def test_an_answer_without_a_list_is_asked_for_once_more(world: World, where: str) -> None:
    world.plays({"text": "Sure."}, {"text": ANSWER})
    run = plan(world, where)
    assert run.code == 0, run.err
    assert "the answer has no <tasks>" in world.asked(1)
