"""Real agents whose model fails: errors are fed back, limits are waited for, refusals end it."""

import signal
import time

import pytest

from agents.clis import OWN, Json
from agents.real_agents import DONE, World

pytestmark = pytest.mark.agents

LIMITED = {"error": {"status": 429, "type": "rate_limit_error", "message": "slow down"}}
OVERLOADED = {"error": {"status": 529, "type": "overloaded_error", "message": "Overloaded"}}
REFUSED = {"error": {"status": 401, "type": "authentication_error", "message": "invalid key"}}
# opencode tries for a minute unless it is told when to come back; gemini is never told.
unstated = pytest.mark.parametrize("kind", ["claude", "codex", "gemini"])
stated = pytest.mark.parametrize("kind", ["claude", "codex", "opencode", OWN])


def broken() -> Json:
    """A model that never works; a 5xx might pass."""
    return {"error": {"status": 400, "type": "api_error", "message": "boom"}}


def test_a_model_that_always_fails_ends_the_run(world: World) -> None:
    """ADR 5: failures are fed back and counted; §3: `failAfter` 3."""
    world.plays({**broken(), "times": -1})
    run = world.run("-m", "9")
    assert run.code == 5, run.err
    assert run.verdicts == ["continue", "continue", "stop"]
    assert all(turn["exit_code"] and turn["failure"] for turn in run.turns)
    assert len(world.model.main_calls()) == 3
    assert "The previous iteration failed" not in world.asked(0)
    assert f"The previous iteration failed: {run.turns[0]['failure']['message']}" in world.asked(-1)


def test_a_model_that_failed_once_is_forgiven(world: World) -> None:
    """ADR 5: a failed turn is fed back, and the next one may succeed."""
    world.plays(broken(), {"text": DONE})
    run = world.run("-m", "9")
    assert run.code == 0, run.err
    assert run.verdicts == ["continue", "accept"]
    assert run.stop["iterations"] == 2


@pytest.mark.parametrize(
    ("kind", "failure", "words"),
    [
        ("claude", LIMITED, "Rate limited"),
        ("codex", LIMITED, "Rate limited"),
        ("gemini", LIMITED, "Rate limited"),
        ("claude", OVERLOADED, "Provider not available"),
        ("codex", OVERLOADED, "Provider not available"),
    ],
)
def test_a_provider_is_waited_for(world: World, failure: Json, words: str) -> None:
    """ADR 11: 30 s where no reset is stated; §4.8: a signal during a wait stops at once."""
    world.plays({**failure, "times": -1})
    process = world.start("-m", "1")
    world.until(lambda: words in world.said(), "it waits")
    process.send_signal(signal.SIGINT)
    run = world.finish(process)
    assert run.code == 130, run.err
    assert run.verdicts == ["wait"]
    (closing,) = run.closings
    assert closing["verdict"]["until"] >= closing["time"] + 25
    assert run.stop["time"] < closing["verdict"]["until"]


@unstated
def test_patience_with_rate_limits_is_bounded(world: World) -> None:
    """ADR 1: `--max-wait` bounds it; exit 1, waiting used up."""
    world.plays({**LIMITED, "times": -1})
    run = world.run("-m", "9", "--max-wait", "1s")
    assert run.code == 1, run.err
    assert run.verdicts == ["stop"]
    assert "waiting used up (1.0s)" in run.err


@stated
def test_a_stated_reset_is_waited_for_and_the_iteration_is_taken_again(world: World) -> None:
    """ADR 11: to the stated reset; a Wait counts no iteration, so one is enough here."""
    reset = int(time.time()) + 6
    world.configure(agent={"env": {"set": subscription(world)}})
    world.plays(limited_until(world.kind, reset), {"text": DONE})
    run = world.run("-m", "1")
    assert run.code == 0, run.err
    assert run.verdicts == ["wait", "accept"]
    first, second = run.facts("began")
    assert (first["iteration"], second["iteration"], run.stop["iterations"]) == (1, 1, 1)
    wait = run.closings[0]
    until = reset if world.kind == "claude" else wait["time"] + 1
    assert wait["verdict"]["until"] == pytest.approx(until, abs=0.5)
    assert second["time"] >= wait["verdict"]["until"]


def subscription(world: World) -> dict[str, str]:
    """Claude is told of a reset only if a subscription pays."""
    login = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "dummy"}
    return {**world.cli.env(world.model.url), **(login if world.kind == "claude" else {})}


def limited_until(kind: str, reset: int) -> Json:
    """How each service says when to come back: in headers, to codex in words."""
    if kind == "codex":
        words = "Rate limit reached. Please try again in 1s."
        return {"stream_error": {"type": "rate_limit_exceeded", "message": words}, "times": 2}
    if kind in ("opencode", OWN):
        return {"error": {**LIMITED["error"], "headers": {"retry-after": "1"}}, "times": 6}
    name = "anthropic-ratelimit-unified"
    headers = {f"{name}-status": "rejected", f"{name}-reset": str(reset)}
    return {"error": {**LIMITED["error"], "headers": headers}}


def test_a_refused_credential_ends_the_run(world: World) -> None:
    """ADR 1: a structured 401 ends the run (2)."""
    world.plays({**REFUSED, "times": -1})
    run = world.run("-m", "9")
    assert run.code == 2, run.err
    assert run.stop["reason"] == "config"
    assert "the agent's credential was refused" in run.err
    assert len(run.turns) == 1
