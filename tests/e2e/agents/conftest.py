"""Worlds for the real CLIs. `make test-agents` installs them and says where they are."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.clis import CLIS, OWN
from agents.real_agents import World
from ralph.testing.scripted_model.server import ScriptedModel

NODE = shutil.which("node")  # asked before the guard makes PATH quiet
IN_CI = os.environ.get("CI") == "true"


@pytest.fixture(scope="session")
def agents_bin() -> str:
    """The directories with the real CLIs; without them the tests are skipped, but not in CI."""
    directory = os.environ.get("RALPH_AGENTS_BIN")
    if directory:
        return directory
    missing = "RALPH_AGENTS_BIN is not set: the real agents run with `make test-agents`"
    if IN_CI:
        pytest.fail(missing)
    pytest.skip(missing)


@pytest.fixture(params=sorted(CLIS))
def kind(request: pytest.FixtureRequest) -> str:
    """The agents every test runs with, unless it names its own."""
    return str(request.param)


@pytest.fixture
def world(kind: str, request: pytest.FixtureRequest, tmp_path: Path, repo: Path) -> Iterator[World]:
    """A repository, a model and a real agent. Whatever a run leaves behind fails the test."""
    node = [os.path.dirname(NODE)] if NODE else []
    installed = [] if kind == OWN else [request.getfixturevalue("agents_bin"), *node]
    path = os.pathsep.join([*installed, os.environ["PATH"]])
    with ScriptedModel([]) as model:
        world = World(kind, tmp_path, repo, path, model)
        world.configure()
        yield world
        left = world.sweep()
        for process in world.started:
            process.wait()
    assert not left, f"still running after the test: {left}"
