"""Joins the facts of a run and of its workers. Facts in, a recap out; nothing is read.

A worker's facts may come before or after those of others: the recap is the same.
"""

from collections.abc import Iterator, Mapping, Sequence

from ralph.journal.life import Life
from ralph.kernel.facts import Assigned, Fact, Returned
from ralph.kernel.tasks.task import Task
from ralph.kernel.value import replace, value
from ralph.kernel.world import PAUSE, Signals
from ralph.ui.closing import closing_of
from ralph.ui.forecast_words import forecast_words
from ralph.ui.recap import tables
from ralph.ui.recap.beside import Beside
from ralph.ui.recap.chapter import Change, Chapter, Draft
from ralph.ui.recap.settled import settled_since
from ralph.ui.recap.values import Diff, Iteration, Money, Outlook, Recap, TaskRow
from ralph.ui.recap.words import judgement_of, shown
from ralph.ui.status.listing import command_of, state_word
from ralph.ui.status.report import (
    Report,
    asked_word,
    briefing_for,
    doing_words,
    resume_command,
)

_MOST_ASKED = 1_000  # characters
_MOST_LINES = 50  # of what is done, and of what is left
_WITH_TASKS = ("tasks", "reviewed")  # profiles


@value
class Seen:
    """A run from outside, at one moment."""

    now: float
    pid: int | None = None  # of its process, while that lives
    asked: Signals = Signals()
    heard_at: float | None = None  # when the agent last printed something
    directory: str = ""
    journal: str = ""
    lead: str = ""
    problem: str = ""
    listed: tuple[Task, ...] = ()  # its list, as it is now

    @property
    def live(self) -> bool:
        return self.pid is not None


class Gathered:
    """Takes the facts of a run as they come. `sent`: of a worker, what it was sent to do."""

    def __init__(self, run: str, sent: Assigned | None = None) -> None:
        self.lead = Chapter(run)
        self.workers: dict[str, Chapter] = {}
        self._sent: list[Assigned] = []
        self._back: dict[str, Returned] = {}
        self._own = sent

    @property
    def chapters(self) -> tuple[Chapter, ...]:
        return (self.lead, *self.workers.values())

    def take(self, fact: Fact, worker: str = "") -> None:
        """One more fact, of a worker's journal if one is named. A worker is sent before it acts."""
        if worker:
            self.workers[worker].take(fact)
            return
        self.lead.take(fact)
        if isinstance(fact, Assigned):
            self._sent.append(fact)
            self.workers.setdefault(fact.worker, Chapter(fact.worker, fact))
        elif isinstance(fact, Returned):
            self._back[fact.worker] = fact

    # ------------------------------------------------------------ iterations

    def drafts(self) -> list[tuple[Chapter, Draft]]:
        """All iterations by when they began."""
        found = [(each, draft) for each in self.chapters for draft in each.drafts.values()]
        return sorted(found, key=lambda pair: pair[1].began)

    def iterations(
        self, seen: Seen, beside: Beside, diff_of: Mapping[str, Diff]
    ) -> Iterator[Iteration]:
        for chapter, draft in self.drafts():
            at_work = seen.live and chapter.run not in self._back
            made = chapter.iteration(draft, seen.now, beside.rules, live=at_work)
            diff = diff_of.get(draft.changed)
            yield made if diff is None else replace(made, diff=diff)

    # ------------------------------------------------------------ the whole

    def recap(
        self, seen: Seen, beside: Beside = Beside(), diff_of: Mapping[str, Diff] = {}
    ) -> Recap:
        """The run up to now, by its facts alone. `diff_of` knows the diffs of commits, and of two
        trees with a blank between."""
        report, lead, state = self._report(seen), self.lead, self.lead.state
        stop = state.stop
        closing = closing_of(stop, replace(state, spent=report.spent), briefing_for(report))
        closing = settled_since(closing, stop, seen.listed)
        iterations = list(self.iterations(seen, beside, diff_of))
        rows = tuple(self._rows(iterations, seen, diff_of))
        resume = resume_command(report)
        return replace(
            self._head(seen, beside),
            state=stop.reason.value if stop else state_word(report, tuple(lead.asking)),
            outcome=shown(closing.outcome or _outcome(report)),
            pending=_pending(report),
            problem=shown(seen.problem or _stays_paused(report)),
            wake_at=state.wakes if report.life is Life.WAITING else None,
            spent=_money(report),
            agents=tuple(tables.agent_rows(self.chapters)),
            forecast=_outlook(report, beside) if seen.live else None,
            done=_lines(closing.done),
            left=_lines(closing.left),
            yours=_lines(closing.yours),
            next=_lines(closing.next or ((resume,) if resume else ())),
            tasks=rows,
            pulls=tuple(tables.pull_rows(state)),
            iterations=tuple(iterations),
            lanes=tuple(tables.lanes(self._sent, self._back, None if seen.live else self._last)),
            points=tuple(tables.points(self._changes(), len(rows) or None)),
            reviews=tuple(tables.review_rows(lead)),
            steered=tuple(
                tables.steered(
                    (fact for each in self.chapters for fact in each.asked), seen.asked.requests
                )
            ),
        )

    def _head(self, seen: Seen, beside: Beside) -> Recap:
        """The run by its first fact and its last."""
        lead, state, started = self.lead, self.lead.state, self.lead.started
        stop, profile = state.stop, shown(started.profile) if started else ""
        judgement = None
        if lead.opening is not None:
            judgement = judgement_of(lead.opening, None, stop, beside.rules)
        title = next((draft.assignment.title for draft in lead.drafts.values()), "")
        return Recap(
            run=shown(lead.run),
            state="",
            outcome="",
            exit=stop.reason.exit_code if stop else None,
            reason=stop.reason.value if stop else "",
            why=shown(stop.why) if stop else "",
            judgement=judgement,
            profile=profile,
            command=command_of(profile),
            asked=shown(_asked(beside.asked, profile, title), _MOST_ASKED),
            agent=shown(started.agent) if started else "",
            model=shown(started.model) if started else "",
            workspace=shown(started.workspace) if started else "",
            version=shown(started.version) if started else "",
            now=seen.now,
            started=started.time if started else None,
            ended=state.time if stop else None,
            workers=started.workers if started else 1,
            lead=shown(seen.lead),
            pid=seen.pid,
            evidence=tuple(map(shown, stop.evidence)) if stop else (),
            tree=shown(state.proof.tree) if state.proof else "",
            commit=shown(state.commit),
            branch=shown(beside.branch),
            directory=shown(seen.directory),
            journal=shown(seen.journal),
        )

    @property
    def _last(self) -> float:
        """The time of its last fact."""
        return max(each.state.time for each in self.chapters)

    @property
    def _out(self) -> list[Chapter]:
        """The workers that are not back."""
        return [each for name, each in self.workers.items() if name not in self._back]

    def _report(self, seen: Seen) -> Report:
        """The run as `ralph status` has it."""
        report = _report_of(self.lead, seen)
        workers = tuple(_report_of(each, seen) for each in self._out)
        sent = self._own.assignment if self._own else None
        return replace(report, workers=workers, sent=sent)

    def _rows(
        self, iterations: list[Iteration], seen: Seen, diff_of: Mapping[str, Diff]
    ) -> Iterator[TaskRow]:
        started = self.lead.started
        if started is None or started.profile not in _WITH_TASKS:
            return
        asking = {task: why for each in self.chapters for task, why in each.asking.items()}
        evidence = {task: why for each in self.chapters for task, why in each.evidence.items()}
        at_work = {}
        for each in (self.lead, *self._out):
            draft = each.draft
            if seen.live and draft is not None and draft.ended is None:
                at_work[draft.assignment.task] = draft.assignment.mode
        board = tables.TaskTable(self.lead, asking, evidence, at_work)
        yield from board.rows(iterations, seen.listed, diff_of)

    def _changes(self) -> Iterator[Change]:
        """Spending and progress; what a worker calls done, its lead does too."""
        yield from self.lead.changes
        for each in self.workers.values():
            yield from (replace(change, done=0) for change in each.changes)


def _asked(asked: str, profile: str, title: str) -> str:
    """What the run was to do: of a prompt in a file, where that is and how it begins."""
    if not asked or not title or profile in _WITH_TASKS or title in asked:
        return asked or title
    return f"{title} ({asked})"


def _outcome(report: Report) -> str:
    """The words for what it does; a pause brings no news, so that its seconds would stand still."""
    return "It waits for: ralph resume" if report.life is Life.PAUSED else doing_words(report)


def _pending(report: Report) -> str:
    """What is asked of the run and has not come about yet."""
    word = asked_word(report.asked) if report.live else None
    return "" if word is None or (word == PAUSE and report.life is Life.PAUSED) else word


def _stays_paused(report: Report) -> str:
    """Why a run that was to go on could not."""
    if report.life is not Life.PAUSED:
        return ""
    reasons = (each.text for each in report.asked.requests if each.request == PAUSE and each.text)
    reason = next(reasons, "")
    return f"Stays paused: {reason}" if reason else ""


def _report_of(chapter: Chapter, seen: Seen) -> Report:
    return Report(
        run=chapter.run,
        directory=seen.directory,
        journal=seen.journal,
        now=seen.now,
        state=chapter.state,
        started=chapter.started,
        doing=chapter.doing,
        heard_at=seen.heard_at,
        pid=seen.pid,
        asked=seen.asked,
        problem=seen.problem,
        sent=chapter.sent.assignment if chapter.sent else None,
    )


def _money(report: Report) -> Money:
    spent, limits = report.spent, report.limits
    return Money(
        spent.iterations,
        limits.iterations,
        spent.seconds,
        limits.seconds,
        report.state.waited,
        spent.dollars or None,
        limits.dollars,
        spent.uncounted,
        spent.usage,
    )


def _outlook(report: Report, beside: Beside) -> Outlook | None:
    if report.started is None:
        return None
    workers = [worker.state for worker in report.workers]
    found = beside.likely(report.started, report.state, workers)
    if found is None:
        return None
    iterations, seconds, cost = (
        None if each is None else (each.low, each.median, each.high)
        for each in (found.iterations, found.seconds, found.cost_usd)
    )
    return Outlook(
        forecast_words(found),
        found.observations,
        iterations,
        seconds,
        cost,
        found.limit_holds,
        (found.after.iterations, found.after.seconds, found.after.dollars),
    )


def _lines(texts: Sequence[str]) -> tuple[str, ...]:
    rest = len(texts) - _MOST_LINES
    more = (f"and {rest} more",) if rest > 0 else ()
    return (*map(shown, texts[:_MOST_LINES]), *more)
