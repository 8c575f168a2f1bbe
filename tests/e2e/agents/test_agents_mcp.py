"""`ralph mcp` with those who will use it: the official clients of both eras, and Claude Code."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from run_support import is_alive, program

from agents.clis import Json, write_json
from agents.real_agents import DONE, PATIENCE, World
from agents.test_agents_plugin_install import ralph
from ralph.mcp.protocol import LEGACY, MODERN
from ralph.mcp.tools import TOOLS
from ralph.testing.scripted_model.script import Script

pytestmark = pytest.mark.agents

PROGRAM = Path(__file__).with_name("mcp_program.py")
COMMAND = [sys.executable, "-m", "ralph"]
NAMES = [tool.name for tool in TOOLS]
WAITS = 'until [ -e go ]; do sleep 0.05; done; echo "<response>DONE</response>"'
# The first task asks; the second lasts until that was answered.
ASKS = """
case "$*" in
*"Pick a database"*"Use SQLite"*) echo sqlite > database ;;
*"Pick a database"*) echo "<promise>DECIDE: sqlite or postgres?</promise>"; exit ;;
*) until grep -q "Use SQLite" .ralph/tasks.jsonl; do sleep 0.05; done; echo it > docs ;;
esac
echo "<promise>COMPLETE</promise>"
"""


@pytest.fixture(scope="session")
def sdks() -> dict[str, str]:
    """The directories of the official clients, by their first number."""
    there = os.environ.get("RALPH_MCP_CLIENTS")
    if not there:
        missing = "RALPH_MCP_CLIENTS is not set: the clients run with `make test-agents`"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)
    return dict(zip("12", there.split(os.pathsep), strict=True))


@pytest.mark.parametrize(
    ("mode", "version"),
    [("1.x", LEGACY[0]), ("legacy", LEGACY[0]), ("auto", MODERN[0]), (MODERN[0], MODERN[0])],
)
def test_an_official_client_steers_a_run(
    workspace: Path, sdks: dict[str, str], mode: str, version: str
) -> None:
    settings = {"agent": {"command": program(workspace.parent / "agent", WAITS)}}
    write_json(workspace / ".ralph" / "settings.json", settings)
    kept = {name: os.environ[name] for name in ("HOME", "PATH", "RALPH_STATE_DIR")}
    words = [*map(json.dumps, (COMMAND, str(workspace), kept))]
    done = subprocess.run(
        [sys.executable, PROGRAM, mode, *words],
        env={**os.environ, "PYTHONPATH": sdks["1" if mode == "1.x" else "2"]},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen: Json = json.loads(done.stdout)
    assert (seen["version"], seen["tools"]) == (version, NAMES)
    assert seen["status"]["data"]["state"] == "running"
    assert seen["given_up"]
    assert seen["first"]  # a status, and news, before the end of a wait that had begun before
    run, waited = seen["begun"]["data"]["run"], seen["waited"]
    assert (waited["returned"], waited["state"], waited["run"]) == ("ended", "completed", run)
    assert any("Completed" in line for line in seen["log"]["data"]["lines"])
    assert run in seen["report"]["data"]["markdown"]
    assert seen["wrong"]["failed"]
    assert "outside" in seen["wrong"]["text"]
    assert "Unknown tool" in seen["unknown"]


CALLS: dict[str, Callable[[str], Json]] = {  # how the model of each agent names a tool of a server
    "claude": lambda name: {"name": f"mcp__ralph__{name}"},
    "codex": lambda name: {"name": name, "namespace": "mcp__ralph"},
    "gemini": lambda name: {"name": f"mcp_ralph_{name}"},
}


def tool(name: str, agent: str = "claude", **wish: Any) -> Json:  # noqa: ANN401
    return {"tools": [{**CALLS[agent](name), "input": wish}]}


def on_path(world: World) -> None:
    """Put `ralph` on PATH, for what is registered for everybody."""
    (world.root / "bin").mkdir()
    program(world.root / "bin" / "ralph", f'exec "{sys.executable}" -m ralph "$@"')
    world.path = f"{world.root / 'bin'}{os.pathsep}{world.path}"


def session(world: World, *turns: Json, prompt: str = "Work through the tasks.") -> list[Json]:
    """A session of the real Claude Code in which the model calls these tools; what they told."""
    world.model.server.script = Script(list(turns), {})
    words = ("--output-format", "stream-json", "--verbose", world.cli.autonomy)
    done = subprocess.run(
        ["claude", "-p", prompt, *words],
        cwd=world.repo,
        env={**world.environment(), **world.cli.env(world.model.url)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    begun = next(line for line in lines if line.get("subtype") == "init")  # hooks may come before
    assert {"name": "ralph", "status": "connected"} in begun["mcp_servers"]
    said = [part for line in lines if line["type"] == "user" for part in line["message"]["content"]]
    told = [part for part in said if part["type"] == "tool_result"]
    assert not any(part.get("is_error") for part in told), told
    return [json.loads(part["content"]) for part in told]


def prepare(world: World, script: str, *scope: str) -> None:
    """A project whose runs have a shell script for an agent, registered with Claude Code."""
    settings = {"agent": {"command": program(world.root / "agent", script)}, "sandbox": "direct"}
    write_json(world.repo / ".ralph" / "settings.json", settings)
    ralph(world, "plugin", "install", "--mcp", *scope)
    world.git("add", "--all")
    world.git("commit", "-qm", "Begin")


@pytest.mark.parametrize("kind", ["claude"])
@pytest.mark.parametrize("scope", ["--project", "--shared"])
def test_a_session_starts_a_run_answers_its_question_and_sees_it_end(
    world: World, scope: str
) -> None:
    """The whole of it: the real CLI, registered by `ralph plugin install --mcp`."""
    on_path(world)
    prepare(world, ASKS, scope)
    for title in ("Pick a database", "Write the docs"):
        ralph(world, "tasks", "add", title)
    begun, asks, questions, answered, ended, report = session(
        world,
        tool("start", loop="tasks"),
        tool("wait", seconds=60),
        tool("questions"),
        tool("answer", task="T-001", text="Use SQLite."),
        tool("wait", seconds=60),
        tool("report"),
        {"text": "It is done."},
    )
    assert (asks["returned"], asks["asks"], asks["run"]) == ("question", ["T-001"], begun["run"])
    assert questions["questions"][0]["question"] == "sqlite or postgres?"
    assert answered["told"].startswith("T-001 is pending again")
    assert (ended["returned"], ended["state"]) == ("ended", "completed")
    assert "2 tasks done" in report["markdown"]
    assert (world.repo / "database").read_text() == "sqlite\n"


@pytest.mark.parametrize("kind", ["claude"])
def test_a_run_outlives_the_session(world: World) -> None:
    prepare(world, WAITS)
    (begun,) = session(world, tool("start", prompt="Do it"), {"text": "It goes on."})
    assert is_alive(begun["pid"])
    (world.repo / "go").touch()
    (waited,) = session(world, tool("wait", seconds=60), {"text": "It has ended."})
    assert (waited["state"], waited["run"]) == ("completed", begun["run"])


@pytest.mark.parametrize("kind", sorted(CALLS))
def test_an_agent_within_a_run_may_look_and_starts_none(world: World) -> None:
    """Each of them hands on another part of its environment; the run knows its own by descent."""
    on_path(world)
    if world.kind == "codex":
        state = world.environment()["RALPH_STATE_DIR"]
        add = ("codex", "mcp", "add", "ralph", "--env", f"RALPH_STATE_DIR={state}", "--")
        subprocess.run([*add, "ralph", "mcp"], env=world.environment(), check=True)
    else:
        env = {**world.cli.env(world.model.url), "GEMINI_CLI_TRUST_WORKSPACE": "true"}
        world.configure(agent={"env": {"set": env}})
        ralph(world, "plugin", "install", "--agent", world.kind, "--mcp", "--shared")
    world.plays(
        tool("start", world.kind, prompt="Mine."), tool("status", world.kind), {"text": DONE}
    )
    run = world.run("-m", "1")
    assert run.code == 0, run.err
    assert "an agent may not start a run" in world.asked(1)
    assert run.facts("started")[0]["run"] in world.asked(2)
    assert len(list((world.root / "ralph_state_dir").glob("*/runs/*/journal.jsonl"))) == 1
