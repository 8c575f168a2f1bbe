"""The coordinator of turns elsewhere, killed where the journal and the refs of attempts are not in
step: the task lands once, a finished attempt is not made again, and no ref is left."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import crew_points
import pytest
from crash_stage import Stage
from crash_support import PYTHON
from crew_points import CrewPoint

from kits.thorough import dealt
from ralph.journal.journal import read_journal
from ralph.kernel.facts import Launching

AGENT = """
echo turn >> "$NOTES"
echo a > a
echo "<promise>COMPLETE</promise>"
"""
# The attempt is placed first, and then done.
POINTS: list[tuple[CrewPoint, int]] = [
    (("after", "001", 1, "Fared 2"), 1),  # it is done, and that is not the turn's end yet
    (("before", "001", 1, "Sent"), 1),
    (("after", "001", 1, "Sent"), 1),  # recorded, and not pushed
    (("after", "001", 1, "Fared"), 1),
    (("after", "001", 1, "Launching"), 2),
    (("before", "001", 1, "Ended"), 1),
    (("after", "001", 1, "Ended"), 1),
    (("before", "001", 1, "Landed"), 1),  # its files are here
    (("after", "001", 1, "Landed"), 1),  # and its ref is there still
]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NOTES", str(tmp_path / "turns"))
    task = {"completion": {"type": "file_exists", "path": "a"}}
    return Stage(tmp_path / "stage", "", AGENT, {"a": task}, ("--fleet", "local")).prepare()


def killed(stage: Stage, point: CrewPoint) -> bool:
    when, worker, iteration, name = point
    words = ("KILL", when, worker, str(iteration), name, *stage.begin)
    return stage.call(sys.executable, crew_points.__file__, *words) == -9


def assert_landed_once(stage: Stage, most: int) -> None:
    """Without a ref of an attempt, and after so many turns of the agent at most."""
    (task,) = stage.lines("tasks")
    assert task["status"] == "done", stage.said()
    assert sum(subject == "a: It is a" for subject in stage.git("log", "--format=%s")) == 1
    refs = stage.git("for-each-ref", "--format=%(refname)")
    assert [ref for ref in refs if not re.search("/(cut|left)-", ref)] == ["refs/heads/main"]
    turns = Path(os.environ["NOTES"]).read_text().split()
    assert 1 <= len(turns) <= most, stage.said()


@pytest.mark.parametrize(("point", "most"), dealt(POINTS, 1))
def test_resume_goes_on_with_the_attempt(stage: Stage, point: CrewPoint, most: int) -> None:
    assert killed(stage, point), stage.said()
    assert stage.call(*PYTHON, "resume") == 0, stage.said()
    assert_landed_once(stage, most)
    (run,) = (stage.root / "state").glob("*/runs/*/runs/*/journal.jsonl")
    facts = read_journal(str(run))[0]
    assert sum(isinstance(fact, Launching) for fact in facts) <= most
    report = subprocess.check_output([*PYTHON, "report", "--json"], env=stage.env, cwd=stage.repo)
    (iteration,) = json.loads(report)["iterations"]
    assert iteration["machines"] == [os.uname().nodename], "by each attempt once"


@pytest.mark.parametrize("point", dealt(((POINTS[n][0],) for n in (0, 4, 8)), 1))
def test_whoever_begins_anew_leaves_no_ref_of_the_run_before(
    stage: Stage, point: CrewPoint
) -> None:
    assert killed(stage, point), stage.said()
    assert stage.call(*PYTHON, *stage.begin) == 0, stage.said()
    assert_landed_once(stage, 2)
