"""Runs with Ralph's own agent: by whom it is chosen and paid, guarded, contained and counted."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from run_support import Done, Here, assert_clear

from kits.sandbox.stage import overlay_is_usable
from ralph.kernel.limits import Prices
from ralph.testing.scripted_model.server import ScriptedModel

DONE = {"text": "<response>DONE</response>"}
LEAVES = "echo $RALPH_GUARD > told; setsid sleep 0 &"  # which the guard refuses: it stays behind
IN_OVERLAY = pytest.mark.skipif(not overlay_is_usable(), reason="this machine allows no namespaces")

Run = Callable[..., Done]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedModel]:
    """A model, where Anthropic's would be; its key is the only one, and no agent is on PATH."""
    with ScriptedModel([DONE]) as model:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-dummy-0123456789")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
        yield model


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], workspace: Path) -> Run:
    here = Here(capsys)
    return lambda *arguments: here("run", "-p", "Do it", "-m", "1", *arguments)


def says(model: ScriptedModel, *commands: str) -> None:
    """The model's answers: these shell commands, then that it is done."""
    calls = [{"name": "bash", "input": {"command": command}} for command in commands]
    model.server.script = type(model.server.script)([{"tools": calls}, DONE] if calls else [DONE])


def settings(workspace: Path, **content: Any) -> None:  # noqa: ANN401
    (workspace / ".ralph").mkdir(exist_ok=True)
    (workspace / ".ralph" / "settings.json").write_text(json.dumps(content))


def test_it_stands_in_where_no_cli_is_and_the_first_line_says_so(
    model: ScriptedModel, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other-0123456789")
    done = run()
    assert_clear(done, 0)
    (first,) = (line for line in done.err.splitlines() if "Agent: " in line)
    assert first == (
        "[ralph] Agent: ralph-agent with anthropic:claude-sonnet-5-5, since no other agent is on "
        "PATH; paid by ANTHROPIC_API_KEY; not passed on: OPENAI_API_KEY"
    )
    assert "[ralph] Prices: claude-sonnet-5-5 by the table of " in done.err
    (call,) = model.main_calls()
    assert call["body"]["model"] == "claude-sonnet-5-5"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--agent", "builtin"), "claude-sonnet-5-5"),
        (("--agent", "ralph-agent"), "claude-sonnet-5-5"),
        (("--agent", "builtin:anthropic:other"), "other"),
        (("--agent", "builtin", "--model", "anthropic:other"), "other"),
        (("--agent", "builtin:anthropic:one", "--model", "anthropic:other"), "other"),
    ],
)
def test_a_model_can_be_named_in_each_usual_way(
    model: ScriptedModel, run: Run, words: tuple[str, ...], named: str
) -> None:
    done = run(*words)
    assert_clear(done, 0, f"Agent: ralph-agent with anthropic:{named}")
    assert model.main_calls()[0]["body"]["model"] == named


def test_the_settings_may_name_it_too(model: ScriptedModel, run: Run, workspace: Path) -> None:
    settings(workspace, agent={"command": "ralph-agent", "flags": ["--model anthropic:other"]})
    assert_clear(run(), 0, "Agent: ralph-agent with anthropic:other; paid by ANTHROPIC_API_KEY")
    assert model.main_calls()[0]["body"]["model"] == "other"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--agent", "builtin:gpt-5"), ("'gpt-5' names no model", "anthropic:NAME")),
        (("--agent", "builtin", "--model", "opus"), ("'opus' names no model", "openai:NAME")),
        (("--model", "opus"), ("'opus' names no model", "google:NAME")),
        (("--agent", "builtin:openai:m"), ("OPENAI_API_KEY is not set", "export OPENAI_API_KEY=")),
        (
            ("--agent", "builtin:anthropic:nobody-knows", "--max-cost", "1"),
            ("--max-cost: ralph-agent reports no cost, only tokens", "Set agent.prices"),
        ),
    ],
)
def test_what_cannot_work_is_refused_before_the_first_turn(
    model: ScriptedModel, run: Run, words: tuple[str, ...], said: tuple[str, ...]
) -> None:
    assert_clear(run(*words), 2, *said)
    assert model.calls() == []


def test_without_a_key_nothing_is_called(run: Run) -> None:
    said = (
        "no agent found on PATH",
        "Or set a key for Ralph's own agent: export ANTHROPIC_API_KEY",
    )
    assert_clear(run(), 2, *said)
    assert_clear(run("--agent", "builtin"), 2, "ralph-agent needs the key of a model")


def test_a_model_in_another_place_needs_no_key(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedModel([DONE]) as local:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{local.url}/v1")
        done = run("--agent", "builtin:openai-chat:llama3:8b", "--json")
        assert_clear(done, 0, "Agent: ralph-agent with openai-chat:llama3:8b\n")
        (started,) = (fact for fact in done.objects if fact["type"] == "started")
        assert (started["agent"], started["model"]) == ("ralph-agent", "openai-chat:llama3:8b")
        assert "authorization" not in local.main_calls()[0]["headers"]


def test_its_tokens_are_money_and_a_limit_of_it_holds(model: ScriptedModel, run: Run) -> None:
    spent = {"usage": {"input": 1_000_000, "output": 100_000}}
    model.server.script = type(model.server.script)([{**spent, "text": "Not yet."}])
    done = run("-m", "5", "--max-cost", "2.50", "--json")
    assert done.code == 1, done.err
    (ended,) = (fact["turn"] for fact in done.objects if fact["type"] == "ended")
    prices = Prices(2.0, 10.0)
    assert ended["cost_usd"] == prices.input + prices.output / 10


@pytest.mark.parametrize(
    ("words", "guard", "line", "told"),
    [
        ((), {}, "Guard: on for shell commands.", None),
        ((), {"level": "strict"}, "Guard: on for shell commands (strict).", None),
        (("--no-guard",), {}, "Guard: off (--no-guard).", "0"),
        ((), {"enabled": False}, "Guard: off (guard.enabled).", "0"),
    ],
)
def test_the_line_about_the_guard_is_true(
    model: ScriptedModel,
    run: Run,
    workspace: Path,
    words: tuple[str, ...],
    guard: dict[str, Any],
    line: str,
    told: str | None,
) -> None:
    """ADR 25: the agent asks it by itself."""
    settings(workspace, guard=guard)
    says(model, LEAVES)
    done = run(*words)
    assert_clear(done, 0, f"Sandbox: none (in place). {line}")
    place = workspace / "told"
    assert (place.read_text().strip() if place.exists() else None) == told
    answer = str(model.main_calls()[1]["body"]["messages"])
    assert ("guard: refused (persistence)" in answer) is (told is None)


@pytest.mark.parametrize(("level", "refused"), [("standard", False), ("strict", True)])
def test_a_strict_guard_reaches_it(
    model: ScriptedModel, run: Run, repo: Path, level: str, refused: bool
) -> None:
    """At `standard` local history is free, since the run has kept what there was (ADR 25)."""
    settings(repo, guard={"level": level})
    says(model, "git commit -q --amend --allow-empty -m other")
    assert_clear(run(), 0)
    assert ("guard: refused" in str(model.main_calls()[1]["body"])) is refused


@IN_OVERLAY
def test_a_sandbox_contains_it_and_lets_it_call_its_model_alone(
    model: ScriptedModel, run: Run, workspace: Path
) -> None:
    """The guard is not asked then; work lands, and nothing at home is written."""
    says(model, LEAVES, "echo x > ~/outside; curl -s -m 5 http://ralph.invalid/ || true")
    done = run("--sandbox", "overlay")
    assert_clear(done, 0, "network: " + model.url.removeprefix("http://"), "ralph.invalid")
    assert "Guard: on" not in done.err
    assert (workspace / "told").read_text() == "0\n"
    assert not Path("~/outside").expanduser().exists()
