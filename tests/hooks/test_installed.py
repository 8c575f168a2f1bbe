"""A hook in an agent's settings runs where no other of its kind does (ADR 29)."""

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hook_support import begin, event

from ralph.hooks.installed import main
from ralph.hosts.hosts import installed
from ralph.hosts.plugin_state import plugin_is_on
from ralph.hosts.protocol import HOOKS

Json = dict[str, Any]
ON: Json = {"enabledPlugins": {"ralph@ralph": True}}
OFF: Json = {"enabledPlugins": {"ralph@ralph": False}}
OTHER: Json = {"enabledPlugins": {"ralph@theirs": True}}
THERE: Json = {"plugins": {"ralph@ralph": [{"installPath": "/x"}]}}


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def stop(project: Path, agent: str = "claude", **environ: str) -> str:
    """What the installed command answers to a stop, run as a host does."""
    done = subprocess.run(
        ["sh", "-c", installed(agent, "stop")],
        input=json.dumps(event(project)).encode(),
        cwd=project,
        env={**os.environ, **environ},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


@pytest.fixture
def unfinished(repo: Path) -> Path:
    """A run's project with something that is not committed."""
    begin(repo)
    (repo / "new").write_text("x")
    return repo


@pytest.mark.parametrize(
    ("agent", "environ", "held"),
    [
        ("claude", {}, True),
        ("codex", {}, True),
        ("claude", {"RALPH_HOOKS": "pre-tool"}, True),
        ("claude", {"RALPH_HOOKS": "pre-tool,stop"}, False),
        ("gemini", {"RALPH_HOOKS": "stop"}, False),
    ],
)
def test_a_run_that_brings_the_hook_has_it_alone(
    unfinished: Path, agent: str, environ: dict[str, str], held: bool
) -> None:
    """ "Installed beside … `prd run`: each hook runs once"."""
    assert ("uncommitted changes: new" in stop(unfinished, agent, **environ)) is held


@pytest.mark.parametrize(
    ("users", "projects", "local", "plugins", "on"),
    [
        (None, None, None, None, False),
        (ON, None, None, THERE, True),
        (ON, None, None, None, False),  # wanted, and not there
        (OFF, None, None, THERE, False),
        (OTHER, None, None, THERE, False),
        (ON, OFF, None, THERE, False),  # the project has the last word
        (OFF, OFF, ON, THERE, True),
        (None, ON, None, THERE, True),
        (None, {"model": "opus"}, None, THERE, False),
        ("{", ON, None, THERE, True),
        ("[]", None, None, THERE, False),
        ({"enabledPlugins": ["ralph@ralph"]}, None, None, THERE, False),
        (ON, None, None, "ralph@ralph", False),
    ],
)
def test_whether_the_plugin_is_on(
    workspace: Path, users: object, projects: object, local: object, plugins: object, on: bool
) -> None:
    home = Path(os.environ["HOME"]) / ".claude"
    places = {
        home / "settings.json": users,
        home / "plugins" / "installed_plugins.json": plugins,
        workspace / ".claude" / "settings.json": projects,
        workspace / ".claude" / "settings.local.json": local,
    }
    for path, content in places.items():
        if content is not None:
            write(path, content)
    assert plugin_is_on({**os.environ, "CLAUDE_PROJECT_DIR": str(workspace)}) is on


@pytest.mark.parametrize(("agent", "held"), [("claude", False), ("codex", True)])
def test_beside_the_plugin_only_the_plugin_runs(unfinished: Path, agent: str, held: bool) -> None:
    """ "Installed beside the plugin …: each hook runs once"."""
    home = Path(os.environ["HOME"]) / ".claude"
    write(home / "settings.json", ON)
    write(home / "plugins" / "installed_plugins.json", THERE)
    assert ("uncommitted changes: new" in stop(unfinished, agent)) is held


def test_nobody_at_home_and_a_pipe_are_no_plugin(workspace: Path) -> None:
    (workspace / ".claude").mkdir()
    os.mkfifo(workspace / ".claude" / "settings.json")
    assert not plugin_is_on({"CLAUDE_PROJECT_DIR": str(workspace)})


def test_a_hook_that_is_not_there_lets_go(capfd: pytest.CaptureFixture[str]) -> None:
    assert main("codex", "no-such") == 0
    assert "[ralph] the hook did not run" in capfd.readouterr().err


@pytest.mark.parametrize("name", list(HOOKS))
def test_the_command_is_absolute_and_isolated(name: str) -> None:
    words = shlex.split(installed("claude", name))
    assert os.path.isabs(words[0])
    assert words[1:4] == ["-I", "-S", "-c"]
    assert "ralph.hooks.installed" in words[4]
