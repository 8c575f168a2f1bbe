"""The real srt passes the conformance kit for sandboxes, every check of it."""

import os
import shutil
from collections.abc import Callable

import pytest

from agents.conftest import IN_CI, NODE
from ralph.adapters.sandbox import overlay
from ralph.adapters.sandbox.interface import Policy
from ralph.testing.sandbox_kit import CHECKS, tried
from ralph.testing.sandbox_stage import Stage

pytestmark = pytest.mark.agents
NEEDED = ("bwrap", "socat", "rg")  # what srt itself calls


def can_make_namespaces() -> bool:
    state = os.path.realpath("/tmp")
    return overlay.probe(state, Policy(dict(os.environ), state)).usable


@pytest.fixture
def with_srt(agents_bin: str) -> dict[str, str]:
    """An environment with srt; what it stands on must be here in CI."""
    node = [os.path.dirname(NODE)] if NODE else []
    path = os.pathsep.join([agents_bin, os.environ["PATH"], *node])
    missing = [name for name in NEEDED if shutil.which(name, path=path) is None]
    if missing:
        told = f"srt needs {', '.join(missing)}: apt-get install bubblewrap socat ripgrep"
        pytest.fail(told) if IN_CI else pytest.skip(told)
    if not can_make_namespaces():
        pytest.skip("this machine allows no namespaces")
    return {**os.environ, "PATH": path}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_real_srt_passes(with_srt: dict[str, str], check: Callable[[Stage], None]) -> None:
    """A live probe, contain, rollback and egress, as the fake has them."""
    outcome = tried("srt", check, with_srt)
    assert outcome.state == "passed", outcome.why
