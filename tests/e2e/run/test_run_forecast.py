"""ADR 46: what is likely left, by runs that took place here: the start line, status, resumption."""

import json
from pathlib import Path
from typing import Any

import pytest
from run_support import Here, Running, prepare, ralph

from ralph.testing.scripted_agent.install import calls

Json = dict[str, Any]
WORKS: Json = {"text": "Still at it.", "cost": 0.5}
DONE: Json = {"response": "DONE", "cost": 0.5}
WAITS = {"tools": [{"name": "Bash", "run": "until [ -e go ]; do sleep 0.02; done"}], **DONE}


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def past(workspace: Path, here: Here, *iterations: int) -> None:
    """Runs that took so many iterations, one after the other."""
    for count in iterations:
        prepare(workspace, *[WORKS] * (count - 1), DONE)
        assert here("-p", "x", "-m", "9").code == 0


def test_five_runs_tell_what_the_next_one_will_take(workspace: Path, here: Here) -> None:
    past(workspace, here, 3, 3, 4, 3)
    prepare(workspace, WORKS, WORKS, DONE)
    fifth = ralph("-p", "x", "-m", "9")
    assert "Forecast" not in fifth.err, "four runs are too few to tell"
    prepare(workspace, WORKS, WAITS)
    running = Running(workspace, "-p", "x", "-m", "9", "--max-cost", "1.60")
    running.await_that(lambda: "Iteration 2/9" in running.err())
    (line,) = [line for line in running.err().splitlines() if "Forecast" in line]
    assert line.startswith("[ralph] Forecast: 2 to 4 iterations (about 3), ")
    assert line.endswith("whether the limit of $1.60 will hold (by 5 earlier runs).")
    told = json.loads(here("status", "--json").out)["forecast"]
    assert told["iterations"]["median"] == 2
    assert 0 < told["cost_usd"]["low"] <= told["cost_usd"]["median"] <= told["cost_usd"]["high"] < 3
    assert told["seconds"]["high"] > 0
    assert told["limit_holds"] is None
    assert told["after"] == {
        "iterations": 1,
        "seconds": pytest.approx(told["after"]["seconds"]),
        "cost_usd": 0.5,
    }
    assert (told["observations"], told["of"]) == (5, "runs")
    assert f"Forecast   {told['words']}\n" in here("status").out
    (workspace / "go").touch()
    assert running.end().code == 0
    over = json.loads(here("status", "--json").out)["forecast"]
    assert over == {"iterations": None, "seconds": None, "cost_usd": None, "limit_holds": None}


def test_a_first_run_says_that_nobody_can_tell(workspace: Path, here: Here) -> None:
    agent = prepare(workspace, WAITS)
    running = Running(workspace, "-p", "x")
    running.await_that(lambda: calls(agent))
    assert "Forecast   too few runs to tell (0 of 5)\n" in here("status").out
    told = json.loads(here("status", "--json").out)["forecast"]
    names = ("iterations", "seconds", "cost_usd", "limit_holds")
    assert [told[name] for name in names] == [None] * 4
    (workspace / "go").touch()
    assert "Forecast" not in running.end().err


def test_a_limit_that_was_hit_tells_what_more_it_takes(workspace: Path, here: Here) -> None:
    """A run that was cut off is no run that came to its end, and a resumed one is one run."""
    past(workspace, here, *[4] * 5)
    prepare(workspace, WORKS, WORKS, WORKS, DONE)
    assert here("-p", "x", "-m", "2").code == 1
    told = json.loads(here("status", "--json").out)["forecast"]
    assert told["iterations"]["median"] == 2
    assert told["limit_holds"] is False
    assert "the limit of 2 iterations will likely not hold" in here("status").out
    resumed = ralph("resume", "-m", "+2")
    assert resumed.code == 0
    assert "Forecast: 2 to 3 more iterations (about 2), " in resumed.err
    place = Path(json.loads(here("status", "--json").out)["state_dir"]).parents[1]
    kept = (place / "efforts.jsonl").read_text("utf-8").splitlines()[-2:]
    told = [json.loads(line) for line in kept]
    assert [(each["iterations"], each["ended"]) for each in told] == [(2, False), (4, True)]
