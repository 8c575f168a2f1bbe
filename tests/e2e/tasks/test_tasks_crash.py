"""`ralph tasks run`, killed at every record of its journal: `ralph resume` brings the same end.

To kill a run of its own at each point would take minutes. So the points are dealt to runs like
cards: each run is killed at every n-th of them, about once in a turn, and goes on each time.
"""

import sys
from functools import cache
from pathlib import Path

import crash_points
import pytest
from crash_points import Point, points_of
from crash_stage import Json, Outcome, Stage
from crash_support import PYTHON

from kits.sandbox.stage import overlay_is_usable
from kits.thorough import dealt

# What it does follows from the prompt and from what is there, so that a turn can be taken again.
AGENT = r"""
for prompt; do :; done
id=$(printf '%s\n' "$prompt" | sed -n 's/^Task \([^: ]*\).*/\1/p' | head -1)
complete="<promise>COMPLETE</promise>"
case $id in
plain) echo plain > plain; rm -f old; echo "$complete" ;;
checked) if [ -e checked ]; then echo two > proof; else echo one > checked; fi; echo "$complete" ;;
failing)
    case $prompt in *"exit code 3"*) echo good > good; echo "$complete" ;;
    *) echo bad > bad; rm README; git rm -q --cached README; exit 3 ;; esac ;;
over)  # commits of a turn that was cut off stay: they may be a person's
    n=$(printf '%s\n' "$prompt" | sed -n 's/^Iteration \([0-9]*\) of.*/\1/p')
    grep -qx "$n" over || echo "$n" >> over
    git add -A; git commit -q --allow-empty -m "by the agent" ;;
asks) echo half > half; echo "<promise>DECIDE: red or blue?</promise>" ;;
esac
"""
TASKS: dict[str, Json] = {
    "plain": {},
    "checked": {"completion": {"type": "test_passing", "command": "test -e proof"}},
    "failing": {},
    "over": {"limits": {"maxIterations": 2}},
    "asks": {},
}
RUNS = 24  # among which the points are dealt
SAMPLE = (0, 7, 14, 21)  # of them in a sandbox
CUTS = (("after", "Launching"), ("before", "Ended"))  # where a turn is cut off, and paid again


def staged(root: Path, sandbox: str) -> Stage:
    return Stage(root, sandbox, AGENT, TASKS)


def kill(stage: Stage, point: Point, *words: str) -> None:
    """Run `ralph` until it kills itself there."""
    when, iteration, name = point
    script = (sys.executable, crash_points.__file__, when, str(iteration), name)
    assert stage.call(*script, *words) == -9, (point, stage.said())


@cache
def undisturbed(base: Path, sandbox: str) -> tuple[Outcome, int, list[Point]]:
    """The end, the number of turns and the points of a run that nobody kills."""
    stage = staged(base / "undisturbed" / (sandbox or "direct"), sandbox).prepare()
    expected = stage.outcome(stage.call(*PYTHON, *stage.begin))
    stage.assert_tidy()
    return expected, stage.turns(), points_of(stage.facts())


def test_a_run_that_nobody_kills(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What the others are compared with: each task ends in its own way."""
    expected, turns, points = undisturbed(tmp_path_factory.getbasetemp(), "")
    statuses = {task["id"]: task["status"] for task in expected.tasks}
    ends = ("done", "done", "done", "blocked", "blocked")
    assert statuses == dict(zip(TASKS, ends, strict=True))
    assert (expected.code, turns, len(points) > 190) == (3, 8, True)
    assert len({*points}) == len(points), "every point is known by its name"
    assert len({*expected.progress}) == len(expected.progress)
    judged = [(task, status) for kind, task, _, status, *_ in expected.progress if kind != "status"]
    assert judged == [
        ("plain", "complete"),
        *(("checked", status) for status in ("continue", "complete")),
        *(("failing", status) for status in ("failed", "complete")),
        *(("over", status) for status in ("continue", "blocked")),
        ("asks", "blocked"),
    ]


@pytest.mark.parametrize(
    ("sandbox", "number"),
    dealt([*(("", n) for n in range(RUNS)), *(("overlay", n) for n in SAMPLE)], 1),
)
def test_killed_at_every_record_it_ends_as_if_nothing_had_happened(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, sandbox: str, number: int
) -> None:
    """B §Between Runs; ADR 21: settled in steps that can be taken twice. Tasks, history, files and
    records are the same, each record once; only a turn that was cut off is taken once more."""
    if sandbox and not overlay_is_usable():
        pytest.skip("this machine allows no namespaces")
    expected, turns, points = undisturbed(tmp_path_factory.getbasetemp(), sandbox)
    stage, words, kills = staged(tmp_path / "stage", sandbox), ("resume",), points[number::RUNS]
    kill(stage.prepare(), kills[0], *stage.begin)
    for point in kills[1:]:
        kill(stage, point, *words)
    code = stage.call(*PYTHON, *words)
    if kills[-1] == points[-1]:
        assert code == 2, "it had ended, and only the process was killed"
        code = expected.code
    assert stage.outcome(code) == expected, kills
    stage.assert_tidy()
    assert stage.turns() - turns == sum((when, name) in CUTS for when, _, name in kills)
