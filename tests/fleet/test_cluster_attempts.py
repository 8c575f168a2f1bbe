"""What becomes of real attempts when the parts of a fleet are drained, ended and killed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kits.fleet_up import Json, Started, Up, command_line, ralph, until
from kits.thorough import dealt

_AGENT = """#!/bin/sh
cat > /dev/null
echo $$ >> {place}/lives
while [ ! -e {place}/go ]; do sleep 0.05; done
echo done > made.txt
echo '<promise>COMPLETE</promise>'
"""


class Run:
    """`ralph tasks run` of one task on a fleet; its agent waits until `let_go`."""

    def __init__(self, place: Path, repo: Path, address: str) -> None:
        self._place = place
        agent = place / "agent.sh"
        agent.write_text(_AGENT.format(place=place))
        agent.chmod(0o755)
        added = ralph("tasks", "add", "Make it", "--completion", "file:made.txt", "-C", str(repo))
        assert added.returncode == 0, added.stderr
        git = ["git", "-C", str(repo)]
        subprocess.run([*git, "add", "--all"], check=True)
        subprocess.run([*git, "commit", "--quiet", "--message", "A task"], check=True)
        words = ["tasks", "run", "--fleet", address, "--agent", str(agent), "--no-sandbox"]
        with (place / "run.log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ralph", *words, "-C", str(repo)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(os.environ),
            )
        self.agent_lives()

    def agent_lives(self) -> None:
        until(lambda: self.lives() or self.process.poll() is not None)
        assert self.process.poll() is None, self.said()

    def lives(self) -> list[int]:
        """The process of each agent that ever began."""
        told = self._place / "lives"
        return [int(pid) for pid in told.read_text().split()] if told.exists() else []

    def said(self) -> str:
        return (self._place / "run.log").read_text()

    def let_go(self) -> int:
        (self._place / "go").touch()
        return self.process.wait(120)

    def no_agent(self) -> bool:
        return not any(map(command_line, self.lives()))

    def end(self) -> None:
        (self._place / "go").touch()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    yield Up(tmp_path / "said")
    Started.end_all()


@pytest.fixture
def run(up: Up, tmp_path: Path, repo: Path) -> Iterator[Run]:
    made = Run(tmp_path, repo, up.address)
    up.seen |= set(made.lives())
    yield made
    made.end()


def only_worker(address: str) -> Json:
    done = ralph("fleet", "status", "--fleet", address, "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["workers"]
    assert isinstance(found, dict)
    return found


@pytest.mark.slow
def test_a_drained_worker_finishes_and_then_leaves(up: Up, run: Run) -> None:
    (attempt,) = only_worker(up.address)["attempts"]
    assert (attempt["task"], attempt["attempt"]) == ("T-001", 1)
    for _ in range(2):  # to do it again changes nothing
        drained = ralph("fleet", "drain", "--yes", "--fleet", up.address)
        assert drained.stdout.endswith(": finishes 1 attempt, then it ends\n")
    assert only_worker(up.address)["draining"] is True
    assert run.let_go() == 0
    up.has_said("drained, and leaves.")
    assert len(run.lives()) == 1
    assert "Nothing was heard" not in run.said(), "it left before its end was known"


@pytest.mark.slow
def test_an_attempt_outlives_its_scheduler(up: Up, run: Run) -> None:
    os.kill(up.members()[0], signal.SIGKILL)
    up.has_said("What is under way goes on while its lease holds.")
    up.has_said("again.")
    assert run.let_go() == 0
    assert len(run.lives()) == 1, "no second agent began"


@pytest.mark.parametrize("number", dealt([signal.SIGKILL, signal.SIGINT], 1))
def test_no_agent_outlives_its_fleet(up: Up, run: Run, number: int) -> None:
    code = up.end(number)
    assert code == (0 if number == signal.SIGINT else -signal.SIGKILL)
    until(run.no_agent)
    until(up.is_gone)
    assert len(run.lives()) == 1, "it was begun again by what ends"


@pytest.mark.slow
def test_no_agent_outlives_its_worker(up: Up, run: Run) -> None:
    os.kill(up.members()[1], signal.SIGKILL)
    until(run.no_agent)


@pytest.mark.slow
def test_a_run_goes_on_where_its_fleet_is_by_now(tmp_path: Path, up: Up, repo: Path) -> None:
    """Another `ralph fleet up` has another address."""
    (repo / ".ralph").mkdir(exist_ok=True)
    (repo / ".ralph" / "settings.json").write_text('{"fleet": {"lease": 2}}')
    run = Run(tmp_path, repo, up.address)
    run.process.kill()
    run.process.wait()
    up.end(signal.SIGINT)
    until(run.no_agent)
    (tmp_path / "go").touch()
    gone = ralph("resume", "-C", str(repo))
    assert f"no fleet answers at {up.address}" in gone.stderr
    for nowhere in ("none", "local"):
        refused = ralph("resume", "--fleet", nowhere, "-C", str(repo))
        assert (refused.returncode, "stays where" in refused.stderr) == (2, True)
    other = Up(tmp_path / "other")
    done = ralph("resume", "--fleet", other.address, "-C", str(repo))
    assert done.returncode == 0, done.stderr
    assert len(run.lives()) == 2
