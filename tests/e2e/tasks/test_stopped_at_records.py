"""Runs that are asked to stop, or killed, at any record of their journals: `ralph resume` brings
the same end, whatever step a run was at.

The points are dealt to a few runs like cards, and the ways to end one are dealt with them.
`RALPH_EVERY_POINT=1` tries each way at every point in a run of its own, `=INT,STOP` only
these.
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import crew_points
import pytest
import test_tasks_crash as one_by_one
import test_tasks_parallel_crash as crew
from crash_points import ACTS
from crash_stage import Json, Stage
from crash_support import PYTHON
from crew_points import CrewPoint, points_of
from prd_support import story, write_stories

from kits.thorough import dealt
from ralph.journal.journal import read_journal
from ralph.kernel.facts import Launching

EVERY = os.environ.get("RALPH_EVERY_POINT", "")
RUNS = 5  # of each kind, among which a sample is dealt
STRIDE = 23  # about once in a turn
ENDED = (-9, 130, 143)
CUTS = {"KILL", "STOP NOW"}  # after which a turn may be taken, and paid, again
# What it does follows from HEAD and the prompt, so that a turn can be taken again.
PROMPTED = r"""
for prompt; do :; done
has() { git cat-file -e "HEAD:$1" 2> /dev/null; }
case $prompt in
"Provide a short"*) if has a; then echo "Add b and c"; else echo "Add a"; fi; exit ;;
*"failed with exit code"*) echo c > c ;;
*) if has a; then echo b > b; else echo a > a; echo "not yet"; exit; fi ;;
esac
echo "<response>DONE</response>"
"""
REVIEWED = f"""exec {sys.executable} - "$@" << 'E'
import json, re, subprocess, sys
mode = re.search(r"^Mode: (\\S+)", sys.argv[-1], re.M)[1]
name = re.search(r"^Story: (\\S+)", sys.argv[-1], re.M)[1]
with open("ralph/tasks.json") as file:
    listing = json.load(file)
story = next(s for s in listing["userStories"] if s["id"] == name)
if mode == "review" and story["reviewCount"] == 0:
    story.update(reviewStatus="changes_requested", reviewFeedback="mend it", reviewCount=1)
elif mode == "review":
    story.update(reviewStatus="approved", passes=True, reviewCount=2)
else:
    story.update(reviewStatus="needs_review", reviewFeedback="", notes="done")
with open(f"{{name}} {{mode}}", "w") as file:
    file.write(mode)
with open("ralph/tasks.json", "w") as file:
    json.dump(listing, file, indent=2)
subprocess.run("git add -A && git commit -q -m '" + mode + " " + name + "'", shell=True)
print("did it")
E"""

# Nobody waits for others here: who is merged second resolves a conflict, whoever that is.
SIDE_BY_SIDE = r"""
for prompt; do :; done
id=$(printf '%s\n' "$prompt" | sed -n 's/^Task \([^: ]*\).*/\1/p' | head -1)
echo "$id" > "$id"
new=$PROJECT/../$id
case $id in [ab]) { grep -v '^[<=>]' shared 2> /dev/null; echo "$id"; } | sort -u > "$new"
mv "$new" shared ;; esac
echo "<promise>COMPLETE</promise>"
"""


@dataclass(frozen=True)
class Prompted(Stage):
    """`ralph run` with a commit and a push."""

    def prepare(self) -> "Prompted":
        (self.repo / ".ralph").mkdir(parents=True)
        rails = [{"command": "test ! -e b || test -e c"}]
        scm = {"command": "git", "tasks": ["commit", "push"]}
        settings = json.dumps({"guardrails": rails, "scm": scm})
        (self.repo / ".ralph" / "settings.json").write_text(settings)
        super().prepare()
        self.git("init", "-q", "--bare", "../remote")
        self.git("remote", "add", "origin", "../remote")
        self.git("config", "push.default", "current")
        return self

    @property
    def begin(self) -> tuple[str, ...]:
        return ("run", "-p", "Do it", "--agent", str(self.root / "agent"), "--no-sandbox")


@dataclass(frozen=True)
class Reviewed(Stage):
    """`ralph prd run` over two stories."""

    def prepare(self) -> "Reviewed":
        self.repo.mkdir(parents=True)
        write_stories(self.repo, story(1), story(2), branch="main")
        (self.repo / ".gitignore").write_text(".ralph-active\n")
        super().prepare()
        return self

    @property
    def begin(self) -> tuple[str, ...]:
        return ("prd", "run", "--agent", str(self.root / "agent"), "--no-sandbox")


def end_of_run(stage: Stage) -> object:
    pushed = stage.git("ls-remote", "origin", "refs/heads/main")[0].split()[0]
    return stage.git("log", "--format=%s"), stage.files("HEAD"), stage.files(pushed)


def end_of_stories(stage: Stage) -> object:
    """A commit of a turn that was cut off stays; the host puts the list right, in a commit of its
    own, and the agent makes its own once more."""
    listing = json.loads((stage.repo / "ralph" / "tasks.json").read_text())
    made = {*stage.git("log", "--format=%s")}
    subjects = sorted(s for s in made if not s.startswith("ralph: correct tasks.json"))
    files = [line.split("\t")[1] for line in stage.files("HEAD")]
    return listing, subjects, files, stage.git("status", "--porcelain")


def side_by_side(root: Path) -> Stage:
    backlog: dict[str, Json] = {"a": {}, "b": {}, "c": {"blockedBy": ["a"]}, "d": {}}
    return Stage(root, "", SIDE_BY_SIDE, backlog, ("--parallel", "3"))


def end_of_crew(stage: Stage) -> object:
    statuses = {task["id"]: task["status"] for task in stage.tasks()}
    subjects = sorted(stage.git("log", "--format=%s"))
    refs = [ref for ref in stage.git("for-each-ref", "--format=%(refname)") if "/cut-" not in ref]
    left = (stage.git("worktree", "list")[1:], stage.git("status", "--porcelain"), refs)
    return statuses, subjects, stage.files("HEAD"), left


KINDS: dict[str, tuple[Callable[[Path], Stage], Callable[[Stage], object]]] = {
    "run": (lambda root: Prompted(root, "", PROMPTED, {}), end_of_run),
    "prd": (lambda root: Reviewed(root, "", REVIEWED, {}), end_of_stories),
    "tasks": (lambda root: one_by_one.staged(root, ""), lambda stage: stage.outcome(0)),
    "parallel": (side_by_side, end_of_crew),
}


def turns(stage: Stage) -> int:
    journals = (stage.root / "state").glob("*/runs/**/journal.jsonl")
    facts = (fact for journal in journals for fact in read_journal(str(journal))[0])
    return sum(isinstance(fact, Launching) for fact in facts)


@cache
def undisturbed(base: Path, kind: str) -> tuple[int, object, int, list[CrewPoint]]:
    """Exit code, end, number of turns and points of a run that nobody ends."""
    made, end = KINDS[kind]
    stage = made(base / "unstopped" / kind).prepare()
    code = crew.call(stage, *PYTHON, *stage.begin)
    points = points_of(crew.run_dir(stage))
    assert len({*points}) == len(points), "every point is known by its name"
    return code, end(stage), turns(stage), points


def played(stage: Stage, deal: list[tuple[str, CrewPoint]], whole: int) -> tuple[int, bool]:
    """End a run at these points, one after the other, then let it come to its end; its exit code,
    and whether a turn may have been cut off."""
    words = stage.begin
    for act, (when, worker, iteration, name) in deal:
        point = (act, when, worker, str(iteration), name)
        code = crew.call(stage, sys.executable, crew_points.__file__, *point, *words)
        if code not in ENDED:
            break  # it had come to its end by then, or the point never came
        words = ("resume",)
    else:
        code = crew.call(stage, *PYTHON, "resume")
    is_over = code == 2 and words == ("resume",)  # only the process was ended
    return (whole if is_over else code), any(act in CUTS for act, _ in deal)


def deals(points: list[CrewPoint], number: int) -> list[list[tuple[str, CrewPoint]]]:
    """How runs end: each way at every point in a run of its own, or a sample in one run."""
    acts = [act for act in ACTS if act in EVERY.split(",")] or list(ACTS)
    if EVERY:
        return [[(act, point)] for point in points[number::RUNS] for act in acts]
    mine = points[number * 7 % STRIDE :: STRIDE]
    return [[(acts[(number + n) % len(acts)], point) for n, point in enumerate(mine)]]


@pytest.mark.parametrize(("kind", "number"), dealt(product(KINDS, range(RUNS)), 1))
def test_stopped_at_every_record_it_ends_as_if_nothing_had_happened(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, kind: str, number: int
) -> None:
    """ "All settle steps must be as safe against Ctrl+C and `stop` as against kill -9"."""
    made, end = KINDS[kind]
    whole, expected, before, points = undisturbed(tmp_path_factory.getbasetemp(), kind)
    wrong = []
    for n, deal in enumerate(every := deals(points, number)):
        stage = made(tmp_path / f"{n}").prepare()
        code, cut = played(stage, deal, whole)
        same = cut or kind == "parallel" or turns(stage) == before
        found = (code, end(stage), same)
        if found != (whole, expected, True):
            wrong.append((deal, found, stage.said()))
    assert not wrong, (len(wrong), len(every), [deal for deal, *_ in wrong], wrong[0], expected)
