"""Merges the journals of a run and all its workers in the order of time, also while they grow."""

import heapq
from collections.abc import Iterator

from ralph.journal.runs import Facts, Run, is_name
from ralph.kernel.facts import Assigned, Fact, Returned
from ralph.kernel.value import value


@value
class JournaledFact:
    """A fact, whose it is, and to what that worker was sent."""

    run: Run
    fact: Fact
    sent: Assigned | None = None  # None: it is the run's own


class MergedJournal:
    """Reads journals once, each to its end. A worker's is opened when it is sent and left when it
    is back, so that of a thousand only those are open that worked at the same time."""

    def __init__(self, run: Run) -> None:
        self._lead = _Journal(run)
        self._workers: dict[str, _Journal] = {}  # those who are not back
        self._sent = 0

    def new(self) -> Iterator[JournaledFact]:
        """The facts since the last call. All that a worker has journaled comes before its return.
        StateError names a line that was changed."""
        queue: list[_Place] = []
        for journal in (self._lead, *self._workers.values()):
            journal.line_up(queue)
        while queue:
            _, _, fact, journal, rest = heapq.heappop(queue)
            if journal is not self._lead:
                yield JournaledFact(journal.run, fact, journal.sent)
            else:
                yield from self._of_the_lead(fact, queue)
            journal.line_up(queue, rest)

    def _of_the_lead(self, fact: Fact, queue: "list[_Place]") -> Iterator[JournaledFact]:
        lead = self._lead.run
        back = self._workers.pop(fact.worker, None) if isinstance(fact, Returned) else None
        # What it has journaled since its end was reached; one that waits has not reached it.
        if back and all(waiting is not back for *_, waiting, _ in queue):
            yield from (JournaledFact(back.run, each, back.sent) for each in back.facts.new())
        yield JournaledFact(lead, fact)
        if isinstance(fact, Assigned) and is_name(fact.worker):
            worker = Run(fact.worker, lead.directory, lead.owner, lead)
            self._sent += 1
            self._workers[fact.worker] = _Journal(worker, fact, self._sent)
            self._workers[fact.worker].line_up(queue)


class _Journal:
    """A journal that may still grow."""

    def __init__(self, run: Run, sent: Assigned | None = None, number: int = 0) -> None:
        self.run, self.sent = run, sent
        self.number = number  # among those of the same time
        self.facts = Facts(run.journal)

    def line_up(self, queue: "list[_Place]", facts: Iterator[Fact] | None = None) -> None:
        """Queue with the next of its facts, if there is one."""
        facts = facts or self.facts.new()
        if (fact := next(facts, None)) is not None:
            heapq.heappush(queue, (fact.time, self.number, fact, self, facts))


_Place = tuple[float, int, Fact, _Journal, Iterator[Fact]]
