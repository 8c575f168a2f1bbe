"""Gathers the recap of a run: from its journals, and what lies beside them."""

import os

from ralph.errors import StateError
from ralph.journal.runs import NONSENSE, Facts, Run, account_of, is_name, look_again, workers_at
from ralph.kernel.facts import Assigned, Launching, Returned
from ralph.kernel.value import value
from ralph.ui.recap.beside import Beside
from ralph.ui.recap.gathered import Gathered, Seen
from ralph.ui.recap.values import Recap


@value
class Detail:
    """What a recap holds of each iteration beside what its facts tell."""

    contents: bool = True  # prompt, items, tools, the output of checks, the patch


LIGHT, ALL = Detail(contents=False), Detail()


class Gatherer:
    """Follows a run, and gives its recap at any moment."""

    def __init__(self, run: Run, beside: Beside = Beside()) -> None:
        self.run, self._beside = run, beside
        sent = None
        if run.lead is not None:
            out = workers_at(run.lead, account_of(run.lead).state)
            sent = next((sent for worker, sent in out if worker.id == run.id), None)
        self._gathered = Gathered(run.id, sent)
        self._journals = {"": Facts(run.journal)}
        self._problems: dict[str, str] = {}

    def look(self) -> bool:
        """Read what is new, and see whether the run lives; True if there are new facts."""
        self.run = look_again(self.run)
        return self.read()

    def read(self) -> bool:
        """Read what is new; True if there are new facts."""
        found = False
        for name in [*self._journals]:
            found |= self._read(name)
        return found

    def _read(self, name: str) -> bool:
        """The new facts of a journal; one that cannot be read any further is left."""
        found, journal = False, self._journals[name]
        try:
            for fact in journal.new():
                found = True
                self._gathered.take(fact, name)
                if isinstance(fact, Assigned) and not name and is_name(fact.worker):
                    worker = Run(fact.worker, self.run.directory, lead=self.run)
                    self._journals[fact.worker] = Facts(worker.journal)
                    self._read(fact.worker)
                elif isinstance(fact, Returned) and fact.worker in self._journals:
                    self._read(fact.worker)
                    self._journals.pop(fact.worker, None)
        except StateError as error:
            self._problems[name] = f"{error.message}. {error.remedy}".strip()
        except NONSENSE as error:
            self._problems[name] = f"{self.run.journal}: its facts make no sense ({error!r})"
        if name in self._problems:
            self._journals.pop(name, None)
        return found

    def recap(self, now: float, detail: Detail = LIGHT) -> Recap:
        """The recap of what was read by now."""
        return self._gathered.recap(self._seen(now), self._beside)

    def _seen(self, now: float) -> Seen:
        run, started = self.run, self._gathered.lead.started
        return Seen(
            now,
            live=run.live,
            pid=run.owner.pid if run.owner else None,
            asked=run.asked(),
            heard_at=_heard_at(self._gathered.lead.doing),
            directory=run.directory,
            journal=run.journal,
            lead=run.lead.id if run.lead else "",
            problem=" ".join(self._problems.values()),
            listed=self._beside.tasks(started) if started is not None else (),
        )


def recap_of(run: Run, now: float, *, detail: Detail = ALL, beside: Beside = Beside()) -> Recap:
    """The recap of a run as it is now. Whatever is wrong with it is part of the recap."""
    gatherer = Gatherer(run, beside)
    gatherer.read()
    return gatherer.recap(now, detail)


def _heard_at(doing: object) -> float | None:
    """The time when the stream last grew; None while there is nothing in it."""
    if not isinstance(doing, Launching):
        return None
    try:
        found = os.stat(doing.stream)
    except OSError:
        return None
    return found.st_mtime if found.st_size else None
