"""Money in a real run: prices by the model's name, a limit within a turn, the ledger (ADR 22)."""

import json
import os
from pathlib import Path

import pytest
from run_support import Here, Json, assert_clear, journals, prepare, program, turns

from ralph.agents.prices import AS_OF, known_models
from ralph.journal.ledger import FILE, read_ledger
from ralph.journal.spending import LedgerEntry
from ralph.kernel.turn import Ending
from ralph.testing.scripted_agent.install import calls

MILLION = {"input": 1_000_000, "output": 100_000}
DONE = {"response": "DONE"}


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def ledger() -> tuple[LedgerEntry, ...]:
    """What the only project has spent."""
    (project,) = Path(os.environ["RALPH_STATE_DIR"]).glob("*-????????")
    return read_ledger(str(project))


@pytest.mark.parametrize(
    ("agent", "flags"),
    [
        ({"model": "gpt-5.4"}, ()),
        ({}, ("--model", "gpt-5.4-2026-03-05")),
        ({"flags": ["-m", "gpt-5.4"]}, ()),
        ({"flags": ["--model gpt-5.4"]}, ()),
        ({"flags": ["--model=gpt-5.4"]}, ()),
        ({"flags": ["-m", "gpt-5"], "model": "gpt-5.4"}, ()),
    ],
)
def test_tokens_are_priced_by_the_name_of_the_model(
    here: Here, workspace: Path, agent: Json, flags: tuple[str, ...]
) -> None:
    """ADR 22: `agent.model` or `--model`, else `-m` or `--model` in `agent.flags`."""
    turn = {"text": "x", "usage": MILLION}
    prepare(workspace, turn, {**DONE, "usage": MILLION}, kind="codex", agent=agent)
    done = here("-p", "x", "--max-cost", "100", *flags)
    line = f"Prices: gpt-5.4 by the table of {AS_OF}: $2.5 in, $15 out per million tokens"
    assert_clear(done, 0, line, "$8.00")
    assert [entry.cost_usd for entry in ledger()] == [4.0, 4.0]


def test_prices_in_the_settings_go_first(here: Here, workspace: Path) -> None:
    agent = {"model": "gpt-5.4", "prices": {"input": 1, "output": 1}}
    prepare(workspace, {**DONE, "usage": MILLION}, kind="codex", agent=agent)
    done = here("-p", "x", "--max-cost", "100")
    assert_clear(done, 0, "Prices: agent.prices: $1 in, $1 out per million tokens", "$1.10")


def test_a_gemini_is_priced_too(here: Here, workspace: Path) -> None:
    prepare(workspace, {**DONE, "usage": MILLION}, kind="gemini")
    done = here("-p", "x", "--max-cost", "100", "--model", "gemini-2.5-flash")
    assert_clear(done, 0, "Prices: gemini-2.5-flash by the table", "$0.55")


@pytest.mark.parametrize("model", [(), ("--model", "gpt-99"), ("--model", "gpt-5-turbo")])
def test_a_model_without_a_price_is_refused_with_the_remedy(
    here: Here, workspace: Path, model: tuple[str, ...]
) -> None:
    """ADR 22: `--max-cost` without any price is refused (2) before anything is started."""
    agent = prepare(workspace, DONE, kind="codex")
    done = here("-p", "x", "--max-cost", "5", *model)
    assert_clear(done, 2, "reports no cost, only tokens", "agent.prices", "--model")
    assert all(name in done.err for name in known_models("codex"))
    assert "gemini-" not in done.err
    assert calls(agent) == []


def test_an_agent_without_a_model_flag_is_not_told_to_use_one(here: Here, workspace: Path) -> None:
    prepare(workspace, DONE, kind="amp")
    done = here("-p", "x", "--max-cost", "5")
    assert_clear(done, 2, "Set agent.prices", "or use --max-time.")
    assert "--model" not in done.err


def test_a_model_without_a_price_runs_without_a_limit(here: Here, workspace: Path) -> None:
    prepare(workspace, {**DONE, "usage": MILLION}, kind="codex")
    done = here("-p", "x", "--model", "gpt-99")
    assert_clear(done, 0)
    assert "Prices:" not in done.err
    ((entry),) = ledger()
    assert (entry.cost_usd, entry.model, entry.usage.input) == (None, "gpt-99", 1_000_000)


def test_who_reports_a_cost_is_not_priced_by_the_list(here: Here, workspace: Path) -> None:
    prepare(workspace, {**DONE, "cost": 0.5, "usage": MILLION})
    done = here("-p", "x", "--max-cost", "5", "--model", "gpt-5.4")
    assert_clear(done, 0, "$0.50")
    assert "Prices:" not in done.err


def step(cost: float, reason: str = "tool-calls") -> str:
    tokens = {"input": 300, "output": 60, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    part = {"type": "step-finish", "reason": reason, "tokens": tokens, "cost": cost}
    return json.dumps({"type": "step_finish", "sessionID": "ses_1", "part": part})


def spender(workspace: Path, *costs: float) -> None:
    """An opencode that tells what each step cost, and would then work for ever."""
    said = "\n".join(f"echo '{step(cost)}'" for cost in costs)
    agent = program(workspace.parent / "opencode", f"{said}\nexec sleep 600")
    (workspace / ".ralph").mkdir()
    settings = json.dumps({"agent": {"command": agent}})
    (workspace / ".ralph" / "settings.json").write_text(settings, "utf-8")


def test_a_turn_is_cut_when_its_stream_tells_that_the_money_is_used_up(
    here: Here, workspace: Path
) -> None:
    """ADR 22: "`--max-cost` holds within a turn too"."""
    spender(workspace, 0.20, 0.25, 0.25)
    done = here("-p", "x", "--max-cost", "0.50")
    assert_clear(done, 1, "the run's $0.5 are used up", "$0.70")
    (only,) = turns()
    assert only.turn.ending is Ending.CUT
    assert only.turn.cost_usd == pytest.approx(0.70)
    assert [entry.cost_usd for entry in ledger()] == [pytest.approx(0.70)]
    assert ledger()[0].usage.input == 900


def test_a_turn_within_its_means_is_left_alone(here: Here, workspace: Path) -> None:
    spender(workspace, 0.20, 0.25)
    done = here("-p", "x", "--max-cost", "0.50", "--timeout", "1", "-m", "1")
    assert_clear(done, 1, "timed out after 1")
    assert "are used up" not in done.err


def test_every_turn_of_a_run_is_in_the_ledger(here: Here, repo: Path) -> None:
    """ADR 22: also a failed one; and who worked, in which run."""
    failure = {"error": {"status": 400, "message": "no"}, "cost": 0.25}
    prepare(repo, {"text": "x", "cost": 0.5, "usage": MILLION}, failure, {**DONE, "cost": 1.0})
    assert here("-p", "x", "--model", "opus").code == 0
    (run,) = {journal.parent.name for journal in journals()}
    entries = ledger()
    assert {(e.run, e.profile, e.agent, e.model, e.role) for e in entries} == {
        (run, "harness", "claude", "opus", "work")
    }
    assert [(e.iteration, e.cost_usd) for e in entries] == [(1, 0.5), (2, 0.25), (3, 1.0)]
    assert all(e.seconds > 0 for e in entries)


def test_a_ledger_that_cannot_be_written_is_said_once_and_the_run_goes_on(
    here: Here, workspace: Path
) -> None:
    prepare(workspace, {**DONE, "cost": 0.5})
    assert here("-p", "x").code == 0
    prepare(workspace, *[{"text": "x", "cost": 0.5}] * 2, {**DONE, "cost": 0.5})
    path = journals()[0].parent.parent.parent / FILE
    path.unlink()
    path.mkdir()
    done = here("-p", "x")
    assert_clear(done, 0, "cannot be written: Is a directory. The run goes on.")
    assert done.err.count("The ledger") == 1


def test_two_runs_share_the_ledger_of_their_project(here: Here, workspace: Path) -> None:
    prepare(workspace, {**DONE, "cost": 0.5})
    assert (here("-p", "x").code, here("-p", "x").code) == (0, 0)
    assert len({entry.run for entry in ledger()}) == 2
