"""Exports of runs of the real CLIs, judged by whoever reads them: Harbor's own validator, and
OpenTelemetry's messages by protobuf. Both are installed by tools/validators."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents.conftest import IN_CI
from agents.real_agents import DONE, PATIENCE, World
from agents.test_agents_loop import DONE as PROMISED
from agents.test_agents_loop import SESSION, types
from agents.test_agents_plugin import install
from kits.export import traces, trajectories
from kits.export.exported import write_all
from kits.export.stored import Stored, captures

pytestmark = pytest.mark.agents

# Ids are hexadecimal in OTLP/JSON, and base64 in all other JSON of protobuf.
BY_PROTOBUF = """
import base64, json, sys
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

def in_base64(value):
    if isinstance(value, list):
        return [in_base64(each) for each in value]
    if isinstance(value, dict):
        ids = {"traceId", "spanId", "parentSpanId"}
        return {
            name: base64.b64encode(bytes.fromhex(it)).decode() if name in ids else in_base64(it)
            for name, it in value.items()
        }
    return value

with open(sys.argv[1]) as file:
    found = ParseDict(in_base64(json.load(file)), ExportTraceServiceRequest())
print(sum(len(s.spans) for r in found.resource_spans for s in r.scope_spans))
"""


@pytest.fixture(scope="session")
def validators() -> str:
    """The directory with what judges exports; without it the tests are skipped, but not in CI."""
    if directory := os.environ.get("RALPH_VALIDATORS"):
        return directory
    missing = "RALPH_VALIDATORS is not set: exports are judged with `make test-agents`"
    if IN_CI:
        pytest.fail(missing)
    pytest.skip(missing)


def judged(validators: str, *words: str) -> "subprocess.CompletedProcess[str]":
    environ = {"PYTHONPATH": validators, "PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    return subprocess.run(
        (sys.executable, *words),
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


def exported(world: World, place: Path, *which: str) -> tuple[Path, Path]:
    """A trajectory and a trace by the command."""
    atif, otlp = place / "run.atif", place / "run.otlp"
    for path in (atif, otlp):
        words = ("-m", "ralph", "export", *which, "--format", path.suffix[1:], "-o", str(path))
        environ = world.environment()
        subprocess.run((sys.executable, *words), cwd=world.repo, env=environ, check=True)
    return atif, otlp


def assert_accepted(validators: str, atif: Path, otlp: Path) -> None:
    done = judged(validators, "-m", "harbor.utils.trajectory_validator", str(atif))
    assert done.returncode == 0, done.stderr
    spans = len(traces.request(otlp.read_text()).spans)
    done = judged(validators, "-c", BY_PROTOBUF, str(otlp))
    assert done.stdout == f"{spans}\n", done.stderr


def test_a_run_of_a_real_agent(world: World, validators: str, tmp_path: Path) -> None:
    world.plays(world.shell("echo hello > hello.txt"), {"text": DONE})
    run = world.run("-m", "1")
    assert run.code == 0, run.err
    files = exported(world, tmp_path)
    assert_accepted(validators, *files)
    found = trajectories.trajectory(files[0].read_text())
    calls = [call for step in found.of("agent") for call in step.tool_calls or ()]
    assert ["echo hello > hello.txt" in json.dumps(call.arguments) for call in calls] == [True]
    assert trajectories.sums(found)[0] > 0


@pytest.mark.parametrize("kind", ["claude"])
def test_a_loop_in_a_real_session(world: World, validators: str, tmp_path: Path) -> None:
    install(world)
    world.plays({"text": "Well."}, world.shell("echo hello > hello.txt"), PROMISED)
    types(world, "/ralph:ralph-loop Write hello.txt")
    files = exported(world, tmp_path, SESSION[:8])
    assert_accepted(validators, *files)
    found = trajectories.trajectory(files[0].read_text())
    assert [step.message for step in found.of("agent")] == ["Well.", "", PROMISED["text"]]
    assert found.extra
    assert (found.extra["reason"], found.extra["gaps"]) == ("completed", [])
    assert trajectories.sums(found)[0] > 0


def test_every_capture_and_what_is_wrong(validators: str, tmp_path: Path) -> None:
    """One run of all captured turns of all agents."""
    stored = Stored(tmp_path).begin()
    for agent in ("claude", "codex", "gemini", "opencode", "ralph-agent"):
        for capture in captures(agent):
            stored.turn(agent, capture.read_bytes())
    atif, otlp = write_all(stored.end(), tmp_path)
    assert_accepted(validators, atif, otlp)
    atif.write_text(atif.read_text().replace('"step_id":2,', '"step_id":7,'))
    done = judged(validators, "-m", "harbor.utils.trajectory_validator", str(atif))
    assert "expected 2 (sequential from 1), got 7" in done.stderr
