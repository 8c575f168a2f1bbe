"""The real srt passes the conformance kit for sandboxes, every check of it."""

import os
import shutil
from collections.abc import Callable

import pytest

from agents.conftest import IN_CI, NODE
from kits.sandbox.kit import CHECKS, tried
from kits.sandbox.stage import Stage, overlay_is_usable

pytestmark = pytest.mark.agents
OVERLAYS = {"throws_home_away", "reaches_a_port", "tells_whom_it_refused"}
NEEDED = ("bwrap", "socat", "rg")  # what srt itself calls


@pytest.fixture
def with_srt(agents_bin: str) -> dict[str, str]:
    """An environment with srt; what it stands on must be here in CI."""
    node = [os.path.dirname(NODE)] if NODE else []
    path = os.pathsep.join([agents_bin, os.environ["PATH"], *node])
    missing = [name for name in NEEDED if shutil.which(name, path=path) is None]
    if missing:
        told = f"srt needs {', '.join(missing)}: apt-get install bubblewrap socat ripgrep"
        pytest.fail(told) if IN_CI else pytest.skip(told)
    if not overlay_is_usable():
        pytest.skip("this machine allows no namespaces")
    return {**os.environ, "PATH": path}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_real_srt_passes(with_srt: dict[str, str], check: Callable[[Stage], None]) -> None:
    """A live probe, contain, rollback and egress, as the fake has them."""
    outcome = tried("srt", check, with_srt)
    expected = "not applicable" if check.__name__ in OVERLAYS else "passed"
    assert outcome.state == expected, outcome.why
