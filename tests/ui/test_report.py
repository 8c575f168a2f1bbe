"""`ralph status`: what a run is doing, in words, as an object and as a row."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from ralph.kernel.events import Failure, Usage
from ralph.kernel.facts import (
    Began,
    Checked,
    Checking,
    Decided,
    Ended,
    Fact,
    Fared,
    Launching,
    Sent,
    Settled,
    Started,
    Step,
)
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits
from ralph.kernel.state import NEW, fold
from ralph.kernel.tasks.task import Assignment, Mode
from ralph.kernel.turn import Role, Turn
from ralph.kernel.verdict import Bench, Boundary, Continue, Reason, Stop, Wait
from ralph.kernel.world import Signals
from ralph.text.plain import columns
from ralph.ui.lines import clock_time
from ralph.ui.status.report import (
    Report,
    age,
    doing_words,
    phase_of,
    report_dict,
    report_lines,
    table_lines,
)
from ralph.ui.style import Style

RUN = "20260101-100000-aaaa"
STARTED = Started(
    100.0, RUN, "harness", "/home/me/project", 7, "0.1", limits=Limits(10, 7200, 20), agent="claude"
)
BEGAN = Began(100.0, 3, Assignment("prompt", "Make the tests pass"))
WORKS = Launching(101.0, Role.WORK, "claude", "/s/003.stream")
FINDING = Finding("make test", "Guardrail failed\nmore", code=2, log=".ralph/log")
ENDED = Ended(200.0, Turn(cost_usd=1.5, usage=Usage(1000, 2000, 300_000)))
TREE = {
    "processes": 5,
    "cpu_percent": 132.4,
    "rss_bytes": 812_000_000,
    "ralph": {"processes": 1, "cpu_percent": 0.4, "rss_bytes": 31_000_000},
}


def told(*facts: Fact, now: float = 300.0, **more: Any) -> Report:  # noqa: ANN401
    """A report on a run with these facts."""
    state, started = NEW, None
    for fact in facts:
        state = fold(state, fact)
        started = fact if isinstance(fact, Started) else started
    last = facts[-1] if facts else None
    doing = last if isinstance(last, Launching | Checking) else None
    report = Report(RUN, "/s", "/s/journal.jsonl", now, state, started, doing, pid=7)
    return replace(report, **more)


def closed(verdict: Continue | Wait | Stop, *findings: Finding, turn: Turn = ENDED.turn) -> Any:  # noqa: ANN401
    """A turn that was judged, with all that belongs to it."""
    decided = Decided(210.0, Boundary.CLOSING, verdict, findings)
    return (STARTED, BEGAN, WORKS, Ended(200.0, turn), decided, Settled(220.0, verdict))


SENT = Sent(290.0, 1, "refs/ralph/r/T-1/1", "1" * 40)
PLACED = Fared(295.0, 1, "placed", "build-7")
LIMITED = Turn(failure=Failure("no more", status=429))
COMPLETED = Stop(Reason.COMPLETED, evidence=("passed: make test",))


UNCOUNTED = (*closed(Continue()), Ended(230.0, Turn()), Ended(240.0, Turn()))


@pytest.mark.parametrize(
    ("report", "phase", "words"),
    [
        (told(), "starting", "just starting"),
        (told(STARTED), "opening", "starts the next turn"),
        (told(STARTED, BEGAN), "turn", "between two steps"),
        (told(STARTED, BEGAN, WORKS), "turn", "the agent has worked for 3m19s, no output yet"),
        (told(STARTED, BEGAN, SENT), "turn", "waiting for a machine for 10s"),
        (told(STARTED, BEGAN, SENT, PLACED), "turn", "build-7 prepares for 5.0s"),
        (
            told(STARTED, BEGAN, SENT, PLACED, WORKS),
            "turn",
            "the agent has worked for 3m19s on build-7, no output yet",
        ),
        (
            told(STARTED, BEGAN, WORKS, heard_at=296.0),
            "turn",
            "the agent has worked for 3m19s, last output 4.0s ago",
        ),
        (
            told(STARTED, BEGAN, replace(WORKS, role=Role.REVIEW)),
            "turn",
            "the agent has reviewed for 3m19s, no output yet",
        ),
        (
            told(STARTED, BEGAN, WORKS, ENDED, Checking(288.0, "make test")),
            "checking",
            "checking `make test` for 12s",
        ),
        (told(*closed(Continue())[:-1]), "settling", "putting the verdict into effect for 1m30s"),
        (
            told(*closed(Continue())[:-1], Launching(290.0, Role.MESSAGE, "text", "/s/m")),
            "settling",
            "the agent has been writing a commit message for 10s, no output yet",
        ),
        (
            told(*closed(Wait(1020.0, "no more"), turn=LIMITED)),
            "waiting",
            f"for the rate limit until {clock_time(1020.0)} (12m left)",
        ),
        (
            told(*closed(Wait(310.0, "empty"))),
            "waiting",
            f"until {clock_time(310.0)} (10s left): empty",
        ),
        (
            told(*closed(Continue(after=120.0))),
            "waiting",
            f"until {clock_time(330.0)} (30s left), then the next turn starts",
        ),
        (
            told(
                STARTED,
                Decided(240.0, Boundary.OPENING, Wait(None, "paused")),
                asked=Signals(paused=True),
            ),
            "paused",
            "for 1m; ralph resume goes on",
        ),
        (told(*closed(COMPLETED), pid=None), None, "completed, exit code 0, 1m ago"),
        (
            told(STARTED, BEGAN, WORKS, pid=None),
            "turn",
            "its process is gone without a last word, 3m ago",
        ),
        (told(pid=None), "starting", "its process is gone without a last word"),
        (
            told(pid=None, problem="line 3 was changed"),
            "starting",
            "no process of it is seen and its journal cannot be read",
        ),
        # The clock was set back: nothing is negative.
        (
            told(STARTED, BEGAN, WORKS, now=50.0, heard_at=60.0),
            "turn",
            "the agent has worked for 0.0s, last output 0.0s ago",
        ),
    ],
)
def test_what_it_is_doing(report: Report, phase: str | None, words: str) -> None:
    assert phase_of(report) == phase
    assert doing_words(report) == words


def text_of(report: Report, style: Style = Style()) -> str:
    return "\n".join(report_lines(report, style))


def test_everything_about_a_run_at_work() -> None:
    report = told(
        *closed(Continue(), FINDING, Finding("protect", "CI was changed\nmore")),
        Began(221.0, 4, Assignment("T-1", "Parse dates", Mode.REVIEW)),
        replace(WORKS, time=222.0),
        asked=Signals(1),
        last_actions=("Bash(make test)", "I fix the parser."),
        tree=TREE,
        heard_at=299.0,
    )
    assert text_of(report).splitlines() == [
        f"Run        {RUN} (harness)",
        "State      running: the agent has worked for 1m18s, last output 1.0s ago",
        "Asked      to stop after the current operation",
        "Workspace  /home/me/project",
        "Agent      claude",
        "Task       T-1 (review): Parse dates",
        "Iteration  4 of 10",
        "Spent      3m20s of 2h, $1.50 of $20.00, 301K tokens in, 2K out",
        "Found      make test: exit code 2, output in .ralph/log",
        "           protect: CI was changed",
        "Last       Bash(make test)",
        "           I fix the parser.",
        "Processes  5 of the agent and its checks: 132% CPU, 812MB",
        "           ralph itself (pid 7): 0% CPU, 31MB",
        "Journal    /s/journal.jsonl",
        "Follow it: ralph logs -f     End it: ralph stop",
    ]


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (told(STARTED, asked=Signals(2)), "Asked      to stop at once"),
        (told(STARTED, asked=Signals(paused=True)), "Asked      to pause before the next turn"),
        (told(STARTED, problem="line 3 was changed"), "Problem    line 3 was changed"),
        (told(replace(STARTED, model="opus")), "Agent      claude, model opus"),
        (told(replace(STARTED, limits=Limits())), "Iteration  0\nSpent      3m20s\n"),
        (told(STARTED, tree={**TREE, "processes": 0}), "Processes  ralph itself (pid 7)"),
        (
            told(
                *closed(Wait(250.0, "x"), turn=LIMITED),
                Decided(280.0, Boundary.OPENING, Continue()),
            ),
            "1m10s of waiting beside it",
        ),
        (told(*closed(Continue())), "3m20s of 2h, $1.50 of $20.00, 301K tokens"),
        (told(*UNCOUNTED), "3m20s of 2h, $1.50 of $20.00 and 2 turns of unknown cost, 301K tokens"),
        (
            told(replace(STARTED, limits=Limits()), BEGAN, Ended(200.0, Turn())),
            "Spent      3m20s\n",
        ),
        (told(STARTED, pid=None), "Go on: ralph resume"),
        (
            told(*closed(COMPLETED), pid=None),
            "Completed after 3 iterations in 2m, $1.50.\nProof      make test passed",
        ),
        (
            told(*closed(Stop(Reason.BLOCKED, "which port?")), pid=None),
            "Stopped: which port? (blocked). 3 iterations in 2m, $1.50.\nJournal",
        ),
    ],
)
def test_what_is_said_only_where_it_matters(report: Report, words: str) -> None:
    assert words in text_of(report)


def test_a_pause_that_is_in_force_is_not_asked_for() -> None:
    paused = Decided(240.0, Boundary.OPENING, Wait(None, "paused"))
    assert "Asked" not in text_of(told(STARTED, paused, asked=Signals(paused=True)))


def test_a_hostile_title_is_harmless_and_lines_fit_the_terminal() -> None:
    title = "\x1b[2J\x07" + "wide 字 " * 40
    report = told(STARTED, replace(BEGAN, assignment=Assignment("p", title)), tree=TREE)
    text = "\n".join(report_lines(report, Style(width=60)))
    assert "\x1b" not in text
    (task,) = re.findall("Task .*", text)
    assert columns(task) == 60


def test_colours_only_where_they_are_wanted() -> None:
    assert "\x1b[36m" in text_of(told(STARTED), Style(color=True))


# ------------------------------------------------------------------ for programs


def test_the_object_has_everything_a_program_asks_for() -> None:
    report = told(*closed(Continue(), FINDING), tree=TREE, last_actions=("x",))
    shown = json.loads(json.dumps(report_dict(report)))
    names = (
        "run profile state reason exit task iteration max_iterations spent pid wake_at state_dir"
    )
    more = (
        "title agent model workspace started_at ended_at limits findings last_actions tree journal"
    )
    assert {*names.split(), *more.split(), "phase"} <= shown.keys()
    assert shown["spent"] == SPENT
    assert (shown["reason"], shown["exit"], shown["ended_at"], shown["model"]) == (None,) * 4
    assert shown["findings"][0]["gate"] == "make test"
    assert shown["limits"] == {"iterations": 10, "seconds": 7200, "cost_usd": 20, "tasks": None}


SPENT = {
    "iterations": 3,
    "seconds": 200.0,
    "cost_usd": 1.5,
    "uncounted": 0,
    "tokens": {"input": 1000, "output": 2000, "cache_read": 300_000, "cache_write": 0},
}
NOTHING = {"iterations": 0, "seconds": 200.0, "cost_usd": None, "uncounted": 0, "tokens": None}


@pytest.mark.parametrize(
    ("report", "known"),
    [
        (told(), {"profile": None, "iteration": 0, "task": None, "agent": None, "pid": 7}),
        (told(STARTED), {"spent": NOTHING}),
        (told(STARTED, pid=None), {"reason": None, "exit": None, "pid": None}),
        (told(STARTED, asked=Signals(1)), {"asked": "stop"}),
        (told(STARTED, asked=Signals(2)), {"asked": "stop-now"}),
        (told(STARTED, asked=Signals(paused=True)), {"asked": "pause"}),
        (
            told(*closed(Wait(1020.0, "x"))),
            {"wake_at": 1020.0, "phase": "waiting"},
        ),
        (told(*closed(Wait(1020.0, "x")), now=1030.0), {"wake_at": None}),
        (
            told(*closed(Stop(Reason.LIMIT, "used up")), pid=None),
            {"reason": "limit", "exit": 1, "why": "used up", "ended_at": 220.0, "phase": None},
        ),
        (told(problem="torn"), {"problem": "torn"}),
        (told(*UNCOUNTED), {"spent": {**SPENT, "uncounted": 2}}),
    ],
)  # fmt: skip
def test_null_is_what_is_not_known(report: Report, known: dict[str, object]) -> None:
    shown = report_dict(report)
    assert {name: shown[name] for name in known} == known


# ------------------------------------------------------------------ many runs


def test_a_table_of_runs() -> None:
    reports = [
        told(STARTED, BEGAN, WORKS),
        told(*closed(COMPLETED), pid=None),
        told(*UNCOUNTED),
        told(pid=None, problem="line 3 was changed"),
    ]
    assert table_lines(reports, Style(width=90)) == [
        "RUN                   STATE      PROFILE  TURNS  SPENT         AGE  WORKSPACE",
        f"{RUN}  running    harness  3/10   3m20s         3m   /home/me/project",
        f"{RUN}  completed  harness  3/10   2m $1.50      3m   /home/me/project",
        f"{RUN}  running    harness  3/10   3m20s $1.50+  3m   /home/me/project",
        f"{RUN}  unknown    -        0      0.0s          -    -",
        f"{RUN}: line 3 was changed",
    ]


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("stop", [COMPLETED, Stop(Reason.INTERRUPTED)])
def test_the_table_fits(width: int, stop: Stop) -> None:
    """ "fits 80 columns": of a long path the end is kept."""
    path = "/home/me/" + "deep/" * 40 + "project"
    deep = replace(STARTED, workspace=path, profile="supervise", limits=Limits(10_000))
    _, *facts = closed(stop, turn=Turn(cost_usd=1234.5))
    lines = table_lines([told(deep, *facts, pid=None)], Style(width=width))
    assert max(map(len, lines)) <= width
    assert lines[-1].endswith("project")


def test_a_very_narrow_terminal_gets_what_fits() -> None:
    assert max(map(len, table_lines([told(STARTED)], Style(width=30)))) == 30


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "0s"), (59.9, "59s"), (60, "1m"), (7199, "1h"), (200_000, "2d"), (1e9, "31y")],
)
def test_ages(seconds: float, words: str) -> None:
    assert age(seconds) == words


def test_a_step_and_a_check_are_no_trouble() -> None:
    facts = (*closed(Continue())[:-1], Step(215.0, "scm:commit"), Checked(216.0, "x", 1.0))
    assert doing_words(told(*facts)) == "putting the verdict into effect for 1m25s"


def test_who_is_benched_until_when() -> None:
    """ADR 45. Whose time has come is benched no more, and after the end nobody is."""
    benches = (Bench(0, 301.0, "claude"), Bench(1, 299.0, "codex"), Bench(2, None, "gemini"))
    limited = Turn(exit_code=1, failure=Failure("limited", 429), place=1, agent="codex")
    report = told(STARTED, BEGAN, WORKS, replace(ENDED, turn=limited))
    report = replace(report, state=replace(report.state, benches=benches))
    text = text_of(report)
    assert "Agent      claude; the last turn by codex\n" in text
    lines = text.splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith("Benched"))
    assert lines[place : place + 2] == [
        f"Benched    claude until {clock_time(301.0)} (1.0s left)",
        "           gemini, for the rest of the run",
    ]
    shown = report_dict(report)
    assert shown["by"] == "codex"
    assert shown["benched"] == [
        {"agent": "claude", "until": 301.0},
        {"agent": "gemini", "until": None},
    ]
    over = replace(report, state=replace(report.state, stop=Stop(Reason.LIMIT)))
    assert report_dict(over)["benched"] == []
