"""CLI flag parsing and validation (H Testing Requirements): each flag over its setting."""

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from run_support import FINISH, Here, assert_clear, prepare

from ralph.cli.run import run
from ralph.loops.prompt.loop import Prompt, read
from ralph.runner.invocation import Invocation
from ralph.runner.plan import Plan
from ralph.testing.scripted_agent.install import calls, probes

DONE = {"response": "DONE"}
AMPLE: dict[str, Any] = {  # what flags can override, with values that no flag below has
    "maximumIterations": 7,
    "completionResponse": "FINISHED",
    "streamAgentOutput": True,
    "tellCompletion": False,
    "maxTime": 1111,
    "maxWait": 1112,
    "timeout": 1113,
    "idleTimeout": 1114,
    "stopGrace": 1115,
    "maxCost": 1116,
}


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def planned(workspace: Path, *arguments: str) -> Plan[Prompt]:
    """The plan that `ralph run` makes of these arguments."""
    names = ["-h", "--help"]  # click remembers what it saw first
    flags = run.make_context("run", ["-p", "x", *arguments], help_option_names=names).params
    out = io.StringIO()
    return read(Invocation(str(workspace), dict(os.environ), flags, None, out, out))


def value(plan: Plan[Prompt], setting: str) -> Any:  # noqa: ANN401  whatever the setting holds
    found: Any = plan.settings
    for name in setting.split("."):
        found = getattr(found, name)
    return found


@pytest.mark.parametrize(
    ("arguments", "setting", "expected"),
    [
        (("-m", "3"), "maximum_iterations", 3),
        (("--max-iterations", "3"), "maximum_iterations", 3),
        (("--maximum-iterations", "3"), "maximum_iterations", 3),
        (("--maximum-iterations=3",), "maximum_iterations", 3),
        (("-m3",), "maximum_iterations", 3),
        (("-c", "OK"), "completion_response", "OK"),
        (("--completion-response", "all good"), "completion_response", "all good"),
        (("--no-stream-agent-output",), "stream_agent_output", False),
        (("--tell-completion",), "tell_completion", True),
        (("--model", "opus"), "agent.model", "opus"),
        (("--max-time", "8h"), "max_time", 8 * 3600),
        (("--max-wait", "30m"), "max_wait", 1800),
        (("--max-wait", "0"), "max_wait", 0),
        (("--timeout", "90s"), "timeout", 90),
        (("--idle-timeout", "90"), "idle_timeout", 90),
        (("--stop-grace", "1.5"), "stop_grace", 1.5),
        (("--max-cost", "0.50"), "max_cost", 0.5),
        (("--max-cost", "$20"), "max_cost", 20),
    ],
)
def test_a_flag_overrides_its_setting(
    workspace: Path, arguments: tuple[str, ...], setting: str, expected: object
) -> None:
    """H §Loading Priority 3: "Override with CLI flags"."""
    settings = AMPLE if arguments[0] != "--no-stream-agent-output" else {}
    prepare(workspace, DONE, agent={"model": "haiku"}, **settings)
    before, after = planned(workspace), planned(workspace, *arguments)
    assert value(before, setting) != value(after, setting) == expected


def test_stream_agent_output_overrides_the_setting(workspace: Path) -> None:
    prepare(workspace, DONE, streamAgentOutput=False)
    assert not value(planned(workspace), "stream_agent_output")
    assert value(planned(workspace, "--stream-agent-output"), "stream_agent_output")


def test_no_tell_completion_overrides_the_setting(workspace: Path) -> None:
    prepare(workspace, DONE, tellCompletion=True)
    assert not value(planned(workspace, "--no-tell-completion"), "tell_completion")


def test_agent_overrides_the_setting(workspace: Path) -> None:
    prepare(workspace, DONE)
    other = prepare(workspace, DONE, kind="codex")
    prepare(workspace, DONE)
    assert planned(workspace).kind == "claude"
    assert planned(workspace, "--agent", other).kind == "codex"


def test_without_flags_the_settings_hold_local_over_base(workspace: Path) -> None:
    """H §Loading Priority 1 and 2."""
    prepare(workspace, DONE, maximumIterations=3, completionResponse="BASE")
    local = {"completionResponse": "LOCAL"}
    (workspace / ".ralph" / "settings.local.json").write_text(json.dumps(local))
    plan = planned(workspace)
    assert value(plan, "maximum_iterations") == 3
    assert value(plan, "completion_response") == "LOCAL"
    assert value(planned(workspace, "-c", "FLAG"), "completion_response") == "FLAG"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("0", "found 0; allowed: a whole number, 1 or more"),
        ("-1", "found -1; allowed: a whole number, 1 or more"),
        ("1.5", "'1.5' is not a whole number"),
        ("", "'' is not a whole number"),
        (" 3", "' 3' is not a whole number"),
        ("NaN", "'NaN' is not a whole number"),
        ("inf", "'inf' is not a whole number"),
        ("1e3", "'1e3' is not a whole number"),
        ("0x10", "'0x10' is not a whole number"),
        ("1_000", "'1_000' is not a whole number"),
        ("٣", "'٣' is not a whole number"),
        ("9" * 30, "is not a whole number"),
    ],
)
def test_a_number_of_iterations_that_is_none(
    here: Here, workspace: Path, number: str, words: str
) -> None:
    """The issue: "`-m 0`, negative, fractional, empty, NaN: 2"."""
    agent = prepare(workspace, DONE)
    assert_clear(here("-p", "x", "-m", number), 2, "--max-iterations", words)
    assert calls(agent) == []


@pytest.mark.parametrize(("number", "meant"), [("08", 8), ("010", 10), ("1", 1)])
def test_leading_zeros_are_decimal(workspace: Path, number: str, meant: int) -> None:
    """The issue: "leading zeros are decimal"."""
    prepare(workspace, DONE)
    assert value(planned(workspace, "-m", number), "maximum_iterations") == meant


@pytest.mark.parametrize("flag", ["--max-time", "--timeout", "--idle-timeout", "--stop-grace"])
@pytest.mark.parametrize("amount", ["", "abc", "-1", "1e3", "5 m", "2h30m", "nan", "inf", "1w"])
def test_a_duration_that_is_none(here: Here, workspace: Path, flag: str, amount: str) -> None:
    """README §Flags: durations are seconds, or `90s`, `30m`, `2h`."""
    assert_clear(here("-p", "x", flag, amount), 2, flag, "is not a duration such as 90, 90s, 30m")


@pytest.mark.parametrize("flag", ["--max-time", "--timeout", "--idle-timeout", "--stop-grace"])
@pytest.mark.parametrize("amount", ["0", "0s", "99999999999d"])
def test_a_duration_out_of_range(here: Here, workspace: Path, flag: str, amount: str) -> None:
    prepare(workspace, DONE)
    assert_clear(here("-p", "x", flag, amount), 2, f"{flag}: found", "seconds, more than 0")


@pytest.mark.parametrize("amount", ["", "-1", "nan", "inf", "1e3", "5 $", "five", "9" * 400])
def test_an_amount_of_money_that_is_none(here: Here, workspace: Path, amount: str) -> None:
    assert_clear(here("-p", "x", "--max-cost", amount), 2, "is not an amount of dollars")


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        ("text", {}, ("reports no cost", "Use --max-time or -m instead.")),
        ("codex", {}, ("reports no cost", "Set agent.prices")),
        ("amp", {}, ("reports no cost", "Set agent.prices")),
        ("claude", {"streamAgentOutput": False}, ("without its stream",)),
    ],
)
def test_a_limit_that_nobody_counts_against_is_refused(
    here: Here, workspace: Path, kind: str, settings: dict[str, Any], words: tuple[str, ...]
) -> None:
    """ADR 15: "an explicit `--max-cost` with an agent that reports no cost … is refused"."""
    agent = prepare(workspace, DONE, kind=kind, **settings)
    assert_clear(here("-p", "x", "--max-cost", "5"), 2, "--max-cost", *words)
    assert calls(agent) == []


def test_max_cost_with_prices_is_counted_and_ends_the_run(here: Here, workspace: Path) -> None:
    usage = {"input": 1_000_000, "output": 0}
    agent = {"prices": {"input": 2, "output": 10}}
    path = prepare(workspace, {"text": "x", "usage": usage}, kind="codex", agent=agent)
    done = here("-p", "x", "--max-cost", "3")
    assert_clear(done, 1, "$3 used up (spent $4.00)", "2 iterations")
    assert len(calls(path)) == 2


def test_max_cost_reaches_a_claude_that_knows_the_flag(here: Here, workspace: Path) -> None:
    """ADR 15: "Money: `--max-budget-usd` where the CLI has it"."""
    agent = prepare(workspace, {"text": "x", "cost": 0.75}, DONE)
    assert here("-p", "x", "--max-cost", "2").code == 0
    budgets = [word for call in calls(agent) for word in call["argv"] if "budget" in word]
    assert budgets == ["--max-budget-usd=2.00", "--max-budget-usd=1.25"]


def test_the_probe_can_be_turned_off(here: Here, workspace: Path) -> None:
    """ADR 15: "`agent.probe: false` turns it off"."""

    agent = prepare(workspace, DONE, kind="codex", agent={"probe": False})
    assert here("-p", "x").code == 0
    assert probes(agent) == []
    prepare(workspace, DONE, kind="codex")
    assert here("-p", "x").code == 0
    assert len(probes(agent)) == 1


def test_model_and_flags_reach_the_agent(here: Here, workspace: Path) -> None:
    flags = ["--permission-mode plan", "--no-auto-compact"]
    agent = prepare(workspace, DONE, agent={"flags": flags})
    assert here("-p", "x", "--model", "opus", "--no-guard").code == 0
    argv = calls(agent)[0]["argv"]
    assert argv[:6] == ["-p", "--permission-mode", "plan", "--no-auto-compact", "--model", "opus"]


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ({"model": "opus"}, ("has no model flag", "agent.flags")),
        ({"flags": ["--x 'half"]}, ("agent.flags: --x 'half: No closing quotation",)),
        ({"kind": "gpt"}, ("agent.kind: unknown kind 'gpt'",)),
    ],
)
def test_what_an_agent_cannot_be_asked_is_refused_before_the_run(
    here: Here, workspace: Path, agent: dict[str, Any], words: tuple[str, ...]
) -> None:
    prepare(workspace, DONE, kind="text", agent=agent)
    done = here("-p", "x")
    assert_clear(done, 2, *words)
    assert "Iteration" not in done.err


def test_an_scm_task_that_cannot_be_split_is_refused_before_the_run(
    here: Here, workspace: Path
) -> None:
    agent = prepare(workspace, DONE, scm={"tasks": ["commit", "tag 'half"]})
    assert_clear(here("-p", "x"), 2, "scm.tasks: tag 'half: No closing quotation")
    assert calls(agent) == []


# ------------------------------------------------------------------ --dry-run


@pytest.mark.parametrize(
    ("kind", "command", "how"),
    [
        ("claude", "-p --output-format stream-json --verbose", "as the last argument"),
        ("codex", "e -s workspace-write --json -", "on standard input"),
        ("text", "", "as the last argument"),
    ],
)
def test_a_dry_run_shows_prompt_and_command_and_runs_nothing(
    here: Here, workspace: Path, kind: str, command: str, how: str
) -> None:
    """The issue: "`--dry-run` (prints the prompt and the command, runs nothing)"."""
    agent = prepare(
        workspace,
        DONE,
        kind=kind,
        includeIterationCountInPrompt=True,
        guardrails=[{"command": "x"}],
    )
    done = here("-p", "do\nit", "--dry-run", "--tell-completion", "-m", "3", "--no-guard")
    prompt = (
        "Iteration 1 of 3, 2 remaining.\n\ndo\nit\n\n"
        "When everything is done, and only then, end your answer with <response>DONE</response>."
    )
    shown = f"{agent} {command}".strip()
    assert done.out == f"Command: {shown}\nPrompt, {how}:\n\n{prompt}\n"
    assert (done.code, done.err, calls(agent)) == (0, "", [])
    assert not list(Path(os.environ["RALPH_STATE_DIR"]).glob("*/runs"))


def test_a_dry_run_asks_the_agent_nothing(here: Here, workspace: Path) -> None:
    """It "runs nothing": not even `--help`, by which codex' flags are chosen."""
    agent = prepare(workspace, DONE, kind="codex")
    assert here("-p", "do it", "--dry-run").code == 0
    assert probes(agent) == []
    assert here("-p", "do it").code == 0
    assert len(probes(agent)) == 1


def test_a_dry_run_in_json(here: Here, workspace: Path) -> None:
    prepare(workspace, DONE)
    done = here("-p", "do it", "--dry-run", "--json")
    first, last = done.objects
    assert (first["type"], first["run"], first["prompt"]) == ("dry_run", None, f"do it\n\n{FINISH}")
    assert first["command"][-1] == first["prompt"]
    assert (last["type"], last["exit"]) == ("stop", 0)


def test_the_prompt_of_a_dry_run_is_the_prompt_of_the_run(here: Here, workspace: Path) -> None:
    agent = prepare(workspace, DONE)
    shown = here("-p", "do it", "--dry-run", "--json", "--tell-completion").objects[0]
    assert here("-p", "do it", "--tell-completion").code == 0
    assert [call["prompt"] for call in calls(agent)] == [shown["prompt"]]
    assert [agent, *calls(agent)[0]["argv"]] == shown["command"]
