"""Whatever is killed or cut off in a fleet at work, each task lands once, by one agent at a time,
and nothing is left (ADR 49). The long version is `make faults`."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.fleet.rounds import CUT, Outcome, played
from faults.fleet.stage import Stage, install, staged
from kits.machines.checking import lives, overlaps
from kits.machines.network import ROOT, UnableError, await_that

TESTS = ROOT / "tests"
# A machine that takes every lease for a long one, and does not say so.
CARELESS = {
    "fleet/lease.py": ("until = stamp + seconds", "until = stamp + 600.0"),
    "fleet/machine/relay.py": ("max(0.0, self.held.until - now)", "0.0"),
}


def outcome_of(tmp_path: Path, seed: int, *routes: str, tasks: int) -> Outcome:
    root, packages = tmp_path / "machines", tmp_path / "packages"
    root.mkdir()
    packages.mkdir()
    try:
        return played(root, install(packages), seed, routes, tasks)
    except UnableError as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "routes"), [(1, ("worker", "coordinator")), (2, ("scheduler", CUT))]
)
def test_each_task_lands_once_and_nothing_is_left(
    seed: int, routes: tuple[str, ...], tmp_path: Path
) -> None:
    found = outcome_of(tmp_path, seed, *routes, tasks=5)
    assert found.wrong == []
    assert sum(found.done.values()) == len(routes), "the run was over too soon"


# ------------------------------------------------------------------ it can fail


@pytest.fixture
def careless(tmp_path: Path) -> Iterator[Stage]:
    """A fleet whose machines do not end an agent when its lease is over."""
    root, packages = tmp_path / "machines", tmp_path / "packages"
    root.mkdir()
    packages.mkdir()
    try:
        with staged(root, 1, install(packages, CARELESS)) as stage:
            yield stage
    except UnableError as error:
        pytest.skip(str(error))


@pytest.mark.faults
def test_an_agent_that_outlives_its_lease_is_noticed(careless: Stage) -> None:
    (careless.machines.shared / "pace").write_text("300 300", "ascii")
    careless.start_scheduler()
    careless.start_worker(careless.third)
    careless.start_run()
    await_that(lambda: lives(careless.life.lines()), "an agent begins", 60)
    careless.start_worker(careless.second)
    careless.machines.cut(careless.third)
    await_that(lambda: overlaps(lives(careless.life.lines())), "another begins", 150)
    assert any("two agents were alive" in each for each in careless.wrong())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--kills", "-1"), "less than 0"),
        (("--jobs", "0"), "not 0"),
        (("--route", "nobody"), "invalid choice"),
        (("--cuts", "many"), "invalid int value"),
    ],
)
def test_bad_input_is_told(words: tuple[str, ...], told: str) -> None:
    env = {"PYTHONPATH": f"{TESTS / 'e2e'}:{TESTS}"}
    argv = [sys.executable, "-m", "faults.fleet", *words]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert told in done.stderr
