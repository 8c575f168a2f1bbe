"""N workers cannot overspend: each turn's allowance is leased from the run's limits (ADR 31)."""

import json

import pytest
from backlog_support import Project, project
from run_support import Done, journals, ralph

from ralph.journal.journal import read_journal
from ralph.kernel.facts import Ended
from ralph.testing.scripted_agent.install import install_agent

pytestmark = pytest.mark.slow

__all__ = ["project"]


def paid(project: Project, *arguments: str) -> Done:
    """A run by four workers, whose agent works on and on, for 40 cents a turn."""
    turns = [{"files": {f"f{number}": "x"}, "text": "working", "cost": 0.4} for number in range(40)]
    agent = install_agent(str(project.path.parent / "bin"), turns, kind="claude")
    words = ("tasks", "run", "--no-sandbox", "--parallel", "4", "--agent", agent)
    return ralph(*words, *arguments)


def cost(project: Project) -> float:
    """What all turns together have cost, by the workers' own journals."""
    (journal,) = journals()
    facts = [
        fact
        for path in journal.parent.glob("runs/*/journal.jsonl")
        for fact in read_journal(str(path))[0]
    ]
    return round(sum(fact.turn.cost_usd or 0 for fact in facts if isinstance(fact, Ended)), 6)


@pytest.mark.parametrize(("limit", "most"), [("1", 1.2), ("2.3", 2.4), ("0.3", 0.4)])
def test_four_workers_spend_no_more_than_one(project: Project, limit: str, most: float) -> None:
    """The last turn may go over the limit, as with one worker; the other three may not begin."""
    project.tasks(*({"id": name, "title": name} for name in "abcd"))
    done = paid(project, "--max-cost", limit)
    assert done.code == 1, done.err
    assert f"${limit} used up" in done.err
    assert cost(project) <= most
    assert set(project.statuses().values()) <= {"in_progress", "pending"}
    assert "left to you" not in done.err
    assert len(project.git("worktree", "list").splitlines()) == 1


def test_what_workers_spend_is_their_runs(project: Project) -> None:
    """`ralph status --spending`: one run, whoever took the turns."""
    project.tasks(*({"id": name, "title": name} for name in "ab"))
    paid(project, "--max-iterations", "1", "--max-cost", "5")
    said = json.loads(ralph("status", "--spending", "--json").out)
    (run,) = said["runs"]
    (journal,) = journals()
    assert (run["run"], run["cost_usd"]) == (journal.parent.name, 0.8)
