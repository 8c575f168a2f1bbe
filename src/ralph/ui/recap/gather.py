"""Gathers the recap of a run: from its journals, and what lies beside them."""

import os
from collections.abc import Iterable

from ralph.errors import StateError
from ralph.git.repository import Repository, repository_of_run
from ralph.journal.runs import Facts, Run, account_of, folding, is_name, workers_at
from ralph.kernel.facts import Assigned, Returned
from ralph.kernel.value import replace
from ralph.ui.recap.beside import Beside
from ralph.ui.recap.chapter import Chapter, Draft
from ralph.ui.recap.contents import with_contents
from ralph.ui.recap.diffs import Diffs
from ralph.ui.recap.gathered import Gathered, Seen
from ralph.ui.recap.items import added
from ralph.ui.recap.values import Diff, Iteration, Recap
from ralph.ui.status.reading import heard_at


class Gatherer:
    """Follows a run, and gives its recap at any moment. Whoever knows that `run` has ended says
    so."""

    def __init__(self, run: Run, beside: Beside = Beside()) -> None:
        self.run, self._beside = run, beside
        sent = None
        if run.lead is not None:
            out = workers_at(run.lead, account_of(run.lead).state)
            sent = next((sent for worker, sent in out if worker.id == run.id), None)
        self._gathered = Gathered(run.id, sent)
        self._journals = {"": Facts(run.journal)}
        self._problems: dict[str, str] = {}
        self._diffs = Diffs(self._repository)

    def read(self) -> bool:
        """Read what is new; True if there are new facts."""
        found = False
        for name in [*self._journals]:
            if name in self._journals:  # a worker may have come back meanwhile
                found |= self._read(name)
        return found

    def _read(self, name: str) -> bool:
        """The new facts of a journal; one that cannot be read any further is left."""
        found, journal = False, self._journals[name]
        try:
            with folding(journal.path):
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
            self._problems[name] = error.words
            self._journals.pop(name, None)
        return found

    def recap(self, now: float, *, whole: bool = False) -> Recap:
        """The recap of what was read by now. A whole one has prompts, items, tools, the output of
        checks and patches too."""
        drafts = self._gathered.drafts()
        recap = self._gathered.recap(self._seen(now), self._beside, self._diffs_of(drafts))
        if not whole:
            return recap
        pairs = zip(recap.iterations, drafts, strict=True)
        iterations = tuple(self._whole(each, *where) for each, where in pairs)
        tools = added(tool for each in iterations for tool in each.tools)
        return replace(recap, iterations=iterations, tools=tools)

    def iteration(self, number: int, worker: str, now: float) -> Iteration | None:
        """One iteration in full; None if there is none. `worker` is "" for the run's own."""
        for chapter, draft in self._gathered.drafts():
            if (chapter.worker, draft.number) == (worker, number):
                known = self._diffs_of([(chapter, draft)])
                found = self._gathered.iterations(self._seen(now), self._beside, known)
                made = next(e for e in found if (e.worker, e.number) == (worker, number))
                return self._whole(made, chapter, draft)
        return None

    def _whole(self, made: Iteration, chapter: Chapter, draft: Draft) -> Iteration:
        workspace = chapter.started.workspace if chapter.started else ""
        run_dir = self.run.directory
        if chapter.worker:
            run_dir = os.path.join(run_dir, "runs", chapter.worker)
        whole = with_contents(made, draft, workspace, run_dir)
        return replace(whole, diff=self._diffs.with_patch(draft.changed, made.diff))

    def _diffs_of(self, drafts: Iterable[tuple[Chapter, Draft]]) -> dict[str, Diff]:
        """The diffs of these, and of their commits."""
        asked = (what for _, draft in drafts for what in (draft.changed, draft.commit) if what)
        return self._diffs.of(asked)

    def _repository(self) -> Repository:
        """The repository of the run. A worker's own work tree is gone."""
        first, started = self.run.lead or self.run, self._gathered.lead.started
        workspace = started.workspace if started else os.devnull
        return repository_of_run(workspace, self._beside.environ, first.directory)

    def _seen(self, now: float) -> Seen:
        run, started = self.run, self._gathered.lead.started
        return Seen(
            now,
            pid=run.owner.pid if run.owner else None,
            asked=run.asked(),
            heard_at=heard_at(self._gathered.lead.doing),
            directory=run.directory,
            journal=run.journal,
            lead=run.lead.id if run.lead else "",
            problem=" ".join(self._problems.values()),
            listed=self._beside.tasks(started) if started is not None else (),
        )


def recap_of(run: Run, now: float, beside: Beside = Beside()) -> Recap:
    """The whole recap of a run as it is now. Whatever is wrong with it is part of the recap."""
    gatherer = Gatherer(run, beside)
    gatherer.read()
    return gatherer.recap(now, whole=True)
