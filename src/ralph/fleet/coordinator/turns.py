"""Turns on other machines, as a run sees them: an agent that has them taken there, and layers that
land what came of them (ADR 47)."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from ralph.agents.turn_files import Filing, TurnFiles, private
from ralph.errors import StateError
from ralph.files.safe_open import create
from ralph.fleet.coordinator.attempts import DONE, FAILED, LIST, LOST, PLACED, Attempts, Errand
from ralph.fleet.coordinator.hearing import Hearing
from ralph.fleet.messages import is_number
from ralph.fleet.place import Fleet
from ralph.fleet.port import CameBack, Event, Failed, Handle, Lost
from ralph.fleet.trees import Remote, ResultFound, read_order
from ralph.git.checkpoint.work import Work
from ralph.git.repository import NOTHING, with_records
from ralph.kernel.events import Failure, Usage
from ralph.kernel.facts import Ended, Landed, Sent
from ralph.kernel.ports import Watch
from ralph.kernel.turn import Ending, Order, Pulse, Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Cut
from ralph.runner.wired import AgentReaders

_AGAIN = 2.0  # seconds before a remote is asked again that could not be reached
_SAME = 60.0  # seconds in which it is missed for the same reason
_LOOK = 0.25
_PATIENCE = 600.0
_MOST_FAILED = 3  # attempts in a row that no machine could make
_MOST_LOST = 8  # in a row, with the machine that made it
_YEAR = 366 * 24 * 3600.0  # seconds


class FleetTurns:
    """An `Agent` whose turns are taken elsewhere, and the `SandboxLayers` that land them here."""

    def __init__(
        self,
        fleet: Fleet,
        work: Work,
        errand: Errand,
        filing: Filing,
        readers: AgentReaders,
        *,
        number: int = 0,
        sent: Sent | None = None,
        tell: Callable[[str], None],
        prepare: Callable[[], None],
    ) -> None:
        """There were so many attempts; `sent` is the last, of a turn that is not over. `prepare`
        has the work tree ready for checks while the agent is at work."""
        remote = Remote(work.repository, fleet.remote, self._wait)
        self._attempts = Attempts(remote, work, errand, readers.record, number=number, sent=sent)
        self._executor, self._work, self._branch = fleet.dispatcher, work, errand.branch
        self._filing, self._readers, self._tell = filing, readers, tell
        self._prepare = prepare
        self._watch: Watch = lambda _: None
        self._in_turn = self._may_be_placed = False
        self._strays: dict[int, Handle] = {}  # attempts that were lost, by number
        self._queued = 0.0  # seconds of this turn in which no machine had it
        self._missing = (0.0, 0.0)  # since when the remote is, and until when it was

    # ------------------------------------------------------------------ the agent

    def take_turn(self, order: Order, watch: Watch) -> Turn:
        """Have one attempt after the other made, until there is a result or nobody can."""
        self._watch, files = watch, self._filing.begin(order)
        self._in_turn, self._queued = True, 0.0
        self._may_be_placed = self._attempts.sent is not None
        try:
            with self._prepared() as check:
                turn = self._taken(order, files, check)
        except _CutError as error:
            self._attempts.leave()
            turn = _cut(error.cut)
        finally:
            self._in_turn = False
        return replace(turn, stream=files.stream, place=order.place, queued=self._queued)

    def _taken(self, order: Order, files: TurnFiles, check: Callable[[], None]) -> Turn:
        failed = lost = 0
        spent = 0.0  # by attempts that brought nothing
        allowed = order.dollars
        while True:
            attempts = self._attempts
            placed, tell = self._placed, self._tell
            hearing = Hearing(
                self._executor,
                self._readers,
                files,
                order,
                placed=placed,
                tell=tell,
                queued=self._queued,
                spent=spent,
            )
            last: Event = Failed("its ref is taken", passes=True)
            if self._begun(order):
                handle = self._executor.submit(attempts.job(), again=attempts.again)
                last = hearing.follow(handle, self._watch, partial(self._look, check))
                self._queued = hearing.queued
                if isinstance(last, Lost) and attempts.sent is not None:
                    self._strays[attempts.sent.attempt] = handle
            found = attempts.found()
            if found is not None:
                return _paid(self._ended(found, files, hearing.host), spent)
            why, spent = _why(last), hearing.dollars
            attempts.give_up(LOST if isinstance(last, Lost) else FAILED, hearing.host, why)
            if hearing.cut is not None:
                return _paid(_cut(hearing.cut), spent)
            if isinstance(last, Failed) and not last.passes:
                return _paid(Turn(Ending.UNSTARTABLE, exit_code=None, why=why), spent)
            failed, lost = (0, lost + 1) if isinstance(last, Lost) else (failed + 1, 0)
            used_up = allowed is not None and spent >= allowed
            if failed >= _MOST_FAILED or lost >= _MOST_LOST or (spent and used_up):
                return _paid(Turn(exit_code=None, failure=Failure(why)), spent)
            if allowed is not None:
                order = replace(order, dollars=allowed - spent)

    def _begun(self, order: Order) -> bool:
        """Whether there is an attempt to be heard: also one that an earlier process has sent, where
        the remote is away and somebody asks to stop. It is ended before it is left, since whoever
        goes on later begins another."""
        watch, is_known = self._watch, self._attempts.sent is not None
        try:
            return self._attempts.begun(order)
        except _CutError as error:
            if not is_known:
                raise
            cut = error.cut
            self._attempts.again = True
            self._watch = lambda pulse: watch(pulse) or cut
            return True

    def _look(self, check: Callable[[], None]) -> None:
        """What is to be looked at all the time while an attempt is under way."""
        check()
        for number, handle in [*self._strays.items()]:
            for event in self._executor.events(handle, 0.0):
                if isinstance(event, CameBack):
                    del self._strays[number]
                    why = "it was given up, and is heard again"
                    self._attempts.ignored(number, event.host, why)

    def _placed(self, host: str) -> None:
        self._may_be_placed = True
        self._attempts.fared(PLACED, host)

    def _ended(self, found: ResultFound, files: TurnFiles, host: str) -> Turn:
        """The turn of a result. Its stream is whole now: what was heard may be a part."""
        self._attempts.fared(DONE, host)
        data = self._work.repository.ask("cat-file", "blob", found.stream)
        with open(files.stream, "wb", opener=private) as file:
            file.write(data)
        ended = found.facts[-1]
        assert isinstance(ended, Ended)
        return _believable(ended.turn)

    @contextmanager
    def _prepared(self) -> Iterator[Callable[[], None]]:
        """Prepare the work tree meanwhile. What is given raises what went wrong so far."""
        wrong: list[BaseException] = []

        def run() -> None:
            try:
                self._prepare()
            except BaseException as error:  # noqa: BLE001  it is raised in the run's own thread
                wrong.append(error)

        def check() -> None:
            if wrong:
                raise wrong[0]

        thread = threading.Thread(target=run, name="prepare")
        thread.start()
        try:
            yield check
        finally:
            thread.join()
        check()

    def _wait(self, error: StateError) -> None:
        """Before the remote is asked again: a network may be gone for a while."""
        since, until = self._missing
        now = time.monotonic()
        if now > until:
            since = now
            self._tell(f"{error.message}. It is asked again.")
        if now > since + _PATIENCE:
            raise error
        self._missing = since, now + _AGAIN + _SAME
        while time.monotonic() < now + _AGAIN:
            cut = self._watch(Pulse(0.0, 0.0, queued=self._queued, placed=self._may_be_placed))
            if cut is not None:
                raise _CutError(cut) if self._in_turn else error
            time.sleep(_LOOK)

    # ------------------------------------------------------------------ the layers

    def land(self, iteration: int, now: float, *, keep: bool) -> Landed:
        """Have the files as the turn has left them there. Who is killed in it does it again."""
        found, sent, repository = self._attempts.found(), self._attempts.sent, self._work.repository
        if found is None or sent is None:
            return Landed(now, kept=False)
        order = read_order(repository, sent.order)
        count = len(repository.changes(self._with_our_records(found), order.work))
        if not keep:
            return Landed(now, kept=False, count=count)
        self._apply(found)
        landed = (fact for fact in found.facts if isinstance(fact, Landed))
        told = next(landed, Landed(now, kept=True))
        ours = (LIST,) if found.list != order.list else ()
        return replace(told, time=now, kept=True, count=count, saved="", ours=ours)

    def clear(self) -> None:
        """Forget what has landed: the journal has it."""
        self._attempts.forget()

    def _apply(self, found: ResultFound) -> None:
        ask, path = self._work.repository.ask, os.path.join(self._work.workspace, LIST)
        files = self._with_our_records(found)
        ask("symbolic-ref", "HEAD", self._branch)
        ask("update-ref", self._branch, found.head)
        ask("reset", "--hard", "--quiet", found.head)
        ask("clean", "-f", "-f", "-d", "--quiet")
        ask("read-tree", "--reset", "-u", files)  # also over what is ignored here, and not there
        ask("read-tree", "HEAD")
        if found.list is None:
            with suppress(FileNotFoundError):
                os.unlink(path)
        elif found.list != self._attempts.task_list():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with os.fdopen(create(path), "wb") as file:
                file.write(found.list)

    def _with_our_records(self, found: ResultFound) -> str:
        """The files of a result, with no `.ralph` but that of its commit."""
        repository = self._work.repository
        files, records = with_records(repository, found.work, found.head), repository.place.records
        if repository.resolve(f"{found.head}:{records}") or not repository.resolve(
            f"{files}:{records}"
        ):
            return files
        return repository.edited(files, {records: (NOTHING, "")})


class _CutError(Exception):
    """The turn was cut where nobody else could be asked to end it."""

    def __init__(self, cut: Cut) -> None:
        super().__init__(cut.why)
        self.cut = cut


def _cut(cut: Cut) -> Turn:
    return Turn(Ending.CUT, exit_code=None, why=cut.why)


def _paid(turn: Turn, spent: float) -> Turn:
    """The turn with what attempts have cost of which there is no result."""
    if not spent or turn.uncounted:
        return turn
    return replace(turn, cost_usd=(turn.cost_usd or 0.0) + spent)


def _why(last: Event) -> str:
    if isinstance(last, Failed):
        return f"{last.why}. {last.remedy}".strip() if last.remedy else last.why
    return last.why if isinstance(last, Lost) else "its machine says that it is done, and it is not"


def _believable(turn: Turn) -> Turn:
    """A turn as another machine tells it: sums that can be added, times that can be waited for."""
    cost, usage, failure = turn.cost_usd, turn.usage, turn.failure
    if cost is not None and not _is_sum(cost):
        cost = None
    if failure is not None:
        later, resets = failure.retry_after, failure.resets_at
        later = min(later, _YEAR) if later is not None and _is_sum(later) else None
        latest = time.time() + _YEAR
        resets = min(resets, latest) if resets is not None and _is_sum(resets) else None
        failure = replace(failure, retry_after=later, resets_at=resets)
    tokens = (usage.input, usage.output, usage.cache_read, usage.cache_write)
    counts = (turn.tools, turn.tool_errors, turn.unknown)
    tools, tool_errors, unknown = (n if _is_sum(n) else 0 for n in counts)
    return replace(
        turn,
        cost_usd=cost,
        usage=Usage(*(n if _is_sum(n) else 0 for n in tokens)),
        failure=failure,
        tools=tools,
        tool_errors=tool_errors,
        unknown=unknown,
        exit_code=turn.exit_code if _is_sum(abs(turn.exit_code or 0)) else 1,
        seconds=turn.seconds if _is_sum(turn.seconds) else 0.0,
    )


def _is_sum(told: float) -> bool:
    return is_number(told) and told >= 0
