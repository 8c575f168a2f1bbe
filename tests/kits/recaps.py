"""Recaps made by hand, for what draws them: a night of four workers, texts that attack, runs that
are large, and runs of which hardly anything is known."""

from hashlib import sha1
from typing import Any

from ralph.kernel.events import Usage
from ralph.kernel.value import replace
from ralph.ui.recap.values import (
    Check,
    Diff,
    FileChange,
    Item,
    ItemKind,
    Iteration,
    Judgement,
    Lane,
    Money,
    Point,
    Recap,
    ReviewRow,
    Settling,
    Steered,
    TaskRow,
    TaskState,
)

BEGAN = 1_795_000_000.0
HOSTILE = (
    "<script>alert(1)</script>\"' onload='x' </pre></details><!-- ]]> &amp; `x` [a](//b) ![i](//c)"
    " @somebody #1 \u202egnp.exe\u202c \x1b[31mred\x1b[0m \x00 \ud800 | * _ ~ $x$ //host/path"
)
TITLES = (
    "Parse dates in both formats",
    "Write the importer",
    "Choose a database",
    "Export to CSV",
    "Show totals by month",
    "Round money half up",
    "Cache exchange rates",
    "Say what failed, and where",
    "Sort by any column",
    "Find duplicates",
    "Undo the last import",
    "Document the flags",
)
_WORKS = (  # (task, worker, minute at which it began, minutes of its turns)
    (0, 1, 0.0, (3.1,)),
    (1, 2, 0.0, (4.2, 3.6, 2.9, 2.2)),
    (2, 3, 0.1, (2.4, 1.1)),
    (3, 4, 0.1, (3.3, 2.7)),
    (4, 1, 3.4, (4.8, 2.1, 3.0)),
    (5, 3, 4.1, (2.2, 1.9, 2.8)),
    (6, 4, 6.6, (5.2, 3.8)),
    (7, 3, 11.9, (3.0, 2.6, 1.4)),
    (8, 2, 14.0, (2.9, 3.3)),
    (9, 1, 14.2, (3.7, 4.4, 1.9)),
    (10, 4, 16.2, (2.8, 2.0, 3.5)),
    (11, 3, 19.7, (1.6, 1.2)),
)
_BLOCKED, _LIAR = 2, 5
_PATCH = """\
diff --git a/src/{0}.py b/src/{0}.py
index 3b18e51..a04c1f2 100644
--- a/src/{0}.py
+++ b/src/{0}.py
@@ -1,7 +1,12 @@ def total(rows):
 import csv
-from decimal import Decimal
+from decimal import ROUND_HALF_UP, Decimal

 def total(rows):
-    return sum(row.amount for row in rows)
+    found = sum((row.amount for row in rows), Decimal(0))
+    return found.quantize(Decimal("0.01"), ROUND_HALF_UP)
+
+
+def by_month(rows):
+    return {{month: total(part) for month, part in grouped(rows)}}
"""


def crew() -> Recap:
    """A run by four workers: 12 tasks in 30 iterations, one blocked, one claim not believed."""
    iterations = sorted(
        (i for work in _WORKS for i in _iterations_of(*work)), key=lambda each: each.began
    )
    numbered = [replace(each, number=n) for n, each in enumerate(iterations, 1)]
    ended = max(each.ended or 0.0 for each in numbered)
    rows = [_row(number, numbered) for number in range(len(_WORKS))]
    usage = sum((each.usage for each in numbered), Usage())
    cost = sum(each.cost_usd or 0.0 for each in numbered)
    spent = Money(30, 60, ended - BEGAN, 8 * 3600, 70.0, cost, 12.0, uncounted=1, usage=usage)
    return replace(
        _OUTLINE,
        outcome="Stopped: what is left needs you (blocked). 30 iterations in 25m, "
        f"${cost:.2f}: 11 tasks done, 1 left to you.",
        now=ended + 60,
        ended=ended,
        spent=spent,
        done=tuple(f"{row.id}  {row.commit[:12]}  {row.title}" for row in rows if row.commit)[:3],
        tasks=tuple(rows),
        iterations=tuple(numbered),
        lanes=tuple(map(_lane, _WORKS)),
        points=_points(numbered),
    )


_STATE = "/home/me/.local/state/ralph/ledger-0a1b2c3d/runs/20261119-221500-3f2a"
_OUTLINE = Recap(
    run="20261119-221500-3f2a",
    state="blocked",
    outcome="",
    exit=3,
    reason="blocked",
    why="what is left needs you",
    profile="tasks",
    command="tasks run",
    asked="12 tasks of .ralph/tasks.jsonl",
    agent="claude",
    model="opus",
    workspace="/home/me/ledger",
    version="0.2.0",
    started=BEGAN,
    workers=4,
    branch="ralph/20261119-221500-3f2a",
    left=("T-003 asks: which database, sqlite or postgres?",),
    yours=("notes.txt: not committed before the run, and not by it",),
    next=(
        'ralph tasks answer T-003 "..."',
        "ralph tasks run  # afterwards; all that wait: ralph tasks list",
    ),
    tools=(("Edit", 88, 3), ("Bash", 64, 11), ("Read", 131, 0), ("Grep", 47, 1), ("Fetch", 2, 2)),
    steered=(
        Steered(BEGAN + 300, "note", "cli", "Money is Decimal, never float.", "T-006"),
        Steered(BEGAN + 900, "pause", "web"),
        Steered(BEGAN + 970, "resume", "web"),
    ),
    directory=_STATE,
    journal=f"{_STATE}/journal.jsonl",
)


def _lane(work: tuple[int, int, float, tuple[float, ...]]) -> Lane:
    task, _, start, minutes = work
    began = BEGAN + 60 * start
    ended = began + sum(60 * length + 14 for length in minutes)
    outcome = "parked" if task == _BLOCKED else "done"
    return Lane(f"20261119-221500-3f2a-{task + 1:03}", f"T-{task + 1:03}", began, ended, outcome)


def _iterations_of(
    task: int, worker: int, start: float, minutes: tuple[float, ...]
) -> list[Iteration]:
    at, made = BEGAN + 60 * start, []
    for turn, length in enumerate(minutes):
        last = turn == len(minutes) - 1
        agent, gates = 60 * length, (14.0 if task != _BLOCKED else 0.0)
        made.append(_iteration(task, worker, turn, last, at, agent, gates))
        at += agent + gates
    return made


def _iteration(
    task: int, worker: int, turn: int, last: bool, at: float, agent: float, gates: float
) -> Iteration:
    tokens = round(agent * 420)
    name = f"part_{task + 1}"
    lied = task == _LIAR and turn == 1
    files = (
        FileChange(f"src/{name}.py", 9 + 4 * turn + task, 2 + turn),
        FileChange(f"tests/test_{name}.py", 21 + task, 0),
    )
    committed = last and task != _BLOCKED
    return Iteration(
        number=0,
        worker=f"20261119-221500-3f2a-{task + 1:03}",
        task=f"T-{task + 1:03}",
        title=TITLES[task],
        began=at,
        ended=at + agent + gates,
        agent_seconds=agent,
        gate_seconds=gates,
        wait_seconds=70.0 if (task, turn) == (4, 1) else 0.0,
        cost_usd=None if (task, turn) == (7, 0) else round(agent * 0.00144, 4),
        usage=Usage(tokens // 9, tokens // 14, tokens, tokens // 20),
        prompt=f"Task T-{task + 1:03}: {TITLES[task]}\n\nRead the code first. Keep it small.\n",
        fed_back=(f"make test: exit code 1\n{_FAILED}",) if turn else (),
        person_notes=("Money is Decimal, never float.",) if (task, turn) == (5, 2) else (),
        items=_items(name, last=last, sure=last or lied),
        tools=(("Read", 1, 0), ("Edit", 1, 0), ("Bash", 1, int(not last))),
        stream=f"/state/runs/{turn + 1:03}.stream",
        ending="exited",
        checks=_checks(last) if gates else (),
        judgement=_judgement(task, last, lied, at + agent + gates),
        settled=(Settling("commit", commit=_commit(task)),) if committed else (),
        commit=_commit(task) if committed else "",
        tree="da3df678ef91" if committed else "",
        diff=Diff(files, _PATCH.format(name)),
    )


_FAILED = "E  assert Decimal('2.345') == Decimal('2.35')\n1 failed, 41 passed in 10.9s"


def _items(name: str, *, last: bool, sure: bool) -> tuple[Item, ...]:
    return (
        Item(ItemKind.THINKING, "The total is a float somewhere on the way."),
        Item(ItemKind.TEXT, f"I read {name}.py and its tests first."),
        Item(ItemKind.TOOL, f"src/{name}.py", "Read", "import csv\nfrom decimal import Decimal"),
        Item(ItemKind.TOOL, f"src/{name}.py", "Edit", "Edited: 1 line."),
        Item(ItemKind.TOOL, "make test", "Bash", _FAILED, is_error=not last),
        Item(ItemKind.TODO, "[x] read  [x] change  [ ] test"),
        Item(ItemKind.TEXT, "All tests pass now." if sure else "One test still fails."),
    )


def _checks(passed: bool) -> tuple[Check, ...]:
    test = Check("make test", 11.4, output="42 passed in 11.0s")
    if not passed:
        log = ".ralph/guardrail_001_make_test.log"
        test = Check("make test", 11.4, ("make test: exit code 1",), 1, log, _FAILED)
    return (Check("make lint", 2.1), test)


def _commit(task: int) -> str:
    return sha1(TITLES[task].encode()).hexdigest()


def _judgement(task: int, last: bool, lied: bool, at: float) -> Judgement:
    said = "<promise>COMPLETE</promise>"
    if task == _BLOCKED and last:
        return Judgement(
            at,
            "park",
            "T-003 asks: which database, sqlite or postgres?",
            "asks",
            "The agent asks a person: the task waits for the answer.",
        )
    if last:
        evidence = (f"claimed: {said}", "passed: make lint", "passed: make test")
        words = "The claim is believed: every check passed."
        rule = "believe", "Every gate passed on one tree: the claim is believed."
        return Judgement(at, "accept", words, *rule, evidence=evidence, claims=(said,))
    words = "Not done yet: the agent is told what make test found"
    rule = "objections", "A gate objects: its words go into the next prompt."
    objections = ("make test: exit code 1",)
    claims = (said,) if lied else ()
    notes = ("It said that all is COMPLETE, without the tag.",) if task == 1 else ()
    told = ("make test: exit code 1",)
    return Judgement(at, "continue", words, *rule, (), objections, notes, claims, told, lied)


def _row(task: int, iterations: list[Iteration]) -> TaskRow:
    own = [each for each in iterations if each.task == f"T-{task + 1:03}"]
    is_blocked = task == _BLOCKED
    question = "Which database, sqlite or postgres?" if is_blocked else ""
    return TaskRow(
        id=f"T-{task + 1:03}",
        title=TITLES[task],
        state=TaskState.BLOCKED if is_blocked else TaskState.DONE,
        why=question and f"asks: {question}",
        question=question,
        iterations=len(own),
        seconds=sum(each.agent_seconds + each.gate_seconds for each in own),
        cost_usd=sum(each.cost_usd or 0.0 for each in own),
        commit=own[-1].commit,
        added=own[-1].diff.added,
        removed=own[-1].diff.removed,
        files=len(own[-1].diff.files),
        evidence=own[-1].judgement.evidence if own[-1].judgement else (),
        worker=own[-1].worker,
    )


def _points(iterations: list[Iteration]) -> tuple[Point, ...]:
    points, spent, usage, done = [Point(BEGAN, 0.0, 0, 0, 0, 12)], 0.0, Usage(), 0
    for each in sorted(iterations, key=lambda i: i.ended or 0.0):
        spent += each.cost_usd or 0.0
        usage += each.usage
        done += bool(each.commit)
        at = each.ended or 0.0
        points.append(Point(at, spent, usage.all_input, usage.output, done, 12 - done))
    return tuple(points)


def hostile(text: str = HOSTILE) -> Recap:
    """Every text of a run, its names and paths too, is this one."""
    return _with_texts(crew(), text)


def _with_texts(recap: Recap, text: str) -> Recap:
    first = recap.iterations[0]
    items = tuple(
        Item(kind, text, text if kind is ItemKind.TOOL else "", text, is_error=True)
        for kind in ItemKind
    )
    diff = Diff((FileChange(text, 1, 2), FileChange(text)), f"+{text}\n-{text}\n", is_cut=True)
    several = (text, text)
    said = (text, text, text, several, several, several, several, several)
    judged = Judgement(first.began, "continue", *said, is_disbelieved=True)
    attacked = replace(
        first,
        worker=text,
        task=text,
        title=text,
        prompt=text,
        fed_back=several,
        person_notes=several,
        items=items,
        items_left_out=3,
        tools=((text, 2, 1),),
        stream=text,
        trouble=text,
        checks=(Check(text, 1.0, several, 1, text, text), Check(text, 0.0)),
        judgement=judged,
        settled=(Settling(text, ok=False, detail=text), Settling(text, commit=text)),
        commit=text,
        tree=text,
        diff=diff,
    )
    others = [replace(attacked, number=2, judgement=replace(judged, verdict="park", claims=()))]
    others += [replace(attacked, number=3, judgement=replace(judged, verdict="accept"))]
    return replace(
        recap,
        **_everywhere(text),
        tasks=(TaskRow(text, text, TaskState.BLOCKED, text, text, commit=text, evidence=several),),
        iterations=(attacked, *others),
        lanes=tuple(Lane(f"{text}{n}", text, first.began + n, first.ended, text) for n in range(3)),
        reviews=(
            ReviewRow(first.began, text, "changes_requested", text),
            ReviewRow(first.began + 9, text, "approved", text),
        ),
        tools=((text, 5, 1), (f"{text}2", 1, 0)),
        steered=(Steered(first.began, text, text, text, text, heard=False),),
    )


def _everywhere(text: str) -> dict[str, Any]:
    lists = ("evidence", "done", "left", "yours", "next")
    return dict.fromkeys(_TEXTS, text) | dict.fromkeys(lists, (text, text))


_TEXTS = (
    *("run", "state", "outcome", "reason", "why", "profile", "command", "asked", "agent"),
    *("model", "workspace", "version", "lead", "pending", "tree", "commit", "branch"),
    *("directory", "journal", "problem"),
)


def fat(iterations: int = 200, characters: int = 200_000) -> Recap:
    """A run of so many iterations, in each of which everything is huge."""
    night = crew()
    line = "<&'\"> a line of output, as tools print them, and more than anybody reads\n"
    text = (line * (characters // len(line) + 1))[:characters]
    first = night.iterations[0]
    large = replace(
        first,
        prompt=text,
        fed_back=(text,) * 20,
        items=tuple(Item(ItemKind.TOOL, text[:9000], "Bash", text[:9000]) for _ in range(150)),
        checks=(Check("make test", 3.0, (text,), 1, "/log", text),) * 4,
        diff=Diff(
            tuple(FileChange(f"src/{'d/' * 20}{n}.py", n, n) for n in range(300)),
            "".join(f"+{n}\n-{n} <\n" for n in range(characters // 12)),
        ),
    )
    several = tuple(
        replace(large, number=n + 1, began=BEGAN + 60 * n, ended=BEGAN + 60 * n + 50)
        for n in range(iterations)
    )
    return replace(night, asked=text, outcome=text, iterations=several)


def bare() -> Recap:
    """A run that died before anything was known of it."""
    return Recap(run="20261119-000000-dead", state="crashed", outcome="Its process is gone.")


def single() -> Recap:
    """A prompt of one iteration that nobody priced."""
    one = replace(crew().iterations[0], number=1, worker="", task="", title="", cost_usd=None)
    return replace(
        bare(),
        run="20261119-010101-0001",
        state="completed",
        outcome="Completed after 1 iteration in 3m6s.",
        exit=0,
        reason="completed",
        profile="harness",
        command="run",
        asked="Make the tests pass",
        agent="codex",
        started=one.began,
        ended=one.ended,
        now=BEGAN + 999,
        iterations=(one,),
        points=(Point(one.ended or 0.0, 0.0, 0, 0, 1),),
        spent=Money(iterations=1, max_iterations=10, seconds=186.0, uncounted=1),
        evidence=("passed: make test",),
    )
