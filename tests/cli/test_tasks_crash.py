"""`ralph tasks run`, killed at every record of its journal: `ralph resume` brings the same end.

To kill a run of its own at each point would take minutes. So the points are dealt to runs like
cards: each run is killed at every n-th of them, about once in a turn, and goes on each time.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import crash_points
import pytest
from crash_points import Point, points_of
from crash_support import PYTHON
from run_support import program

from ralph.adapters.journal import read_journal
from ralph.core.facts import Fact, Launching
from ralph.core.state import replay
from ralph.testing.sandbox_stage import overlay_is_usable

Json = dict[str, Any]
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
TIMES = ("createdAt", "updatedAt", "completedAt")
IN_OVERLAY = pytest.mark.skipif(not overlay_is_usable(), reason="this machine allows no namespaces")


@dataclass(frozen=True)
class Outcome:
    """What is left of a run, times aside."""

    code: int
    tasks: list[Json]
    subjects: list[str]
    files: list[str]  # of HEAD
    status: list[str]
    progress: list[tuple[object, ...]]
    learned: list[tuple[object, ...]]
    ours: list[str]  # the names in .ralph
    done: frozenset[str]


@dataclass(frozen=True)
class Stage:
    """A repository with a backlog, and a run over it."""

    root: Path
    sandbox: str

    def prepare(self) -> "Stage":
        (self.repo / ".ralph").mkdir(parents=True)
        program(self.root / "agent", AGENT)
        lines = [
            json.dumps({"id": name, "title": f"It is {name}", "priority": -number, **fields})
            for number, (name, fields) in enumerate(TASKS.items())
        ]
        (self.repo / ".ralph" / "tasks.jsonl").write_text("".join(f"{line}\n" for line in lines))
        (self.repo / "README").write_text("hello\n")
        (self.repo / "old").write_text("old\n")
        for words in ("init -q -b main", "add -A", "commit -q -m Begin"):
            subprocess.run(["git", *words.split()], cwd=self.repo, check=True, env=self.env)
        return self

    @property
    def repo(self) -> Path:
        return self.root / "repo"

    @property
    def env(self) -> dict[str, str]:
        who = {f"GIT_{r}_{f}": "x@y" for r in ("AUTHOR", "COMMITTER") for f in ("NAME", "EMAIL")}
        return {**os.environ, **who, "RALPH_STATE_DIR": str(self.root / "state")}

    @property
    def begin(self) -> tuple[str, ...]:
        where = ("--sandbox", self.sandbox) if self.sandbox else ("--no-sandbox",)
        return ("tasks", "run", "--agent", str(self.root / "agent"), *where)

    def call(self, *words: str) -> int:
        with (self.root / "said").open("ab") as said:
            done = subprocess.run(
                words, cwd=self.repo, env=self.env, stdout=said, stderr=said, check=False
            )
        return done.returncode

    def killed(self, point: Point, *words: str) -> None:
        """Run `ralph` until it kills itself there."""
        when, iteration, name = point
        script = (sys.executable, crash_points.__file__, when, str(iteration), name)
        assert self.call(*script, *words) == -9, (point, (self.root / "said").read_text())

    def git(self, *words: str) -> list[str]:
        command = ["git", "-C", str(self.repo), *words]
        return subprocess.check_output(command, text=True, env=self.env).splitlines()

    def files(self, commit: str) -> list[str]:
        return [line for line in self.git("ls-tree", "-r", commit) if ".ralph/" not in line]

    def facts(self) -> list[Fact]:
        (journal,) = (self.root / "state").glob("*/runs/*/journal.jsonl")
        return read_journal(str(journal))[0]

    def turns(self) -> int:
        return sum(isinstance(fact, Launching) for fact in self.facts())

    def lines(self, name: str) -> list[Json]:
        text = (self.repo / ".ralph" / f"{name}.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def tasks(self) -> list[Json]:
        """With what was saved, wherever that is: a turn that was cut off is saved beside."""
        found = [{k: v for k, v in t.items() if k not in TIMES} for t in self.lines("tasks")]
        return [t | {"saved": self.files(t["saved"])} if "saved" in t else t for t in found]

    def told(self, name: str, *fields: str) -> list[tuple[object, ...]]:
        return [tuple(line.get(field) for field in fields) for line in self.lines(name)]

    def outcome(self, code: int) -> Outcome:
        return Outcome(
            code,
            self.tasks(),
            self.git("log", "--format=%s"),
            self.files("HEAD"),
            self.git("status", "--porcelain", "--untracked-files=all"),
            self.told("progress", "type", "taskId", "iteration", "status", "reason", "kind"),
            self.told("learning", "taskId", "status", "iterations", "reason", "gates"),
            sorted(os.listdir(self.repo / ".ralph")),
            replay(self.facts()).done,
        )

    def assert_tidy(self) -> None:
        """Nothing is left but the work, and what was undone."""
        refs = self.git("for-each-ref", "--format=%(refname)")
        odd = [r for r in refs if not re.fullmatch(r"refs/(heads/main|ralph/.*/cut-[0-9.]+)", r)]
        assert not odd
        assert not [line for line in self.git("status", "--porcelain") if ".ralph/" not in line]
        assert not [p for p in (self.root / "state").glob("*/sandboxes/*") if p.is_dir()]


@cache
def undisturbed(base: Path, sandbox: str) -> tuple[Outcome, int, list[Point]]:
    """The end, the number of turns and the points of a run that nobody kills."""
    stage = Stage(base / "undisturbed" / (sandbox or "direct"), sandbox).prepare()
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
    [
        *(("", number) for number in range(RUNS)),
        *(pytest.param("overlay", number, marks=IN_OVERLAY) for number in SAMPLE),
    ],
)
def test_killed_at_every_record_it_ends_as_if_nothing_had_happened(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, sandbox: str, number: int
) -> None:
    """B §Between Runs; ADR 21: settled in steps that can be taken twice. Tasks, history, files and
    records are the same, each record once; only a turn that was cut off is taken once more."""
    expected, turns, points = undisturbed(tmp_path_factory.getbasetemp(), sandbox)
    stage, words, kills = Stage(tmp_path / "stage", sandbox), ("resume",), points[number::RUNS]
    stage.prepare().killed(kills[0], *stage.begin)
    for point in kills[1:]:
        stage.killed(point, *words)
    code = stage.call(*PYTHON, *words)
    if kills[-1] == points[-1]:
        assert code == 2, "it had ended, and only the process was killed"
        code = expected.code
    assert stage.outcome(code) == expected, kills
    stage.assert_tidy()
    assert stage.turns() - turns == sum((when, name) in CUTS for when, _, name in kills)
