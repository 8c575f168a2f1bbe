"""Real agents at work: what completes a run, what does not, and that the prompt arrives."""

from pathlib import Path

import pytest

from agents.real_agents import DONE, World

pytestmark = pytest.mark.agents

HELLO = "test -f hello.txt"


def test_tool_work_is_believed_when_the_guardrail_passes(world: World) -> None:
    """H §Loop Behavior: if all guardrails pass, check for completion response and stop."""
    world.configure(guardrails=[{"command": HELLO}])
    usage = {"input": 1000, "output": 50}
    world.plays(
        world.shell("echo hello > hello.txt", text="I write it.", usage=usage),
        {"text": f"It is there.\n{DONE}", "usage": usage},
    )
    run = world.run("-m", "3")
    assert run.code == 0, run.err
    assert (world.repo / "hello.txt").read_text() == "hello\n"
    assert run.stop["evidence"] == [f"claimed: {DONE}", "passed: protect", f"passed: {HELLO}"]
    assert run.stop["iterations"] == 1
    (turn,) = run.turns
    assert (turn["tools"], turn["tool_errors"], turn["unknown"]) == (1, 0, 0)
    assert (turn["usage"]["input"], turn["usage"]["output"]) == (2000, 100)
    assert run.stop["cost_usd"] == turn["cost_usd"] > 0  # told, or by the list of prices


def test_a_tag_in_tool_output_only_does_not_complete(world: World) -> None:
    """ADR 3: only assistant text counts; a near miss is named."""
    world.plays(world.shell(f"echo '{DONE}'"), {"text": "The command has spoken."})
    run = world.run("-m", "1")
    assert run.code == 1, run.err
    assert run.stop["reason"] == "limit"
    (turn,) = run.turns
    assert turn["claims"] == []
    assert [claim["raw"] for claim in turn["overheard"]] == [DONE]
    near_miss = "stood only in tool output"
    assert near_miss in run.closings[0]["notes"][0]
    assert near_miss in run.err


def test_a_claim_too_early_is_answered_with_what_the_guardrail_found(world: World) -> None:
    """H §Guardrails: the message sent to the agent; ADR 4: not believed until they pass."""
    guardrail = {"command": "cat hello.txt", "hint": "It must exist."}
    world.configure(guardrails=[guardrail])
    world.plays(
        {"text": DONE}, world.shell("echo hello > hello.txt"), {"text": f"Now it is. {DONE}"}
    )
    run = world.run("-m", "3")
    assert run.code == 0, run.err
    assert run.verdicts == ["continue", "accept"]
    assert "Guardrail" not in world.asked(0)
    told = world.asked(1)
    assert "Write hello.txt.\n\n" in told
    assert 'Guardrail "cat hello.txt" failed with exit code 1.\nHint: It must exist.' in told
    assert "No such file" in told


@pytest.mark.parametrize(
    "prompt",
    [
        pytest.param("A long story. " * 22_000 + "The end.", id="300-KB"),
        pytest.param("--version is not a flag here\n- nor is this", id="begins-with-a-dash"),
    ],
)
def test_a_prompt_arrives_whole(world: World, tmp_path: Path, prompt: str) -> None:
    """ADR 14: by standard input where it cannot be an argument; never through a shell."""
    file = tmp_path / "PROMPT.md"
    file.write_text(prompt)
    world.plays({"text": DONE})
    run = world.run("-f", str(file), "-m", "1")
    assert run.code == 0, run.err
    assert prompt in world.asked(0)


def test_the_words_before_a_tool_call_count_too(world: World) -> None:
    """H §Completion Detection: the first match wins. Claude's result is only the last text."""
    world.plays(world.shell("true", text=DONE), {"text": "Anything else?"})
    run = world.run("-m", "1")
    assert run.code == 0, run.err
