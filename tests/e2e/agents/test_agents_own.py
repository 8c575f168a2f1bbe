"""Ralph's own agent as it is, in runs: over the protocol of each service, and where it fails."""

import json
import subprocess
import sys

import pytest

from agents.clis import OWN, Json, own_env
from agents.real_agents import DONE, World

pytestmark = [pytest.mark.agents, pytest.mark.parametrize("kind", [OWN])]

MODELS = ("anthropic:m", "openai:m", "openai-chat:m", "google:m")
every = pytest.mark.parametrize("model", MODELS)
REFUSALS = {"anthropic:m": "refusal", "openai-chat:m": "content_filter", "google:m": "SAFETY"}
LONG = "Ä line of what was said. " * 8000  # 200 KB


def by(world: World, model: str, **settings: object) -> None:
    """Have it work by this model; no other key is passed on."""
    agent: Json = {"command": f"builtin:{model}", "flags": [], "env": {}}
    world.configure(free=False, agent=agent, **settings)


@pytest.fixture(autouse=True)
def keys(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of all services, in the environment of the run."""
    bare = world.environment
    monkeypatch.setattr(
        World, "environment", lambda _: {**bare(), **own_env(world.model.url)}, raising=True
    )


def work(text: str = DONE) -> tuple[Json, ...]:
    """A model's answers: each action once, then words."""
    called = (
        {"name": "write", "input": {"path": "hello.txt", "content": "hello\\n"}},
        {"name": "bash", "input": {"command": "cat hello.txt"}},
        {"name": "git", "input": {"args": ["status", "--short"]}},
        {"name": "eval", "input": {"code": "print(6 * 7)"}},
        {"name": "read", "input": {"path": "hello.txt"}},
    )
    return (
        {"text": "I begin.", "tools": [*called[:3]]},  # side by side, in this order
        {"tools": [called[3]]},
        {"tools": [called[4]]},
        {"text": text},
    )


@every
def test_it_works_by_every_protocol(world: World, model: str) -> None:
    by(world, model, guardrails=[{"command": "grep -q hello hello.txt"}])
    world.plays(*work())
    run = world.run("-m", "1", "--json")
    assert run.code == 0, run.err
    assert (run.turns[0]["tools"], run.turns[0]["tool_errors"]) == (5, 0)
    usage = run.turns[0]["usage"]
    assert (usage["input"], usage["output"]) == (400, 80)
    assert "?? hello.txt" in world.asked(1)
    assert "42" in world.asked(2)
    used = [call["protocol"] for call in world.model.main_calls()]
    assert len({*used}) == 1


@every
def test_a_refused_key_ends_the_run(world: World, model: str) -> None:
    by(world, model)
    world.plays({"error": {"status": 401, "message": "no such key"}, "times": -1})
    run = world.run("-m", "9")
    assert (run.code, len(run.turns), run.stop["reason"]) == (2, 1, "config"), run.err
    assert "no such key" in run.err
    assert len(world.model.main_calls()) == 1


@every
def test_a_limit_that_lasts_is_waited_for_by_the_run(world: World, model: str) -> None:
    """ADR 11; what passes in a minute the agent waits for itself."""
    by(world, model)
    limit = {"error": {"status": 429, "message": "slow down", "headers": {"retry-after": "3600"}}}
    world.plays({**limit, "times": -1})
    run = world.run("-m", "9", "--max-wait", "1s")
    assert (run.code, run.verdicts) == (1, ["stop"]), run.err
    failure = run.turns[0]["failure"]
    assert (failure["status"], failure["retry_after"]) == (429, 3600)
    assert len(world.model.main_calls()) == 1


@every
def test_what_passes_is_asked_again(world: World, model: str) -> None:
    """Overloaded, then cut off in the middle: one turn, and nothing is said twice."""
    by(world, model)
    soon = {"retry-after": "0.1"}
    overloaded = {"status": 529, "message": "Overloaded", "headers": soon}
    world.plays(
        {"error": overloaded},
        {"text": "I begin to say what is cut off in the middle.", "cut": True},
        {"text": DONE},
    )
    run = world.run("-m", "1")
    assert run.code == 0, run.err
    (turn,) = run.turns
    assert turn["text"].strip() == DONE
    assert len(world.model.main_calls()) == 3


@pytest.mark.parametrize("model", REFUSALS)
def test_a_model_that_refuses_fails_the_turn(world: World, model: str) -> None:
    by(world, model)
    world.plays({"text": "", "stop": REFUSALS[model]}, {"text": DONE})
    run = world.run("-m", "2")
    assert run.code == 0, run.err
    assert run.verdicts == ["continue", "accept"]
    assert "refused" in run.turns[0]["failure"]["message"]


@every
def test_very_long_words_and_output_come_through(world: World, model: str) -> None:
    """The words whole, of a command's output its head and its tail."""
    by(world, model)
    loud = "i=0; while [ $i -lt 40000 ]; do echo line $i; i=$((i+1)); done"
    world.plays(
        {"text": LONG, "tools": [{"name": "bash", "input": {"command": loud}}]},
        {"text": f"{LONG}{DONE}"},
    )
    run = world.run("-m", "1")
    assert run.code == 0, run.err
    heard = json.dumps(world.model.main_calls()[1]["body"])
    assert "line 0" in heard
    assert "line 39999" in heard
    assert "line 20000" not in heard
    assert run.turns[0]["text"].endswith(DONE)


def test_a_commit_message_is_words_alone(world: World) -> None:
    """ADR 8: a model that calls a tool all the same has none."""
    by(world, "anthropic:m", scm={"command": "git", "tasks": ["commit"]})
    world.git("add", "-f", ".ralph")
    world.git("commit", "-qm", "Add settings")
    evil = {"name": "bash", "input": {"command": "echo evil > evil.txt"}}
    message = ({"text": "Add a greeting", "tools": [evil]},)
    world.plays(world.shell("echo hello > hello.txt"), {"text": DONE}, message=message)
    run = world.run("-m", "1")
    assert run.code == 0, run.err
    assert not (world.repo / "evil.txt").exists()
    assert world.git("log", "--format=%s").splitlines()[0] == "Add a greeting"


def test_only_the_key_of_its_model_is_passed_on(world: World) -> None:
    """ADR 13; and not even that to what the model runs."""
    by(world, "google:m")
    world.plays(world.shell("env > seen.txt"), {"text": DONE})  # which the guard would refuse
    run = world.run("-m", "1", "--no-guard")
    assert run.code == 0, run.err
    assert "paid by GEMINI_API_KEY; not passed on: ANTHROPIC_API_KEY" in run.err
    assert "_API_KEY" not in (world.repo / "seen.txt").read_text()


def test_no_file_of_the_project_is_imported(world: World) -> None:
    (world.repo / "ralph").mkdir()
    for name in ("json.py", "ralph/__init__.py", "sitecustomize.py"):
        (world.repo / name).write_text("import os\nos._exit(99)\n")
    here = {"PYTHONPATH": str(world.repo)}
    agent = {"command": "ralph-agent", "flags": [], "env": {"set": here}}
    world.configure(free=False, agent=agent)
    world.plays({"text": DONE})
    done = subprocess.run(
        (sys.executable, "-P", "-m", "ralph", "run", "-p", "x", "-m", "1"),
        cwd=world.repo,
        env=world.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
