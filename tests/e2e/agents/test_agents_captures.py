"""The captured streams that other tests stand on are still what the real CLIs print."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.clis import CLIS, Json, own_env
from agents.real_agents import PATIENCE, World
from ralph.agents.streams.dialects import parser_for
from ralph.testing.scripted_model.script import Script

pytestmark = pytest.mark.agents

CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures"
CASES = {
    "claude": (
        *("success", "tool-error", "permission-denied", "max-budget", "empty-answer"),
        *("api-401", "api-429-ratelimit", "api-500", "stream-cut"),
    ),
    "codex": (
        *("success-bypass", "tool-error"),
        *("api-401", "api-429-quota", "api-429-ratelimit", "api-500", "stream-cut"),
    ),
    "gemini": ("success", "trivial", "api-400", "api-401", "api-429-given-up"),
    "opencode": ("success", "trivial", "api-400", "api-429"),
    "ralph-agent": (
        *("success", "success-openai", "success-chat", "success-google", "tool-error", "refused"),
        *("question", "api-401", "api-429", "api-429-reset", "api-529-passed", "stream-cut"),
        *("model-refusal", "empty-answer"),
    ),
}


@pytest.mark.parametrize(("kind", "case"), [(kind, case) for kind in CLIS for case in CASES[kind]])
def test_a_stream_has_not_drifted(world: World, case: str) -> None:
    """The same script gives the same lines, the same events and the same exit code."""
    captured = json.loads((CAPTURES / world.kind / f"{case}.json").read_text())
    before = (CAPTURES / world.kind / f"{case}.ndjson").read_bytes()
    world.model.server.script = Script(captured["script"], {"CWD": str(world.repo)})
    done = call(world, captured["argv"])
    assert done.returncode == captured["rc"]
    # On a busy machine a tool's result may overtake the next block of the message that called it.
    assert sorted(lines(done.stdout)) == sorted(lines(before))
    assert sorted(events(world.kind, done.stdout)) == sorted(events(world.kind, before))


def call(world: World, captured: list[str]) -> "subprocess.CompletedProcess[bytes]":
    """Call the CLI as it was called for the capture, with our model in its place."""
    url = world.model.url
    argv = [re.sub(r"http://127\.0\.0\.1:\d+", url, word) for word in captured]
    env = {**world.environment(), **world.cli.env(url)}
    if argv[0] == "ralph":
        argv[:1] = [sys.executable, "-m", "ralph"]
        env |= own_env(url)
    return subprocess.run(
        argv,
        cwd=world.repo,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )


def lines(stream: bytes) -> list[list[str]]:
    """The fields of each line and of the item or message in it, and the kinds they are of."""
    return [[*fields(line)] for line in map(json.loads, stream.splitlines())]


def fields(value: Json, inside: str = "") -> Iterator[str]:
    for name in sorted(value):
        yield f"{inside}{name}={value[name]}" if name in ("type", "subtype") else inside + name
        if name in ("item", "message") and isinstance(value[name], dict):
            yield from fields(value[name], f"{name}.")


def events(kind: str, stream: bytes) -> list[str]:
    """What Ralph understands of it, in a word each."""
    parser = parser_for(kind)
    return [type(event).__name__ for event in (*parser.feed(stream), *parser.end())]
