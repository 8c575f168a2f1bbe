"""`make faults` can fail: it finds whoever is left, and believes no kill that it has not seen."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from faults.kills import Kill, kill
from faults.places import UID, Installation, make_installation, users
from faults.processes import marked
from faults.routes import ROUTES, Route, cut, unfinished
from faults.runs import Ralph

pytestmark = pytest.mark.faults

TESTS = Path(__file__).resolve().parent.parent
ME = users({})[0]
CTRL_C = next(route for route in ROUTES if route.name == "Ctrl+C")
SWEEPS_NOT = "sweep = lambda *_, **__: ()"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
MAIN = 'if __name__ == "__main__":'


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    with make_installation() as made:
        yield made


@pytest.fixture(scope="module")
def careless() -> Iterator[Installation]:
    """A ralph whose keeper does not sweep, and that does not do so itself either."""
    with make_installation() as made:
        keeper = made.root / "packages" / "ralph" / "processes" / "keeper_main.py"
        text = keeper.read_text("utf-8")
        assert text.count(MAIN) == 1
        keeper.write_text(text.replace(MAIN, f"{SWEEPS_NOT}\n{MAIN}"), "utf-8")
        yield made


def killed(installation: Installation, route: Route) -> Kill:
    found = kill(Ralph(installation, ME, sys.executable), route)
    if found.kept is not None:
        shutil.rmtree(found.kept)
    return found


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_whoever_is_left_is_found(route: Route, careless: Installation) -> None:
    assert killed(careless, route).survivors > 0


@pytest.mark.parametrize(
    ("route", "told"),
    [
        (replace(CTRL_C, code=1), "exit code 130, not 1"),
        (replace(CTRL_C, objection=cut("timed out after 1.0s")), "not by 'timed out after 1.0s'"),
        (replace(CTRL_C, objection=unfinished), "the journal ends with Settled"),
    ],
)
def test_a_kill_by_another_route_does_not_count(
    route: Route, told: str, installation: Installation
) -> None:
    assert told in killed(installation, route).wrong


# ------------------------------------------------------------------ the command


def start(scratch: Path, *words: str, **env: str) -> "subprocess.Popen[str]":
    given = {**os.environ, "PYTHONPATH": str(TESTS), "TMPDIR": str(scratch), **env}
    argv = [sys.executable, "-m", "faults", *words]
    return subprocess.Popen(
        argv, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize(
    ("words", "env", "told"),
    [
        (("--kills", "0"), {}, "one at least"),
        (("--jobs", "many"), {}, "one at least"),
        (("--route", "nothing"), {}, "invalid choice"),
        (("--user", "nobody"), {}, "invalid choice"),
        ((), {"PATH": "/nowhere"}, "cc is missing"),
        pytest.param(("--user", "ordinary"), {}, "ordinary cannot run ralph in", marks=needs_root),
    ],
)
def test_bad_input_is_told(
    words: tuple[str, ...], env: dict[str, str], told: str, tmp_path: Path
) -> None:
    """Also that an ordinary user cannot enter the directory that a test has."""
    with start(tmp_path, *words, **env) as driver:
        _, err = driver.communicate()
    assert driver.returncode == 2, err
    assert told in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@needs_root
@pytest.mark.parametrize("number", ["", "0", "-1", "me", "4294967295"])
def test_an_ordinary_user_has_a_number(number: str, tmp_path: Path) -> None:
    with start(tmp_path, **{UID: number}) as driver:
        _, err = driver.communicate()
    assert driver.returncode == 2
    assert "write the number of an ordinary user" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    """Every run that is under way is ended, whatever its state."""
    with start(tmp_path, "--user", ME.name, "--jobs", "4") as driver:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("*/run-*/stdout")):
            assert driver.poll() is None, "it ended too soon"
            assert time.monotonic() < deadline, "it never began"
            time.sleep(0.01)
        driver.send_signal(number)
        _, err = driver.communicate(timeout=60)
    assert driver.returncode == 130, err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []
    assert marked(tmp_path) == []
