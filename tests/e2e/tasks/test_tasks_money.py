"""Limits of money of a run over a backlog: of a task, of the run, of the day (B, ADR 22)."""

import pytest
from backlog_support import COMPLETE, Project, project
from run_support import assert_clear, ralph

from ralph.testing.scripted_agent.install import install_agent

pytestmark = pytest.mark.slow

__all__ = ["project"]

A, C = {"id": "A", "title": "The first"}, {"id": "C", "title": "The third"}


def paid(project: Project, *arguments: str) -> tuple[int, str]:
    """A run whose agent works on and on, for 40 cents a turn."""
    turns = [{"files": {f"f{number}": "x"}, "text": "working", "cost": 0.4} for number in range(20)]
    agent = install_agent(str(project.path.parent / "bin"), turns, kind="claude")
    done = ralph("tasks", "run", "--no-sandbox", "--agent", agent, *arguments)
    return done.code, done.err


@pytest.mark.parametrize(
    ("loop", "code", "words"),
    [
        ({"maxCostPerTask": 1}, 3, "A is blocked: task limit: $1 used up (spent $1.20)"),
        ({"maxCostPerRun": 1}, 1, "Stopped: $1 used up (spent $1.20)"),
        ({"maxCostPerDay": 1.5}, 1, "Stopped: the day's $1.5 are used up (spent $1.60)"),
    ],
)
def test_money_is_kept_to(project: Project, loop: dict[str, float], code: int, words: str) -> None:
    project.settings(loop=loop)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "settings")
    project.tasks(A)
    ended, err = paid(project)
    assert (ended, words in err) == (code, True), err


def test_a_day_has_one_purse_for_all_its_runs(project: Project) -> None:
    """ "and of the day's ledger"."""
    project.settings(loop={"maxCostPerDay": 1.0, "maxCostPerRun": 0.7})
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "settings")
    project.tasks(A)
    assert paid(project)[0] == 1  # 0.80 by the limit of the run
    code, err = paid(project)
    assert code == 1
    assert "the day's $1 are used up (spent $1.20)" in err
    code, err = paid(project)
    assert code == 1
    assert "Iteration" not in err  # nothing is left to begin with


@pytest.mark.parametrize("name", ["maxCostPerTask", "maxCostPerRun", "maxCostPerDay"])
def test_a_limit_that_nobody_counts_against_is_refused(project: Project, name: str) -> None:
    project.settings(loop={name: 1})
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "settings")
    project.tasks(A, C)
    assert_clear(project.run("true"), 2, f"loop.{name}", "reports no cost")


@pytest.mark.parametrize("flags", [(), ("--parallel", "2")])
def test_limits_that_nobody_set_and_nobody_can_keep_to_are_named(
    project: Project, flags: tuple[str, ...]
) -> None:
    """ADR 22: "With an agent whose money nobody can count they hold nothing, and that is said in
    the first lines"; once."""
    project.tasks(A)
    words = "agent.sh reports no cost, so $5 a task and $50 a run cannot be kept to"
    done = project.run(COMPLETE, *flags)
    assert_clear(done, 0, f"Money is not limited: {words}")
    assert done.err.count("Money is not limited") == 1
    assert "Money is not limited" not in paid(project)[1]
