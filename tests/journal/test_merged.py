"""Journals of a run and its workers, read as one, also while they grow."""

import os
from pathlib import Path

import pytest

from ralph.errors import StateError
from ralph.journal.journal import JOURNAL, FileJournal
from ralph.journal.merged import MergedJournal
from ralph.journal.runs import Run, workers_at
from ralph.kernel.facts import Assigned, Fact, Resumed, Returned
from ralph.kernel.state import replay
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.verdict import Accept

RUN = "20260101-100000-aaaa"


class Journals:
    """Those of one run, to which a test adds."""

    def __init__(self, project: Path) -> None:
        self.run = Run(RUN, str(project))
        self._open: dict[str, FileJournal] = {}

    def lead(self, *facts: Fact) -> None:
        self._add(self.run.directory, *facts)

    def worker(self, number: int, *times: float) -> None:
        place = os.path.join(self.run.directory, "runs", name(number))
        self._add(place, *(Resumed(time, number) for time in times))

    def _add(self, place: str, *facts: Fact) -> None:
        os.makedirs(place, exist_ok=True)
        journal = self._open.setdefault(place, FileJournal(os.path.join(place, JOURNAL)))
        for fact in facts:
            journal.record(fact)

    def close(self) -> None:
        for journal in self._open.values():
            journal.close()


@pytest.fixture
def journals(tmp_path: Path) -> Journals:
    return Journals(tmp_path)


def name(number: int) -> str:
    return f"{RUN}-{number:03d}"


def sent(time: float, number: int) -> Assigned:
    return Assigned(time, Assignment(f"T-{number}"), name(number))


def back(time: float, number: int) -> Returned:
    return Returned(time, f"T-{number}", name(number), Accept(("claimed",)))


def told(merged: MergedJournal) -> list[tuple[float, str]]:
    """When, and to what one was sent; of the run itself nothing."""
    found = merged.new()
    return [(one.fact.time, one.sent.assignment.task if one.sent else "") for one in found]


def test_the_order_is_that_of_time(journals: Journals) -> None:
    journals.lead(sent(1, 1), sent(2, 2), back(6, 1), back(9, 2))
    journals.worker(1, 3, 5)
    journals.worker(2, 4, 7, 8)
    journals.close()
    merged = MergedJournal(journals.run)
    tasks = ["", "", "T-1", "T-2", "T-1", "", "T-2", "T-2", ""]
    assert told(merged) == list(zip(map(float, range(1, 10)), tasks, strict=True))
    assert told(merged) == []


def test_facts_of_the_same_time_have_an_order(journals: Journals) -> None:
    journals.lead(sent(1, 1), sent(1, 2), sent(1, 3))
    for number in (3, 2, 1):
        journals.worker(number, 1, 1)
    journals.close()
    found = [task for _, task in told(MergedJournal(journals.run))]
    assert found == ["", "", "", "T-1", "T-1", "T-2", "T-2", "T-3", "T-3"]


def test_what_is_added_is_found_with_workers_sent_later(journals: Journals) -> None:
    merged = MergedJournal(journals.run)
    assert told(merged) == [], "there is no journal yet"
    journals.lead(sent(1, 1))
    assert told(merged) == [(1, "")]
    journals.worker(1, 2)
    journals.lead(sent(3, 2))
    assert told(merged) == [(2, "T-1"), (3, "")]
    journals.worker(2, 4)
    journals.worker(1, 5)
    journals.lead(back(6, 1))
    assert told(merged) == [(4, "T-2"), (5, "T-1"), (6, "")]
    journals.close()


def test_a_clock_that_was_set_back_loses_nothing(journals: Journals) -> None:
    """A journal's own order stands, and all of a worker's comes before the end."""
    journals.lead(sent(10, 1), back(2, 1))
    journals.worker(1, 11, 3, 12)
    journals.close()
    assert sorted(told(MergedJournal(journals.run))) == [
        (2, ""),
        (3, "T-1"),
        (10, ""),
        (11, "T-1"),
        (12, "T-1"),
    ]


def test_a_worker_that_grew_while_its_lead_was_read_is_told_before_its_return(
    journals: Journals,
) -> None:
    journals.lead(sent(1, 1))
    journals.worker(1, 2)
    merged = MergedJournal(journals.run)
    found = merged.new()
    assert [next(found).fact.time for _ in range(2)] == [1, 2]
    journals.lead(Resumed(3, 7))
    journals.worker(1, 4)
    journals.lead(back(5, 1))
    rest = [one.fact.time for one in found] + [one.fact.time for one in merged.new()]
    assert sorted(rest) == [3, 4, 5]
    assert rest.index(4) < rest.index(5)
    journals.close()


def test_a_thousand_workers_leave_few_files_open(journals: Journals) -> None:
    """A run may send more of them than a process may have files."""
    for number in range(1, 200):
        journals.lead(sent(10 * number, number), back(10 * number + 5, number))
        journals.worker(number, 10 * number + 1)
    journals.close()
    before = len(os.listdir("/proc/self/fd"))
    most = 0
    for _ in MergedJournal(journals.run).new():
        most = max(most, len(os.listdir("/proc/self/fd")) - before)
    assert most <= 3


@pytest.mark.parametrize("run", ["../../other", "", "..", "a/b", "a\nb"])
def test_a_name_that_leads_elsewhere_is_not_followed(journals: Journals, run: str) -> None:
    strange = Assigned(1, Assignment("T-1"), run)
    journals.lead(strange)
    journals.close()
    assert told(MergedJournal(journals.run)) == [(1, "")]
    assert workers_at(journals.run, replay((strange,))) == []


def test_a_line_that_was_changed_is_named(journals: Journals) -> None:
    journals.lead(sent(1, 1))
    journals.worker(1, 2, 3)
    journals.close()
    path = Path(journals.run.directory, "runs", name(1), JOURNAL)
    path.write_text(path.read_text().replace('"time":2.0', '"time":2.5').replace(":2,", ":7,"))
    with pytest.raises(StateError, match=name(1)):
        told(MergedJournal(journals.run))
