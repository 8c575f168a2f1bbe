"""Every executor passes the conformance kit: local, Dask with machines of its own, and the fake."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kits.fleet.cluster import Cluster
from ralph.fleet.executors.dask import DaskExecutor
from ralph.fleet.executors.local import LocalExecutor
from ralph.fleet.machine import relay
from ralph.fleet.port import Job
from ralph.testing.executor_kit import ATTEMPT, CHECKS, Bench, NotApplicable
from ralph.testing.fake_fleet import FakeExecutor, FakeFleet

SLOW = {"cut_of_the_deaf", "many_threads", "renewed", "slots"}  # they wait for seconds
DEALT = [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in CHECKS]


@pytest.mark.parametrize("check", DEALT)
def test_local(check: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "COMMAND", ATTEMPT)
    bench = Bench(lambda: LocalExecutor(2), str(tmp_path))
    if check == "lost":  # it is in this process: nothing can be lost
        with pytest.raises(NotApplicable):
            CHECKS[check](bench)
    else:
        CHECKS[check](bench)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), workers=2) as cluster:
        yield cluster


@pytest.mark.parametrize("check", DEALT)
def test_dask(check: str, tmp_path: Path, cluster: Cluster) -> None:
    cluster.mend()
    bench = Bench(
        lambda: DaskExecutor(cluster.address), str(tmp_path), lose=lambda _: cluster.stop_workers()
    )
    CHECKS[check](bench)


@pytest.mark.parametrize("check", CHECKS)
def test_fake(check: str, tmp_path: Path) -> None:
    fleet = FakeFleet()

    def lose(job: Job) -> None:
        fleet.lose(job)

    CHECKS[check](Bench(lambda: FakeExecutor(fleet), str(tmp_path), lose=lose, processes=False))
