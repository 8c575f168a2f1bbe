"""Real agents driven by ACP (ADR 53): the kit of all agents, the guard's answers, the end."""

import pytest

from agents.acp_bench import AcpBench
from agents.clis import ACP
from agents.real_agents import DONE, World
from kits.agent.kit import CHECKS, try_one
from kits.thorough import ALL

pytestmark = pytest.mark.agents
# What each must do that a stream can get wrong; all of it takes a minute an agent.
SOME = ("claim found", "tools counted", "refused", "message without tools", "model flag")
FORCE = "git push --force origin main"


@pytest.mark.parametrize("kind", sorted(ACP))
def test_the_kit(world: World) -> None:
    checks = CHECKS if ALL else SOME
    found = {name: try_one(CHECKS[name], AcpBench(world)) for name in checks}
    assert not {name: one.why for name, one in found.items() if one.result == "FAILED"}


@pytest.mark.parametrize("kind", ["claude-agent-acp", "gemini-acp"])  # of versions 2 and 1
def test_the_guard_answers_and_the_journal_keeps_it(world: World) -> None:
    world.plays(
        world.shell(FORCE, text="I clean up."),
        world.shell("echo hello > hello.txt", text="I was refused."),
        {"text": DONE},
    )
    run = world.run("-m", "1")
    assert run.code == 0, run.err
    (turn,) = run.turns
    answers = [(one["what"], one["allowed"]) for one in turn["permissions"]]
    assert answers == [(FORCE, False), ("echo hello > hello.txt", True)]
    assert (turn["asked"], turn["tools"], turn["tool_errors"], turn["denied"]) == (2, 2, 1, [])
    assert f"Refused: {FORCE} (force-push)" in run.err
    assert (world.repo / "hello.txt").read_text() == "hello\n"


@pytest.mark.parametrize("kind", ["claude-agent-acp"])
def test_an_elicitation_is_a_question_for_a_person(world: World) -> None:
    colour = {"question": "Which colour?", "header": "C", "multiSelect": False}
    options = [{"label": "red", "description": "r"}, {"label": "blue", "description": "b"}]
    ask = {"name": "AskUserQuestion", "input": {"questions": [{**colour, "options": options}]}}
    world.plays({"text": "I wonder.", "tools": [ask]}, {"text": "I wait for your answer."})
    run = world.run("-m", "3")
    assert (run.code, run.turns[0]["question"]) == (3, "Which colour?"), run.err


@pytest.mark.parametrize("kind", ["gemini-acp", "opencode-acp"])
def test_a_silent_agent_is_cut_and_leaves_nothing(world: World) -> None:
    """opencode says nothing on a 429; of gemini a command goes on. The world fails on whoever is
    left."""
    if world.kind == "opencode-acp":
        world.plays({"error": {"status": 429, "message": "slow down"}, "times": -1})
    else:
        world.plays(world.shell("sleep 986", text="I wait."))
    run = world.run("-m", "1", "--idle-timeout", "9s")
    assert run.code == 1, run.err
    assert run.turns[0]["ending"] == "cut"
    assert "silent" in run.turns[0]["why"]
