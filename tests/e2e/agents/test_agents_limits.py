"""What only one of the CLIs has: budgets, permissions, text on stdout; sandboxes and prices."""

import shlex

import pytest

from agents.real_agents import DONE, World

pytestmark = pytest.mark.agents

claude = pytest.mark.parametrize("kind", ["claude"])
codex = pytest.mark.parametrize("kind", ["codex"])


def agents_command(said: str) -> list[str]:
    """How the agent was called first, from the verbose lines (H §Verbose Output)."""
    lines = (line for line in said.splitlines() if "Agent command: " in line)
    return shlex.split(next(lines).partition("Agent command: ")[2])


@claude
def test_claude_is_given_its_budget(world: World) -> None:
    """ADR 15: `--max-budget-usd` where the CLI has it; exit 1 when it is used up."""
    dear = {"input": 2_000_000, "output": 100_000}
    world.plays(world.shell("true", usage=dear), {"text": "Not yet.", "usage": dear})
    run = world.run("-m", "5", "--max-cost", "2.50", "--verbose")
    assert run.code == 1, run.err
    assert "--max-budget-usd=2.50" in agents_command(run.err)
    (turn,) = run.turns
    assert turn["failure"]["message"] == "Reached maximum budget ($2.5)"
    assert run.stop["cost_usd"] == turn["cost_usd"] > 2.5
    assert len(world.model.main_calls()) == 1


@claude
def test_a_denied_permission_ends_the_run_with_the_flag_to_add(world: World) -> None:
    """ADR 15: Ralph adds no permission flag; the flag to add is named, and no turn is burned."""
    world.configure(free=False)
    path = str(world.repo / "hello.txt")
    write = {"name": "Write", "input": {"file_path": path, "content": "hello\n"}}
    world.plays({"tools": [write]}, {"text": "I may not."})
    run = world.run("-m", "5")
    assert (run.code, len(run.turns)) == (2, 1), run.err
    assert run.turns[0]["denied"] == ["Write"]
    assert 'Permission denied: Write. Add "--dangerously-skip-permissions"' in run.err
    assert not (world.repo / "hello.txt").exists()


def test_text_mode_completes_too(world: World) -> None:
    """H §Agent Output Flags: text mode; the answer is read without a stream."""
    world.configure(guardrails=[{"command": "test -f hello.txt"}])
    world.plays(world.shell("echo hello > hello.txt"), {"text": f"There it is.\n{DONE}"})
    run = world.run("-m", "1", "--no-stream-agent-output")
    assert run.code == 0, run.err
    assert [claim["raw"] for claim in run.turns[0]["claims"]] == [DONE]


@codex
def test_codex_accepts_the_sandbox_that_was_chosen_for_it(world: World) -> None:
    """ADR 15: codex without `--full-auto`: `-s workspace-write`."""
    world.configure(free=False)
    world.plays({"text": DONE})
    run = world.run("-m", "1", "--verbose")
    assert run.code == 0, run.err
    command = agents_command(run.err)
    assert command[command.index("-s") + 1] == "workspace-write"
    assert "--full-auto" not in command


@codex
def test_a_limit_of_money_that_nobody_counts_is_refused(world: World) -> None:
    """ADR 22: an agent that reports no cost, and a model without a price, are refused (2)."""
    run = world.run("-m", "1", "--max-cost", "1", "--model", "nobody-knows-it")
    assert run.code == 2, run.err
    assert run.stop["run"] is None
    assert "agent.prices" in run.err
    assert world.model.calls() == []


@codex
def test_codex_is_paid_by_the_prices_in_the_settings(world: World) -> None:
    """ADR 15, §3: money is counted from tokens, and limits the run (1)."""
    world.configure(agent={"prices": {"input": 1.0, "output": 10.0, "cacheRead": 0.1}})
    usage = {"input": 1_000_000, "cache_read": 500_000, "output": 20_000}
    world.plays({"text": "Not yet.", "usage": usage})
    run = world.run("-m", "5", "--max-cost", "1")
    assert run.code == 1, run.err
    assert "$1" in run.err
    assert run.stop["iterations"] == 2
    assert run.stop["cost_usd"] == pytest.approx(2 * (0.5 + 0.05 + 0.2))
