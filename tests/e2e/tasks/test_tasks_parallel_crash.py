"""`ralph tasks run --parallel 4`, killed at records of its journals: `ralph resume` loses nothing
and leaves no worktree and no process behind.

As with one worker the points are dealt to runs like cards; a run is killed at each of its own that
has not passed by then. `RALPH_EVERY_POINT=1` kills a run of its own at every point.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import crew_points
import pytest
from crash_stage import Json, Stage
from crash_support import PYTHON
from crew_points import CrewPoint, points_of

from kits.thorough import dealt
from ralph.journal.journal import read_journal
from ralph.kernel.facts import Launching

# Each waits for the one before to be merged, so that the order is always the same: b has a conflict
# that it resolves, c is put on newer work, d waits for c, and p never resolves its own.
AGENT = r"""
for prompt; do :; done
id=$(printf '%s\n' "$prompt" | sed -n 's/^Task \([^: ]*\).*/\1/p' | head -1)
merged() { while ! git -C "$PROJECT" cat-file -e HEAD:"$1" 2>/dev/null; do sleep 0.02; done; }
markers() { grep -q '^<<<<<<<' shared 2>/dev/null; }
case $id in
a) echo a > shared ;;
b) if markers; then printf 'a\nb\n' > shared; else merged a; echo b > shared; fi ;;
c) merged b ;;
p) markers || { merged d; echo p > shared; } ;;
esac
echo "$id" > "$id"
echo "<promise>COMPLETE</promise>"
"""
TASKS: dict[str, Json] = {"a": {}, "b": {}, "c": {}, "p": {}, "d": {"blockedBy": ["c"]}}
RUNS = 24
CUTS = (("after", "Launching"), ("before", "Ended"))  # where a turn is cut off, and paid again
EVERY = bool(os.environ.get("RALPH_EVERY_POINT"))
AWAY = ("--fleet", "local")  # the same with turns that are taken elsewhere
HANDS = [
    *([(n, ()) for n in range(400)] if EVERY else dealt([(n, ()) for n in range(RUNS)], 0)),
    *dealt([(n, AWAY) for n in range(0, RUNS, 8)], 0),
]


@dataclass(frozen=True)
class End:
    """What is left of a run, times and the order of what happens at the same time aside."""

    code: int
    tasks: list[Json]
    subjects: list[str]
    files: list[str]
    parked: list[str]  # on the branch of the task that could not be merged
    progress: list[tuple[Any, ...]]
    learned: list[tuple[Any, ...]]
    status: list[str]


def staged(root: Path, *flags: str) -> Stage:
    return Stage(root, "", AGENT, TASKS, ("--parallel", "4", *flags))


def call(stage: Stage, *words: str) -> int:
    os.environ |= {"PROJECT": str(stage.repo), "XDG_CACHE_HOME": str(stage.root / "cache")}
    return stage.call(*words)


def killed(stage: Stage, point: CrewPoint, *words: str) -> bool:
    """Run `ralph` until it kills itself there; whether that came."""
    when, worker, iteration, name = point
    script = (sys.executable, crew_points.__file__, "KILL", when, worker, str(iteration), name)
    return call(stage, *script, *words) == -9


def end(stage: Stage, code: int) -> End:
    tasks = [{k: v for k, v in task.items() if k != "evidence"} for task in stage.tasks()]
    return End(
        code,
        sorted(tasks, key=lambda task: str(task["id"])),
        stage.git("log", "--format=%s"),
        stage.files("HEAD"),
        stage.files("ralph/p"),
        sorted(stage.told("progress", "type", "taskId", "iteration", "status", "kind"), key=str),
        sorted(stage.told("learning", "taskId", "status", "iterations"), key=str),
        [line for line in stage.git("status", "--porcelain") if ".ralph/" not in line],
    )


def run_dir(stage: Stage) -> Path:
    (found,) = (stage.root / "state").glob("*/runs/*/journal.jsonl")
    return found.parent


def turns(stage: Stage) -> int:
    journals = run_dir(stage).glob("runs/*/journal.jsonl")
    facts = (fact for journal in journals for fact in read_journal(str(journal))[0])
    return sum(isinstance(fact, Launching) for fact in facts)


def assert_tidy(stage: Stage) -> None:
    """No worktree, no process, no ref but what was undone and the branch that is kept."""
    assert len(stage.git("worktree", "list")) == 1
    refs = stage.git("for-each-ref", "--format=%(refname)")
    odd = [ref for ref in refs if "/cut-" not in ref]
    assert odd == ["refs/heads/main", "refs/heads/ralph/p"]
    (project,) = (stage.root / "state").glob("*/runs")
    assert not list((project.parent / "worktrees").iterdir())
    name = run_dir(stage).name
    said = subprocess.run(["ps", "axeww"], capture_output=True, check=True, text=True).stdout
    assert f"RALPH_RUN={name}" not in said


@cache
def undisturbed(base: Path, *flags: str) -> tuple[End, int, list[CrewPoint]]:
    """The end, the number of turns and the points of a run that nobody kills."""
    stage = staged(base / "-".join(("crew", *flags)), *flags).prepare()
    expected = end(stage, call(stage, *PYTHON, *stage.begin))
    assert_tidy(stage)
    return expected, turns(stage), points_of(run_dir(stage))


def test_a_crew_that_nobody_kills(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What the others are compared with."""
    expected, turns, points = undisturbed(tmp_path_factory.getbasetemp())
    statuses = {task["id"]: task["status"] for task in expected.tasks}
    assert statuses == {"a": "done", "b": "done", "c": "done", "d": "done", "p": "blocked"}
    done = [f"{n}: It is {n}" for n in "dcba"]
    assert expected.subjects == ["Record what became of the tasks", *done, "Begin"]
    assert (expected.code, turns, expected.status) == (3, 7, [])
    assert len({*points}) == len(points) > 200, "every point is known by its name"


@pytest.mark.parametrize(("number", "flags"), HANDS)
def test_killed_at_every_record_a_crew_ends_as_if_nothing_had_happened(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, number: int, flags: tuple[str, ...]
) -> None:
    """ "Killed at any moment, resume loses nothing and leaves no worktree or process behind." """
    expected, before, points = undisturbed(tmp_path_factory.getbasetemp(), *flags)
    dealt = [points[number]] if EVERY and number < len(points) else points[number::RUNS]
    if EVERY and number >= len(points):
        return
    stage, words, cut = staged(tmp_path / "stage", *flags).prepare(), tuple[str, ...](), 0
    for point in dealt:
        if not killed(stage, point, *(words or stage.begin)):
            break
        words, cut = ("resume",), cut + 1
    assert cut, "the first point of a run always comes"
    code = call(stage, *PYTHON, "resume")
    if code == 2:  # it had ended, and only the process was killed
        code = expected.code
    assert end(stage, code) == expected, (dealt, stage.said())
    assert_tidy(stage)
    assert turns(stage) >= before


BEGUN_ANEW: list[CrewPoint] = [
    ("after", "003", 1, "Step record"),  # called done, and not merged
    ("before", "003", 1, "Step commit"),  # merged, and nobody has written that down
    ("after", "003", 1, "Moved"),
    ("after", "002", 1, "Step merge"),
    ("after", "002", 2, "Step commit"),
]


@pytest.mark.parametrize("point", dealt(((point,) for point in BEGUN_ANEW), 1))
def test_whoever_begins_anew_instead_finds_all_of_it(tmp_path: Path, point: CrewPoint) -> None:
    """No task is called done that is not merged, and none is lost."""
    stage = staged(tmp_path / "stage").prepare()
    assert killed(stage, point, *stage.begin), stage.said()
    call(stage, *PYTHON, *stage.begin)
    statuses = {task["id"]: task["status"] for task in stage.tasks()}
    assert [statuses[name] for name in "abcd"] == ["done"] * 4, stage.said()
    there = {line.split("\t")[1] for line in stage.files("HEAD")}
    assert there >= {"a", "b", "c", "d"}
    assert len(stage.git("worktree", "list")) == 1
    subjects = stage.git("log", "--format=%s")
    ended = sorted(s for s in subjects if s[0] in "abcd")
    assert ended == [f"{n}: It is {n}" for n in "abcd"], "each is merged once"
