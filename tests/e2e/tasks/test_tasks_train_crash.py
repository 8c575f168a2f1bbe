"""A merge train of `ralph tasks run --parallel 4` that is killed at any of its records or effects:
`ralph resume` lands every task once, and leaves nothing behind (ADR 48)."""

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import crew_points
import pytest
import train_points
from crash_stage import Stage
from crash_support import PYTHON
from crew_points import CrewPoint
from riding_support import WAIT, hold_the_first

from kits.thorough import dealt
from ralph.journal.journal import read_journal
from ralph.kernel.facts import Proved

AGENT = r"""
for prompt; do :; done
id=$(printf '%s\n' "$prompt" | sed -n 's/^Task \([^: ]*\).*/\1/p' | head -1)
WAIT
echo "$id" > "$id"
echo "<promise>COMPLETE</promise>"
""".replace("WAIT", WAIT)
EVERY = bool(os.environ.get("RALPH_EVERY_POINT"))
_NAMES = ("Moved", "Proved 2", "Step record", "Step merged with", "Step commit", "Step sync")
_WORKERS = ("002", "003", "004")
KILLS: list[CrewPoint] = [  # at each point one of the workers, or all
    (when, worker, 1, name)
    for turn, name in enumerate(_NAMES)
    for when in ("before", "after")
    for worker in (_WORKERS if EVERY else _WORKERS[(turn + (when == "after")) % 3 :][:1])
]


def staged(root: Path) -> Stage:
    tasks = {name: {"completion": {"type": "file_exists", "path": name}} for name in "abcd"}
    stage = Stage(root, "", AGENT, tasks, ("--parallel", "4")).prepare()
    hold_the_first(stage.repo, root / "state", root, 4)
    return stage


def assert_landed_once(stage: Stage) -> None:
    """Each task is one commit, with the tree that was proven, and nothing is left."""
    assert {task["id"]: task["status"] for task in stage.lines("tasks")} == dict.fromkeys(
        "abcd", "done"
    ), stage.said()
    subjects = stage.git("log", "--format=%s")
    ended = sorted(s for s in subjects if not s.startswith(("Begin", "Record")))
    assert ended == [f"{n}: It is {n}" for n in "abcd"], stage.said()
    assert {line.split("\t")[1] for line in stage.files("HEAD")} >= {*"abcd"}
    assert [line for line in stage.git("status", "--porcelain") if ".ralph/" not in line] == []
    assert len(stage.git("worktree", "list")) == 1
    assert stage.git("for-each-ref", "--format=%(refname)") == ["refs/heads/main"]
    (runs,) = (stage.root / "state").glob("*/runs")
    assert not list((runs.parent / "worktrees").iterdir())
    for task in stage.lines("tasks"):
        assert_proven(stage, task["evidence"], task["id"])


def assert_proven(stage: Stage, evidence: dict[str, object], task: str) -> None:
    """The tree in the evidence is that of the last commit of its train, but for Ralph's records."""
    (commit,) = stage.git("log", "--format=%H", f"--grep=^{task}: It is")
    train = evidence.get("train") or [task]
    assert isinstance(train, list)
    last = stage.git("log", "-1", "--format=%H", f"--grep=^{train[-1]}: It is")[0]
    differing = stage.git("diff", "--name-only", f"{evidence['tree']}", last)
    assert all(name.startswith(".ralph/") for name in differing), (task, differing)
    said = stage.git("log", "-1", "--format=%B", commit)
    assert (f"Ralph-Tree: {evidence['tree']}" in said) == (len(train) > 1)


def heads(stage: Stage) -> list[str]:
    """Everything that the branch has ever stood on."""
    return stage.git("reflog", "--format=%H", "main")


def trains(stage: Stage) -> set[tuple[str, ...]]:
    journals = (stage.root / "state").glob("*/runs/*/runs/*/journal.jsonl")
    facts = (fact for journal in journals for fact in read_journal(str(journal))[0])
    return {fact.train for fact in facts if isinstance(fact, Proved) and len(fact.train) > 1}


def killed(stage: Stage, program: str, *words: str) -> bool:
    return stage.call(sys.executable, program, *words, *stage.begin) == -9


def resumed(stage: Stage) -> None:
    stage.call(*PYTHON, "resume")
    assert_landed_once(stage)


def test_a_train_that_nobody_kills_moves_the_branch_once(tmp_path: Path) -> None:
    stage = staged(tmp_path / "stage")
    assert stage.call(*PYTHON, *stage.begin) == 0, stage.said()
    assert_landed_once(stage)
    assert [len(train) for train in trains(stage)] == [3]
    assert len(heads(stage)) == 3, "Begin, a, the train"


@pytest.mark.parametrize("point", KILLS if EVERY else dealt(((p,) for p in KILLS), 1))
def test_killed_at_a_record_of_a_train(tmp_path: Path, point: CrewPoint) -> None:
    stage = staged(tmp_path / "stage")
    when, worker, iteration, name = point
    if killed(stage, crew_points.__file__, "KILL", when, worker, str(iteration), name):
        assert len(heads(stage)) in (2, 3), "all of the train, or nothing"
    resumed(stage)


@pytest.mark.parametrize(
    ("when", "effect"), dealt(product(("before", "after"), train_points.EFFECTS), 1)
)
def test_killed_at_an_effect_of_a_train(tmp_path: Path, when: str, effect: str) -> None:
    """Between what git does and what the journal says of it."""
    stage = staged(tmp_path / "stage")
    name, number = effect.split()
    assert killed(stage, train_points.__file__, when, name, number), stage.said()
    resumed(stage)


@pytest.mark.parametrize("effect", dealt(["mix 1", "mix 3", "commit 3"], 0))
def test_whoever_begins_anew_finds_each_tasks_own_work(tmp_path: Path, effect: str) -> None:
    """Others' work that is in its files is not taken for its own."""
    stage = staged(tmp_path / "stage")
    name, number = effect.split()
    assert killed(stage, train_points.__file__, "after", name, number), stage.said()
    stage.call(*PYTHON, *stage.begin)
    subjects = stage.git("log", "--format=%s")
    assert sorted(s for s in subjects if s[0] in "abcd") == [f"{n}: It is {n}" for n in "abcd"]
    for name in "bcd":
        (commit,) = stage.git("log", "--format=%H", f"--grep=^{name}: It is")
        changed = subprocess.check_output(
            ["git", "show", "--name-only", "--format=", commit], cwd=stage.repo, text=True
        )
        assert [line for line in changed.splitlines() if ".ralph" not in line] == [name]
