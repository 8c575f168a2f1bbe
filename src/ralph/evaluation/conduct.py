"""Makes the trials of an evaluation, several at a time, and writes each result down at once.

A thread for each trial at a time, with a keeper of its own: whatever becomes of this process, no
run of a trial and no agent is left. Only the caller's thread writes.
"""

import os
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ralph.errors import failing
from ralph.evaluation.trial import GRACE, Hand, Site, look_at, refuse_unusable, try_once
from ralph.evaluation.trials import Result, Standing, TaskCheck, Trial, shuffled, trials_of
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Cut
from ralph.runner.keeping import keeping
from ralph.sandbox.layer_store import remove
from ralph.text.words import duration

_MOST_ERRORS = 3  # in a row, of one agent


@value
class Terms:
    """The limits of the evaluation as a whole. What is under way when one is reached ends first."""

    at_once: int
    seconds: float | None = None
    dollars: float | None = None


def plan_of(site: Site) -> tuple[Trial, ...]:
    """All trials of the suite."""
    file = site.suite.file
    tasks, agents = [task.name for task in file.tasks], [agent.name for agent in file.agents]
    return tuple(trials_of(tasks, agents, file.repeats))


def standing_of(site: Site) -> Standing:
    """How far it is by what is written down."""
    return Standing(plan_of(site), site.evaluation.results(), site.evaluation.checks())


def usual_at_once() -> int:
    """Agents wait for their provider most of the time."""
    return max(2, min(8, 2 * (os.cpu_count() or 1)))


class Conductor:
    """Carries out what is missing of an evaluation."""

    def __init__(self, site: Site, terms: Terms, on_start: Callable[[Trial], object]) -> None:
        self._site, self._terms, self._on_start = site, terms, on_start
        self._stopping = threading.Event()
        self._lock = threading.Lock()  # of what follows
        self._waiting: deque[Trial] = deque()
        self._spent, self._limit, self._began = 0.0, "", 0.0
        self._errors: Counter[str] = Counter()  # in a row, by agent
        self._given_up: list[str] = []  # agents with nothing else, in words

    def begin(self, on_check: Callable[[TaskCheck], object]) -> None:
        """Refuse agents that cannot work, and look at each task that nobody has looked at yet.
        ConfigError for what is wrong with an agent."""
        site = self._site
        with self._hand() as hand:
            try:
                remedy = "Choose another place for checkouts: export XDG_CACHE_HOME=/some/where"
                with failing(f"cannot make {site.checkouts}", remedy):
                    os.makedirs(site.checkouts, mode=0o700, exist_ok=True)
                refuse_unusable(site, hand, self._terms.dollars)
            except BaseException:
                site.evaluation.forget_unbegun()
                remove(site.checkouts)
                raise
            known = site.evaluation.checks()
            for task in site.suite.file.tasks:
                if task.name not in known or known[task.name].problem:
                    check = look_at(site, task, hand)
                    site.evaluation.keep_check(check)
                    on_check(check)

    def carry_out(self, on_result: Callable[[Result], object]) -> Standing:
        """Make every trial that has no result; how far it is then."""
        site, standing = self._site, standing_of(self._site)
        self._waiting.extend(shuffled(standing.possible, site.suite.file.seed))
        known = (result.verdict.cost_usd for result in standing.results.values())
        self._spent, self._began = sum(filter(None, known)), time.monotonic()
        told: queue.Queue[Result | BaseException | None] = queue.Queue()
        hands = [
            threading.Thread(target=self._work, args=(told,), daemon=True)
            for _ in range(min(self._terms.at_once, len(self._waiting)))
        ]
        for hand in hands:
            hand.start()
        try:
            at_work = len(hands)
            while at_work:
                match told.get():
                    case None:
                        at_work -= 1
                    case Result() as result:
                        site.evaluation.keep(result)
                        on_result(result)
                    case BaseException() as error:
                        raise error
        finally:
            self._stopping.set()
            for hand in hands:
                hand.join()
            if not site.suite.file.keep:
                remove(site.checkouts)
        limit = "; ".join(filter(None, (*self._given_up, self._limit)))
        return replace(standing_of(site), limit=limit)

    def _work(self, told: "queue.Queue[Result | BaseException | None]") -> None:
        """Make trials until there are no more."""
        file = self._site.suite.file
        try:
            with self._hand() as hand:
                while trial := self._next():
                    task = next(task for task in file.tasks if task.name == trial.task)
                    agent = next(agent for agent in file.agents if agent.name == trial.agent)
                    self._on_start(trial)
                    result = try_once(self._site, trial, task, agent, hand)
                    if result is not None:
                        self._note(result)
                        told.put(result)
        except BaseException as error:  # noqa: BLE001  the caller's thread raises it
            told.put(error)
        told.put(None)

    def _note(self, result: Result) -> None:
        """Count what a trial has spent. An agent that has nothing but errors is given up, or a
        refused key would cost a turn for each trial that is left."""
        agent = result.trial.agent
        with self._lock:
            self._spent += result.verdict.cost_usd or 0.0
            self._errors[agent] = 0 if result.counts else self._errors[agent] + 1
            if self._errors[agent] == _MOST_ERRORS:
                left = [trial for trial in self._waiting if trial.agent != agent]
                if len(left) < len(self._waiting):
                    self._given_up.append(
                        f"{agent} was given up after {_MOST_ERRORS} errors in a row"
                    )
                self._waiting = deque(left)

    def _next(self) -> Trial | None:
        """The next trial to begin; None if there is none, or a limit is reached."""
        terms = self._terms
        with self._lock:
            if not self._waiting or self._stopping.is_set():
                return None
            if terms.seconds is not None and time.monotonic() - self._began >= terms.seconds:
                self._limit = f"its {duration(terms.seconds)} are used up"
            if terms.dollars is not None and self._spent >= terms.dollars:
                self._limit = f"its ${terms.dollars:g} are used up"
            return None if self._limit else self._waiting.popleft()

    def _watch(self) -> Cut | None:
        return Cut("interrupted", GRACE) if self._stopping.is_set() else None

    @contextmanager
    def _hand(self) -> Iterator[Hand]:
        """Whatever it starts ends with us, however we end. Its runs are a person's."""
        with keeping(None, GRACE, adopts=False, person=True) as starter:
            yield Hand(starter, self._watch)
