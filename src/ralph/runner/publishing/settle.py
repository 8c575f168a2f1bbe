"""Publishing as steps of settling: push → pull request → the word of CI → merge.

Each step is on disk, so that whoever was killed in between goes on with the next one.
"""

from collections.abc import Callable, Generator
from typing import Protocol, TypeVar

from ralph.errors import ForgeError
from ralph.forge.judging import Green, Nobody, Pending, Red, Terms, judged
from ralph.forge.port import Check
from ralph.kernel.facts import CI, Fact, Published, Resting, Step
from ralph.kernel.ports import Gates, Ports
from ralph.kernel.proving import no_new_step, uphold
from ralph.kernel.state import RunState, fold
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Cause, Continue, Feedback, Park, Reason, Stop, Verdict
from ralph.text.words import counted, duration, listed

PUSH = "push"  # the key of its step
_LOGS = 3  # of checks that failed, in full
_NAMED = 5
_MOST_LOGGED = 30_000  # characters of all of them: one argument holds what an agent is told
_SHORT_ID = 12
_SECOND_LOOK = 15.0  # seconds: the checks of another workflow may not have been announced yet
_Answer = TypeVar("_Answer")
_Facts = Generator[Fact, None, _Answer]


@value
class Pushed:
    """The result of a push: what git said, and whether the branch has somebody else's commits."""

    ok: bool
    said: str = ""
    foreign: bool = False


class Outlet(Protocol):
    """The way to the forge. Methods raise ForgeError, whose `retry_after` says if it may pass."""

    def top(self, state: RunState) -> str:
        """The commit to publish; "" if there is nothing that the base does not have."""

    def push(self, state: RunState, commit: str) -> Pushed:
        """Let the branch of this work be at that commit; nothing to do where it is."""

    def propose(self, state: RunState, commit: str, now: float) -> Published:
        """Open the pull request, or let the one that is open say what the work is now."""

    def moved(self, pull: Published) -> str:
        """Why CI's word on this commit is not about the pull request any more; "" if it is."""

    def checks(self, commit: str) -> tuple[Check, ...]: ...

    def log(self, check: Check) -> str: ...

    def say(self, pull: Published, text: str) -> None: ...

    def merge(self, pull: Published) -> None: ...


@value
class Hearing:
    """How long, and how often, CI is asked."""

    terms: Terms = Terms()
    poll: float = 15.0
    repairs: int = 3


@value
class Publication:
    """Publishes what was accepted. `hearing` is None where CI's word does not count; without
    `opens` the work was pushed already, and there is no pull request."""

    outlet: Outlet
    law: Gates = ()
    hearing: Hearing | None = Hearing()
    max_wait: float = 86_400.0
    opens: bool = True
    merges: bool = False

    def __call__(
        self, ports: Ports, state: RunState, *, finished: bool = True
    ) -> _Facts[Verdict | None]:
        """Another verdict on the work that was accepted, or None if that stands. With more to come
        on this branch it is not `finished`: CI is not waited for."""
        publishing = _Publishing(self, ports, state)
        try:
            return (yield from publishing.run(finished=finished))
        except _OverdueError as error:
            return Stop(Reason.LIMIT, error.message)
        except ForgeError as error:
            return Stop(Reason.BLOCKED, error.words)


class _OverdueError(ForgeError):
    """The run's patience is used up."""


class _Publishing:
    def __init__(self, how: Publication, ports: Ports, state: RunState) -> None:
        self._how, self._outlet, self._ports, self._state = how, how.outlet, ports, state

    def run(self, *, finished: bool) -> _Facts[Verdict | None]:
        commit = yield from self._ask(lambda: self._outlet.top(self._state))
        if not commit:
            if self._state.step(PUSH) is None:
                yield from self._tell(Step(self._now, PUSH, detail="nothing is new"))
            return None
        pull = None
        if self._how.opens:
            pull = next((p for p in self._state.pulls if p.commit == commit), None)
            if refused := (yield from self._push(commit)):
                return refused
            pull = pull or (yield from self._propose(commit))
        if not finished:
            return None
        if refused := (yield from self._asked_ci(commit, pull)):
            return refused
        if self._how.merges and pull is not None and not pull.merged:
            return (yield from self._merge(pull))
        return None

    def _push(self, commit: str) -> _Facts[Verdict | None]:
        if self._state.step(PUSH) is not None:
            return None
        no_new_step(self._ports, "the push")
        pushed = yield from self._ask(lambda: self._outlet.push(self._state, commit))
        uphold(self._how.law, self._ports, self._state)  # its hooks run code that the agent wrote
        if pushed.ok:
            yield from self._tell(Step(self._now, PUSH, detail=pushed.said, commit=commit))
            return None
        no_new_step(self._ports, "the push had ended")
        return _left_to_people(pushed.said) if pushed.foreign else _stop(pushed.said)

    def _propose(self, commit: str) -> _Facts[Published]:
        no_new_step(self._ports, "the pull request")
        pull = yield from self._ask(lambda: self._outlet.propose(self._state, commit, self._now))
        yield from self._tell(pull)
        return pull

    def _asked_ci(self, commit: str, pull: Published | None) -> _Facts[Verdict | None]:
        how, told = self._how.hearing, self._state.step(CI)
        if how is None:
            return None
        if told is None:
            return (yield from self._heard(how, commit, pull))
        return None if told.ok else (yield from self._red(how, told.detail, pull))

    def _heard(self, how: Hearing, commit: str, pull: Published | None) -> _Facts[Verdict | None]:
        """Wait until CI has spoken of this very commit. Green counts when two looks agree."""
        since = self._state.time if pull is None else pull.time
        seen: tuple[Check, ...] | None = None
        green = False
        while True:
            if pull is not None:
                moved = yield from self._ask(lambda: self._outlet.moved(pull))
                if moved:
                    return _left_to_people(moved)
            checks = yield from self._ask(lambda: self._outlet.checks(commit))
            if checks != seen:
                since, seen = (since if seen is None else self._now), checks
            poll, where = how.poll, f"#{pull.number}" if pull else commit[:_SHORT_ID]
            match judged(checks, how.terms, self._now - since):
                case Green(words) if green:
                    yield from self._tell(Step(self._now, CI, detail=words))
                    return None
                case Green(words):
                    green, poll, why = True, min(poll, _SECOND_LOOK), "green, looking once more"
                case Pending(words):
                    green, why = False, words
                case Red(failed):
                    detail = self._words_of(failed, commit)
                    yield from self._tell(Step(self._now, CI, ok=False, detail=detail))
                    return (yield from self._red(how, detail, pull))
                case Nobody(words):
                    return _stop(f"{words}. If that is as it should be: --no-ci")
            yield from self._rest(poll, f"CI of {where}: {why}")

    def _words_of(self, failed: tuple[Check, ...], commit: str) -> str:
        """What the agent is told: which jobs failed on which commit, and the ends of their logs."""
        names = listed([check.name for check in failed], _NAMED)
        lines = [f"{names} failed on commit {commit[:_SHORT_ID]} in continuous integration."]
        room = _MOST_LOGGED // len(failed[:_LOGS])
        for check in failed[:_LOGS]:
            said = ", ".join(filter(None, (check.said, check.url)))
            lines += ["", f"{check.name}{': ' * bool(said)}{said}"]
            try:
                log = self._outlet.log(check)
            except ForgeError as error:
                log = f"(its log cannot be read: {error.message})"
            end = log.rstrip("\n")[-room:]
            lines += ["The end of its log:", end] if end.strip() else []
        return "\n".join(lines)

    def _red(self, how: Hearing, detail: str, pull: Published | None) -> _Facts[Verdict]:
        """Back to the agent, so many times."""
        if self._state.reds <= how.repairs:
            return Continue((Feedback(detail),))
        first = detail.partition("\n")[0]
        why = f"CI is still red after {counted(how.repairs, 'repair')}: {first}"
        if pull is not None:
            words = f"Ralph stops here and leaves it to you.\n\n{first}"
            yield from self._ask(lambda: self._outlet.say(pull, words))
            why = f"{why} {pull.url}"
        return _left_to_people(why)

    def _merge(self, pull: Published) -> _Facts[Verdict | None]:
        no_new_step(self._ports, "the merge")
        try:
            yield from self._ask(lambda: self._outlet.merge(pull))
        except _OverdueError:
            raise
        except ForgeError as error:
            return _left_to_people(f"#{pull.number} is not merged: {error.words}")
        yield from self._tell(replace(pull, time=self._now, merged=True))
        return None

    # ------------------------------------------------------------------ shared

    @property
    def _now(self) -> float:
        return self._ports.clock.now()

    def _tell(self, fact: Fact) -> _Facts[None]:
        yield fact
        self._state = fold(self._state, fact)

    def _ask(self, ask: Callable[[], _Answer]) -> _Facts[_Answer]:
        """The answer; where the forge asks to be left alone for a while, later."""
        while True:
            try:
                return ask()
            except ForgeError as error:
                if error.retry_after is None:
                    raise
                yield from self._rest(error.retry_after, error.message)

    def _rest(self, seconds: float, why: str) -> _Facts[None]:
        """Sleep; the time is not spent, and the wake time is on disk."""
        state = self._state
        waited = state.waited + (self._now - state.time if state.resting else 0.0)
        if waited + seconds > self._how.max_wait:
            raise _OverdueError(f"waiting used up ({duration(self._how.max_wait)}): {why}")
        until = self._now + seconds
        yield from self._tell(Resting(self._now, until, why))
        world = self._ports.world
        self._ports.clock.rest(until, lambda: world.signals().urgent)
        no_new_step(self._ports, why)


def _left_to_people(why: str) -> Park:
    return Park(why, Cause.REVIEW)


def _stop(why: str) -> Stop:
    return Stop(Reason.BLOCKED, why)
