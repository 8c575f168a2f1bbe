"""A sixth loop: one folder, one table line, one CLI file (CONTRIBUTING, "Add a loop")."""

import json
import os
import sys
from pathlib import Path

import pytest
import rounds_command
from run_support import Here, assert_replays, facts, journals, prepare, prompts

from ralph.kernel.facts import Started
from ralph.runner.loops import LOOPS, is_run


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Here:
    """Where the loop is known: `LOOPS` has its line, and `ralph.cli` its file."""
    monkeypatch.setitem(LOOPS, "rounds", ("rounds.loop", "rounds"))
    monkeypatch.setitem(sys.modules, "ralph.cli.rounds", rounds_command)
    return Here(capsys)


def test_a_new_loop_runs_with_all_that_runs_have(here: Here, workspace: Path) -> None:
    agent = prepare(workspace, {"text": "on it"})
    done = here("rounds", "3", "-p", "Sweep", "--json")
    assert done.code == 0
    assert prompts(agent) == [f"Sweep (round {n} of 3)" for n in (1, 2, 3)]
    assert done.objects[-1]["type"] == "stop"
    assert done.objects[-1]["reason"] == "completed"
    (journal,) = journals()
    kept = json.loads((journal.parent / "plan.json").read_text("utf-8"))
    assert (kept["loop"], kept["work"]) == ("rounds", {"count": 3, "prompt": "Sweep"})
    first = facts()[0]
    assert isinstance(first, Started)
    assert first.profile == "rounds"


def test_a_new_loop_is_told_of(here: Here, workspace: Path) -> None:
    prepare(workspace)
    assert "rounds" in here("--help").out
    assert "All rounds were made." in here("explain").out
    assert is_run(["rounds", "3"])
    assert not is_run(["roundsmen", "3"])
    assert here("round").err.count("Did you mean rounds?") == 1


def test_a_new_loop_goes_on_where_it_was_stopped(here: Here, workspace: Path) -> None:
    signals = f"{os.environ['RALPH_STATE_DIR']}/*/runs/*/signals"
    stop = f"for at in {signals}; do touch $at/stop; done"
    agent = prepare(workspace, {"tools": [{"name": "Bash", "run": stop}]}, {"text": "on it"})
    assert here("rounds", "2", "-p", "Sweep").code == 130
    assert here("resume").code == 0
    assert prompts(agent) == ["Sweep (round 1 of 2)", "Sweep (round 2 of 2)"]
    assert_replays()
