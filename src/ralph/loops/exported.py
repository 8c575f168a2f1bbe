"""A loop in a session, to be exported: it has no journal, so its facts are made of what it keeps,
with the transcript of its session between them.

Each stop that was held ends an iteration, and what the hook said to it is the prompt of the next. A
decision keeps no time: it gets that of the transcript's line in which the agent hears of it.
"""

from collections.abc import Iterator
from typing import ClassVar

from ralph.errors import StateError
from ralph.export.lines import iso
from ralph.export.parts import Closed, Gap, Opened, Part
from ralph.export.transcript import DIALECT, Transcript
from ralph.kernel.facts import Assigned, Began, Decided, Ended, Fact, Launching, Settled, Started
from ralph.kernel.findings import Finding
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Role
from ralph.kernel.value import replace
from ralph.kernel.verdict import Accept, Boundary, Continue, Reason, Stop, Verdict
from ralph.loops.session.state import ACCEPTED, EXHAUSTED, Decision, SessionLoop
from ralph.loops.session.words import opening
from ralph.text.words import counted

_ENDS = {ACCEPTED: Reason.COMPLETED, EXHAUSTED: Reason.LIMIT}  # by a stop; others by a person
_OPEN_END = "nobody knows when the loop ended: what the session did afterwards may be among this"


class SessionSource:
    """A loop as it is now, and its session for as long as it was the loop's. StateError where its
    times are none."""

    sent: Assigned | None = None
    workers: ClassVar[tuple["SessionSource", ...]] = ()
    journal = problem = ""

    def __init__(self, loop: SessionLoop) -> None:
        self.id, self._loop = loop.session, loop
        try:
            iso(loop.started), iso(loop.since)
        except (OSError, OverflowError, ValueError) as error:
            raise StateError(
                f"the loop of session {loop.session} has odd times: {error}"
            ) from error
        self._now = 0.0  # the time up to which it is told
        self._held: dict[int, Decision] = {}  # not told yet, by the number of the stop

    def merged(self) -> Iterator[tuple[str, Fact | Part]]:
        return ((self.id, told) for told in self.told())

    def told(self) -> Iterator[Fact | Part]:
        loop, number = self._loop, 0
        self._now, last = loop.started, self._last
        held = loop.decisions[:-1] if last else loop.decisions
        self._held = dict(enumerate(held, int(loop.iteration) - len(held)))
        prompt, until = opening(loop.wish, loop.session), loop.since if last else None
        with Transcript(loop.transcript, loop.wish.task, loop.started, until) as transcript:
            agent = transcript.host
            yield Started(loop.started, loop.session, "session", loop.project, 0, "", agent=agent)
            while True:
                stretch = transcript.stretch()
                yield Began(self._now, number + 1, Assignment("loop"))
                launch = Launching(
                    self._now, Role.WORK, DIALECT, loop.transcript, agent=agent, model=stretch.model
                )
                yield launch
                began, self._now = self._now, max(self._now, stretch.time)
                seconds = round(self._now - began, 3)
                turn = stretch.turn and replace(stretch.turn, exit_code=None, seconds=seconds)
                ended = Ended(self._now, turn) if turn else None
                yield Opened(launch, prompt, ended)
                yield from transcript.parts(stretch)
                if not stretch.feedback:
                    yield from map(Gap, self._unknown())
                yield Closed()
                if ended is not None:
                    yield ended
                if not stretch.feedback:
                    break
                prompt, number = stretch.feedback, number + 1
                yield from self._hold(number - 1)
                yield Settled(self._now, Continue())
        yield from self._end()

    @property
    def _last(self) -> Decision | None:
        """The decision that has ended it."""
        decisions = self._loop.decisions
        return decisions[-1] if decisions and self._loop.status in _ENDS else None

    def _unknown(self) -> Iterator[str]:
        """What nobody knows of the loop."""
        if self._held:
            stops = counted(len(self._held), "held stop")
            yield f"not found in the transcript, and told behind it: {stops}"
        if not self._loop.running and self._last is None:
            yield _OPEN_END

    def _hold(self, number: int) -> Iterator[Fact]:
        """The decision to hold a stop. Of very many the oldest are forgotten."""
        if (decision := self._held.pop(number, None)) is not None:
            yield self._decided(decision, Continue())

    def _end(self) -> Iterator[Fact]:
        loop = self._loop
        for number in tuple(self._held):
            yield from self._hold(number)
        if loop.running:
            return
        reason = _ENDS.get(loop.status, Reason.INTERRUPTED)
        stop = Stop(reason, loop.why or loop.status)
        self._now = max(self._now, loop.since)
        if (last := self._last) is not None:
            yield self._decided(last, Accept((str(last.reason),)) if last.accepted else stop)
        yield Settled(self._now, stop)

    def _decided(self, decision: Decision, verdict: Verdict) -> Decided:
        findings = tuple(Finding(gate, "") for gate in decision.objections)
        return Decided(
            self._now,
            Boundary.STOPPING,
            verdict,
            findings,
            notes=(str(decision.reason),),
            rule=decision.rule,
        )
