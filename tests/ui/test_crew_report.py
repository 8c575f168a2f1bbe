"""`ralph status` of several workers, in words, as an object and as a row."""

import pytest

from ralph.journal.life import Life
from ralph.kernel.facts import (
    Assigned,
    Began,
    Checking,
    Decided,
    Ended,
    Fact,
    Launching,
    Returned,
    Settled,
    Started,
    Step,
)
from ralph.kernel.limits import Spent
from ralph.kernel.state import fold, replay
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Role, Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Accept, Boundary, Park, Reason, Stop, Wait
from ralph.kernel.world import Signals
from ralph.ui.status.report import Report, doing_words, report_dict, report_lines, table_lines
from ralph.ui.style import Style

RUN = "20260101-100000-aaaa"
STARTED = Started(100.0, RUN, "tasks", "/w", 7, "1.0", workers=4)
OWN = replace(STARTED, workers=1)
TASK = Assignment("T-3", "Make it good")
BEGAN = Began(100.0, 1, TASK)
WORKS = Launching(110.0, Role.WORK, "claude", "/s/001.stream")
ENDED = Ended(120.0, Turn(cost_usd=0.5))
ACCEPTED = Decided(130.0, Boundary.CLOSING, Accept(("claimed",)))
CHECKS = Checking(135.0, "make test")


def worker(*facts: Fact, pid: int | None = 7) -> Report:
    """One at T-3, with these facts."""
    last = facts[-1] if facts else None
    return Report(
        run=f"{RUN}-003",
        directory="/s",
        journal="/s/journal.jsonl",
        now=140.0,
        state=replay(facts),
        started=OWN if facts else None,
        doing=last if isinstance(last, Launching | Checking) else None,
        pid=pid,
        sent=TASK,
    )


def crew(*workers: Report) -> Report:
    """Two tasks are over, one of them parked; these are at work."""
    facts: tuple[Fact, ...] = (
        STARTED,
        *(Assigned(100.0, Assignment(f"T-{n}"), f"{RUN}-00{n}") for n in (1, 2, 3)),
        Returned(101.0, "T-1", f"{RUN}-001", Accept(("claimed",)), Spent(2, dollars=1.0)),
        Returned(102.0, "T-2", f"{RUN}-002", Park("no"), Spent(1, uncounted=1)),
    )
    report = Report(RUN, "/s", "/s/journal.jsonl", 140.0, replay(facts), STARTED)
    return replace(report, workers=workers, pid=7, ahead=frozenset({"T-3", "T-4", "T-5"}))


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ((), "just starting"),
        ((OWN, BEGAN, WORKS), "the agent has worked for 30s, no output yet"),
        ((OWN, BEGAN, WORKS, ENDED, CHECKS), "checking `make test` for 5.0s"),
        ((OWN, BEGAN, WORKS, ENDED, ACCEPTED), "waiting for its turn to merge for 10s"),
        (
            (OWN, BEGAN, WORKS, ENDED, ACCEPTED, CHECKS),
            "checking `make test` on the merged tree for 5.0s",
        ),
        ((OWN, BEGAN, WORKS, ENDED, ACCEPTED, Step(138.0, "record")), "merging for 2.0s"),
    ],
)
def test_what_a_worker_is_doing(facts: tuple[Fact, ...], words: str) -> None:
    assert doing_words(worker(*facts)) == words


def test_the_lines_of_workers_and_tasks() -> None:
    """ "task, iteration (2/10), what it is doing, cost; then how many are done of how many"."""
    lines = report_lines(crew(worker(OWN, BEGAN, WORKS, ENDED, ACCEPTED), worker()), Style())
    assert "State      running: 2 workers at work" in lines
    place = lines.index("Workers    T-3 1/10: waiting for its turn to merge for 10s, $0.50")
    assert lines[place + 1 : place + 4] == [
        "           T-3: just starting",
        "Tasks      1 of 5 done, 1 left to you",
        "Iterations 4",
    ]
    assert lines[place + 4].startswith("Spent      40s, $1.50 and 1 turn of unknown cost")
    again = Assigned(110.0, Assignment("T-2"), f"{RUN}-004")  # its answer has come
    report = crew(worker(), worker(), worker())
    taken = replace(report, state=fold(report.state, again))
    answered = replace(report, ahead=frozenset({"T-2", "T-3", "T-4", "T-5"}))
    assert [each.tally.words for each in (taken, answered)] == ["1 of 5 done"] * 2


def test_lines_are_cut_to_the_terminal() -> None:
    gate = Checking(135.0, "x" * 200)
    lines = report_lines(crew(worker(OWN, BEGAN, WORKS, ENDED, gate)), Style(width=60))
    (line,) = [line for line in lines if line.startswith("Workers")]
    assert len(line) == 60


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (worker(OWN, BEGAN, WORKS, pid=None), "T-3 1/10: in the middle"),
        (worker(pid=None), "T-3: not begun"),
        (
            worker(OWN, BEGAN, ENDED, Settled(130.0, Stop(Reason.INTERRUPTED)), pid=None),
            "T-3 1/10: in the middle, $0.50",
        ),
        (
            worker(OWN, Settled(130.0, Stop(Reason.COMPLETED)), pid=None),
            "T-3: completed",
        ),
        (replace(worker(pid=None), problem="it cannot be read"), "T-3: it cannot be read"),
    ],
)
def test_one_that_is_not_at_work(report: Report, words: str) -> None:
    """ "Ended and crashed runs too (who was in the middle)"."""
    assert f"Workers    {words}" in report_lines(crew(report), Style())


def test_the_object_counts_all() -> None:
    shown = report_dict(crew(worker(OWN, BEGAN, WORKS, ENDED)))
    assert shown["tasks"] == {"done": 1, "parked": 1, "at_work": 1, "total": 5}
    assert (shown["task"], shown["iteration"]) == (None, 4)
    assert shown["spent"]["cost_usd"] == 1.5
    assert shown["spent"]["seconds"] == 40.0, "it passes for all of them at once"
    assert [(one["task"], one["title"]) for one in shown["workers"]] == [("T-3", "Make it good")]


def test_a_row_counts_all() -> None:
    _, row = table_lines([crew(worker(OWN, BEGAN, WORKS, ENDED))], Style())
    assert row.split()[1:6] == ["running", "tasks", "4", "40s", "$1.50+"]


def test_a_crew_pauses_by_its_workers() -> None:
    paused = Signals(paused=True)
    rests = replace(
        worker(OWN, Decided(110.0, Boundary.OPENING, Wait(None, "paused"))), asked=paused
    )
    works = replace(worker(OWN, BEGAN, WORKS), asked=paused)
    assert replace(crew(rests, works), asked=paused).life is Life.RUNNING
    assert replace(crew(rests), asked=paused).life is Life.PAUSED
    assert crew(rests).life is Life.RUNNING
